"""The plan of one deployment: numbers with intervals and reasons, the best architecture, settings, advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from inference_math import perf
from inference_math.catalogue.tiers import Tier
from inference_math.checks import ANY_POSITIVE, as_number, as_whole
from inference_math.planner import text
from inference_math.planner.solve import Case, Solved, offloading, solve
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

__all__ = ["ANSWERS", "CLEAR", "DRAWS", "Answer", "Plan", "plan"]

DRAWS = 64
CLEAR = 0.95  # of the draws must name the same architecture


@dataclass(frozen=True)
class Answer:
    """One number of a plan: its interval (90 %), its unit, the formula behind it, and what it means."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    formula: str
    why: str


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What `plan` found; prints as a table, in a notebook as HTML.

    Attributes
    ----------
    answers
        The numbers by name; ``plan["batch"]`` is the value of one.
    compared
        `architectures.compare`, with the interval of each rate and the share of draws in which it is the highest.
    offloading
        What loading stored KV caches gains, by where they lie; see `offloading`.
    best
        The architecture with the highest rate; "" where none meets the SLA.
    verdict
        The same in a sentence, and whether the calibration is sure enough to say so.
    settings
        What to start the engine with: settings that keep the SLA in nine of ten draws, where there are such.
    kept
        Share of the draws in which these settings keep the SLA; NaN without intervals.
    advice
        Where the SLA cannot be met: by how much it is missed, and what would meet it.
    outside
        Inputs that were never calibrated.
    """

    case: Case
    answers: Mapping[str, Answer]
    compared: pd.DataFrame
    offloading: pd.DataFrame
    best: str
    verdict: str
    settings: Mapping[str, Any]
    kept: float
    advice: tuple[str, ...]
    outside: tuple[str, ...]

    def __getitem__(self, name: str) -> float:
        """Return the value of an answer."""
        return self.answers[name].value

    @property
    def feasible(self) -> bool:
        """Whether some architecture meets the SLA."""
        return bool(self.best)

    def frame(self) -> pd.DataFrame:
        """Return the answers as a table."""
        return pd.DataFrame([asdict(answer) for answer in self.answers.values()])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings and lists, for JSON; NaN becomes None."""
        case = self.case
        content: dict[str, Any] = text.plain(
            {
                "unit": case.unit.name, "calibration": case.unit.calibration.mode, "workload": asdict(case.work),
                "sla": asdict(case.sla), "units": case.units, "tier": case.tier.name if case.tier else None,
                "feasible": self.feasible, "best": self.best, "verdict": self.verdict,
                "answers": {name: asdict(answer) for name, answer in self.answers.items()},
                "architectures": self.compared.to_dict("records"), "offloading": self.offloading.to_dict("records"),
                "settings": dict(self.settings), "settings_keep_sla": self.kept,
                "advice": list(self.advice), "outside": list(self.outside),
            }
        )  # fmt: skip
        return content

    def __repr__(self) -> str:
        return text.as_text(self)

    def _repr_html_(self) -> str:
        return text.as_html(self)


def plan(
    unit: Unit,
    work: Workload,
    sla: SLA,
    *,
    units: int = 8,
    tier: Tier | None = None,
    price: float | None = None,
    intervals: bool = True,
) -> Plan:
    """Answer the talks' questions for one deployment.

    Parameters
    ----------
    unit, work, sla
        What serves, what is sent, what is promised. Answers must have more than one token.
    units
        Units of the deployment, which disaggregation splits into two pools.
    tier
        Where the share ``work.alpha`` of the prompts' KV caches is loaded from; None: it lies in HBM already.
    price
        US dollars for a GPU and hour, for the cost per million output tokens.
    intervals
        Whether to compute intervals, by planning again under draws of the calibration (half a second).

    Raises
    ------
    ValueError
        For a price that is not positive, fewer than two units, answers of a single token.
    """
    rent = None if price is None else as_number("price", price, ANY_POSITIVE)
    if not work.n_out > 1:
        raise ValueError(f"work.n_out must be more than one token, not {work.n_out:g}")
    case = Case(unit, work, sla, as_whole("units", units, 2), tier, rent)
    centre = solve(case)
    drawn = unit.calibration.draws(DRAWS) if intervals else []
    draws = [solve(case, one, order=centre.order) for one in drawn]
    chosen = perf.careful(case.plain, centre.best or "aggregated", [one.found for one in draws or [centre]])
    return Plan(
        case,
        _answers(case, centre, draws),
        _ranked(centre, draws),
        offloading(case),
        centre.best,
        _verdict(case, centre, draws),
        perf.settings(case.plain, centre.best, chosen) if centre.best else {},
        _kept(case, centre.best, draws, chosen),
        () if centre.best else tuple(_advice(case)),
        unit.outside(work, max(float(chosen["batch"]), 1)),
    )


def _kept(case: Case, best: str, draws: list[Solved], row: Any) -> float:
    """Return the share of the draws in which the settings of a row keep the SLA."""
    if not draws or not best:
        return np.nan
    return perf.kept(case.plain, best, [one.found for one in draws], row)


def _ranked(centre: Solved, draws: list[Solved]) -> pd.DataFrame:
    """Return the comparison with intervals of its rates, and how often each is the best."""
    frame = centre.compared.copy()
    if draws:
        rates = np.array([one.compared["rate"] for one in draws])
        ends = [perf.interval(*pair) for pair in zip(frame["rate"], rates.T.tolist(), strict=True)]
        frame["rate_low"], frame["rate_high"] = np.transpose(ends)
        wins = np.bincount(rates.argmax(axis=1)[rates.max(axis=1) > 0], minlength=len(frame))
        frame["best_in"] = wins / len(draws)
    return frame


