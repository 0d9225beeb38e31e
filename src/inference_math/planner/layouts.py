"""Which layout serves most per GPU: TP, DP and EP tried, and in pools a layout for prefills and one for decodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor
from typing import Any

import pandas as pd

from inference_math.checks import as_whole
from inference_math.perf.batch import MOST_TOGETHER, largest_whole
from inference_math.perf.steps import kv_tokens
from inference_math.planner.case import Case, solve, under
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

__all__ = ["layouts", "search"]

COLUMNS = ["architecture", "layout", "prefill layout", "gpus", "rate", "tokens_per_gpu", "batch", "ttft", "tpot"]
_SIZES = (1, 2, 4, 8, 16)
_MOST = 512  # GPUs among which layouts are tried


def layouts(unit: Unit, gpus: int) -> Iterator[Unit]:
    """Yield the layouts of a unit's model on at most so many GPUs: TP of 1 to 16, and of mixtures DP with EP.

    Those that do not exist are left out: a TP that does not divide the heads, GPUs too few for the weights.
    """
    most = as_whole("gpus", gpus, 1, _MOST)
    for tp in (size for size in _SIZES if size <= most):
        for dp in (size for size in _SIZES if tp * size <= most and (size == 1 or unit.model.is_mixture)):
            for ep in {1, tp * dp} if unit.model.is_mixture else {1}:
                if dp > 1 and ep == 1:
                    continue  # attention in groups goes with whole experts
                try:
                    yield unit.resized(tp=tp, dp=dp, ep=ep, pp=1)
                except ValueError:
                    continue


def search(unit: Unit, work: Workload, sla: SLA, gpus: int = 8) -> pd.DataFrame:
    """Return what each layout of at most `gpus` GPUs does at its best, most tokens of a GPU first.

    Columns: architecture; layout, in words, and prefill layout, where pools have two; gpus of what is repeated: a unit,
    or all pools of at most `gpus` GPUs; rate (requests/s of these GPUs); tokens_per_gpu (output tokens/s); batch
    (decodes of a unit); ttft and tpot (s). Aggregated and chunked serving of each layout, and the best pair of layouts
    for pools. Of the calibration itself, without draws; rates are those at saturation, as in `plan`.

    Raises
    ------
    ValueError
        Where no layout has room for the model.

    Examples
    --------
    >>> from inference_math import SLA, Unit, Workload
    >>> from inference_math.planner.layouts import search
    >>> found = search(Unit.of("qwen3-30b-a3b", "h100-sxm", 2), Workload(1000, 300), SLA(1.0, 0.04), gpus=4)
    >>> sorted(set(found["architecture"]))
    ['aggregated', 'chunked', 'disaggregated']
    """
    if not work.n_out > 1:
        raise ValueError(f"work.n_out must be more than one token, not {work.n_out:g}")
    units = list(layouts(unit, gpus))
    if not units:
        raise ValueError(f"gpus must be enough for {unit.model.name} in {unit.weights} on {unit.gpu.name}, not {gpus}")
    rows = []
    for one in units:
        table = solve(Case(one, work, sla)).compared
        for row in table[table["architecture"] != "disaggregated"].to_dict("records"):
            rows.append(_row(str(row["architecture"]), one, None, one.gpus, row["rate"], work, row))
    rows += _pools(units, work, sla, gpus)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    kept = frame[frame["rate"] > 0]
    return kept.sort_values("tokens_per_gpu", ascending=False, ignore_index=True, kind="stable")


def _row(name: str, one: Unit, prefill: Unit | None, gpus: int, rate: float, work: Workload, of: Any) -> dict[str, Any]:
    tokens = rate * work.n_out / gpus
    return {
        "architecture": name, "layout": _words(one), "prefill layout": _words(prefill) if prefill else "", "gpus": gpus,
        "rate": rate, "tokens_per_gpu": tokens, "batch": of["batch"], "ttft": of["ttft"], "tpot": of["tpot"],
    }  # fmt: skip


def _words(unit: Unit) -> str:
    parts = [f"TP {unit.tp}"] + [
        f"{name.upper()} {getattr(unit, name)}" for name in ("dp", "ep") if getattr(unit, name) > 1
    ]
    return ", ".join(parts)


def _pools(units: Sequence[Unit], work: Workload, sla: SLA, gpus: int) -> list[dict[str, Any]]:
    """Return the best pair of layouts for pools of whole units on at most so many GPUs, if there is one."""
    prefills = [(one, *_prefill(one, work, sla)) for one in units if one.gpus < gpus]
    decodes = [(one, *_decode(one, work, sla)) for one in units if one.gpus < gpus]
    best: dict[str, Any] = {}
    for prefill, fed, ttft in prefills:
        for decode, served, batch, gap in decodes:
            if not (fed and served):
                continue
            for many in range(1, floor((gpus - decode.gpus) / prefill.gpus) + 1):
                for others in range(1, floor((gpus - many * prefill.gpus) / decode.gpus) + 1):
                    rate, used = min(many * fed, others * served), many * prefill.gpus + others * decode.gpus
                    if rate / used > best.get("tokens_per_gpu", 0.0) / work.n_out * (1 + 1e-9):
                        found = {"batch": batch, "ttft": ttft, "tpot": gap}
                        best = _row("disaggregated", decode, prefill, used, rate, work, found)
    return [best] if best else []


def _prefill(unit: Unit, work: Workload, sla: SLA) -> tuple[float, float]:
    """Return (prompts/s, seconds of a prefill) of a unit that only computes prompts, together as far as TTFT allows."""
    step = under(Case(unit, work, sla))["mixed"]
    room = min(kv_tokens(unit.numbers, work.n_in) / work.n_in, MOST_TOGETHER)
    most = largest_whole(room, lambda k: step(0.0, float(k)) <= sla.ttft)
    rates = [(k / step(0.0, float(k)), step(0.0, float(k))) for k in {1, max(most // 2, 1), most} if k <= most]
    return max(rates, default=(0.0, 0.0))


def _decode(unit: Unit, work: Workload, sla: SLA) -> tuple[float, int, float]:
    """Return (requests/s, decodes, seconds of a step) of a unit that only decodes, as many as TPOT and memory allow."""
    step = under(Case(unit, work, sla))["mixed"]
    batch = largest_whole(min(unit.places(work), MOST_TOGETHER), lambda b: step(float(b), 0.0) <= sla.tpot)
    gap = step(float(batch), 0.0) if batch else 0.0
    return (batch / ((work.n_out - 1) * gap) if batch else 0.0), batch, gap
