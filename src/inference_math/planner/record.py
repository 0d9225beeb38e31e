"""An answer as plain numbers, strings and lists: what `plan --json` prints, described by `answer.schema.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from inference_math.perf.asked import sent_bytes
from inference_math.perf.types import Layout
from inference_math.planner.deployment import Plan
from inference_math.planner.text import to_json

if TYPE_CHECKING:
    from inference_math.planner.traffic import Fleet

__all__ = ["SCHEMA", "as_record"]

SCHEMA = "inference-math/plan/1"
"""Name and version of the form; see `answer.schema.json`."""


def as_record(
    found: Plan, fleet: Fleet | None = None, layouts: pd.DataFrame | None = None, gpus: pd.DataFrame | None = None
) -> dict[str, object]:
    """Return a plan, and what a fleet for it is, as JSON has it; NaN and infinity become None."""
    case = found.case
    told: dict[str, object] = to_json(
        {
            "schema": SCHEMA, "unit": case.unit.name, "calibration": case.unit.calibration.mode,
            "workload": asdict(case.work), "sla": asdict(case.sla), "units": case.units,
            "feasible": found.feasible if fleet is None else True,
            "answer": _answer(found, fleet), "architectures": _architectures(found, fleet),
            "one_unit": _one_unit(found), "stores": _stores(found, fleet), "layouts": _rows(layouts),
            "gpus": _rows(gpus), "drafting": _rows(found.drafting),
            "numbers": {name: asdict(answer) for name, answer in found.answers.items()},
            "verdict": found.verdict, "advice": list(found.advice), "outside": list(found.outside),
            "cautions": list(found.cautions), "hindered": dict(found.hindered),
        }
    )  # fmt: skip
    return told


def _layout(found: Plan) -> Layout:
    return found.case.unit.numbers["layout"]


def _three(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}


def _means(found: Plan) -> object:
    return "means" if found.case.sla.quantile is None else found.case.sla.quantile


def _answer(found: Plan, fleet: Fleet | None) -> dict[str, object]:
    """Return the one recommendation: a fleet where traffic or GPUs were named, else a unit at full load."""
    if fleet is not None:
        return _of_fleet(found, fleet)
    rows = _units(found)
    if not found.feasible:
        return {
            "architecture": None, "tie": False, "best_in": 0.0, "expected_loss": None, "gpus": None,
            "layout": _layout(found), "rate": None, "ttft": None, "tpot": None, "tokens_per_gpu": None,
            "promise": _means(found), "store": _store(found), "settings": None, "split": None, "pools": None,
            "link_gb_s": None, "commands": [],
        }  # fmt: skip
    return next(row for row in rows if row["architecture"] == found.best) | {"tie": found.tie}


def _architectures(found: Plan, fleet: Fleet | None) -> list[dict[str, object]]:
    if fleet is None:
        return [row | {"none_in": found.solved["none_in"]} for row in _units(found)]
    return [_of_fleet(found, one) | {"tie": fleet.tie, "none_in": one.none_in} for one in (fleet, *fleet.others)]


def _of_fleet(found: Plan, one: Fleet) -> dict[str, object]:
    case = found.case
    prefill = one.row["prefill_units"]
    pools = one.architecture == "disaggregated"
    return {
        "architecture": one.architecture, "tie": one.tie, "best_in": one.best_in, "expected_loss": one.expected_loss,
        "gpus": _three(*one.gpus), "layout": _layout(found), "rate": _three(*_ordered(one.rate, one.span)),
        "ttft": _three(*one.ttft), "tpot": _three(*one.tpot),
        "tokens_per_gpu": one.rate * case.work.n_out / one.gpus[0],
        "promise": "means" if one.share is None else one.share, "store": _store(found), "settings": dict(one.plain),
        "split": {"prefill": prefill, "decode": one.units - prefill} if pools else None, "pools": _pools(found, pools),
        "link_gb_s": one.link_gb_s if pools else None, "commands": _commands(one.commands),
        "replicas": one.replicas, "units": one.units, "kept": one.kept, "decodes": None,
    }  # fmt: skip


def _ordered(rate: float, span: tuple[float, float, float]) -> tuple[float, float, float]:
    return rate, min(rate, span[1]), max(rate, span[2])


def _units(found: Plan) -> list[dict[str, object]]:
    """Return what each architecture is at full load: of one unit, or of pools of all units of both."""
    case = found.case
    told = []
    for row in found.compared.to_dict("records"):
        name, started = row["architecture"], found.starts.get(row["architecture"])
        pools = name == "disaggregated"
        gpus = case.unit.gpus * (case.units if pools else 1)
        each = row["rate"] * case.units / (case.units - row["prefill_units"]) if pools else np.nan
        many = case.units if pools else 1  # what is repeated, and all its GPUs
        rates = _three(many * row["rate"], many * row["rate_low"], many * row["rate_high"])
        told.append({
            "architecture": name, "tie": False, "best_in": row["best_in"], "expected_loss": row["loss"],
            "gpus": _three(gpus, gpus, gpus), "layout": _layout(found), "rate": rates if started else None,
            "ttft": _three(row["ttft"], row["ttft_low"], row["ttft_high"]) if started else None,
            "tpot": _three(row["tpot"], row["tpot_low"], row["tpot_high"]) if started else None,
            "tokens_per_gpu": row["rate"] * case.work.n_out / case.unit.gpus if started else None,
            "promise": _means(found), "store": _store(found), "settings": dict(started.plain) if started else None,
            "split": {"prefill": row["prefill_units"], "decode": case.units - row["prefill_units"]}
            if pools and started else None,
            "pools": _pools(found, pools),
            "link_gb_s": each * sent_bytes(case.asked) / 1e9 if pools and started else None,
            "commands": _commands(started.commands) if started else [], "replicas": 1,
            "units": case.units if pools else 1, "kept": row["kept"], "decodes": row["decodes"] if started else None,
        })  # fmt: skip
    return told


def _pools(found: Plan, pools: bool) -> dict[str, object] | None:
    return {"prefill": _layout(found), "decode": _layout(found)} if pools else None


def _store(found: Plan) -> str | None:
    """Return where the stored share lies, as `--tier` calls it; None where nothing is stored."""
    case = found.case
    if not case.work.alpha:
        return None
    return "hbm" if case.tier is None else case.tier.name


def _commands(commands: Any) -> list[dict[str, str]]:
    return [{"title": title, "command": line} for title, line in commands]


def _one_unit(found: Plan) -> list[Any]:
    """Return the table of one unit at full load; with traffic it stands below the answer, for it counts no queues."""
    columns = [one for one in found.compared.columns if one != "step"]
    return found.compared[columns].to_dict("records")


def _stores(found: Plan, fleet: Fleet | None) -> list[dict[str, object]]:
    """Return what the answer's GPUs serve with each store; a fleet's, in proportion to what units do at full load."""
    if not found.case.work.alpha or not found.feasible:
        return []
    frame = found.offloading.set_index("where")
    own = float(frame["rate"][str(_store(found))])
    pools = found.case.units if found.best == "disaggregated" else 1
    scale = pools if fleet is None or not own else fleet.rate / own
    return [{"store": str(name), "rate": scale * float(rate)} for name, rate in frame["rate"].items()]


def _rows(tried: pd.DataFrame | None) -> list[Mapping[str, object]]:
    return (
        [] if tried is None else [{str(key): value for key, value in row.items()} for row in tried.to_dict("records")]
    )
