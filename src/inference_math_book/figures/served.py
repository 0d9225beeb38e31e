"""Served Llama-3-70B beside the talks' law, drawn on given axes: see `inference_math_book.served`.

Dots are measured, lines are the law with the numbers that were fitted to TPOT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math_book import served
from inference_math_book.explore.live import COLOURS

__all__ = ["first_tokens", "gap", "misses", "tpot"]

_USERS = [4, 8, 16, 32, 64]


def tpot(ax: Axes, tp: int) -> pd.DataFrame:
    """Draw TPOT against the users on `tp` GPUs, a colour for each pair of lengths; dots with a queue are open."""
    law, rows = served.fit(served.rows(tp)), served.rows(tp, queued=True)
    for ((n_in, n_out), pair), colour in zip(rows.groupby(["n_in", "n_out"]), COLOURS, strict=False):
        ax.plot([1, 64], 1e3 * law.tpot(np.array([1, 64]), n_in, n_out), color=colour, linewidth=1.2)
        queue, label = pair.ttft_s > served.QUEUE, f"{n_in:,.0f} in, {n_out:,.0f} out"
        ax.plot(pair.users[~queue], 1e3 * pair.tpot_s[~queue], "o", color=colour, label=label)
        ax.plot(pair.users[queue], 1e3 * pair.tpot_s[queue], "o", color=colour, mfc="none")
    ax.set(title=f"{tp} H100", xlabel="concurrent requests B", ylabel="TPOT (ms)", xlim=(0, 66), ylim=(0, None))
    return rows.assign(h100=tp)


def misses(ax: Axes, tps: tuple[int, ...] = (2, 4, 8)) -> None:
    """Draw by how many per cent the law misses rows that are left out, against the users."""
    for tp, mark in zip(tps, "o+x", strict=False):
        rows = served.rows(tp)
        ax.semilogx(rows.users, 100 * served.left_out(rows), mark, color="black", label=f"{tp} H100")
    ax.axhline(0, color="black", linewidth=1)
    ax.set(title="rows left out", xlabel="concurrent requests B", ylabel="error (%)")
    ax.set_xticks(_USERS, [f"{users}" for users in _USERS])
    ax.minorticks_off()
    ax.legend(fontsize=9, loc="upper left")


def first_tokens(axes: Mapping[int, Axes], front: float, tps: tuple[int, ...] = (2, 4, 8)) -> pd.DataFrame:
    """Draw mean TTFT against the users, on `axes` for some numbers of GPUs, and return all rows of `tps`.

    Columns beside those of the rows: h100; seconds of a first token by `law`, for users who have spread; `simulated` as
    the benchmark was run, and by the `second form` of the law, either also with a `front`.
    """
    found = []
    for tp in tps:
        law, rows = served.fit(served.rows(tp)), served.rows(tp).assign(h100=tp)
        rows["law"] = served.spread(law, rows)
        for name, form in {"simulated": law, "second form": law.even()}.items():
            for more, late in {"": 0.0, " + front": front}.items():
                rows[name + more] = served.played(form, rows, front=late).ttft_s
        found.append(rows)
    for tp, ax in axes.items():
        _first_tokens(ax, next(rows for rows in found if rows.h100.iloc[0] == tp), f"{tp} H100")
    return pd.concat(found, ignore_index=True)


def _first_tokens(ax: Axes, rows: pd.DataFrame, title: str) -> None:
    short = rows[rows.n_out == rows.n_out.min()]
    for (n_in, pair), colour in zip(short.groupby("n_in"), COLOURS, strict=False):
        ax.loglog(pair.users, 1e3 * pair.ttft_s, "o", color=colour, label=f"{n_in:,.0f} in, measured")
        for name, look in {"law": "-", "simulated": "--", "second form": ":"}.items():
            ax.loglog(pair.users, 1e3 * pair[name], look, color=colour)
    for name, look in {"law of chapter 3": "-", "simulated": "--", "simulated, second form": ":"}.items():
        ax.plot([], [], look, color="gray", label=name)
    ax.set(title=title, xlabel="concurrent requests B", ylabel="mean TTFT (ms)", ylim=(None, 2e3 * short.ttft_s.max()))
    ax.set_xticks(_USERS, [f"{users}" for users in _USERS])
    ax.set_yticks([100, 300, 1000], ["100", "300", "1,000"])
    ax.minorticks_off()


def gap(ax: Axes, n_out: int, tp: int = 2) -> None:
    """Draw ΔP and ΔH at both served prompts, with intervals of 90 %, for answers of `n_out` tokens."""
    rows = served.rows(tp)
    law = served.fit(rows)
    ends = np.array(law.lengths)
    for (name, of), colour in zip({"ΔP": served.Law.delta_p, "ΔH": served.Law.delta_h}.items(), COLOURS, strict=False):
        middle = 1e3 * of(law, ends, n_out)
        bars = [served.interval(rows, partial(_milliseconds, of, n_in, n_out)) for n_in in ends]
        ax.errorbar(ends, middle, abs(np.transpose(bars) - middle), fmt="o-", capsize=4, color=colour, label=name)
    ax.legend()


def _milliseconds(of: Callable[..., float], n_in: float, n_out: float, law: served.Law) -> float:
    return 1e3 * float(of(law, n_in, n_out))
