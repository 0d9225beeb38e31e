"""Views of a record: lines for a terminal, HTML for a notebook, Markdown for a document, a script for a shell.

One list of blocks says what is printed in which order; a printer of each kind writes them down. Nothing is computed
here that the record does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import isnan

import pandas as pd

from inference_math.evidence.numerals import digits, in_ms, percent
from inference_math.evidence.sentences import is_of, render
from inference_math.optimiser import verdict
from inference_math.optimiser.types import Verdict
from inference_math.optimiser.verdict import stands_on
from inference_math.unit.nearest import known_comparisons
from inference_math.workload import SLA
from inference_math_planner.answers.card import both_layouts
from inference_math_planner.answers.numbers import in_unit, spanned
from inference_math_planner.answers.record import (
    Answer,
    Choice,
    Command,
    Metered,
    OneUnit,
    OtherGpu,
    Record,
    Stored,
    Three,
    Timed,
)

__all__ = ["as_html", "as_markdown", "as_script", "as_short", "as_text", "fleets_table", "gpus_table", "sentence"]


@dataclass(frozen=True)
class _Title:
    text: str
    level: int = 2


@dataclass(frozen=True)
class _Sentence:
    text: str
    strong: str = ""  # what comes first


@dataclass(frozen=True)
class _Notes:
    items: Sequence[str]


@dataclass(frozen=True)
class _Table:
    frame: pd.DataFrame
    title: str = ""


@dataclass(frozen=True)
class _Commands:
    what: str
    commands: Sequence[Command]


_LOSS = render({"key": "card.loss"})
_DECODES = "decodes at once (mean)"  # of a unit; the most at once is a setting, and larger
_VARIABLE = re.compile(r"\$\{?([A-Z][A-Z_]*)")  # of the shell, in a command
_Block = _Title | _Sentence | _Notes | _Table | _Commands


def _blocks(record: Record, card: bool = True) -> Iterator[_Block]:
    """Yield everything that is printed: the card, if it is not printed already, then why, then all numbers."""
    what, sent = _heading(record)
    yield _Title(what, 1)
    yield _Sentence(sent)
    head, *lines = card_lines(record)
    if card:
        yield _Sentence("", head)
        yield from map(_Sentence, lines)
    if record.fleets is not None:
        yield _Title("Why")
        yield _Sentence(sentence(record.fleets.how))
        yield _Sentence(sentence(render({"key": "card.redrawn"})))
        yield _Table(fleets_table(record))
        yield _Commands(f"a replica of these, {record.answer.architecture}", record.answer.commands)
        yield _Title("One unit at full load, without queues")
        if record.one_unit[0].rate > 0:
            yield _Sentence(sentence(start(record)))
    if record.runner_up:
        yield _Sentence(sentence(record.runner_up))
    yield _Notes([*record.advice, *_hindered(record), *_outside(record), *record.cautions])
    for title, table in tables(record).items():
        yield _Table(table, title)
    if record.offloading:
        yield _Sentence(sentence(render({**stands_on(known_comparisons()["store"]), "key": "sure.stored"})))
    yield _Table(_numbers(record), "All numbers")
    for row in record.one_unit if record.fleets is None and record.feasible else ():
        if row.commands:
            yield _Commands(f"{row.architecture} at full load", row.commands)


def card_lines(record: Record) -> list[str]:
    """Return the card as sentences: number, what it is, others, what requests see, how sure, cost, start, evidence."""
    card, answer, work = record.card, record.answer, record.workload
    if card.value is None:
        return [sentence(card.headline)]
    kept = "" if isinstance(answer.promise, str) or record.fleets is None else answer.promise
    sent = f"requests of {digits(work.n_in)} tokens in and {digits(work.n_out)} out"
    lines = [
        card.headline + (f"; {kept:.0%} of the requests keep both limits" if kept else ""),
        f"{answer.architecture} serving takes {card.what}",
        "; ".join(card.others) or "no other architecture keeps the limits",
        f"{sent} see {' and '.join(_metered(one, card.ranged) for one in card.meters)}",
        f"{card.sure}: {card.why}",
        _first_caution(record) or "; ".join(card.cost),
        "; ".join([f"start {started(answer.options, 'each replica' if answer.replicas > 1 else 'it')}", *card.start]),
        card.evidence[0],
    ]
    return [sentence(one) for one in lines if one]


def _first_caution(record: Record) -> str:
    """Return what must not be missed, "" if nothing: a store that does not pay, a request longer than the model's."""
    return next(iter((*record.advice, *_longer(record))), "")


def _longer(record: Record) -> list[str]:
    """Return that a request is longer than what the model was made for, where it is."""
    return [one for one in record.outside if is_of("outside.long", one)]


