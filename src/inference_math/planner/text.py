"""A plan in words: plain text for a terminal, HTML for a notebook, plain values for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from inference_math.checks.numerals import digits, most_of
from inference_math.checks.sentences import say
from inference_math.perf.notes import GUESSED, gpus_said
from inference_math.planner.deployment import Answer, Plan, in_line
from inference_math.workload import SLA, Workload

if TYPE_CHECKING:
    from inference_math.planner.traffic import Fleet

__all__ = [
    "PRINTED",
    "as_html",
    "as_markdown",
    "as_script",
    "as_short",
    "as_text",
    "fleets_table",
    "gpus_line",
    "gpus_table",
    "headline",
    "shown",
    "start",
    "to_json",
]


def as_text(found: Plan) -> str:
    """Return the plan of one unit as lines for a terminal: everything."""
    answers = list(found.answers.values())
    lines = [*_heading(found), "", f"Verdict: {found.verdict}."]
    if found.runner_up:
        lines.append(f"{_capital(found.runner_up)}.")
    lines += [f"! {line}" for line in found.advice]
    lines += [f"No {name} at full load: {reason}." for name, reason in found.hindered.items()]
    if found.settings:
        lines.append(start(found))
    lines.append("")
    wide = [max(map(len, column)) for column in zip(*((a.title, shown(a), a.by) for a in answers), strict=True)]
    for a in answers:
        lines.append(f"{a.title:{wide[0]}}  {shown(a):{wide[1]}}  {a.by:{wide[2]}}  {a.why}{_closed(a)}".rstrip())
    for title, table in _tables(found).items():
        lines += ["", title, table.to_string(index=False, na_rep="")]
    for name, begun in found.starts.items():
        lines += ["", f"To start {name} at full load:", *(f"  {title}: {line}" for title, line in begun.commands)]
    if found.outside or found.cautions:
        lines += ["", *(f"! not calibrated: {line}" for line in found.outside), *(f"! {one}" for one in found.cautions)]
    return "\n".join(lines)


def as_short(found: Plan, fleet: Fleet | None = None, layouts: pd.DataFrame | None = None) -> str:
    """Return the answer in a few lines: what, how many, how sure, what if it is wrong, how to start, what is next."""
    lines = _heading(found)
    if not found.feasible:
        return "\n".join([*lines, f"{_capital(found.verdict)}.", *(f"{_capital(line)}." for line in found.advice)])
    if layouts is not None:
        others = "" if len(layouts) < 2 else f"; next {layouts['layout'][1]}, {digits(layouts['tokens_per_gpu'][1])}"
        lines.append(
            f"Layout: {layouts['layout'][0]}, {digits(layouts['tokens_per_gpu'][0])} output tokens/s of a GPU at full"
            f" load, the first in {layouts['best_in'][0]:.0%} of the draws{others}."
        )
    if fleet is not None:
        lines += [f"{_capital(fleet.headline)}.", f"{_capital(fleet.how)}.", f"At that rate {_seen(fleet)}."]
        cost = (
            ""
            if np.isnan(fleet.usd_per_million)
            else f" {digits(fleet.usd_per_million)} USD per million output tokens."
        )
        if fleet.architecture == "disaggregated":
            cost += f" Each decode unit takes {digits(fleet.link_gb_s)} GB/s of KV caches."
        lines.append(f"Start each replica with: {in_line(fleet.settings)}.{cost}")
        lines.append(f"One unit at full load, without queues, {_means(found)}: {found.verdict}.")
    else:
        lines += [f"{_capital(found.verdict)}.", start(found) + "."]
    lines += [f"No {name} at full load: {reason}." for name, reason in found.hindered.items()]
    notes = [f"not calibrated: {'; '.join(found.outside)}"] if found.outside else []
    lines += [f"! {one}" for one in [*notes, *found.cautions[:3]]]
    return "\n".join(
        [*lines, "Commands: --commands FILE writes them. All numbers: --full. Your own engine: inference-math profile."]
    )


def _means(found: Plan) -> str:
    return "means" if found.case.sla.quantile is None else f"P{100 * found.case.sla.quantile:g}"


def _seen(fleet: Fleet) -> str:
    first, gap = (_span(one, 1e3) for one in (fleet.ttft, fleet.tpot))
    seen = f"requests see a mean TTFT of {first} ms and a mean TPOT of {gap} ms"
    return f"{seen}; the promise holds in {fleet.kept:.0%} of the draws"


def _span(ends: Sequence[float], scale: float = 1.0) -> str:
    value, low, high = (most_of(scale * one) for one in ends)
    return value if low == high == value else f"{value} ({low} to {high})"


def as_script(found: Plan, fleet: Fleet | None = None) -> str:
    """Return the commands of the answer as a file for a shell."""
    what = found.best if fleet is None else f"a replica of {fleet.replicas}, {fleet.architecture}"
    lines = ["#!/bin/sh", f"# {found.case.unit.name}: {what}"]
    for title, line in found.starts[found.best].commands if fleet is None else fleet.commands:
        lines += ["", f"# {title}", line]
    return "\n".join(lines) + "\n"


def fleets_table(fleet: Fleet) -> pd.DataFrame:
    """Return the fleets of all architectures as a table of text."""
    rows = [
        {
            "architecture": one.architecture,
            "replicas": digits(one.replicas),
            "units of each": digits(one.units),
            "GPUs": _span(one.gpus) if not one.owned else digits(one.gpus[0]),
            "requests/s": _span(one.span) if one.owned else digits(one.rate),
            "best in": f"{one.best_in:.0%}",
            "loses": f"{one.expected_loss:.0%}",
            "TTFT (ms)": _span(one.ttft, 1e3),
            "TPOT (ms)": _span(one.tpot, 1e3),
            "holds in": f"{one.kept:.0%}",
        }
        for one in (fleet, *fleet.others)
    ]
    return pd.DataFrame(rows)


def gpus_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what `planner.across` found as a table of text."""
    columns = {"GPU": rows["gpu"], "stands on": rows["standing"], "architecture": rows["architecture"]}
    columns |= {
        title: _spans(rows, name).where(rows[name].notna(), "")
        for name, title in (
            ("rate", "requests/s of a GPU"),
            ("ratio", "as many of yours"),
            ("break_even", "break-even (USD/hour)"),
            ("usd_per_million", "USD per million output tokens"),
        )
    }
    columns["price (USD/hour)"] = _column(rows, "price")
    return pd.DataFrame(columns)[[one for one in columns if (columns[one] != "").any()]]


