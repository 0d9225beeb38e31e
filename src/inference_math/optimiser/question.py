"""A question as the optimiser takes it: a deployment, what is sent, under what it serves. The page asks so, too."""

from __future__ import annotations

from inference_math.evidence.records import Record
from inference_math.optimiser.gain_error import gain_errors
from inference_math.optimiser.starts import page_of
from inference_math.unit.deployed import Deployment
from inference_math.unit.types import CoefficientValues, ComparisonError, Pools, Problem, UnitNumbers
from inference_math.workload.requests import Workload


class Service(Record):
    """Under what a deployment serves: limits, what lies beside its steps, and what is between its units.

    Fields are those of `Problem`, but for two: for each GPU `tier_bw` are the bytes/s at which stored KV caches are
    loaded, 0 where these lie in HBM, and `link_bw` those between pools, 0 where it is the GPU's own link.
    """

    units: int
    ttft: float
    tpot: float
    quantile: float
    front: float
    front_sd: float
    handover: float
    tier_bw: float
    link_bw: float
    price: float
    sessions: float
    ahead: bool
    planning: str


def problem_of(
    of: Deployment, unit: UnitNumbers, pools: list[Pools], work: Workload, under: Service,
    errors: dict[str, ComparisonError],
) -> Problem:  # fmt: skip
    """Return the question of a deployment, whose numbers are `unit`; `errors` as of `nearest.known_comparisons`.

    `pools` is empty where their units are as all others.
    """
    gpu, kind = of.gpu, of.model.kind
    return Problem(
        unit=unit, pools=pools, moves={}, work=work, engine=of.engine, units=under.units,
        ttft=under.ttft, tpot=under.tpot, quantile=under.quantile,
        front=under.front, front_sd=under.front_sd, handover=under.handover,
        read_bw=unit.gpus * under.tier_bw,
        pool_bw=unit.gpus * (under.link_bw if under.link_bw > 0 else gpu.rates.link_bw),
        price=under.price, watts=gpu.watts, sessions=under.sessions, context=of.model.context,
        ahead=under.ahead, planning=under.planning, page=page_of(of.engine, kind, gpu.generation),
        gain_errors=gain_errors(errors, kind, gpu.generation, work.n_in, work.n_out),
    )  # fmt: skip


def laid_apart(
    prefill: UnitNumbers, decode: UnitNumbers, units: int, base: CoefficientValues, each: list[CoefficientValues]
) -> Pools:
    """Return pools of units of two layouts, from the coefficients of the question's unit and `each` of theirs."""
    first, then = [moved_from(base, other) for other in each]
    return Pools(prefill=prefill, decode=decode, units=units, prefill_moves=first, decode_moves=then)


def moved_from(base: CoefficientValues, other: CoefficientValues) -> CoefficientValues:
    """Return another unit's coefficients over those found of one, where they differ: links join other GPUs."""
    moves: CoefficientValues = {}
    for name in base:
        if other[name] != base[name]:
            moves[name] = other[name] / base[name]
    return moves
