"""The same question on other GPUs: what one of each serves, what it may cost, what a token costs on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan
from typing import Any

import pandas as pd

from inference_math import catalogue
from inference_math.catalogue import Gpu
from inference_math.evidence.checks import ANY_POSITIVE, as_number, as_one_of
from inference_math.evidence.sentences import render
from inference_math.optimiser.case import DRAWS
from inference_math.unit import Unit
from inference_math.unit.kernels import like
from inference_math.unit.nearest import alike, known_errors
from inference_math.workload import Workload
from inference_math_planner.answers.deployment import Plan
from inference_math_planner.answers.notes import GUESSED, gpus_said, provenance_of
from inference_math_planner.fleets.compared import OtherGpu, Own, absent_gpu, in_their_order, other_gpu

__all__ = ["across", "first_said", "provenance"]

NOT_TO_BE_HAD = "does not fit, or not in this precision"  # or under this engine
_COLUMNS = [
    "gpu", "standing", "architecture", "rate", "rate_low", "rate_high", "ratio", "ratio_low", "ratio_high", "price",
    "break_even", "break_even_low", "break_even_high", "usd_per_million", "usd_per_million_low",
    "usd_per_million_high", "joules",
]  # fmt: skip


def across(
    found: Plan, gpus: Iterable[Gpu | str] | None = None, prices: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """Return what one GPU of each kind does at full load in the place of the plan's, in units of as many GPUs.

    Everything else stays: layout, precision, engine, prompts, promise. The plan's own GPU is always among them.

    Parameters
    ----------
    found
        The plan, with its price of a GPU and hour if it has one.
    gpus
        Names, or GPUs of your own; None: all of the catalogue.
    prices
        US dollars for a GPU and hour, by its name; the plan's own price stands for its GPU if that is not among them.

    Returns
    -------
    pandas.DataFrame
        A row for each GPU, guesses last; else the cheapest token first where two have a price, or the fastest. gpu;
        standing, what the numbers rest on; architecture, or why there is none; rate (requests/s of a GPU); ratio to
        the plan's GPU; price and break_even (USD/hour), at which it is as good as the plan's at its price;
        usd_per_million, output tokens at full load at its own price; joules, a token at rated power. Those with _low
        and _high are medians over the plan's draws with the 5 % and 95 % ends; NaN where there is none.

    Raises
    ------
    ValueError
        For an unknown GPU, or a price that is not positive or of a GPU that is not asked about.

    Examples
    --------
    >>> from inference_math import SLA, Unit, Workload
    >>> from inference_math_planner import across, plan
    >>> found = plan(Unit.of("llama-3-8b", "h100-sxm"), Workload(2000, 200), SLA(2, 0.1), price=2.5)
    >>> table = across(found, ["h200-sxm"], {"h200-sxm": 3.2})
    >>> table.gpu.tolist(), bool(table.usd_per_million.is_monotonic_increasing)
    (['h100-sxm', 'h200-sxm'], True)
    """
    own = found.case.unit.gpu
    asked = catalogue.GPUS.values() if gpus is None else map(_gpu, [gpus] if isinstance(gpus, str) else gpus)
    named = {one.name: one for one in (*asked, own)}
    costs = {own.name: found.case.price} if found.case.price else {}
    for name, price in (prices or {}).items():
        costs[as_one_of("prices: a GPU", name, named)] = as_number(f"prices: {name}", price, ANY_POSITIVE)
    here = Own(
        solved=[found.solved] if found.feasible else [], gpus=found.case.unit.gpus, price=costs.get(own.name, nan)
    )
    rows = [_row(found, gpu, here, costs.get(gpu.name, nan)) for gpu in named.values()]
    return pd.DataFrame([_columns(row) for row in in_their_order(rows)], columns=_COLUMNS)


def _gpu(one: Gpu | str) -> Gpu:
    return one if isinstance(one, Gpu) else catalogue.gpu(one)


def _planned(planned: Plan, gpu: Gpu) -> Plan | None:
    """Return the plan on a GPU; None where the unit does not fit, or its precision or engine is not to be had."""
    case = planned.case
    if gpu == case.unit.gpu:
        return planned
    try:
        moved = case.resized(gpu=gpu).checked()
    except ValueError:
        return None
    return Plan.of(moved, DRAWS if len(planned.pairs) > 1 else 0)


def provenance(unit: Unit, work: Workload) -> str:
    """Return what a unit's numbers stand on, in a word of `answers.notes.provenance_of`."""
    whose = (unit.gpu.name, like(unit.gpu), unit.kind, alike(unit.engine), unit.weights, unit.gpu.maker)
    return provenance_of(unit.calibration.mode, unit.unseen(work), *whose, known_errors())


def _row(planned: Plan, gpu: Gpu, here: Own, price: float) -> OtherGpu:
    there = _planned(planned, gpu)
    if there is None:
        return absent_gpu(gpu.name, "", NOT_TO_BE_HAD, price)
    case = there.case
    return other_gpu(gpu.name, provenance(case.unit, case.work), case.problem, there.solved, here, price)


def _columns(row: OtherGpu) -> dict[str, Any]:
    columns: dict[str, Any] = {name: getattr(row, name) for name in ("gpu", "standing", "architecture", "price")}
    for name, three in (("rate", row.rate), ("ratio", row.ratio), ("break_even", row.break_even)):
        columns |= dict(zip((name, f"{name}_low", f"{name}_high"), three, strict=False))
    columns |= dict(zip(("usd_per_million", "usd_per_million_low", "usd_per_million_high"), row.cost, strict=False))
    return columns | {"joules": row.joules[0] if row.joules else nan}


def first_said(rows: pd.DataFrame) -> str:
    """Return in a sentence which GPU that `across` compared is first; "" where none meets the limits."""
    known = rows[rows["standing"] != GUESSED]
    names, rates, costs = (known[name] for name in ("gpu", "rate", "usd_per_million"))
    said = render(gpus_said(names.tolist(), rates.fillna(0).tolist(), costs.tolist()))
    return f"{said[0].upper()}{said[1:]}." if said else ""