def gpus_line(rows: pd.DataFrame) -> str:
    """Return in a sentence which GPU of `planner.across` is first; "" where none meets the limits."""
    told = rows[rows["standing"] != GUESSED]
    said = say(gpus_said(told["gpu"].tolist(), told["rate"].fillna(0).tolist(), told["usd_per_million"].tolist()))
    return f"{_capital(said)}." if said else ""


def as_html(found: Plan) -> str:
    """Return the plan as HTML."""
    rows = [(a.title, shown(a), a.why, a.by, a.formula, headline(a)) for a in found.answers.values()]
    parts = [f"<p>{escape(line)}</p>" for line in _heading(found)]
    parts.append(f"<p><strong>{escape(_capital(found.verdict))}.</strong></p>")
    if found.runner_up:
        parts.append(f"<p>{escape(_capital(found.runner_up))}.</p>")
    parts += [f"<p>{escape(line)}</p>" for line in found.advice]
    parts += [f"<p>No {name} at full load: {escape(reason)}.</p>" for name, reason in found.hindered.items()]
    if found.settings:
        parts.append(f"<p>{escape(start(found))}</p>")
    parts.append(
        _html(pd.DataFrame(rows, columns=["answer", "value (90 %)", "meaning", "computed by", "formula", "which says"]))
    )
    for title, table in _tables(found).items():
        parts.append(f"<p>{escape(title)}</p>{_html(table)}")
    for name, begun in found.starts.items():
        lines = "\n".join(f"# {title}\n{line}" for title, line in begun.commands)
        parts.append(f"<details><summary>To start {name} at full load</summary><pre>{escape(lines)}</pre></details>")
    parts += [f"<p>Not calibrated: {escape(line)}</p>" for line in found.outside]
    parts += [f"<p>{escape(_capital(line))}.</p>" for line in found.cautions]
    return f'<div class="plan">{"".join(parts)}</div>'


def as_markdown(found: Plan, fleet: Fleet | None = None) -> str:
    """Return the plan as Markdown, for a design document; first what a fleet needs, where that was asked."""
    what, sent = _heading(found)
    parts = [f"# Plan: {what}", sent]
    if fleet is not None:
        parts += [f"**{_capital(fleet.headline)}.** {_capital(fleet.how)}.", f"At that rate {_seen(fleet)}."]
        parts.append(_piped(fleets_table(fleet)))
        parts += _started(f"a replica of these, {fleet.architecture}", fleet.commands)
        parts.append("## One unit at full load, without queues")
    parts.append(f"**{_capital(found.verdict)}.**")
    if found.runner_up:
        parts.append(f"{_capital(found.runner_up)}.")
    if found.settings:
        parts.append(start(found))
    notes = [*found.advice, *(f"no {name} at full load: {reason}" for name, reason in found.hindered.items())]
    notes += [*(f"not calibrated: {line}" for line in found.outside), *found.cautions]
    parts += ["\n".join(f"* {_capital(line)}." for line in notes)] if notes else []
    for title, table in _tables(found).items():
        parts += [f"## {title}", _piped(table)]
    rows = [(a.title, shown(a), a.why) for a in found.answers.values()]
    parts += ["## All numbers", _piped(pd.DataFrame(rows, columns=["answer", "value (5 to 95 %)", "meaning"]))]
    for name, begun in found.starts.items() if fleet is None else ():
        parts += _started(f"{name} at full load", begun.commands)
    return "\n\n".join(parts) + "\n"


def _started(what: str, commands: Sequence[tuple[str, str]]) -> list[str]:
    return [f"## To start {what}", *(f"{_capital(title)}:\n\n```bash\n{line}\n```" for title, line in commands)]


