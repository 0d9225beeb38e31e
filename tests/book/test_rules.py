"""The rules of thumb in the answer boxes, followed on a grid of deployments and compared with the plan.

A rule speaks of some set-ups only. To follow it there costs the share of the rate that the plan serves more. All of it
under the calibration's own coefficients, without draws: a rule is arithmetic, and so is what it is held to.
"""

from dataclasses import replace
from functools import cached_property
from itertools import product
from math import log

import pandas as pd
import pytest
from msgspec import structs

import inference_math_planner as planner
from inference_math import SLA, Unit, Workload, theory
from inference_math.catalogue.tiers import tier
from inference_math.optimiser.answers import binding_limits
from inference_math.optimiser.case import Case
from inference_math.optimiser.load import at_full_load, limit_utilisation, settings_row
from inference_math.optimiser.search import NEVER
from inference_math.unit.batch import largest_whole
from inference_math.unit.problem import NEARLY, search_constants
from inference_math.unit.rates import acceleration

FINE = 0.05  # of the rate: who follows a rule that loses less has been told right
MOST = 10_000  # decodes that are looked for
STORED = 0.8  # of each prompt, where there is a store
UNITS = (("llama-3-8b", 1), ("qwen3-32b", 2), ("llama-3-70b", 2), ("llama-3-70b", 4))
PROMPTS, ANSWERS = (256, 1000, 2200, 8000), (32, 170, 600)
LIMITS = ((0.4, 0.02), (2.0, 0.04), (2.0, 0.1))


class Setup:
    """A deployment, and the plan of it under one set of coefficients."""

    def __init__(self, case):
        self.case = case
        self.plan = planner.Plan.of(case, 0)
        self.rates = {name: rates[0] for name, rates in self.plan.solved.rates.items()}
        self.best = max(self.rates.values())
        self.costs = self.plan.solved.costs[0]
        self.step = self.costs.step_seconds
        self.constants = search_constants(case.problem)
        self.limit = self.constants.step

    @cached_property
    def decodes(self):
        """Decodes that a step within the limit allows, whatever memory holds."""
        return largest_whole(MOST, lambda b: self.step(b, 0.0) <= self.limit)

    @property
    def roomy(self):
        return self.constants.kv_seqs >= self.decodes > 0

    def serves(self, name, batch, chunk, prefill=NEVER, decode=NEVER):
        """Return what given settings serve; 0 where they miss a limit."""
        row = settings_row(batch, chunk, prefill, decode)
        if limit_utilisation(self.constants, self.costs, name, row) > NEARLY:
            return 0.0
        return at_full_load(self.constants, self.costs, name, row).rate

    @cached_property
    def stored(self):
        """The same set-up with most of each prompt on local SSDs."""
        return Setup(replace(self.case, work=structs.replace(self.case.work, alpha=STORED), tier=tier("local_ssd")))

    def lacks(self, other):
        """Return the share of what another set-up serves that this one does not; 0 where it serves as much."""
        return 1 - self.best / max(self.best, other.best)


def both(one):
    """Return what the better of whole prompts and pools serves, where HBM holds the decodes; else None."""
    rates = one.rates["aggregated"], one.rates["disaggregated"]
    return max(rates) if one.roomy and min(rates) > 0 else None


def theorem(one):
    """Pools, not whole prompts, exactly if the limit on TPOT is longer than one decode and shorter than the prompt."""
    t_w, read, n_out = one.plan["t_w"], one.plan["delta_h"], one.case.work.n_out
    last = (1 - 1 / n_out) * (one.step(0.0, 1.0) - t_w - read)
    chosen = one.rates["disaggregated" if read < one.limit - t_w < last else "aggregated"]
    return 1 - chosen / best if (best := both(one)) else None


def always_pools(one):
    return 1 - one.rates["disaggregated"] / best if (best := both(one)) else None


def split(one):
    """Of uΔP/ΔH prefill units for a decode unit, N_out − 1 decodes counted."""
    row = one.plan.solved.settings["disaggregated"]
    if not (one.roomy and one.rates["disaggregated"] > 0):
        return None
    costs = {name: one.plan[name] for name in ("delta_p_gross", "delta_h", "t_w")}
    ratio = theory.pdd_split(**costs, sla_tpot=one.limit, n_out=one.case.work.n_out)
    pools = [(p, d) for p in range(1, one.case.units) for d in range(1, one.case.units - p + 1)]
    nearest = min(pools, key=lambda pool: abs(log(pool[0] / pool[1] / ratio)))
    return 1 - one.serves("disaggregated", row.batch, row.chunk, *nearest) / one.rates["disaggregated"]