# Name, unit, formula and meaning of each answer; {binding}, {units} and {best} are the plan's.
ANSWERS = (
    ("rate", "requests/s", "request_rate", "of a unit at full load, {best}"),
    ("margin", "fraction", "", "lead of {best} over {second}"),
    ("tokens_per_gpu", "token/s", "", "output of one GPU at full load, {best}"),
    ("usd_per_million", "USD", "", "for a million output tokens at full load"),
    ("ttft", "s", "expected_ttft_full", "{best}, without queues"),
    ("tpot", "s", "expected_tpot_full", "{best}"),
    ("batch", "requests", "max_batch", "largest with prefill first; {binding} binds"),
    ("batch_tpot", "requests", "max_batch", "as far as TPOT allows"),
    ("batch_ttft", "requests", "max_batch_ttft_full", "as far as TTFT allows"),
    ("batch_memory", "requests", "max_batch_memory", "as far as the KV cache holds them"),
    ("chunk", "token", "chunk_size", "computed of prompts in each step, chunked prefill at its best"),
    ("chunked_gain", "1", "chunked_gain_serial", "rate of chunked over whole prefills"),
    ("prefill_units", "units", "pdd_split", "of {units}, disaggregated at its best"),
    ("pdd_gain", "1", "pdd_gain", "rate of disaggregated over aggregated serving"),
    ("t_w", "s", "step_time", "part of a step that all requests share"),
    ("delta_p", "s", "delta_p", "what one more request adds to each step by its prefill"),
    ("delta_h", "s", "delta_h", "what one more request adds to each step by its decode"),
    ("concurrent_prefills", "requests", "concurrent_prefills", "in prefill beside a request, prefill first"),
    ("pdd_concurrency", "1", "pdd_concurrency", "requests in prefill for each in decode, both limits used up"),
)


def _answers(case: Case, centre: Solved, draws: list[Solved]) -> dict[str, Answer]:
    words = {"binding": centre.binding, "units": case.units, "best": centre.order[0], "second": centre.order[1]}
    answers = {}
    for name, measure, formula, why in ANSWERS:
        value = float(centre.numbers[name])
        if not np.isfinite(value):  # no price was given, or no architecture meets the SLA
            continue
        # A plan takes all that the limits allow, whatever the draw: they have no interval of their own.
        low, high = perf.interval(value, [one.numbers[name] for one in draws if name not in ("ttft", "tpot")])
        meaning = why.format(**words) if centre.best else why.partition(",")[0].format(**words)
        answers[name] = Answer(name, value, low, high, measure, formula, meaning)
    return answers


def _verdict(case: Case, centre: Solved, draws: list[Solved]) -> str:
    """Name the best architecture and its lead, and say whether the calibration is good enough to call it one."""
    if not centre.best:
        return "no architecture meets the SLA"
    first, second, *_ = centre.order
    margin, spread = centre.numbers["margin"], case.unit.calibration.spread
    lead = f"{first} serves {centre.numbers['rate']:.3g} requests/s per unit at full load"
    if not np.isfinite(margin):
        return lead
    lead += f", {margin:.0%} more than {second}"
    ahead = float(np.mean([one.best == first for one in draws])) if draws else 1.0
    if ahead < CLEAR:
        return f"{lead}; too close to call: it is the best in {ahead:.0%} of the draws of the calibration"
    if margin < spread:
        return f"{lead}; too close to call: predictions of a step err by {spread:.0%}"
    return lead


def _advice(case: Case) -> Iterator[str]:
    """Yield by how much a request alone misses each limit, and which changes would meet them all."""
    unit, work, sla = case.unit, case.work, case.sla
    costs = unit.costs(work, case.read_bw)
    missed = False
    for name, alone, limit in (("TPOT", costs.tpot_1, sla.tpot), ("TTFT", costs.ttft_1 + costs.t_w, sla.ttft)):
        if alone > limit:
            missed = True
            over = f"{alone / limit - 1:.0%} over the limit of {1e3 * limit:.4g} ms"
            yield f"{name}: a request alone takes {1e3 * float(alone):.4g} ms, {over}"
    if work.n_in + work.n_out > unit.kv_capacity:
        missed = True
        yield f"memory: a request needs {work.n_in + work.n_out:g} tokens of KV cache, {unit.kv_capacity:.0f} fit"
    if not missed:
        yield "a request alone meets each limit, but no architecture keeps up with new ones within them"
    met = False
    for name, other in _variants(unit):
        rate = solve(replace(case, unit=other)).numbers["rate"]
        if rate:
            met = True
            yield f"{name} would meet the SLA: {rate:.3g} requests/s per unit"
    if not met:
        yield "neither more GPUs in a unit nor a lower precision would meet the SLA"


def _variants(unit: Unit) -> Iterator[tuple[str, Unit]]:
    """Yield the unit with more GPUs, and in FP8, as far as they exist."""
    for precision in dict.fromkeys((unit.weights, "fp8")):
        for tp in (1, 2, 4, 8):
            if tp < unit.tp or (tp, precision) == (unit.tp, unit.weights):
                continue
            kv = unit.kv if precision == unit.weights else precision
            try:
                other = Unit.of(unit.model, unit.gpu, tp, precision, kv, unit.engine, unit.calibration)
            except ValueError:
                continue
            yield f"TP {tp} in {precision}", other
