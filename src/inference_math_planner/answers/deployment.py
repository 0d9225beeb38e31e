"""The plan of one deployment: numbers with intervals and reasons, the best architecture, settings, advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import asdict, replace as changed

from inference_math.catalogue.links import Link, as_link, joined
from inference_math.catalogue.tiers import Tier, as_tier
from inference_math.evidence.sentences import render
from inference_math.optimiser import answers
from inference_math.optimiser.case import DRAWS, Case, offloading, under
from inference_math.optimiser.choice import middle_row, told_rate
from inference_math.optimiser.load import used_units
from inference_math.optimiser.starts import plain_settings, settings
from inference_math.optimiser.types import Sensitivity, Solution
from inference_math.unit import Unit
from inference_math.unit.mixing import told_kv
from inference_math.unit.nearest import known_errors
from inference_math.unit.problem import computed_tokens, prefill_unit, search_constants, sent_bytes
from inference_math.unit.types import DrawnCoefficients, Message, OperatingPoint, Problem
from inference_math.workload import SLA, Workload
from inference_math_planner.answers import card, notes, record
from inference_math_planner.answers.cautions import Decided, Scores, about_unit, cautions, hindrances, missed_of
from inference_math_planner.answers.commands import commands, with_cache
from inference_math_planner.answers.numbers import ANSWERS, answered
from inference_math_planner.answers.record import Answer, Record, carded, rows_of
from inference_math_planner.answers.text import as_html, as_text
from inference_math_planner.answers.types import About
from inference_math_planner.answers.verdicts import concurrency_bins, scored, unseen

__all__ = ["ANSWERS", "Plan", "Start", "as_commands", "as_options", "basis", "may_meet", "plan", "planned", "record_of"]


@dataclass(frozen=True)
class Start:
    """How to start an architecture: settings that keep the SLA in the share `kept` of the draws, and whole commands.

    `rate` is what they serve at full load, in requests/s of a unit, in the median of the draws; `plain` has the
    settings as numbers by our own names. `commands` are pairs of what is started and its command line.
    """

    settings: Mapping[str, object]
    plain: Mapping[str, int | None]
    kept: float
    rate: float
    commands: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What `plan` found; prints as a table, in a notebook as HTML.

    Every number is a statistic over the same draws of the calibration: a median with both ends, or a share of them.

    Attributes
    ----------
    case
        What was asked.
    pairs
        The draws, as coefficients and factors; without intervals the calibration itself, once.
    solved
        What `optimiser.answers.solve` decided under them.
    """

    case: Case
    pairs: tuple[DrawnCoefficients, ...]
    solved: Solution

    @classmethod
    def of(cls, case: Case, count: int) -> Plan:
        """Return the plan of a checked case under so many draws; of 0, under the calibration itself."""
        pairs = case.pairs(count)
        return cls(case, tuple(pairs), answers.solve(case.problem, pairs))

    def __getitem__(self, name: str) -> float:
        """Return the value of an answer."""
        return self.answers[name].value

    @property
    def order(self) -> tuple[str, ...]:
        """The architectures, that which serves most in the mean over the draws first."""
        return tuple(self.solved.order)

    @property
    def best(self) -> str:
        """The architecture that serves most in the mean over the draws; "" where none meets the SLA in most of them."""
        return str(self.solved.best)

    @property
    def best_in(self) -> float:
        """Share of the draws in which it is the best; 0 where none meets the SLA."""
        return float(self.solved.best_in[self.best]) if self.best else 0.0

    @property
    def tie(self) -> bool:
        """Whether it is a tie: ahead by less than its lead varies."""
        return bool(self.solved.tie)

    @cached_property
    def numbers(self) -> dict[str, list[float]]:
        """Each number as [median, low, high]."""
        return answers.numbers_of(self.case.problem, self.solved)

    @cached_property
    def answers(self) -> Mapping[str, Answer]:
        """The numbers by name; ``plan["batch"]`` is the value of one."""
        return dict(_answers(self))

    @cached_property
    def compared(self) -> pd.DataFrame:
        """What each architecture does at full load with its settings: a row each, that which serves most first.

        Columns: architecture; layout, of its units in words; rate (requests/s of a unit), ttft and tpot (s), each with
        _low and _high; best_in, the share of the draws in which it is the best; loss, how much less it serves in the
        mean, as a share of the most; kept, the share of the draws that keep the limits; batch, the most requests at
        once; decodes, in flight at that rate; chunk, computed, prefill_units and decode_units.
        """
        rows = []
        for name in self.order:
            settings, middle = self.solved.settings[name], middle_row(self.solved, name)
            row: dict[str, Any] = {"architecture": name, "layout": render(card.laid_out(self.case.problem, name))}
            for key in ("rate", "ttft", "tpot"):
                row |= dict(zip((key, f"{key}_low", f"{key}_high"), middle[key], strict=True))
            row |= {"best_in": self.solved.best_in[name], "loss": self.solved.loss[name]}
            row["kept"] = self.solved.feasible_share[name]
            row |= {"decodes": middle["decodes"][0], "step": middle["step"][0]}
            row |= {
                key: getattr(settings, key) if settings.rate > 0 else np.nan
                for key in ("batch", "chunk", "prefill_units", "decode_units")
            }
            own = self.case.of_architecture(name)
            groups = self.case.unit.dp if name == "chunked" else 1  # each has a chunk; pools have a unit's prompts
            rows.append(row | {"computed": groups * computed_tokens(own, settings) if row["chunk"] > 0 else np.nan})
        return pd.DataFrame(rows)

    @cached_property
    def offloading(self) -> pd.DataFrame:
        """What loading stored KV caches gains, by where they lie; see `offloading`."""
        return offloading(self.case, DRAWS if len(self.pairs) > 1 else 0)

    @cached_property
    def undrafted(self) -> Solution:
        """What is decided under the same draws if nothing is drafted."""
        return answers.undrafted(self.case.problem, list(self.pairs))

    @cached_property
    def drafting(self) -> pd.DataFrame:
        """What drafts bring: a row with them and one without; none where nothing is drafted.

        Columns: drafts, in words; architecture, the chosen one, "" where none meets the SLA; rate (requests/s of a
        unit at full load), ttft and tpot (s), each with _low and _high.
        """
        many = self.case.unit.drafts
        if not many:
            return pd.DataFrame()
        rows = []
        for drafts, solved in ((many, self.solved), (0, self.undrafted)):
            row: dict[str, object] = {"drafts": render(notes.drafts_said(drafts)), "architecture": solved.best}
            middle = middle_row(solved, solved.order[0])
            for key in ("rate", "ttft", "tpot"):
                ends = middle[key] if solved.best else [np.nan] * 3
                row |= dict(zip((key, f"{key}_low", f"{key}_high"), ends, strict=True))
            rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def card(self) -> record.Card:
        """The answer of one unit at full load: its best architecture, how sure that is, what stands behind it."""
        none = self.solved.none_in
        if not self.best:
            few = {"key": "card.mostly_none", "none": card.hundredths(none)}
            return record.Card(headline=render({"key": "card.none"} if none >= 1 else few))
        return carded(card.unit_card(self.case.problem, self.solved, self.about))

    @cached_property
    def about(self) -> About:
        """Of what the plan's card is."""
        case, mode = self.case, self.case.unit.calibration.mode
        scores = Scores(errors=known_errors(), verdicts=scored(), concurrency_bins=concurrency_bins(), unseen=unseen())
        return about_unit(case.unit.deployment, case.problem, mode, len(self.outside) > 0, scores)

    @cached_property
    def decided(self) -> Decided:
        """What its notes take of it."""
        case, unit, link = self.case, self.case.unit, as_link("link", self.case.link)
        return Decided(
            of=unit.deployment, problem=case.problem, found=unit.found(case.work), mode=unit.calibration.mode,
            solved=self.solved, numbers=self.numbers, undrafted=[self.undrafted] if unit.drafts and self.best else [],
            plain=[under(case.resized(kv="bf16"))] if unit.kv == "fp8" else [],
            link=link.title, measured=link.measured,
        )  # fmt: skip

    @cached_property
    def runner_up(self) -> str:
        """The next architecture in a sentence, and what would make another the first; "" where none is."""
        if not self.best:
            return ""
        rate = self.compared["rate"].iloc[1]
        even = notes.as_good(self.solved.lead)
        return render(notes.runner_up(self.best, self.order[1], rate, list(self.sensitivities), even))

    @cached_property
    def sensitivities(self) -> tuple[Sensitivity, ...]:
        """What a fifth less or more of each input would bring; see `optimiser.answers.sensitivities`."""
        return tuple(answers.sensitivities(self.case.problem, list(self.pairs))) if self.best else ()

    @cached_property
    def starts(self) -> Mapping[str, Start]:
        """How to start each architecture that meets the SLA."""
        rates = self.compared.set_index("architecture")["rate"]
        return {name: _start(self, name, float(rates[name])) for name in self.order if self.best and rates[name] > 0}

    @cached_property
    def missed(self) -> tuple[str, ...]:
        """Why a store is slower than computing; where the SLA cannot be met, by how much."""
        return tuple(map(render, missed_of(self.decided)))

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What `missed` says, and where the SLA cannot be met, which larger units and precisions would meet it."""
        return (*self.missed, *map(render, () if self.best else _remedies(self.case, self.pairs)))

    @cached_property
    def outside(self) -> tuple[str, ...]:
        """Inputs that were never calibrated."""
        batch = float(self.solved.settings[self.order[0]].batch)
        return self.case.unit.outside(self.case.work, max(batch, 1))

    @cached_property
    def hindered(self) -> Mapping[str, str]:
        """Why an architecture meets the SLA at no rate, by its name; empty where none does, which `advice` tells."""
        return {name: render(why) for name, why in hindrances(self.decided).items()}

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """How far predictions of such a unit were off; what is taken on trust; what is served without drafts."""
        return tuple(map(render, cautions(self.decided, self.about)))

    @property
    def settings(self) -> Mapping[str, object]:
        """What the best architecture's engines are told."""
        return self.starts[self.best].settings if self.best else {}

    @property
    def kept(self) -> float:
        """Share of the draws in which these settings keep the SLA; NaN where there are none."""
        return self.starts[self.best].kept if self.best else np.nan

    @property
    def feasible(self) -> bool:
        """Whether some architecture meets the SLA."""
        return bool(self.best)

    def frame(self) -> pd.DataFrame:
        """Return the answers as a table."""
        return pd.DataFrame(map(asdict, self.answers.values()))

    def __repr__(self) -> str:
        return as_text(record_of(self))

    def _repr_html_(self) -> str:
        return as_html(record_of(self))


