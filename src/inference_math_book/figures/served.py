"""Served Llama-3-70B beside the talks' law, drawn on given axes: see `inference_math_book.served`.

Dots are measured, lines are the law with the numbers that were fitted to TPOT.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from inference_math_book import served
from inference_math_book.explore.live import COLOURS

__all__ = ["first_tokens"]

_USERS = [4, 8, 16, 32, 64]


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
