"""A plan in words: plain text for a terminal, HTML for a notebook, plain values for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from inference_math.workload import SLA, Workload

if TYPE_CHECKING:
    from inference_math.planner.deployment import Answer, Plan

__all__ = ["as_html", "as_text", "plain"]


def as_text(found: Plan) -> str:
    """Return the plan as lines for a terminal."""
    answers = list(found.answers.values())
    lines = [*_heading(found), ""]
    wide = [max(map(len, column)) for column in zip(*((a.name, _shown(a)) for a in answers), strict=True)]
    for a in answers:
        formula = f"  [{a.formula}]" if a.formula else ""
        lines.append(f"{a.name:{wide[0]}}  {_shown(a):{wide[1]}}  {a.why}{formula}")
    lines += ["", "Architectures, at their best within the SLA (rates in requests/s per unit)", _table(found.compared)]
    if len(found.offloading) > 1:
        lines += ["", "Loading the stored share of the prompts, by where it lies", _table(found.offloading)]
    lines += ["", f"Verdict: {found.verdict}."]
    if found.settings:
        lines.append(f"Start with: {_settings(found)}")
    lines += [f"! {line}" for line in found.advice]
    lines += [f"! not calibrated: {line}" for line in found.outside]
    return "\n".join(lines)


def as_html(found: Plan) -> str:
    """Return the plan as HTML."""
    rows = [(a.name.replace("_", " "), _shown(a), a.why, a.formula) for a in found.answers.values()]
    tables = [pd.DataFrame(rows, columns=["answer", "value (90 % interval)", "meaning", "formula"]), found.compared]
    if len(found.offloading) > 1:
        tables.append(found.offloading)
    parts = [f"<p>{escape(line)}</p>" for line in _heading(found)]
    parts += [table.to_html(index=False, na_rep="", float_format=_digits, border=0) for table in tables]
    parts.append(f"<p><strong>{escape(found.verdict)}.</strong></p>")
    if found.settings:
        parts.append(f"<p>Start with <code>{escape(_settings(found))}</code></p>")
    parts += [f"<p>{escape(line)}</p>" for line in found.advice]
    parts += [f"<p>Not calibrated: {escape(line)}</p>" for line in found.outside]
    return "".join(parts)


def plain(value: Any) -> Any:
    """Return the same of plain dicts, lists, numbers and strings; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def _heading(found: Plan) -> list[str]:
    case = found.case
    place = f" from {case.tier.name}" if case.tier else ""
    return [
        f"{case.unit.name}; {case.unit.calibration.mode} coefficients",
        f"{_sent(case.work)}{place}; {_promised(case.sla)}",
    ]


def _sent(work: Workload) -> str:
    return f"{work.n_in:.4g} prompt and {work.n_out:.4g} output tokens, {work.alpha:.0%} of the prompts stored"


def _promised(sla: SLA) -> str:
    which = "mean" if sla.quantile is None else f"P{100 * sla.quantile:g}"
    return f"{which} TTFT within {1e3 * sla.ttft:g} ms, {which} TPOT within {1e3 * sla.tpot:g} ms"


def _shown(answer: Answer) -> str:
    scale, unit = (1e3, " ms") if answer.unit == "s" else (1, "" if answer.unit == "1" else f" {answer.unit}")
    value, low, high = (_digits(scale * number) for number in (answer.value, answer.low, answer.high))
    span = "" if low == high == value else f" ({low} to {high})"
    return f"{value}{span}{unit}"


def _digits(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _settings(found: Plan) -> str:
    return ", ".join(f"{name} {value}".strip() for name, value in found.settings.items())


def _table(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, float_format=_digits, na_rep="")
