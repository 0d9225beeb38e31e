"""What vLLM did beside what the laws had said before: figures of the laboratory, drawn on given axes.

Every function takes tables of the laboratory, as `evidence.load("lab_arms").frame` has them, and returns what it drew.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import optimize, stats

from inference_math.evidence.fits import rounded
from inference_math_bench.lab import analysis
from inference_math_book.colours import COLOURS, colours_of
from inference_math_book.figures.ticks import plain
from inference_math_planner.laws.laws import Law

__all__ = [
    "agreement",
    "chunked",
    "counts",
    "gap_curves",
    "judged_steps",
    "limits",
    "means",
    "mixed_kinds",
    "pairs",
    "parts",
    "pools",
    "reuse",
    "store",
]

# How weight read and compute of a step go together: the norm with this exponent; 0: reads hide under compute, too.
FORMS = {"sum": 1.0, "p = 1.5": 1.5, "root": 2.0, "longer of two": np.inf, "full overlap": 0.0}
_STARTS = 12
_MS = 1e3


def pairs(ax: Axes, rows: pd.DataFrame, x: str, colour: str, label: str, scale: float = 1.0, marker: str = "o") -> None:
    """Draw predictions as a line and what was found as points with their 90 % intervals."""
    rows = rows.sort_values(x)
    error = [scale * rows.predicted * (rows.ratio - rows.low), scale * rows.predicted * (rows.high - rows.ratio)]
    ax.plot(rows[x], scale * rows.predicted, color=colour, linewidth=1.4, label=f"{label}, law")
    ax.errorbar(
        rows[x],
        scale * rows.predicted * rows.ratio,
        yerr=np.nan_to_num(np.array(error)),
        fmt=marker,
        color=colour,
        markersize=4.5,
        capsize=2,
        label=f"{label}, vLLM",
    )


def _of(table: pd.DataFrame, experiment: str, quantity: str, **arm: object) -> pd.DataFrame:
    rows = analysis.expanded(table, experiment)
    rows = rows[rows.quantity == quantity]
    for name, value in arm.items():
        rows = rows[rows[name] == value]
    return rows


def parts(prompt: Axes, decode: Axes, table: pd.DataFrame) -> pd.DataFrame:
    """Draw prompts alone by their length, and steps of decodes alone by their number, for two contexts."""
    rows = _of(table, "step", "seconds")
    alone = rows[(rows.prompts == 1) & rows.decodes.isna()]
    pairs(prompt, alone, "n_in", COLOURS[0], "a prompt alone", _MS)
    prompt.set(xscale="log", yscale="log", xlabel="tokens of the prompt", ylabel="step (ms)")
    only = rows[rows.prompts.isna()]
    for i, context in enumerate(sorted(only.context.unique())):
        pairs(decode, only[only.context == context], "decodes", COLOURS[i + 1], f"context {context:.0f}", _MS)
    decode.set(xlabel="decodes in the step")
    for ax in (prompt, decode):
        ax.legend(fontsize="x-small")
    return pd.concat([alone, only])


def judged_steps(table: pd.DataFrame, judges: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return how far forms of a step are from kinds of bare steps, on equal terms: a row for each of `FORMS` and kind.

    Tables are as `lab_gpu_steps`. Each form has six numbers: the weight read, a time for each row of the products, be
    it of a prompt or of a decode, and what is added for each decode, prompt, pair of tokens and token that is read. It
    is fitted to the kinds of `table` with prompts or with decodes alone, and tried on `judges` (default: the same
    table), where `mixed` are the others. `error` is what the form says over what was measured, less one.
    """
    drawn, tried = [], table if judges is None else judges
    bare = table[~((table.decodes > 0) & (table.tokens > 0))]
    kinds = bare.groupby(["decodes", bare.context.round(-2).rename("near"), "prompts", "tokens"], as_index=False)
    fitted = kinds[["context", "step_ms"]].mean()
    parts, found = _parts(fitted), fitted.step_ms.to_numpy()
    sizes = np.median(found) / parts.max(axis=0)
    # The longer of two terms is flat in the shorter one, so that a single start may stay where it is.
    starts = [np.ones(len(sizes)), *np.random.default_rng(0).lognormal(0, 1, (_STARTS, len(sizes)))]
    for form in FORMS:

        def off(x: NDArray[np.float64], form: str = form) -> NDArray[np.float64]:
            return np.asarray(_step_of(form, x * sizes * parts) / found - 1)

        best = min((optimize.least_squares(off, one, bounds=(0, np.inf)) for one in starts), key=lambda end: end.cost)
        said = _step_of(form, rounded(best.x * sizes) * _parts(tried))
        one = tried[["decodes", "context", "prompts", "tokens", "step_ms"]].assign(form=form, said_ms=said)
        drawn.append(one.assign(mixed=(one.decodes > 0) & (one.tokens > 0), error=one.said_ms / one.step_ms - 1))
    return pd.concat(drawn, ignore_index=True)


