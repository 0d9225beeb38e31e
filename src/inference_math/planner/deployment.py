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
from inference_math.perf.types import Row
from inference_math.perf.words import missed, remedy, verdict
from inference_math.planner import text
from inference_math.planner.case import Case, Solved, offloading, solve, under
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

__all__ = ["ANSWERS", "DRAWS", "Answer", "Plan", "kv_setting", "plan", "told"]

DRAWS = 64


@dataclass(frozen=True)
class Answer:
    """One number of a plan: its interval (90 %), its unit, how it was found, and what it means.

    `value` is the median of the draws, `low` and `high` their 5 % and 95 % quantiles; without draws all three are the
    calibration's own. `by` names what computed it: "step", the unit's step; "formula", the closed form `formula`;
    "search", whole numbers tried against the step; "compare", the best of an architecture against another's. Where a
    formula of the book says less than a search or a comparison, `by_formula` is what it says (NaN where there is none).
    """

    name: str
    value: float
    low: float
    high: float
    unit: str
    by: str
    formula: str
    by_formula: float
    why: str


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What `plan` found; prints as a table, in a notebook as HTML.

    Attributes
    ----------
    answers
        The numbers by name; ``plan["batch"]`` is the value of one.
    compared
        `architectures.compare`, each rate the median of the draws, with its interval and the share of draws in which
        it is the highest; the other columns are those of the calibration itself.
    offloading
        What loading stored KV caches gains, by where they lie; see `offloading`.
    best
        The architecture with the highest rate in the median of the draws; "" where none meets the SLA.
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
    drawn = case.draws(DRAWS) if intervals else []
    draws = [solve(case, one) for one in drawn] or [centre]
    order = tuple(perf.ranked([one.found for one in draws]))
    compared = _ranked(centre, draws)
    best = order[0] if float(compared.set_index("architecture")["rate"][order[0]]) > 0 else ""
    leads = [perf.lead(case.plain, one.found["rows"], list(order)) for one in draws]
    chosen = perf.careful(case.plain, order[0], [one.found for one in draws])
    return Plan(
        case,
        _answers(case, centre, draws, leads, order, best),
        compared,
        offloading(case),
        best,
        _verdict(case, draws, leads, order, best),
        told(case, best, chosen) if best else {},
        perf.kept(case.plain, best, [one.found for one in draws], chosen) if best and intervals else np.nan,
        () if best else tuple(_advice(case)),
        unit.outside(work, max(float(chosen["batch"]), 1)),
    )


def told(case: Case, best: str, row: Row) -> dict[str, Any]:
    """Return what an engine is told, the precision of its KV cache with it."""
    told: dict[str, Any] = perf.settings(case.plain, best, row)
    return told if case.unit.kv == "bf16" else told | kv_setting(case.unit.engine)


def kv_setting(engine: str) -> dict[str, str]:
    """Return what tells an engine to keep its KV cache in FP8; left alone, all keep it in BF16."""
    if engine == "trtllm":
        return {"kv_cache_dtype": "fp8"}
    return {"--kv-cache-dtype": "fp8_e4m3" if engine == "sglang" else "fp8"}


def _ranked(centre: Solved, draws: list[Solved]) -> pd.DataFrame:
    """Return the comparison with the median and the interval of its rates, and how often each is the best."""
    frame = centre.compared.copy()
    if len(draws) > 1:
        rates = np.array([one.compared["rate"] for one in draws])
        ends = [perf.interval(*pair) for pair in zip(frame["rate"], rates.T.tolist(), strict=True)]
        frame["rate"], frame["rate_low"], frame["rate_high"] = np.transpose(ends)
        wins = np.bincount(rates.argmax(axis=1)[rates.max(axis=1) > 0], minlength=len(frame))
        frame["best_in"] = wins / len(draws)
    return frame


