"""Claims tested directly: mixed steps and loaded prefixes beside formulas, with every number from one measurement.

Nothing is fitted here. The times are those of `from_kernels.times`.
"""

from __future__ import annotations

from dataclasses import replace
from math import hypot

import numpy as np
import pandas as pd

from inference_math import theory
from inference_math.workload.points import SIZES, Point, parts_of_load, parts_of_mixed

__all__ = ["OVERLAPS", "from_parts", "hidden", "loads", "overlaps"]

OVERLAPS = ("none", "serial_kv", "full")
_SCHEDULES = {"measured": "mixed", "attention_beside": "mixed-attention", "steps_beside": "mixed-steps"}


def overlaps(found: pd.DataFrame) -> pd.DataFrame:
    """Return what three models make of mixed steps from their parts measured alone, beside the steps measured.

    Steps some part of which was not measured are left out.

    No coefficient is fitted. The models [C23, C24]: none, the decodes alone plus the chunk alone; serial_kv, all
    products at once, then the attention of the decodes, then that of the chunk; full, the longer of the decodes alone
    and of products and attention of the chunk.

    Returns
    -------
    pandas.DataFrame
        decodes, context, tokens, cached; none, serial_kv, full, and three schedules as measured (s, NaN where not):
        measured, one kernel after the other; attention_beside, the decodes' attention beside the chunk's;
        steps_beside, the decodes' whole step beside the chunk's. `closure`, the decodes' step over its products plus
        its attention, less one. `spread`, one standard deviation of serial_kv less `measured` between rounds (s; NaN
        for one round). `can_attention` and `can_steps`, what the two schedules can hide: the shorter attention, the
        shorter step (s). `hidden_attention` and `hidden_steps`, which share of that they hide: of `measured`, and of
        none.
    """
    by_point, spread = _by_point(found, "seconds"), _by_point(found, "between")
    rows = []
    for step in sorted(p for p in by_point if p.what == "mixed"):
        parts = parts_of_mixed(step)
        if not all(part in by_point for part in parts.values()):
            continue
        t = {name: by_point[part] for name, part in parts.items()}
        measured = {name: by_point.get(replace(step, what=what), np.nan) for name, what in _SCHEDULES.items()}
        summed = [parts["products"], parts["reads"], parts["attention"], step]
        own = t["products_of_decodes"] + t["reads"]
        none, serial = t["decodes"] + t["chunk"], t["products"] + t["reads"] + t["attention"]
        rows.append(
            {
                "decodes": step.decodes,
                "context": step.context,
                "tokens": step.tokens,
                "cached": step.cached,
                "none": none,
                "serial_kv": serial,
                "full": max(t["decodes"], t["products"] + t["attention"]),
                **measured,
                "closure": t["decodes"] / own - 1,
                "spread": hypot(*(spread.get(p, np.nan) * by_point.get(p, np.nan) for p in summed)),
                "can_attention": (can_attention := min(t["reads"], t["attention"])),
                "can_steps": (can_steps := min(t["decodes"], t["chunk"])),
                "hidden_attention": (measured["measured"] - measured["attention_beside"]) / can_attention,
                "hidden_steps": (none - measured["steps_beside"]) / can_steps,
            }
        )
    sizes, rest = ["decodes", "context", "tokens", "cached"], ["closure", "spread", "can_attention", "can_steps"]
    return pd.DataFrame(rows, columns=[*sizes, *OVERLAPS, *_SCHEDULES, *rest, "hidden_attention", "hidden_steps"])


def hidden(steps: pd.DataFrame) -> dict[str, float]:
    """Return which share of what they can the two schedules hide over all steps, large ones weighing most.

    Returns
    -------
    dict
        "attention", "steps"; NaN where they were not measured.
    """
    shares = {}
    for name in ("attention", "steps"):
        can = steps[f"can_{name}"].where(steps[f"hidden_{name}"].notna())
        shares[name] = float((steps[f"hidden_{name}"] * can).sum(min_count=1) / can.sum(min_count=1))
    return shares


def loads(found: pd.DataFrame, n_layers: int) -> pd.DataFrame:
    """Return prompts with a loaded prefix beside the formulas of C05, C07 and C10, with e from the same table.

    e is the time of a computed token of the whole prompt over that of a loaded one.

    Returns
    -------
    pandas.DataFrame
        alpha, the loaded share; e; speed-ups over computing the whole prompt. Measured: first, layerwise, and mixed,
        which beyond the share where load and rest are equally long is the layerwise of that share: no more than pays.
        law_first, law_layerwise, law_mixed by the formulas; parts_first and parts_layerwise by the load and the rest
        (its prefix in HBM) as measured alone, one after the other and layer by layer.
    """
    by_point = _by_point(found, "seconds")
    rows = []
    for first in sorted(p for p in by_point if p.what == "load-first"):
        n_in = first.cached + first.tokens
        parts = {
            "whole": Point("prefill", prompts=1, tokens=n_in),
            "layerwise": replace(first, what="load-layerwise"),
            **parts_of_load(first),
        }
        if not all(part in by_point for part in parts.values()):
            continue
        whole, layerwise, load, rest = (by_point[part] for part in parts.values())
        alpha, e = first.cached / n_in, (whole / n_in) / (load / first.cached)
        rows.append(
            {
                "alpha": alpha,
                "e": e,
                "load_over_rest": load / rest,
                "first": whole / by_point[first],
                "layerwise": whole / layerwise,
                "law_first": theory.speedup_whole(alpha=alpha, e=e),
                "law_layerwise": theory.speedup_layerwise(alpha=alpha, e=e),
                "law_mixed": theory.speedup_mixed(alpha=alpha, e=e),
                **from_parts(whole, load, rest, n_layers),
            }
        )
    if not rows:
        return pd.DataFrame()
    frame = pd.DataFrame(rows).sort_values("alpha", ignore_index=True)
    longer = frame.pop("load_over_rest")  # by the parts, not by which share turned out best
    at_star = frame["layerwise"][np.log(longer).abs().idxmin()]
    frame.insert(4, "mixed", frame["layerwise"].where(longer <= 1, at_star))
    return frame


def from_parts(whole: float, load: float, rest: float, n_layers: int) -> dict[str, float]:
    """Return the speed-ups parts_first and parts_layerwise of a prompt from its load and its rest, in seconds [C10]."""
    piped = (load + rest + (n_layers - 1) * max(load, rest)) / n_layers
    return {"parts_first": whole / (load + rest), "parts_layerwise": whole / piped}


def _by_point(times: pd.DataFrame, column: str) -> dict[Point, float]:
    rows = times[["what", *SIZES, column]].to_numpy().tolist()
    return {Point(what, *sizes): number for what, *sizes, number in rows}