def small_split(one):
    return split(one) if one.decodes <= 128 and one.case.work.n_in >= 1000 else None


def chunk(one):
    """The chunk that feeds the batch, and the largest batch that keeps the limit."""
    if not one.rates["chunked"] > 0:
        return None
    n_in, n_out, room = one.case.work.n_in, one.case.work.n_out, one.constants.kv_seqs

    def feeding(b):
        return float(theory.chunk_size_full(b=b, n_in=n_in, n_out=n_out))

    def fits(b):  # the prompts under way hold memory, too
        return b + feeding(b) / n_in <= room and one.step(b, feeding(b) / n_in) <= one.limit

    batch = largest_whole(MOST, fits)
    return 1 - (one.serves("chunked", batch, feeding(batch)) if batch > 0 else 0.0) / one.rates["chunked"]


def near(one):
    """Pools, where the limit on TPOT is near one weight read."""
    return 1 - one.rates["disaggregated"] / one.best if one.limit <= 1.5 * one.plan["t_w"] else None


def pays(one):
    """A store pays: one that brings less than `FINE` has been bought for nothing, and counts as that loss."""
    return FINE if one.stored.best < (1 + FINE) * one.best else 0.0


def pays_nothing(one):
    """A store does not pay where ΔP is at most half of ΔH."""
    return one.lacks(one.stored) if one.plan["delta_p"] <= one.plan["delta_h"] / 2 else None


def memory(one):
    """A store does not pay where memory limits the batch of whole prompts."""
    return one.lacks(one.stored) if "memory" in binding_limits(one.plan.numbers) else None


def store(one):
    """A store twice as fast does not pay where e is at least α/(1 − α)."""
    stored, place, unit, n_in = one.stored, tier("local_ssd"), one.case.unit, one.case.work.n_in
    e = acceleration(place, unit.token_time(n_in), unit.kv_bytes(n_in) / n_in, unit.gpus)
    if not stored.best > 0 or e < STORED / (1 - STORED):
        return None
    return stored.lacks(Setup(replace(stored.case, tier=replace(place, read_bw=2 * place.read_bw))))


RULES = (theorem, always_pools, split, small_split, chunk, near, pays, pays_nothing, memory, store)


@pytest.fixture(scope="module")
def setups():
    """The grid: four units of H100s in FP8, twelve pairs of lengths, three pairs of limits; those that serve."""
    grid = product(UNITS, PROMPTS, ANSWERS, LIMITS)
    every = (
        Setup(Case(Unit.of(model, "h100-sxm", tp, "fp8", "fp8"), Workload(n_in, n_out), SLA(*limits)).checked())
        for (model, tp), n_in, n_out, limits in grid
    )
    return [one for one in every if one.best > 0]


@pytest.fixture(scope="module")
def losses(setups):
    """What following each rule costs, by its name: a series over the set-ups that it speaks of."""
    costs = pd.DataFrame({rule.__name__: [rule(one) for one in setups] for rule in RULES}, index=setups, dtype=float)
    return {name: costs[name].dropna() for name in costs}


def test_every_rule_speaks_and_none_beats_the_plan(losses):
    assert {name: len(one) for name, one in losses.items()} == {
        "theorem": 86, "always_pools": 86, "split": 86, "small_split": 18, "chunk": 132, "near": 9, "pays": 138,
        "pays_nothing": 12, "memory": 8, "store": 129,
    }  # fmt: skip
    assert min(one.min() for one in losses.values()) >= -1e-6


def test_rules_of_the_boxes_are_as_good_as_their_chapters_say(losses):
    right = {name: (one < FINE).mean() for name, one in losses.items()}
    assert right["near"] == right["pays"] == 1
    assert right["always_pools"] > 0.9  # pools that compute prompts together, of as many units as suits, lose little
    assert right["small_split"] > 0.8
    assert min(right["theorem"], right["chunk"], right["store"]) > 0.9
    assert right["split"] < 0.6  # so the box gives it with its condition


def test_where_rules_fail_is_said(losses):
    assert losses["theorem"].idxmax().case.work.n_in == 256  # prompts that are computed several at a time
    assert losses["chunk"].idxmax().case.sla.tpot == 0.02  # limits with hardly any room
    assert losses["store"].max() > FINE  # of some set-ups a store twice as fast brings more
    assert min(losses["memory"].min(), losses["pays_nothing"].min()) >= FINE  # these two are wrong everywhere
    assert 0.1 < losses["pays_nothing"].mean() < losses["pays_nothing"].max() <= 1 / 3 + 0.01  # 1 - 1 / 1.5
