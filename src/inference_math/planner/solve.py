"""A case as the plain numbers of `solver`, which does the arithmetic, and what it finds as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from inference_math import perf
from inference_math.catalogue.tiers import Tier, tiers
from inference_math.planner.architectures import as_frame
from inference_math.unit import Unit
from inference_math.unit.coefficients import DATASHEET, Draw
from inference_math.unit.costs import Costs
from inference_math.workload import SLA, Workload

__all__ = ["Case", "Solved", "costs_under", "offloading", "solve"]


@dataclass(frozen=True)
class Case:
    """What is asked: who serves what under which promise; see `plan` for the parameters."""

    unit: Unit
    work: Workload
    sla: SLA
    units: int = 8
    tier: Tier | None = None
    price: float | None = None

    @property
    def read_bw(self) -> float:
        """Bytes per second that the unit loads from its tier; 0 for HBM."""
        return self.unit.tp * self.tier.read_bw if self.tier else 0.0

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The case as `perf.plan` takes it."""
        return {
            "unit": self.unit.numbers, "work": self.work.plain, "engine": self.unit.engine, "units": self.units,
            "ttft": self.sla.ttft, "tpot": self.sla.tpot, "quantile": self.sla.quantile or 0.0,
            "read_bw": self.read_bw, "price": self.price or 0.0,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Solved:
    """What `perf.plan.solve` found: all numbers by name, the rows of architectures, which limit binds prefill first.

    `order` names the architectures by their rate, the highest first; `best` is "" where none meets the SLA.
    """

    found: Mapping[str, Any]

    @property
    def numbers(self) -> Mapping[str, float]:
        """All numbers by name; NaN for what there is not."""
        numbers: Mapping[str, float] = self.found["numbers"]
        return numbers

    @property
    def compared(self) -> pd.DataFrame:
        """The same as a table, `architectures.compare`."""
        return as_frame(self.found["rows"])

    @property
    def order(self) -> tuple[str, ...]:
        """The architectures, the highest rate first."""
        return tuple(self.found["order"])

    @property
    def best(self) -> str:
        """The first of them."""
        return str(self.found["best"])

    @property
    def binding(self) -> str:
        """What limits the batch, prefill first."""
        return " and ".join(self.found["binding"])


def costs_under(case: Case, draw: Draw | None = None) -> Costs:
    """Return what the requests of a case cost, under its unit's calibration or a draw of it."""
    return Costs.of(perf.under(case.plain, *_under(case, draw)), case.work.n_in, case.work.n_out, case.unit.kv_capacity)


def solve(case: Case, draw: Draw | None = None, *, order: tuple[str, ...] = ()) -> Solved:
    """Return the numbers of a case, under its unit's calibration or a draw of it.

    `order` names the architectures whose rate and lead are asked for; none: the two with the highest rates.
    """
    return Solved(perf.solve(case.plain, *_under(case, draw), list(order)))


def _under(case: Case, draw: Draw | None) -> tuple[dict[str, float], dict[str, float], list[float]]:
    """Return the coefficients, those of the datasheet, and the factors of a step and of its prompts' part."""
    one = draw or Draw(case.unit.calibration, 1.0, 1.0)
    return asdict(one.calibration.coefficients), asdict(DATASHEET.coefficients), [one.step, one.prompt]


def offloading(case: Case) -> pd.DataFrame:
    """Return what loading the stored share of the prompts gains, by where it lies.

    Columns: where ("nowhere", where all is computed, and each of `tiers.tiers`), e (how much faster a token is loaded
    than computed), speedup (of what a prefill adds to the steps of others), rate (requests/s per unit, of the best
    architecture) and gain (of the rate, over computing all).
    """
    unit = case.unit
    read_bws = {name: unit.tp * one.read_bw for name, one in tiers().items()}
    frame = pd.DataFrame(perf.gains(case.plain, asdict(unit.coefficients), read_bws))
    T, kv_token = unit.token_time(case.work.n_in), unit.model.kv_token(unit.kv)
    frame["e"] = [
        tiers()[where].acceleration(T, kv_token, unit.tp) if where in tiers() else np.nan for where in frame["where"]
    ]
    return frame[["where", "e", "speedup", "rate", "gain"]]