def _metered(one: Metered, ranged: bool) -> str:
    low, high = digits(1e3 * one.value.low), digits(1e3 * one.value.high)
    seen = f"{low} to {high}" if ranged else digits(1e3 * one.value.value)
    return f"a {one.of} {one.name} of {seen} ms (limit {digits(1e3 * one.limit)} ms)"


def as_text(record: Record, *, card: bool = True) -> str:
    """Return everything as lines for a terminal, or all but the card."""
    return "\n".join(line for block in _blocks(record, card) for line in _in_text(block))


def _in_text(block: _Block) -> list[str]:
    match block:
        case _Title(text, level):
            return [text] if level == 1 else ["", f"{text}:"]
        case _Sentence(text, strong):
            return [f"{strong} {text}".strip()]
        case _Notes(items):
            return [f"! {one}" for one in items]
        case _Table(frame, title):
            return ["", *([title] if title else []), *lines_of(frame)]
        case _Commands(what, commands):
            lines = (f"  {one.title}: {one.command}" for one in commands)
            return ["", f"To start {what}:", *lines, *(f"  {one}" for one in variables(commands))]


def lines_of(table: pd.DataFrame) -> list[str]:
    """Return a table of text in aligned columns."""
    rows = [list(table.columns), *table.to_numpy().tolist()]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{one:{width}}" for one, width in zip(row, wide, strict=True)).rstrip() for row in rows]


def as_html(record: Record) -> str:
    """Return everything as HTML."""
    return f'<div class="plan">{"".join(map(_in_html, _blocks(record)))}</div>'


def _in_html(block: _Block) -> str:
    match block:
        case _Title(text):
            return f"<p>{escape(text)}</p>"
        case _Sentence(text, strong):
            first = f"<strong>{escape(strong)}</strong>" if strong else ""
            return f"<p>{' '.join(filter(None, (first, escape(text))))}</p>"
        case _Notes(items):
            return "".join(f"<p>{escape(sentence(one))}</p>" for one in items)
        case _Table(frame, title):
            above = f"<p>{escape(title)}</p>" if title else ""
            return above + frame.to_html(index=False, border=0)
        case _Commands(what, commands):
            lines = "\n".join(
                [*(f"# {one.title}\n{one.command}" for one in commands), *(f"# {one}" for one in variables(commands))]
            )
            return f"<details><summary>To start {escape(what)}</summary><pre>{escape(lines)}</pre></details>"


def as_markdown(record: Record) -> str:
    """Return everything as Markdown, for a design document."""
    return "\n\n".join(part for block in _blocks(record) if (part := _in_markdown(block))) + "\n"


def _in_markdown(block: _Block) -> str:
    match block:
        case _Title(text, level):
            return f"# Plan: {text}" if level == 1 else f"## {text}"
        case _Sentence(text, strong):
            return f"**{strong}** {text}".rstrip() if strong else text
        case _Notes(items):
            return "\n".join(f"* {sentence(one)}" for one in items)
        case _Table(frame, title):
            rows = [list(frame.columns), ["---"] * frame.shape[1], *frame.to_numpy().tolist()]
            piped = "\n".join(f"| {' | '.join(one.replace('|', '/') for one in row)} |" for row in rows)
            return f"## {title}\n\n{piped}" if title else piped
        case _Commands(what, commands):
            each = (f"{_capital(one.title)}:\n\n```bash\n{one.command}\n```" for one in commands)
            meanings = "\n".join(f"* {one}" for one in variables(commands))
            return "\n\n".join(filter(None, [f"## To start {what}", *each, meanings]))


def as_short(record: Record) -> str:
    """Return the card in at most nine lines, the last of which says what is next."""
    if not record.feasible:
        none = f"{record.card.headline}: the nearest unit is {record.unit}"
        return "\n".join(map(sentence, [none, *_longer(record), *record.advice]))
    options = "--commands FILE writes the commands, and --full prints why"
    return "\n".join([*card_lines(record), f"Next, {record.card.next}; {options}."])


def as_script(record: Record) -> str:
    """Return the commands of the answer as a file for a shell."""
    one = record.answer
    what = one.architecture if record.fleets is None else f"a replica of {one.replicas}, {one.architecture}"
    lines = ["#!/bin/sh", f"# {record.unit}: {what}"]
    lines += [f"# {one}" for one in variables(one.commands)]
    for command in one.commands:
        lines += ["", f"# {command.title}", command.command]
    return "\n".join(lines) + "\n"


