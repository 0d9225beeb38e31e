"""The rules of thumb of the answer boxes, followed on a grid of deployments and compared with the plan.

A rule speaks of some set-ups only: those that meet its condition. To follow it there costs what the plan serves more.
All of it under the calibration's own coefficients, without draws: a rule is arithmetic, and so is what it is held to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product

import pandas as pd

from inference_math import perf, theory
from inference_math.catalogue.tiers import tier
from inference_math.perf.asked import NEARLY, target_of
from inference_math.perf.batch import largest_whole
from inference_math.perf.load import loaded, settings_row, strain
from inference_math.perf.search import NEVER
from inference_math.perf.types import Step, StepCosts, Target
from inference_math.planner.case import Case
from inference_math.planner.deployment import Plan
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

__all__ = ["FINE", "RULES", "Rule", "Setup", "followed", "setups", "told"]

FINE = 0.05  # of the rate: who follows a rule that loses less has been told right
NEAR = 1.5  # weight reads: limits on TPOT up to that long are near one
FEW, LONG = 128, 1000  # decodes of a unit at most, and tokens of a prompt at least, for the split as a formula
MOST = 10_000  # decodes that are looked for
STORED = 0.8  # of each prompt, where there is a store
_UNITS = (("llama-3-8b", 1), ("qwen3-32b", 2), ("llama-3-70b", 2), ("llama-3-70b", 4))
_PROMPTS, _ANSWERS = (256, 1000, 2200, 8000), (32, 170, 600)
_LIMITS = ((0.4, 0.02), (2.0, 0.04), (2.0, 0.1))


@dataclass(frozen=True, eq=False)
class Setup:
    """A deployment, and the plan of it under one set of coefficients."""

    case: Case

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return Plan.of(self.case, 0)

    @cached_property
    def rates(self) -> dict[str, float]:
        """What each architecture serves at its best, requests/s of a unit; 0 where it misses a limit."""
        return {name: rates[0] for name, rates in self.plan.solved["rates"].items()}

    @property
    def best(self) -> float:
        """What the best one serves."""
        return max(self.rates.values())

    @property
    def costs(self) -> StepCosts:
        """What requests cost."""
        found: StepCosts = self.plan.solved["costs"][0]
        return found

    @property
    def step(self) -> Step:
        """Seconds of a step of so many decodes and prompts."""
        return self.costs["mixed"]

    @cached_property
    def target(self) -> Target:
        """What settings are searched for."""
        return target_of(self.case.asked)

    @property
    def limit(self) -> float:
        """Seconds that a step may take in the mean."""
        return self.target["step"]

    @cached_property
    def decodes(self) -> int:
        """Decodes that a step within the limit allows, whatever memory holds."""
        return largest_whole(MOST, lambda b: self.step(b, 0.0) <= self.limit)

    @property
    def roomy(self) -> bool:
        """Whether HBM holds as many decodes as the limit on TPOT allows."""
        return self.target["places"] >= self.decodes > 0

    def serves(self, name: str, batch: float, chunk: float, prefill: float) -> float:
        """Return what given settings serve; 0 where they miss a limit."""
        row = settings_row(batch, chunk, prefill)
        if strain(self.target, self.costs, name, row) > NEARLY:
            return 0.0
        return float(loaded(self.target, self.costs, name, row)["rate"])

    @cached_property
    def stored(self) -> Setup:
        """The same set-up with most of each prompt on local SSDs."""
        return Setup(replace(self.case, work=replace(self.case.work, alpha=STORED), tier=tier("local_ssd")))

    def lacks(self, other: Setup) -> float:
        """Return the share of what another set-up serves that this one does not; 0 where it serves as much."""
        return 1 - self.best / max(self.best, other.best)


@lru_cache
def setups() -> tuple[Setup, ...]:
    """Return the grid: four units of H100s in FP8, twelve pairs of lengths, three pairs of limits; feasible ones."""
    found = []
    for (model, tp), n_in, n_out, (ttft, tpot) in product(_UNITS, _PROMPTS, _ANSWERS, _LIMITS):
        unit = Unit.of(model, "h100-sxm", tp, "fp8", "fp8")
        one = Setup(Case(unit, Workload(n_in, n_out), SLA(ttft, tpot)).checked())
        if one.best > 0:
            found.append(one)
    return tuple(found)


def _theorem(one: Setup) -> float | None:
    if not (one.roomy and one.rates["aggregated"] > 0 and one.rates["disaggregated"] > 0):
        return None
    chosen = one.rates["disaggregated" if one.step(0.0, 1.0) > one.limit else "aggregated"]
    return 1 - chosen / max(one.rates["aggregated"], one.rates["disaggregated"])


def _pools(one: Setup) -> float | None:
    if _theorem(one) is None:
        return None
    return 1 - one.rates["disaggregated"] / max(one.rates["aggregated"], one.rates["disaggregated"])


def _split(one: Setup) -> float | None:
    row = one.plan.solved["settings"]["disaggregated"]
    if not (one.roomy and one.rates["disaggregated"] > 0):
        return None
    ratio = theory.pdd_split(
        delta_p=one.plan["delta_p_gross"], delta_h=one.plan["delta_h"], t_w=one.plan["t_w"], sla_tpot=one.limit
    )
    units = one.case.units
    prefill = min(max(round(units * ratio / (1 + ratio)), 1), units - 1)
    return 1 - one.serves("disaggregated", row["batch"], row["chunk"], prefill) / one.rates["disaggregated"]


def _small_split(one: Setup) -> float | None:
    return _split(one) if one.decodes <= FEW and one.case.work.n_in >= LONG else None


def _chunk(one: Setup) -> float | None:
    if not one.rates["chunked"] > 0:
        return None
    n_in, n_out, room = one.case.work.n_in, one.case.work.n_out, one.target["places"]

    def chunk(b: float) -> float:
        return float(theory.chunk_size(b=b, n_in=n_in, n_out=n_out - 1))  # the first token is the prompt's

    def fits(b: float) -> bool:  # the prompts under way hold memory, too
        return b + chunk(b) / n_in <= room and one.step(b, chunk(b) / n_in) <= one.limit

    batch = largest_whole(MOST, fits)
    return 1 - (one.serves("chunked", batch, chunk(batch), NEVER) if batch > 0 else 0.0) / one.rates["chunked"]


def _near(one: Setup) -> float | None:
    if one.limit > NEAR * one.plan["t_w"]:
        return None
    return 1 - one.rates["disaggregated"] / one.best


def _pays(one: Setup) -> float | None:
    """A store that brings less than `FINE` has been bought for nothing, and counts as that loss."""
    return FINE if one.stored.best < (1 + FINE) * one.best else 0.0


def _pays_nothing(one: Setup) -> float | None:
    return one.lacks(one.stored) if one.plan["delta_p"] <= one.plan["delta_h"] / 2 else None


def _memory(one: Setup) -> float | None:
    return one.lacks(one.stored) if "memory" in perf.binding_limits(one.plan.numbers) else None


def _store(one: Setup) -> float | None:
    stored, place, unit, n_in = one.stored, tier("local_ssd"), one.case.unit, one.case.work.n_in
    e = place.acceleration(unit.token_time(n_in), unit.kv_bytes(n_in) / n_in, unit.gpus)
    if not stored.best > 0 or e < STORED / (1 - STORED):
        return None
    return stored.lacks(Setup(replace(stored.case, tier=replace(place, read_bw=2 * place.read_bw))))


@dataclass(frozen=True)
class Rule:
    """A rule of thumb: what it says, under which condition, and what following it costs a set-up.

    `costs` returns the share of the rate that is lost, or None where the rule does not speak.
    """

    name: str
    says: str
    where: str
    costs: Callable[[Setup], float | None]


RULES = (
    Rule("theorem", "pools, not whole prompts, exactly if a prompt alone outlasts the limit on TPOT",
         "HBM holds the decodes", _theorem),
    Rule("split", "uΔP/ΔH prefill units for a decode unit", "HBM holds the decodes", _split),
    Rule("small split", "the same", f"besides, at most {FEW} decodes and prompts of {LONG:,} tokens or more",
         _small_split),
    Rule("chunk", "the chunk that feeds the batch, and the largest batch that keeps the limit",
         "chunks meet the limits", _chunk),
    Rule("always pools", "pools, always", "as in the first row", _pools),
    Rule("near", "pools", f"the limit on TPOT is at most {NEAR:g} weight reads", _near),
    Rule("pays", "a store pays", "everywhere", _pays),
    Rule("pays nothing", "a store does not pay", "ΔP is at most half of ΔH", _pays_nothing),
    Rule("memory", "a store does not pay", "memory limits the batch of whole prompts", _memory),
    Rule("store", "a store twice as fast does not pay", "e is at least α/(1 − α)", _store),
)  # fmt: skip


@lru_cache
def followed() -> pd.DataFrame:
    """Return each rule on the grid: of how many set-ups it speaks, in which share it is right, what it costs, where.

    Columns: name, says, where; cases; right, the share of them that lose less than `FINE`; mean and worst loss, as
    shares of the rate; worst_at, the set-up of the worst.
    """
    rows = []
    for rule in RULES:
        costs = [(cost, one) for one in setups() if (cost := rule.costs(one)) is not None]
        worst, at = max(costs, key=lambda pair: pair[0])
        losses = [cost for cost, _ in costs]
        rows.append(
            {
                "name": rule.name,
                "says": rule.says,
                "where": rule.where,
                "cases": len(costs),
                "right": sum(cost < FINE for cost in losses) / len(losses),
                "mean": sum(losses) / len(losses),
                "worst": worst,
                "worst_at": _name(at) if worst >= FINE else "",
            }
        )
    return pd.DataFrame(rows)


def _name(one: Setup) -> str:
    unit, work, sla = one.case.unit, one.case.work, one.case.sla
    gpus = "1 GPU" if unit.gpus == 1 else f"{unit.gpus} GPUs"
    return f"{unit.model.name}, {gpus}, {work.n_in:,} in, {work.n_out:,} out, {1e3 * sla.tpot:.0f} ms"


def told() -> pd.DataFrame:
    """Return the same as text for a page."""
    found = followed()
    return pd.DataFrame(
        {
            "rule": found.says,
            "where it speaks": found["where"],
            "set-ups": found.cases,
            "right (%)": (100 * found.right).map("{:.0f}".format),
            "loses in the mean (%)": (100 * found["mean"]).map("{:.0f}".format),
            "at most (%)": (100 * found.worst).map("{:.0f}".format),
            "worst at": found.worst_at,
        }
    )