def plan(
    unit: Unit,
    work: Workload,
    sla: SLA,
    *,
    units: int = 8,
    tier: Tier | str | None = None,
    price: float | None = None,
    link: Link | str | None = None,
    sessions: int = 0,
    front: float | None = None,
    prefill: Unit | None = None,
    decode: Unit | None = None,
    pool_units: int | None = None,
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
        Where the share ``work.alpha`` of the prompts' KV caches is loaded from, a tier or its name; None: it lies in
        HBM already.
    link
        What KV caches travel over from the prefill pool to the decode pool, a link or the name of one; None: RDMA, as
        it was measured.
    sessions
        Sessions whose stored part one unit keeps; 0: not known, so nothing is said of a store's size.
    price
        US dollars for a GPU and hour, for the cost per million output tokens.
    front
        Seconds of each TTFT that no step takes, measured with one short request: HTTP, tokenizer, launch. None: as it
        was fitted to served points, and as unsure as that is. The limit on TTFT is that of a client, front included.
    prefill, decode
        Units of the pools of disaggregated serving, where their layouts are their own; None: that of `unit`. `search`
        finds the pair that serves most.
    pool_units
        Units of both pools together, each as large as one of the decode pool; None: `units`.
    intervals
        Whether to compute intervals, by planning again under draws of the calibration (half a second).

    Raises
    ------
    TypeError
        For anything but a unit, a workload and an SLA, a tier or a link, or the names of these.
    ValueError
        For a price that is not positive, fewer than two units, answers of a single token, sessions beyond HBM,
        a front below 0, a `prefill` or `decode` that is more than another layout of the unit.
    """
    place = as_tier("tier", tier)
    over = as_link("link", link)
    case = Case(unit, work, sla, units, place, price, over, sessions, front, prefill, decode, pool_units)
    return planned(case, intervals=intervals)


def planned(case: Case, *, intervals: bool = True) -> Plan:
    """Return the plan of a case; see `plan` for its errors."""
    return Plan.of(case.checked(), DRAWS if intervals else 0)


def _start(plan: Plan, name: str, rate: float) -> Start:
    """Return how to start one architecture with its settings."""
    case, own, row = plan.case, plan.case.of_architecture(name), plan.solved.settings[name]
    plain, options = plain_settings(own, name, row), engine_args(case, own, name, row)
    return Start(options, plain, plan.solved.feasible_share[name], rate, lines_for(case, own, name, row))


def lines_for(case: Case, own: Problem, name: str, row: OperatingPoint, behind: int = 1) -> tuple[tuple[str, str], ...]:
    """Return what is started for a replica of an architecture's row, and the command line of each.

    `own` is the question as the architecture has it; of units that are not disaggregated so many are `behind` each
    router.
    """
    store = case.tier.name if case.tier is not None and case.work.alpha > 0 else ""
    kv = told_kv(case.unit.kv, case.unit.usual_kv)
    lines = commands(own, name, settings(own, name, row), kv, store, behind)
    return tuple((render(title), render(line)) for title, line in lines)


def engine_args(case: Case, own: Problem, name: str, row: OperatingPoint) -> dict[str, object]:
    """Return what an engine is told, the precision of its KV cache with it."""
    return with_cache(own.engine.cli, settings(own, name, row), told_kv(case.unit.kv, case.unit.usual_kv))


def _answers(plan: Plan) -> Iterator[tuple[str, Answer]]:
    for row in answered(plan.decided):
        if np.isfinite(row.value):  # a price was given, some architecture meets the SLA
            yield row.name, Answer(**asdict(row))


def _remedies(case: Case, pairs: tuple[DrawnCoefficients, ...]) -> Iterator[Message]:
    """Yield which units would meet the limits that a plan under these draws does not."""
    met = False
    for tp, precision, other in _variants(case.unit):
        at = replace(case, unit=other, prefill=None, decode=None)
        drawn = at.pairs(DRAWS if len(pairs) > 1 else 0)
        if not may_meet(at, drawn):  # which takes no search to see
            continue
        solved = answers.solve(at.problem, drawn)
        if solved.best:
            met = True
            yield notes.remedy(tp, other.gpus, precision, told_rate(solved, solved.best)[0])
    if not met:
        yield {"key": "missed.nothing"}


def may_meet(case: Case, drawn: list[DrawnCoefficients]) -> bool:
    """Tell whether a request alone meets both limits in half of the draws: else no architecture does in most."""
    constants, kept = search_constants(case.problem), 0
    for one in answers.drawn_costs(case.problem, drawn):
        step = one.step_seconds
        kept += step(1.0, 0.0) <= constants.step and one.front + step(0.0, 1.0) <= constants.ttft
    return 2 * kept >= len(drawn)


def _variants(unit: Unit) -> Iterator[tuple[int, str, Unit]]:
    """Yield the unit with more GPUs, and in FP8 and four bits, as far as they exist."""
    for precision in dict.fromkeys((unit.weights, "fp8", "nvfp4" if unit.gpu.fp4_flops else "int4")):
        for tp in (1, 2, 4, 8):
            if tp < unit.tp or (tp, precision) == (unit.tp, unit.weights):
                continue
            kv = unit.kv if precision == unit.weights else "fp8"
            try:
                other = unit.resized(tp=tp, weights=precision, kv=kv)
            except ValueError:
                continue
            if other.tp * other.dp > joined(other.gpu):
                continue
            yield tp, precision, other


def record_of(plan: Plan, *, stores: bool = True, runner_up: bool = True, ways: Sequence[str] | None = None) -> Record:
    """Return the record of a plan, one unit at full load; without its stores and its runner-up it takes no time.

    `ways` say what would meet limits that are missed; None: what `Plan.advice` says.
    """
    case = plan.case
    stored = rows_of(plan.offloading) if stores and case.work.alpha and plan.feasible else []
    rows = [_one_unit(plan, row) for row in rows_of(plan.compared.drop(columns="step"))]
    choices = [_choice(plan, row) for row in rows]
    return Record(
        unit=case.unit.name,
        calibration=case.unit.calibration.mode,
        workload=case.work,
        sla=case.sla,
        units=case.units,
        feasible=plan.feasible,
        card=plan.card,
        answer=changed(choices[0] if plan.feasible else basis(plan, ""), tie=plan.tie),
        architectures=choices,
        one_unit=rows,
        none_in=plan.solved.none_in,
        stores=[record.Store(row["where"], row["rate"]) for row in stored],
        offloading=[record.Stored(**row) for row in stored],
        drafting=[record.Drafted(**row) for row in rows_of(plan.drafting)],
        numbers=dict(plan.answers),
        runner_up=plan.runner_up if runner_up else "",
        advice=list(plan.advice) if ways is None else [*plan.missed, *ways],
        outside=list(plan.outside),
        cautions=list(plan.cautions),
        hindered=dict(plan.hindered),
    )


def basis(plan: Plan, name: str) -> record.Choice:
    """Return what the record of each architecture has in common, and of none ("") where nothing meets the limits."""
    case, own = plan.case, plan.case.of_architecture(name)
    tier = "hbm" if case.tier is None else case.tier.name  # as `--tier` calls it
    layout, first = own.unit.layout, prefill_unit(own).layout
    pools = {"prefill": first, "decode": layout} if name == "disaggregated" else None
    return record.Choice(
        architecture=name or None,
        best_in=0.0,
        layout=layout,
        unit_gpus=own.unit.gpus,
        promise=case.sla.quantile or "means",
        store=tier if case.work.alpha else None,
        pools=pools,
        none_in=plan.solved.none_in,
    )


def _choice(plan: Plan, row: record.OneUnit) -> record.Choice:
    """Return what an architecture is at full load: of one unit, and of pools all units of both."""
    case, pools = plan.case, row.architecture == "disaggregated"
    own = case.of_architecture(row.architecture)
    settings = plan.solved.settings[row.architecture]
    used = used_units(search_constants(own), settings) if pools and row.commands else own.units
    choice = changed(basis(plan, row.architecture), best_in=row.best_in, loss=row.loss)
    choice = changed(choice, kept=row.kept, options=row.options, commands=row.commands)
    choice = changed(choice, units=ceil(used) if pools else 1)  # what is repeated
    if pools:
        choice = changed(choice, pools_gpus=round(used * own.unit.gpus))
    if not row.commands:
        return choice
    each = [row.rate, row.rate_low, row.rate_high]
    of_all, decoding = used * own.unit.gpus / case.unit.gpus, settings.decode_units
    return changed(
        choice,
        unit_rate=record.Three(*each),
        pools_rate=record.Three(*(of_all * one for one in each)) if pools else None,
        ttft=record.Three(row.ttft, row.ttft_low, row.ttft_high),
        tpot=record.Three(row.tpot, row.tpot_low, row.tpot_high),
        tokens_per_gpu=row.rate * case.work.n_out / case.unit.gpus,
        settings=dict(plan.starts[row.architecture].plain),
        split={"prefill": row.prefill_units, "decode": decoding} if pools else None,
        link_gb_s=row.rate * of_all / decoding * sent_bytes(own) / 1e9 if pools else None,
        decodes=row.decodes,
    )


def _one_unit(plan: Plan, row: dict[str, Any]) -> record.OneUnit:
    begun = plan.starts.get(row["architecture"])
    options, commands = (as_options(begun.settings), as_commands(begun.commands)) if begun else ([], [])
    return record.OneUnit(**row, options=options, commands=commands)


def as_options(settings: Mapping[str, object]) -> list[str]:
    """Return settings as a record has them, each as one writes it behind a command."""
    return [f"{name} {value}".strip() for name, value in settings.items()]


def as_commands(commands: tuple[tuple[str, str], ...]) -> list[record.Command]:
    """Return command lines as a record has them."""
    return [record.Command(title, line) for title, line in commands]
