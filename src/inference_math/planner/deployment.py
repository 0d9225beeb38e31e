"""The plan of one deployment: numbers with intervals and reasons, the best architecture, settings, advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from inference_math import perf
from inference_math.catalogue.tiers import Tier
from inference_math.checks import ANY_POSITIVE, as_number, as_whole
from inference_math.evidence import load
from inference_math.perf.commands import commands
from inference_math.perf.types import Row
from inference_math.perf.words import checked, drafting_pays, hindered, missed, remedy, runner_up, trusted, verdict
from inference_math.planner import text
from inference_math.planner.case import Case, Solved, offloading, solve, under
from inference_math.unit import Unit
from inference_math.workload import SLA, Workload

if TYPE_CHECKING:
    from inference_math.planner.traffic import Fleet

__all__ = ["ANSWERS", "DRAWS", "MOST_UNITS", "Answer", "Plan", "Start", "kv_setting", "lines_for", "plan", "told"]

DRAWS = 64
MOST_UNITS = 10_000


@dataclass(frozen=True)
class Answer:
    """One number of a plan: its `title` in words, its interval (90 %), its unit, how it was found, what it means.

    `value` is the median of the draws, `low` and `high` their 5 % and 95 % quantiles; without draws all three are the
    calibration's own. `by` names what computed it: "step", the unit's step; "formula", the closed form `formula`;
    "search", whole numbers tried against the step; "compare", the best of an architecture against another's. Where a
    formula of the book says less than a search or a comparison, `by_formula` is what it says (NaN where there is none).
    """

    name: str
    title: str
    value: float
    low: float
    high: float
    unit: str
    by: str
    formula: str
    by_formula: float
    why: str


@dataclass(frozen=True)
class Start:
    """How to start an architecture: settings that keep the SLA in the share `kept` of the draws, and whole commands.

    `kept` is NaN without intervals; `rate` is what they serve at full load, in requests/s of a unit, in the median of
    the draws. `commands` are pairs of what is started and its command line.
    """

    settings: Mapping[str, Any]
    kept: float
    rate: float
    commands: tuple[tuple[str, str], ...]


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
    runner_up
        The architecture behind the best in a sentence, and what would make another the first; "" where none is.
    swings
        What a fifth less or more of each input would bring; see `perf.swings`.
    starts
        How to start each architecture that meets the SLA: settings that keep it in nine of ten draws, where there are
        such.
    advice
        Where the SLA cannot be met: by how much it is missed, and what would meet it.
    outside
        Inputs that were never calibrated.
    hindered
        Why an architecture meets the SLA at no rate, by its name; empty where none is feasible, which `advice` tells.
    cautions
        How far predictions of such a unit were off where that was tried, if its calibration is of served points; what
        is taken on trust of drafted tokens and of links, and what is served without drafts.
    drawn
        What each draw of the calibration found; empty without intervals.
    """

    case: Case
    answers: Mapping[str, Answer]
    compared: pd.DataFrame
    offloading: pd.DataFrame
    best: str
    verdict: str
    runner_up: str
    swings: tuple[Mapping[str, Any], ...]
    starts: Mapping[str, Start]
    advice: tuple[str, ...]
    outside: tuple[str, ...]
    hindered: Mapping[str, str]
    cautions: tuple[str, ...]
    drawn: tuple[Solved, ...]

    def __getitem__(self, name: str) -> float:
        """Return the value of an answer."""
        return self.answers[name].value

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the best architecture's engines are told."""
        return self.starts[self.best].settings if self.best else {}

    @property
    def kept(self) -> float:
        """Share of the draws in which these settings keep the SLA; NaN without intervals."""
        return self.starts[self.best].kept if self.best else np.nan

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
                "runner_up": self.runner_up, "swings": list(self.swings),
                "settings": dict(self.settings), "settings_keep_sla": self.kept,
                "starts": {name: asdict(start) for name, start in self.starts.items()},
                "advice": list(self.advice), "outside": list(self.outside),
                "cautions": list(self.cautions), "hindered": dict(self.hindered),
            }
        )  # fmt: skip
        return content

    def report(self, fleet: Fleet | None = None) -> str:
        """Return the plan as Markdown, for a design document, after what `planner.fleet` found, if that is given."""
        return text.as_markdown(self, fleet)

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
    case = Case(unit, work, sla, as_whole("units", units, 2, MOST_UNITS), tier, rent)
    centre = solve(case)
    drawn = case.draws(DRAWS) if intervals else []
    draws = [solve(case, one) for one in drawn] or [centre]
    order = tuple(perf.ranked([one.found for one in draws]))
    compared = _ranked(centre, draws)
    best = order[0] if float(compared.set_index("architecture")["rate"][order[0]]) > 0 else ""
    leads = [perf.lead(case.plain, one.found["rows"], list(order)) for one in draws]
    solved = [one.found for one in draws]
    chosen = perf.careful(case.plain, order[0], solved)
    rates = compared.set_index("architecture")["rate"]
    swings = tuple(perf.swings(case.plain, unit.found(work))) if best else ()
    return Plan(
        case,
        _answers(case, centre, draws, leads, order, best),
        compared,
        offloading(case),
        best,
        _verdict(case, draws, leads, order, best),
        runner_up(best, order[1], float(rates[order[1]]), list(swings)) if best else "",
        swings,
        {name: _start(case, name, solved, intervals) for name in order if rates[name] > 0},
        () if best else tuple(_advice(case)),
        unit.outside(work, max(float(chosen["batch"]), 1)),
        {name: hindered(case.plain, under(case), name) for name in order if best and not rates[name] > 0},
        tuple(_cautions(case, centre.numbers["rate"])),
        tuple(draws) if intervals else (),
    )