def _parts(steps: pd.DataFrame) -> NDArray[np.float64]:
    """Return what each step has of the weight read, rows, decodes, prompts, pairs and reads: a row for each."""
    pairs = steps.tokens**2 / 2 / steps.prompts.clip(lower=1)
    rows = [steps.tokens + steps.decodes, steps.decodes, steps.prompts, pairs, steps.decodes * steps.context]
    return np.column_stack([np.ones(len(steps)), *rows]).astype(np.float64)


def _step_of(form: str, parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how long steps take whose parts take so long."""
    weights, rows, decodes, prompts, pairs, reads = parts.T
    if form == "full overlap":
        return np.asarray(np.maximum(weights + reads, rows + pairs) + decodes + prompts)
    return np.asarray(np.linalg.norm([weights, rows], FORMS[form], axis=0) + decodes + prompts + pairs + reads)


def mixed_kinds(ax: Axes, judged: pd.DataFrame) -> pd.DataFrame:
    """Draw mixed kinds of steps over what each of `FORMS` says of them."""
    each = judged[judged.mixed].assign(found=lambda t: 1 / (1 + t.error))
    mixed = each.groupby(["form", "tokens", "decodes", each.context.round(-2)])[["found"]].mean().reset_index()
    mixed = mixed.assign(kind=[f"{r.decodes} × {r.context:,} + {r.tokens:,}" for r in mixed.itertuples()])
    order = mixed[mixed.form == "sum"].kind.tolist()
    for i, form in enumerate(FORMS):
        one = mixed[mixed.form == form].set_index("kind").found.reindex(order)
        ax.plot(one.to_numpy(), np.arange(len(order)) + 0.12 * (i - 2), "ovsD^"[i], color=COLOURS[i], label=form)
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set(xlabel="step of vLLM over what the form says", ylabel="decodes × context + prompt")
    ax.set_yticks(range(len(order)), order)
    ax.legend(fontsize="small")
    return mixed


def counts(axes: Mapping[str, Axes], table: pd.DataFrame, n_out: int) -> pd.DataFrame:
    """Draw the shares of steps with k prompts, an axes for each law of the lengths, and the binomial law."""
    drawn = []
    for name, ax in axes.items():
        rows = table[table.lengths == name]
        share = rows.steps / rows.steps.sum()
        law = stats.binom(int(rows.users.iloc[0]), 1 / n_out)
        said = np.append(law.pmf(rows.k.to_numpy()[:-1]), law.sf(int(rows.k.max()) - 1))
        ax.bar(rows.k, share, color=COLOURS[5])
        ax.plot(rows.k, said, "o", color="black", markersize=4)
        ax.set(title=name, xlabel="prompts in one step")
        drawn.append(pd.DataFrame({"lengths": name, "k": rows.k, "vllm": share, "binomial": said}))
    next(iter(axes.values())).set_ylabel("share of the steps (no unit)")
    return pd.concat(drawn)


def means(ax: Axes, table: pd.DataFrame) -> pd.DataFrame:
    """Draw mean TTFT and TPOT by users."""
    drawn = []
    for i, (name, label) in enumerate({"ttft": "TTFT", "tpot": "TPOT"}.items()):
        rows = _of(table, "interference", name, lengths="geometric")
        pairs(ax, rows, "users", COLOURS[i], label, _MS)
        drawn.append(rows)
    ax.set(xscale="log", yscale="log", xlabel="users (requests in the system)", ylabel="mean time (ms)")
    ax.set_xticks([1, 2, 4, 8, 16, 32, 64])
    ax.legend(fontsize="small")
    return pd.concat(drawn)


def gap_curves(ax: Axes, gaps: pd.DataFrame, laws: Mapping[int, Law]) -> pd.DataFrame:
    """Draw the share of gaps that are longer than a time: vLLM's, and the law's without noise."""
    for i, (users, law) in enumerate(laws.items()):
        rows = gaps[gaps.users == users]
        ax.plot(_MS * rows.gap, rows.above, color=COLOURS[i], label=f"{users} users, vLLM")
        above, times = 1 - np.cumsum(law.probabilities), np.asarray(law.values)
        kept = above > 5e-4
        ax.step(_MS * times[kept], above[kept], where="post", color=COLOURS[i], linestyle="--", linewidth=1)
    ax.set(yscale="log", xlabel="time between two tokens (ms)", ylabel="share of gaps that are longer (no unit)")
    ax.set_ylim(1e-3, 1.2)
    ax.legend(fontsize="small")
    return gaps


def limits(table: pd.DataFrame, laws: pd.DataFrame) -> pd.DataFrame:
    """Return the largest batches: by the printed form, by the corrected one, and what bisection found."""
    rows = _of(table, "limit", "users")
    printed = laws[(laws.experiment == "limit") & (laws.law == "printed")].set_index("arm").predicted
    names = {"of": "limit on", "times": "limit (weight reads)", "n_in": "prompt (tokens)", "cached": "in the cache"}
    shown = rows[list(names)].rename(columns=names)
    shown["printed"] = rows.arm.map(printed)
    shown["corrected"], shown["vLLM"] = rows.predicted, rows.found
    return shown.reset_index(drop=True)


def reuse(ax: Axes, table: pd.DataFrame, laws: pd.DataFrame, n_in: int) -> pd.DataFrame:
    """Draw the speedup of a prefill by the share that the engine's cache has."""
    rows = _of(table, "reuse", "speedup").assign(share=lambda t: t.cached / n_in)
    pairs(ax, rows, "share", COLOURS[0], "with the weight read")
    said = laws[(laws.experiment == "reuse") & (laws.quantity == "speedup")]
    names = {"printed": "1/(1 − α), as printed", "causal": "causal, without weight read"}
    for i, (law, label) in enumerate(names.items()):
        one = analysis.expanded(said[said.law == law], "reuse").sort_values("cached")
        ax.plot(one.cached / n_in, one.predicted, color=COLOURS[i + 1], linestyle="--", label=label)
    ax.set(yscale="log", xlabel="share of the prompt in the cache, α (no unit)")
    ax.set_ylabel("prefill, times faster (no unit)")
    ax.legend(fontsize="small")
    return rows


def store(ax: Axes, table: pd.DataFrame, laws: pd.DataFrame, layerwise: bool, n_in: int) -> pd.DataFrame:
    """Draw the speedup of a prefill by the stored share, for each acceleration of the store."""
    rows = _of(table, "store", "speedup", what="load", layerwise=layerwise).assign(share=lambda t: t.stored / n_in)
    said = analysis.expanded(laws[(laws.quantity == "speedup") & (laws.law == "printed")], "store")
    said = said[(said.what == "load") & (said.layerwise == layerwise)]
    for i, e in enumerate(sorted(rows.e.unique())):
        pairs(ax, rows[rows.e == e], "share", COLOURS[i], f"e = {e:g}")
        one = said[said.e == e].sort_values("stored")
        ax.plot(one.stored / n_in, one.predicted, color=COLOURS[i], linestyle=":", linewidth=1)
    ax.set(
        title="layer by layer" if layerwise else "everything first",
        yscale="log",
        xlabel="stored share of the prompt, α (no unit)",
        ylabel="prefill, times faster (no unit)",
    )
    ax.legend(fontsize="x-small")
    return rows


def chunked(ax: Axes, table: pd.DataFrame, laws: pd.DataFrame, quantity: str, n_out: int) -> pd.DataFrame:
    """Draw a quantity by the token budget of a step, with what three models of overlap say."""
    scale, unit = (_MS, "ms") if quantity in ("tpot", "gap_p99", "ttft") else (1.0, "tokens/s")
    rows = _of(table, "chunks", quantity, n_out=n_out).sort_values("budget")
    place = np.arange(len(rows))
    pairs(ax, rows.assign(place=place), "place", COLOURS[0], "nothing hides", scale)
    said = laws[laws.quantity == quantity]
    for i, (law, label) in enumerate({"serial-kv": "serial KV", "full": "full overlap"}.items()):
        one = analysis.expanded(said[said.law == law], "chunks")
        one = one[one.n_out == n_out].sort_values("budget")
        ax.plot(place, scale * one.predicted, color=COLOURS[i + 1], linestyle="--", label=label)
    names = {"tpot": "mean TPOT", "gap_p99": "P99 of the gap", "ttft": "mean TTFT", "tokens_per_s": "output"}
    ax.set(xlabel="tokens of a step at most", ylabel=f"{names[quantity]} ({unit})")
    ax.set_xticks(place, ["whole" if b > 4000 else plain(b) for b in rows.budget])
    ax.set_ylim(bottom=0)
    ax.legend(fontsize="x-small")
    return rows


def pools(ax: Axes, table: pd.DataFrame, n_out: int) -> pd.DataFrame:
    """Draw request rate against mean TPOT for two engines: both for everything, or a pool each."""
    drawn = []
    names = {False: "both for everything", True: "prefill | decode"}
    for (split, label), colour in zip(names.items(), colours_of(names.values()), strict=True):
        both = [_of(table, "pools", name, n_out=n_out, pools=split).set_index("users") for name in ("tpot", "rate")]
        tpot, rate = (one.sort_index() for one in both)
        ax.plot(_MS * tpot.predicted, rate.predicted, color=colour, linewidth=1.2, label=f"{label}, law")
        seen = _MS * tpot.predicted * tpot.ratio, rate.predicted * rate.ratio
        ax.plot(*seen, "o", color=colour, label=f"{label}, vLLM")
        for users in tpot.index:
            x, y = (float(one.predicted[users] * one.ratio[users]) for one in (tpot, rate))
            ax.annotate(str(users), (_MS * x, y), textcoords="offset points", xytext=(4, 4), fontsize="x-small")
        drawn += [tpot.reset_index(), rate.reset_index()]
    ax.set(title=f"{n_out} tokens out", xlabel="mean TPOT (ms)")
    return pd.concat(drawn)


def agreement(table: pd.DataFrame, rows: Mapping[str, tuple[str, str]]) -> pd.DataFrame:
    """Return for each named group (experiment, quantity) how far vLLM was from the law: error and range."""
    shown = []
    for name, (experiment, quantity) in rows.items():
        ratio = table[(table.experiment == experiment) & (table.quantity == quantity)].ratio
        off = (ratio - 1).abs()
        extremes = {"least": ratio.min(), "most": ratio.max()}
        shown.append({"what": name, "settings": ratio.size, "mean error": off.mean(), **extremes})
    return pd.DataFrame(shown)