def variables(commands: Iterable[Command]) -> list[str]:
    """Return what stands for each variable of the shell that commands have, in a line each."""
    names = dict.fromkeys(name for one in commands for name in _VARIABLE.findall(one.command))
    return [f"${name}: {render({'key': f'variable.{name.lower()}'})}" for name in names]


def fleets_table(record: Record) -> pd.DataFrame:
    """Return the fleets of all architectures as a table of text."""
    return pd.DataFrame(map(_fleet_cells, record.architectures))


def _fleet_cells(one: Choice) -> dict[str, str]:
    assert one.rate is not None
    served = _three(one.served) if one.served else digits(one.rate.value)
    prefill = one.pools["prefill"] if one.pools else one.layout
    cells = {"architecture": str(one.architecture), "layout of a unit": render(both_layouts(one.layout, prefill))}
    cells |= {"replicas": digits(one.replicas)}
    cells |= {"units of each": digits(one.units), "GPUs": _three(one.gpus), "requests/s": served}
    cells |= {"best in": _often(one.best_in), _LOSS: percent(one.loss or 0.0)}
    cells |= {
        "TTFT (ms)": _three(one.ttft, 1e3),
        "TPOT (ms)": _three(one.tpot, 1e3),
        "keeps the promise in": f"{one.kept:.0%}",
    }
    return cells


def gpus_table(record: Record) -> pd.DataFrame:
    """Return the same on other GPUs as a table of text, without the columns that are empty."""
    titles = {"rate": "requests/s of a GPU", "ratio": "as many of yours", "break_even": "break-even (USD/hour)"}
    titles |= {"usd_per_million": "USD per million output tokens"}
    rows = [
        {"GPU": one.gpu, "numbers are": one.standing, "architecture": one.architecture}
        | {title: _ends(one, name) for name, title in titles.items()}
        | {"price (USD/hour)": cell(one.price)}
        for one in record.gpus
    ]
    table = pd.DataFrame(rows)
    return table.loc[:, (table != "").any()]


def layouts_table(record: Record) -> pd.DataFrame:
    """Return the first ten layouts as a table of text."""
    titles = {"tokens_per_gpu": "tokens/s of a GPU", "low": "5 %", "high": "95 %"}
    titles |= {"best_in": "first by step times (share)"}
    titles |= {"loss": f"{_LOSS} (share)", "decodes": _DECODES, "ttft": "TTFT (s)", "tpot": "TPOT (s)"}
    if record.fleets is not None:
        titles |= {"answer": "requests/s of the GPUs" if record.answer.served else "GPUs for the traffic"}
    return pd.DataFrame(
        {"architecture": one.architecture, "layout of a unit": one.layout, "GPUs": str(one.gpus)}
        | {title: cell(getattr(one, name)) for name, title in titles.items()}
        for one in record.layouts[:10]
    )


def tables(record: Record) -> dict[str, pd.DataFrame]:
    """Return the architectures, and what stored caches and drafts gain if there are any, by title; cells are text."""
    none = f"; nothing meets the SLA in {record.none_in:.0%} of the draws" if record.none_in else ""
    title = f"Architectures at full load, one unit{none}"
    kinds = {
        title: [_architecture_cells(row) for row in record.one_unit if row.rate > 0],
        "The stored share of the prompts, by where it lies": [_stored_cells(row) for row in record.offloading],
        "With drafts and without, one unit at full load": [
            {"drafts": row.drafts, "architecture": row.architecture or "none meets the SLA"} | _timed_cells(row)
            for row in record.drafting
        ],
    }
    return {title: pd.DataFrame(rows) for title, rows in kinds.items() if rows and record.feasible}


def _architecture_cells(row: OneUnit) -> dict[str, str]:
    rate, ttft, tpot = _timed_cells(row).items()
    each = {_DECODES: cell(row.decodes), "prompt tokens of a step": cell(row.computed)}
    each |= {"prefill units": cell(row.prefill_units)}
    last = {"best in": _often(row.best_in), _LOSS: percent(row.loss), "keeps limits in": percent(row.kept)}
    last |= {"settings to start with": ", ".join(row.options)}
    return (
        {"architecture": row.architecture, "layout of a unit": row.layout}
        | dict([rate])
        | each
        | dict([ttft, tpot])
        | last
    )


def _often(share: float) -> str:
    """Return how often an architecture is the best, as the card has it."""
    return f"{verdict.hundredths(share)}%"


def _timed_cells(row: Timed) -> dict[str, str]:
    times = {"TTFT (ms)": _ends(row, "ttft", 1e3), "TPOT (ms)": _ends(row, "tpot", 1e3)}
    return {"requests/s of a unit": _ends(row, "rate")} | times


