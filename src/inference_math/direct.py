"""Claims tested directly: mixed steps and loaded prefixes beside formulas, with every number from one measurement.

Nothing is fitted here. The times are those of `own.times`, or for the models' side alone of `own.composed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from inference_math import theory
from inference_math.measure.points import Point
from inference_math.own import SIZES

__all__ = ["OVERLAPS", "loads", "overlaps"]

OVERLAPS = ("none", "serial_kv", "full")
_MIXED = ("decodes", "context", "tokens", "cached", *OVERLAPS, "measured", "two_streams")


def overlaps(found: pd.DataFrame, mixed: Iterable[Point] | None = None) -> pd.DataFrame:
    """Return what three models make of mixed steps from their parts measured alone, beside the steps measured.

    No coefficient is fitted. The models [C23, C24]: none, the decodes alone plus the chunk alone; serial_kv, all
    products at once, then the attention of the decodes, then that of the chunk; full, the longer of the decodes alone
    (all reads) and of products and attention of the chunk (all compute).

    Parameters
    ----------
    found
        Times with the parts of each step.
    mixed
        The steps; default: those that were measured and whose parts all were.

    Returns
    -------
    pandas.DataFrame
        decodes, context, tokens, cached; none, serial_kv, full, measured and two_streams (the decodes' attention
        beside the chunk's) in seconds, NaN where not measured; hidden and hidden_two_streams, how much of what lies
        between serial_kv and full is hidden: 0 means the KV reads add, 1 that they cost nothing.
    """
    by_point = _by_point(found)
    steps = [p for p in by_point if p.what == "mixed"] if mixed is None else [replace(p, what="mixed") for p in mixed]
    rows = []
    for step in sorted(steps):
        decode, chunk = Point("decode", step.decodes, step.context), replace(step, what="prefill", decodes=0, context=0)
        parts = (
            decode, chunk, Point("matrices", step.decodes, 0, 1, step.tokens), replace(decode, what="attention"),
            replace(chunk, what="attention"),
        )  # fmt: skip
        if not all(part in by_point for part in parts):
            continue
        decoding, prefilling, products, reads, attention = (by_point[part] for part in parts)
        models = (decoding + prefilling, products + reads + attention, max(decoding, products + attention))
        measured = (by_point.get(replace(step, what=what), np.nan) for what in ("mixed", "mixed-two-streams"))
        rows.append((step.decodes, step.context, step.tokens, step.cached, *models, *measured))
    frame = pd.DataFrame(rows, columns=list(_MIXED)).astype(dict.fromkeys(_MIXED[4:], "float64"))
    room = (frame["serial_kv"] - frame["full"]).where(lambda between: between > 0)
    return frame.assign(
        hidden=(frame["serial_kv"] - frame["measured"]) / room,
        hidden_two_streams=(frame["serial_kv"] - frame["two_streams"]) / room,
    )


def loads(found: pd.DataFrame, n_layers: int) -> pd.DataFrame:
    """Return prompts with a loaded prefix beside the formulas of C05, C07 and C10, with e from the same table.

    e is the time of a computed token of the whole prompt over that of a loaded one.

    Returns
    -------
    pandas.DataFrame
        alpha, the loaded share; e; speed-ups over computing the whole prompt: first and layerwise as measured,
        law_first, law_layerwise, law_mixed by the formulas; parts_first and parts_layerwise by the load and the rest
        (its prefix in HBM) as measured alone, one after the other and layer by layer.
    """
    by_point = _by_point(found)
    rows = []
    for first in sorted(p for p in by_point if p.what == "load-first"):
        n_in = first.cached + first.tokens
        parts = (
            Point("prefill", prompts=1, tokens=n_in), Point("load", prompts=1, cached=first.cached),
            replace(first, what="prefill"), replace(first, what="load-layerwise"),
        )  # fmt: skip
        if not all(part in by_point for part in parts):
            continue
        whole, load, rest, layerwise = (by_point[part] for part in parts)
        alpha, e = first.cached / n_in, (whole / n_in) / (load / first.cached)
        rows.append(
            {
                "alpha": alpha, "e": e, "first": whole / by_point[first], "layerwise": whole / layerwise,
                "law_first": theory.speedup_whole(alpha=alpha, e=e),
                "law_layerwise": theory.speedup_layerwise(alpha=alpha, e=e),
                "law_mixed": theory.speedup_mixed(alpha=alpha, e=e),
                "parts_first": whole / (load + rest),
                "parts_layerwise": n_layers * whole / (load + rest + (n_layers - 1) * max(load, rest)),
            }
        )  # fmt: skip
    return pd.DataFrame(rows).sort_values("alpha", ignore_index=True) if rows else pd.DataFrame()


def _by_point(found: pd.DataFrame) -> dict[Point, float]:
    rows = found[["what", *SIZES, "seconds"]].to_numpy().tolist()
    return {Point(what, *sizes): seconds for what, *sizes, seconds in rows}
