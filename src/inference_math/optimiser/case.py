"""A case as the plain numbers of `types`, and what the arithmetic finds as tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs

from inference_math.catalogue.links import Link, as_link, joined
from inference_math.catalogue.tiers import Tier, as_tier, tiers
from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, as_number, as_whole
from inference_math.evidence.sentences import render
from inference_math.optimiser import answers
from inference_math.optimiser.question import Service, laid_apart, problem_of
from inference_math.unit import Unit
from inference_math.unit.front import Front, handover
from inference_math.unit.nearest import known_comparisons, planning_option, plans_ahead
from inference_math.unit.problem import of_architecture, scattered_over, sessions_overflow
from inference_math.unit.rates import acceleration
from inference_math.unit.types import DrawnCoefficients, Pools, Problem, StepCosts
from inference_math.workload import SLA, Workload

__all__ = ["DRAWS", "MOST_UNITS", "Case", "offloading", "under"]

DRAWS = 64
MOST_UNITS = 10_000


@dataclass(frozen=True)
class Case:
    """What is asked: who serves what under which promise; see `plan` for the parameters.

    `prefill` and `decode` are units of pools whose layouts are their own: the same model, GPU, engine and precisions.
    None: as `unit`, which all others are. Of pools there are `pool_units`, both together, each as large as one of the
    decode pool; None: `units`.
    """

    unit: Unit
    work: Workload
    sla: SLA
    units: int = 8
    tier: Tier | None = None
    price: float | None = None
    link: Link | None = None
    sessions: int = 0
    front: float | None = None
    prefill: Unit | None = None
    decode: Unit | None = None
    pool_units: int | None = None

    def checked(self) -> Case:
        """Return the case with what was asked in its own types; see `plan` for the errors."""
        for name, value, kind in (("unit", self.unit, Unit), ("work", self.work, Workload), ("sla", self.sla, SLA)):
            if not isinstance(value, kind):
                raise TypeError(f"{name} must be of the type {kind.__name__}, not {value!r:.80}")
        own = replace(
            self,
            units=as_whole("units", self.units, 2, MOST_UNITS),
            pool_units=None if self.pool_units is None else as_whole("pool_units", self.pool_units, 2, MOST_UNITS),
            tier=as_tier("tier", self.tier),
            price=None if self.price is None else as_number("price", self.price, ANY_POSITIVE),
            link=as_link("link", self.link),
            sessions=as_whole("sessions", self.sessions, 0),
            front=None if self.front is None else as_number("front", self.front, AT_LEAST_ZERO),
        )
        if not own.work.n_out > 1:
            raise ValueError(f"work.n_out must be more than one token, not {own.work.n_out:g}")
        refuse_nodes(own.unit)
        for name, pool in (("prefill", own.prefill), ("decode", own.decode)):
            if pool is not None:
                refuse_nodes(alike(name, own.unit, pool))
        if wrong := render(sessions_overflow(own.problem)):
            raise ValueError(f"sessions {wrong}, not {own.sessions}")
        return own

    @property
    def fronted(self) -> Front:
        """What a TTFT has beside the engine's steps: as somebody measured it, or as it was fitted."""
        known = self.unit.front
        return known if self.front is None else replace(known, seconds=self.front, sd=0.0)

    @cached_property
    def problem(self) -> Problem:
        """The case as `optimiser.answers` takes it."""
        unit, named = self.unit, self.unit.async_scheduling
        under = Service(
            units=self.units, ttft=self.sla.ttft, tpot=self.sla.tpot, quantile=self.sla.quantile or 0.0,
            front=self.fronted.seconds, front_sd=self.fronted.sd, handover=handover().seconds,
            tier_bw=self.tier.read_bw if self.tier else 0.0, link_bw=as_link("link", self.link).bw or 0.0,
            price=self.price or 0.0, sessions=self.sessions,
            ahead=plans_ahead(unit.engine, unit.version, named), planning=planning_option(unit.engine, named),
        )  # fmt: skip
        return problem_of(unit.deployment, unit.numbers, self._pools, self.work, under, known_comparisons())

    @property
    def _pools(self) -> list[Pools]:
        if self.prefill is None and self.decode is None:
            return []
        first, then = self.prefill or self.unit, self.decode or self.unit
        units = self.units if self.pool_units is None else self.pool_units
        found, *each = (asdict(one.coefficients) for one in (self.unit, first, then))
        return [laid_apart(first.numbers, then.numbers, units, found, each)]

    def resized(self, **changes: Any) -> Case:
        """Return the case with all of its units changed, as `Unit.resized` does."""
        first, then = (None if one is None else one.resized(**changes) for one in (self.prefill, self.decode))
        return replace(self, unit=self.unit.resized(**changes), prefill=first, decode=then)

    def of_architecture(self, name: str) -> Problem:
        """The question as an architecture has it; see `unit.problem.of_architecture`."""
        return of_architecture(self.problem, name)

    def pairs(self, count: int) -> list[DrawnCoefficients]:
        """Return so many draws, as coefficients and factors; of 0, the calibration itself, once."""
        return self.unit.draws(self.work, count) if count else [(self.unit.found(self.work), [1.0, 1.0, 0.0])]