def _stored_cells(row: Stored) -> dict[str, str]:
    cells = {"where": row.where, "a prompt waits for": row.binds, "e": cell(row.e)}
    rate = _ends(row, "rate") if row.rate > 0 else "none"
    return (
        cells
        | {"prefill speedup": cell(row.speedup), "requests/s of a unit": rate, "gain": cell(row.gain)}
        | {"how sure": render(verdict.cell(Verdict(chance=row.chance, sure=row.sure)))}
    )


def _numbers(record: Record) -> pd.DataFrame:
    rows = [(a.title, shown(a), a.why, a.by, a.formula, headline(a)) for a in record.numbers.values()]
    columns = ["answer", "value (5 to 95 %)", "meaning", "computed by", "formula", "which says"]
    return pd.DataFrame(rows, columns=columns)


# How a unit is printed where people use another: factor and word.
def shown(answer: Answer) -> str:
    """Return a number with its interval and its unit."""
    return in_unit([answer.value, answer.low, answer.high], answer.unit)


def headline(answer: Answer) -> str:
    """Return what the closed form says where something else computed the answer."""
    return "" if isnan(answer.by_formula) else in_unit([answer.by_formula] * 3, answer.unit)


def start(record: Record) -> str:
    """Return the settings to start one unit of the best architecture with."""
    best = record.one_unit[0]
    return f"Start with (keeps the SLA in {best.kept:.0%} of the draws): {', '.join(best.options)}"


def started(options: Iterable[str], what: str = "it") -> str:
    """Return what is started with which settings, as one writes these behind a command: of pools the units of each.

    >>> started(["--max-num-seqs 64"])
    'it with --max-num-seqs 64'
    >>> started(["prefill units 5", "prefill --chunk 512", "decode units 3", "decode --max-num-seqs 64"], "a replica")
    '5 prefill units with --chunk 512 and 3 decode units with --max-num-seqs 64 in a replica'
    """
    rest, pools = list(options), []
    for pool in ("prefill", "decode"):
        own = [one.removeprefix(f"{pool} ") for one in rest if one.startswith(f"{pool} ")]
        rest = [one for one in rest if not one.startswith(f"{pool} ")]
        units = [one.removeprefix("units ") for one in own if one.startswith("units ")]
        pools += [_with(f"{each} {pool} unit{'' if each == '1' else 's'}", own[1:]) for each in units]
    if not pools:
        return _with(what, rest)
    return _with(" and ".join(pools) + ("" if what == "it" else f" in {what}"), rest, ", all with ")


def _with(what: str, options: list[str], joined: str = " with ") -> str:
    return f"{what}{joined}{' '.join(options)}" if options else what


def _three(ends: Three | Answer | None, scale: float = 1.0) -> str:
    assert ends is not None
    return spanned([ends.value, ends.low, ends.high], scale)


def cell(value: float, low: float | None = None, high: float | None = None, scale: float = 1.0) -> str:
    """Return a number, with its ends if it has any, as a table has it; "" for NaN."""
    if isnan(value):
        return ""
    return digits(scale * value) if low is None or high is None else spanned([value, low, high], scale)


def _ends(row: Timed | Stored | OtherGpu, name: str, scale: float = 1.0) -> str:
    middle, low, high = (getattr(row, name + end) for end in ("", "_low", "_high"))
    return cell(middle, low, high, scale)


def _hindered(record: Record) -> list[str]:
    return [render({"key": "noted.hindered", "name": name, "why": why}) for name, why in record.hindered.items()]


def _outside(record: Record) -> list[str]:
    return [render({"key": "noted.outside", "why": line}) for line in record.outside]


def _heading(record: Record) -> list[str]:
    work, store = record.workload, record.answer.store
    sent = f"{digits(work.n_in)} prompt and {digits(work.n_out)} output tokens, {work.alpha:.0%} of each prompt stored"
    place = "" if store in (None, "hbm") else f" from {store}"
    fitted = _FITTED.get(record.calibration, "coefficients fitted to your own runs")
    return [f"{record.unit}; {fitted}", f"{sent}{place}; {_promised(record.sla)}"]


_FITTED = {
    "datasheet": "the datasheet's rates as they are",
    "served": "coefficients fitted to measurements of served models",
    "zero-shot": "coefficients fitted to single operators, measured on an H100",
}


def _promised(sla: SLA) -> str:
    first, gap = in_ms(sla.ttft), in_ms(sla.tpot)
    if sla.quantile is None:
        return f"mean TTFT within {first}, mean TPOT within {gap}"
    which = f"P{100 * sla.quantile:g}"
    return f"{which} of TTFT within {first}, {which} of the gaps between tokens within {gap}"


def sentence(words: str) -> str:
    """Return words as a sentence."""
    return f"{_capital(words)}."


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]