def _start(case: Case, name: str, solved: list[Any], intervals: bool) -> Start:
    """Return how to start one architecture, by the row that keeps the SLA in most draws."""
    asked, row = case.plain, perf.careful(case.plain, name, solved)
    kept = perf.kept(asked, name, solved, row) if intervals else np.nan
    return Start(told(case, name, row), kept, perf.serves(asked, name, solved, row), lines_for(case, name, row))


def lines_for(case: Case, name: str, row: Row) -> tuple[tuple[str, str], ...]:
    """Return what is started for an architecture's row, and the command line of each."""
    store = case.tier.name if case.tier is not None and case.work.alpha > 0 else ""
    told = perf.settings(case.plain, name, row)
    lines = commands(case.plain, name, told, case.unit.kv, case.unit.memory, store)
    return tuple((title, line) for title, line in lines)


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


# Name, title, unit, what computed it, formula and meaning of each answer; {binding}, {units}, {best}, {second} are the
# plan's.
ANSWERS = (
    ("rate", "Requests per second of a unit", "requests/s", "compare", "request_rate", "at full load, {best}"),
    ("margin", "Lead over the runner-up", "fraction", "compare", "", "of {best} over {second}"),
    ("tokens_per_gpu", "Output of one GPU", "token/s", "compare", "", "at full load, {best}"),
    ("usd_per_million", "Cost of a million output tokens", "USD", "compare", "", "at full load"),
    ("joules_per_token", "Energy of an output token, at most", "J", "compare", "", "GPUs at rated power, full load"),
    ("ttft", "Time to first token, TTFT", "s", "compare", "expected_ttft_full", "{best}, without queues"),
    ("tpot", "Time per output token, TPOT", "s", "compare", "expected_tpot_full", "{best}"),
    ("batch", "Largest batch, prefill first", "requests", "search", "max_batch", "limited by {binding}"),
    ("batch_tpot", "The same, as far as TPOT allows", "requests", "search", "max_batch", ""),
    ("batch_ttft", "The same, as far as TTFT allows", "requests", "search", "max_batch_ttft_full", ""),
    ("batch_memory", "The same, as far as memory allows", "requests", "formula", "", "caches as the engine keeps them"),
    ("chunk", "Prompt tokens in each step", "token", "compare", "chunk_size", "chunked prefill at its best"),
    ("chunked_gain", "Gain of chunked over whole prefills", "1", "compare", "chunked_gain_serial", "ratio of rates"),
    ("prefill_units", "Units for prefill", "units", "compare", "pdd_split", "of {units}, disaggregated at its best"),
    ("pdd_gain", "Gain of disaggregated over aggregated", "1", "compare", "pdd_gain_same", "ratio of rates"),
    ("t_w", "Weight read, t_w", "s", "step", "step_time", "part of a step that all requests share"),
    ("delta_p", "ΔP, net", "s", "formula", "delta_p", "what one more request adds to the mean step by its prefill"),
    ("delta_p_gross", "ΔP, gross", "s", "formula", "delta_p", "of a prompt alone, t_w with it; a prefill unit pays it"),
    ("delta_h", "ΔH", "s", "step", "delta_h", "what one more request adds to each step by its decode"),
    ("gain_bound", "Bound 1 + ΔP/ΔH", "1", "formula", "gain_bound", "most that faster prefills gain, in the mean"),
    (
        "concurrent_prefills", "Prompts in a step beside a request", "requests", "formula", "concurrent_prefills",
        "in the mean, prefill first",
    ),
    (
        "pdd_concurrency", "Requests in prefill for each in decode", "1", "formula", "pdd_concurrency",
        "with both limits used up",
    ),
)  # fmt: skip


