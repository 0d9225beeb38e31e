"""What moves an answer most, and many plans at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs

from inference_math.catalogue.tiers import Tier
from inference_math.evidence.checks import as_one_of
from inference_math.optimiser.case import Case
from inference_math.unit import Unit
from inference_math.unit.coefficients import COEFFICIENTS, SHARES
from inference_math.workload import SLA, Workload
from inference_math_planner.answers.deployment import ANSWERS, Plan, plan

__all__ = ["sensitivity", "sweep"]

_SWING = 0.2  # of an input
_LEAST = {"n_in": 1.0, "n_out": 1.01, "alpha": 0.0}
_WIDE = 1.645  # standard deviations of a coefficient: 90 % lie within


def sensitivity(
    unit: Unit, work: Workload, sla: SLA, answer: str = "rate", *, units: int = 8, tier: Tier | None = None
) -> pd.DataFrame:
    """Return how far one answer moves with each input and coefficient around the calibration, the largest swing first.

    Inputs move by 20 % either way (alpha to 1 at most), coefficients by 1.645 standard deviations. Columns: input;
    at_low, at_high, its values; low, high, the answer there; swing. A tornado chart draws the last three.

    Raises
    ------
    ValueError
        For an answer that a plan does not have.
    """
    case = Case(unit, work, sla, units, tier)
    as_one_of("answer", answer, [name for name, *_ in ANSWERS])
    rows = [(name, *ends, *(_answer(moved, answer) for moved in cases)) for name, ends, cases in _moved(case)]
    frame = pd.DataFrame(rows, columns=["input", "at_low", "at_high", "low", "high"])
    frame["swing"] = (frame["high"] - frame["low"]).abs()
    return frame.sort_values("swing", ascending=False, ignore_index=True, kind="stable")


def _answer(case: Case, answer: str) -> float:
    """Return one number of a case by the calibration itself; without an architecture the rate is 0, others NaN."""
    return Plan.of(case, 0).numbers.get(answer, [0.0 if answer == "rate" else np.nan])[0]


def sweep(units: Iterable[Unit], works: Iterable[Workload], sla: SLA, **options: Any) -> pd.DataFrame:
    """Plan for every unit with every workload; one row each, with the medians that `plan` answers.

    `options` are those of `plan`. Where nothing meets the SLA, `best` is "" and the rate 0.
    """
    rows, sent = [], list(works)
    for unit in units:
        for work in sent:
            planned = plan(unit, work, sla, **options)
            numbers = {name: answer.value for name, answer in planned.answers.items()}
            shape = {"unit": unit.name, "n_in": work.n_in, "n_out": work.n_out, "alpha": work.alpha}
            rows.append(shape | {"best": planned.best} | numbers)
    return pd.DataFrame(rows)


def _moved(case: Case) -> Iterator[tuple[str, list[float], list[Case]]]:
    """Yield each input and coefficient with its two ends and the case at each."""
    work, sla, calibration = case.work, case.sla, case.unit.calibration
    for name in ("n_in", "n_out", "alpha"):
        value, most = getattr(work, name), 1.0 if name == "alpha" else np.inf
        if value:
            ends = [max(value * (1 - _SWING), _LEAST[name]), min(value * (1 + _SWING), most)]
            yield name, ends, [replace(case, work=structs.replace(work, **{name: end})) for end in ends]
    for name in ("ttft", "tpot"):
        ends = [getattr(sla, name) * (1 - _SWING), getattr(sla, name) * (1 + _SWING)]
        yield f"sla_{name}", ends, [replace(case, sla=replace(sla, **{name: end})) for end in ends]
    for name in COEFFICIENTS:
        value, wide = getattr(calibration.coefficients, name), _WIDE * calibration.sd(name)
        least, most = (0.01, 1.0) if name in SHARES else (0.0, np.inf)
        ends = [max(value - wide, least), min(value + wide, most)]
        values = [replace(calibration.coefficients, **{name: end}) for end in ends]
        units = [case.unit.calibrated(replace(calibration, coefficients=moved)) for moved in values]
        yield name, ends, [replace(case, unit=unit) for unit in units]