def _piped(table: pd.DataFrame) -> str:
    rows: list[Any] = [table.columns, ["---"] * table.shape[1], *table.fillna("").astype(str).to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in rows)


def to_json(value: object) -> Any:
    """Return the same of plain dicts, lists, numbers and strings; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _heading(found: Plan) -> list[str]:
    case = found.case
    place = f" from {case.tier.name}" if case.tier else ""
    return [
        f"{case.unit.name}; {case.unit.calibration.mode} coefficients",
        f"{_sent(case.work)}{place}; {_promised(case.sla)}",
    ]


def _sent(work: Workload) -> str:
    return f"{digits(work.n_in)} prompt and {digits(work.n_out)} output tokens, {work.alpha:.0%} of each prompt stored"


def _promised(sla: SLA) -> str:
    if sla.quantile is None:
        return f"mean TTFT within {1e3 * sla.ttft:g} ms, mean TPOT within {1e3 * sla.tpot:g} ms"
    which = f"P{100 * sla.quantile:g}"
    return (
        f"{which} of TTFT within {1e3 * sla.ttft:g} ms, {which} of the gaps between tokens within {1e3 * sla.tpot:g} ms"
    )


# How a unit is printed where people use another: factor and word.
PRINTED = {"s": (1e3, " ms"), "1": (1, ""), "fraction": (100, " %")}


def shown(answer: Answer) -> str:
    scale, unit = PRINTED.get(answer.unit, (1, f" {answer.unit}"))
    value, low, high = (most_of(scale * number) for number in (answer.value, answer.low, answer.high))
    span = "" if low == high == value else f" ({low} to {high})"
    return f"{value}{span}{unit}"


def headline(answer: Answer) -> str:
    """Return what the closed form says where something else computed the answer."""
    if np.isnan(answer.by_formula):
        return ""
    scale, unit = PRINTED.get(answer.unit, (1, f" {answer.unit}"))
    return f"{digits(scale * answer.by_formula)}{unit}"


def _closed(answer: Answer) -> str:
    if not answer.formula:
        return ""
    value = headline(answer)
    return f"  [{answer.formula}{': ' + value if value else ''}]"


def start(found: Plan) -> str:
    begun = found.starts[found.best]
    return f"Start with (keeps the SLA in {begun.kept:.0%} of the draws): {in_line(begun.settings)}"


def _tables(found: Plan) -> dict[str, pd.DataFrame]:
    """Return the architectures, and what stored caches gain if there are any, by their titles; all cells are text."""
    if not found.feasible:
        return {}
    rows = found.compared[found.compared["rate"] > 0].reset_index(drop=True)
    columns = {"architecture": rows["architecture"], "requests/s of a unit": _spans(rows, "rate")}
    columns |= {"decodes": _column(rows, "decodes"), "prompt tokens": _column(rows, "computed")}
    columns |= {"prefill units": _column(rows, "prefill_units")}
    columns |= {"TTFT (ms)": _spans(rows, "ttft", 1e3), "TPOT (ms)": _spans(rows, "tpot", 1e3)}
    columns |= {
        name: _column(rows, key, 100) + " %"
        for name, key in (("best in", "best_in"), ("loses", "loss"), ("keeps limits in", "kept"))
    }
    none = found.solved["none_in"]
    title = f"Architectures at full load, one unit; nothing meets the SLA in {none:.0%} of the draws"
    tables = {title: pd.DataFrame(columns)}
    if found.case.work.alpha > 0:
        stored = found.offloading
        named = {"e": "e", "speedup": "prefill speedup"}
        tables["The stored share of the prompts, by where it lies"] = pd.DataFrame(
            {"where": stored["where"], "a prompt waits for": stored["binds"]}
            | {title: _column(stored, name) for name, title in named.items()}
            | {"requests/s of a unit": _spans(stored, "rate").where(stored["rate"] > 0, "none")}
            | {"gain": _column(stored, "gain")}
        )
    if found.case.unit.drafts:
        rows = found.drafting
        tables["With drafts and without, one unit at full load"] = pd.DataFrame(
            {"drafts": rows["drafts"], "architecture": rows["architecture"].replace("", "none meets the SLA")}
            | {"requests/s of a unit": _spans(rows, "rate").where(rows["rate"].notna(), "")}
            | {"TTFT (ms)": _spans(rows, "ttft", 1e3).where(rows["rate"].notna(), "")}
            | {"TPOT (ms)": _spans(rows, "tpot", 1e3).where(rows["rate"].notna(), "")}
        )
    return tables


def _spans(frame: pd.DataFrame, name: str, scale: float = 1.0) -> pd.Series:
    ends = frame[[name, f"{name}_low", f"{name}_high"]].itertuples(index=False)
    return pd.Series([_span(tuple(one), scale) for one in ends], index=frame.index, dtype=object)


def _column(frame: pd.DataFrame, name: str, scale: float = 1.0) -> pd.Series:
    return (scale * frame[name]).map(lambda number: "" if pd.isna(number) else digits(number))


def _html(table: pd.DataFrame) -> str:
    return table.to_html(index=False, na_rep="", border=0)