# Name, unit, what computed it, formula and meaning of each answer; {binding}, {units}, {best}, {second} are the plan's.
ANSWERS = (
    ("rate", "requests/s", "compare", "request_rate", "of a unit at full load, {best}"),
    ("margin", "fraction", "compare", "", "lead of {best} over {second}"),
    ("tokens_per_gpu", "token/s", "compare", "", "output of one GPU at full load, {best}"),
    ("usd_per_million", "USD", "compare", "", "for a million output tokens at full load"),
    ("ttft", "s", "compare", "expected_ttft_full", "{best}, without queues"),
    ("tpot", "s", "compare", "expected_tpot_full", "{best}"),
    ("batch", "requests", "search", "max_batch", "largest with prefill first; limited by {binding}"),
    ("batch_tpot", "requests", "search", "max_batch", "as far as TPOT allows"),
    ("batch_ttft", "requests", "search", "max_batch_ttft_full", "as far as TTFT allows"),
    ("batch_memory", "requests", "formula", "", "as far as the KV cache holds them, as the engine does"),
    ("chunk", "token", "compare", "chunk_size", "computed of prompts in each step, chunked prefill at its best"),
    ("chunked_gain", "1", "compare", "chunked_gain_serial", "rate of chunked over whole prefills"),
    ("prefill_units", "units", "compare", "pdd_split", "of {units}, disaggregated at its best"),
    ("pdd_gain", "1", "compare", "pdd_gain_same", "rate of disaggregated over aggregated serving"),
    ("t_w", "s", "step", "step_time", "part of a step that all requests share"),
    ("delta_p", "s", "formula", "delta_p", "what one more request adds to each step by its prefill, net of t_w"),
    ("delta_p_gross", "s", "formula", "delta_p", "the same of a prompt alone, t_w with it: what a prefill unit pays"),
    ("delta_h", "s", "step", "delta_h", "what one more request adds to each step by its decode"),
    ("gain_bound", "1", "formula", "gain_bound", "1 + ΔP/ΔH: most that faster prefills gain at a limit on the mean"),
    ("concurrent_prefills", "requests", "formula", "concurrent_prefills", "in prefill beside a request, prefill first"),
    (
        "pdd_concurrency",
        "1",
        "formula",
        "pdd_concurrency",
        "requests in prefill for each in decode, limits used up",
    ),
)


def _answers(
    case: Case, centre: Solved, draws: list[Solved], leads: list[Any], order: tuple[str, ...], best: str
) -> dict[str, Answer]:
    words = {"binding": centre.binding, "units": case.units, "best": order[0], "second": order[1]}
    formulas = perf.by_formula(case.plain, centre.found)
    drawn = [dict(one.numbers) | lead for one, lead in zip(draws, leads, strict=True)]
    own = dict(centre.numbers) | perf.lead(case.plain, centre.found["rows"], list(order))
    answers = {}
    for name, measure, by, formula, why in ANSWERS:
        # A plan takes all that the limits allow, whatever the draw: TTFT and TPOT have no interval of their own.
        value, low, high = perf.interval(own[name], [] if name in ("ttft", "tpot") else [one[name] for one in drawn])
        if not np.isfinite(value):  # no price was given, or no architecture meets the SLA
            continue
        meaning = why.format(**words) if best else why.partition(",")[0].format(**words)
        said = formulas.get(name, np.nan)
        answers[name] = Answer(name, value, low, high, measure, by, formula, said, meaning)
    return answers


def _verdict(case: Case, draws: list[Solved], leads: list[Any], order: tuple[str, ...], best: str) -> str:
    first, second, *_ = order
    rate, margin = (perf.interval(np.nan, [one[name] for one in leads])[0] for name in ("rate", "margin"))
    ahead = float(np.mean([one.best == first for one in draws]))
    spread = case.unit.widened(case.work).calibration.spread
    return verdict(best and first, second, rate, margin, ahead, spread)


def _advice(case: Case) -> Iterator[str]:
    """Yield by how much a request alone misses each limit, and which changes would meet them all."""
    yield from missed(case.plain, under(case))
    met = False
    for tp, precision, other in _variants(case.unit):
        rate = solve(replace(case, unit=other)).numbers["rate"]
        if rate:
            met = True
            yield remedy(tp, precision, rate)
    if not met:
        yield "neither more GPUs in a unit nor a lower precision would meet the SLA"


def _variants(unit: Unit) -> Iterator[tuple[int, str, Unit]]:
    """Yield the unit with more GPUs, and in FP8, as far as they exist."""
    for precision in dict.fromkeys((unit.weights, "fp8")):
        for tp in (1, 2, 4, 8):
            if tp < unit.tp or (tp, precision) == (unit.tp, unit.weights):
                continue
            kv = unit.kv if precision == unit.weights else precision
            try:
                other = unit.resized(tp=tp, weights=precision, kv=kv)
            except ValueError:
                continue
            yield tp, precision, other