def alike(name: str, unit: Unit, pool: Unit) -> Unit:
    """Return a unit of a pool; raise ValueError where more than its layout is not that of `unit`."""
    if not isinstance(pool, Unit):
        raise TypeError(f"{name} must be a Unit or None, not {pool!r:.80}")
    sizes = {size: getattr(pool, size) for size in ("tp", "dp", "ep", "pp")}
    if replace(unit, **sizes) != replace(pool, calibration=unit.calibration):
        raise ValueError(f"{name} must be the case's unit with another layout, not {pool!r:.200}")
    return pool


def refuse_nodes(unit: Unit) -> None:
    """Raise ValueError for a unit whose groups share a layer beyond a node: nobody calibrated links between nodes."""
    if wrong := render(scattered_over(unit.numbers.layout, joined(unit.gpu))):
        raise ValueError(f"tp {wrong}{_in_a_node(unit)}")


def _in_a_node(unit: Unit) -> str:
    """Return in words the layout nearest to a unit's whose groups lie in a node; "" where none holds the model."""
    tp = min(unit.tp, joined(unit.gpu))
    dp = 1 << (joined(unit.gpu) // tp).bit_length() - 1 if unit.dp > 1 else 1  # a power of two, which divides experts
    for pp in (unit.pp, 2 * unit.pp, 4 * unit.pp, 8 * unit.pp):
        try:
            unit.resized(tp=tp, dp=dp, ep=tp * dp if unit.ep > 1 else 1, pp=pp)
        except ValueError:
            continue
        sizes = {"tp": tp, "dp": dp, "ep": tp * dp if unit.ep > 1 else 1, "pp": pp}
        layout = ", ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
        return f"; the nearest within one is {layout or 'tp 1'}"
    return ""


def under(case: Case) -> StepCosts:
    """Return what the requests of a case cost, under its unit's calibration."""
    return answers.under(case.problem, *case.pairs(0)[0])


def offloading(case: Case, count: int = DRAWS) -> pd.DataFrame:
    """Return what loading the stored share of the prompts gains, by where it lies.

    Columns: where ("nowhere", where all is computed, and each of `tiers.tiers`), e (how much faster a token is loaded
    than computed, every GPU loading its own copy), binds (what a prompt alone waits for: "computing" or "loading"),
    speedup (of a prompt alone), rate, rate_low and rate_high (requests/s per unit, of the best architecture) and gain
    (of the rate, over computing all) with chance and sure (see `answers.gains`), over so many draws; of 0, under the
    calibration itself. Where the case's own tier is none of these, it has a row, too.
    """
    unit = case.unit
    known = dict(tiers()) if case.tier is None or case.tier.name in tiers() else {**tiers(), case.tier.name: case.tier}
    read_bws = {name: 0.0 if name == "hbm" else unit.gpus * one.read_bw for name, one in known.items()}
    frame = pd.DataFrame(map(structs.asdict, answers.gains(case.problem, case.pairs(count), read_bws)))
    T, loaded = unit.token_time(case.work.n_in), unit.kv_bytes(case.work.n_in) / case.work.n_in
    frame["e"] = [
        acceleration(known[where], T, loaded, unit.gpus) if where in known else np.nan for where in frame["where"]
    ]
    return frame[["where", "e", "binds", "speedup", "rate", "rate_low", "rate_high", "gain", "chance", "sure"]]