def _answers(
    case: Case, centre: Solved, draws: list[Solved], leads: list[Any], order: tuple[str, ...], best: str
) -> dict[str, Answer]:
    words = {"binding": centre.binding, "units": case.units, "best": order[0], "second": order[1]}
    formulas = perf.by_formula(case.plain, centre.found)
    drawn = [dict(one.numbers) | lead for one, lead in zip(draws, leads, strict=True)]
    own = dict(centre.numbers) | perf.lead(case.plain, centre.found["rows"], list(order))
    answers = {}
    for name, title, measure, by, formula, why in ANSWERS:
        # A plan takes all that the limits allow, whatever the draw: TTFT and TPOT have no interval of their own.
        value, low, high = perf.interval(own[name], [] if name in ("ttft", "tpot") else [one[name] for one in drawn])
        if not np.isfinite(value):  # no price was given, or no architecture meets the SLA
            continue
        meaning = why.format(**words) if best else why.partition(",")[0].format(**words)
        said = formulas.get(name, np.nan)
        answers[name] = Answer(name, title, value, low, high, measure, by, formula, said, meaning)
    return answers


def _verdict(case: Case, draws: list[Solved], leads: list[Any], order: tuple[str, ...], best: str) -> str:
    first, second, *_ = order
    rate, margin = (perf.interval(np.nan, [one[name] for one in leads])[0] for name in ("rate", "margin"))
    ahead = float(np.mean([one.best == first for one in draws]))
    spread = case.unit.widened(case.work).calibration.spread
    return verdict(best and first, second, rate, margin, ahead, spread)


def _cautions(case: Case, rate: float) -> Iterator[str]:
    unit = case.unit
    rows: list[Any] = load("served_error").frame.to_dict("records")
    yield from trusted(unit.numbers, rows)
    if unit.drafts:
        yield drafting_pays(rate, perf.undrafted(case.plain, unit.found(case.work)))
    if unit.calibration.mode == "served":
        yield checked(unit.model.name, unit.gpu.name, unit.kind, unit.engine, unit.gpu.maker, rows)


def _advice(case: Case) -> Iterator[str]:
    """Yield by how much a request alone misses each limit, and which changes would meet them all."""
    yield from missed(case.plain, under(case))
    met = False
    for tp, precision, other in _variants(case.unit):
        rate = solve(replace(case, unit=other)).numbers["rate"]
        if rate:
            met = True
            yield remedy(tp, other.gpus, precision, rate)
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
