"""What `inference-math watch` says of an engine that runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from inference_math.evidence.numerals import digits, in_ms
from inference_math.unit.coefficients import SHARES
from inference_math_planner.calibrate.metrics import Watched, Window

__all__ = ["as_plain", "as_text"]

_TIMES = {"ttft": "TTFT after the wait", "tpot": "TPOT"}
_APART = 0.1  # of a number that was planned with: less is not spoken of
_LOST = 0.01  # of the requests: if fewer lose their place, the cache is not called too small


def as_plain(watched: Watched) -> dict[str, object]:
    """Return everything as plain numbers and lists, for JSON."""
    seen = watched.window
    counted = {name: value for name, value in vars(seen).items() if not name.endswith("_counts")}
    counted |= {
        name: None for name in ("usage", "first", "queue", "accepted") if getattr(seen, name) != getattr(seen, name)
    }
    return counted | {
        "as_predicted": watched.as_predicted,
        "times": watched.table.astype(object).where(watched.table.notna(), None).to_dict("records"),
        "moved": watched.moved.to_dict("records"),
    }


def as_text(watched: Watched, options: argparse.Namespace) -> str:
    """Return what was counted, what was predicted of it, what was promised, what moved."""
    seen = watched.window
    lines = [*_counted(seen), *_planned(watched, options), ""]
    for name, measured, sampled, value, low, high, inside in watched.table.to_numpy().tolist():
        label, ends = f"{_TIMES[name]}:", f"{in_ms(value)} predicted ({in_ms(low)} to {in_ms(high)})"
        verdict = "as predicted" if inside else f"{digits(measured / value)} times that"
        about = f" ± {in_ms(sampled)}" if sampled == sampled else ""
        lines.append(f"{label:22} {in_ms(measured)}{about} measured, {ends}: {verdict}")
    lines += _promised(seen, options)
    return "\n".join([*lines, "", *_moved(watched)])


def _counted(seen: Window) -> Iterator[str]:
    yield (
        f"{digits(seen.requests)} requests of {digits(seen.n_in)} prompt tokens, {seen.alpha:.0%} of them cached, and "
        f"{digits(seen.n_out)} output tokens; {digits(seen.in_flight)} in flight while the engine was busy."
    )
    usage = f", {seen.usage:.0%} of the KV cache in use" if seen.usage == seen.usage else ""
    lost = f"; {digits(seen.preempted)} preempted" if seen.preempted else ""
    yield f"Now {seen.running} running, {seen.waiting} waiting{usage}{lost}."


def _planned(watched: Watched, options: argparse.Namespace) -> Iterator[str]:
    """Say where requests or settings are others than those that were planned with."""
    seen = watched.window
    counted = {"prompt": seen.n_in, "output": seen.n_out, "alpha": seen.alpha}
    counted |= {"accepted": seen.accepted} if seen.drafted else {}
    for name, measured in counted.items():
        planned = getattr(options, name)
        if planned is not None and abs(measured - planned) > _APART * max(planned, measured if name == "alpha" else 0):
            yield f"! planned with --{name} {digits(planned)}, counted {digits(measured)}: plan again"
    if seen.preempted > _LOST * seen.requests:
        yield (
            f"! {digits(seen.preempted)} of {digits(seen.requests)} requests lost their place and were computed again: "
            "the KV cache is too small for what runs at once"
        )
    if options.budget is not None:
        most = watched.step(options.budget)
        longer = seen.longer(most) - seen.preempted  # who loses its place has one long gap
        if longer > 0:
            yield (
                f"! planned with --budget {digits(options.budget)}, whose steps take at most {in_ms(most)}; "
                f"{digits(longer)} gaps or more were longer: is the engine's budget larger?"
            )


def _promised(seen: Window, options: argparse.Namespace) -> Iterator[str]:
    whose = {"ttft": "requests", "tpot": "requests by their means"}
    unknown = "not on the page, so no first token is compared: it may hold the wait"
    yield f"{'Waiting for a place:':22} {in_ms(seen.queue) if seen.queue == seen.queue else unknown}"
    for name, who in whose.items():
        limit = getattr(options, name)
        if limit is not None:
            low, high = seen.within(name, limit)
            kept = f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low:.0%} to {high:.0%}"
            label = f"Within {in_ms(limit)}:"
            yield f"{label:22} {kept} of the {who}"


def _moved(watched: Watched) -> Iterator[str]:
    if watched.as_predicted:
        yield "Nothing moved that this calibration could tell: both times lie in its intervals."
        return
    if watched.moved.empty:
        yield "Outside, and no coefficient explains it alone: a varying load, other work on the GPU, other settings?"
        return
    several = len(watched.moved) > 1
    yield (
        "One of these moved; runs at several loads and lengths tell which (inference-math profile):"
        if several
        else "Moved:"
    )
    for name, before, after, widths in watched.moved.to_numpy().tolist():
        ends = (digits(one) if name in SHARES else f"{digits(1e6 * one)} µs" for one in (before, after))
        yield f"  {name} from {' to '.join(ends)}, {digits(abs(widths))} widths of what was known of it"
