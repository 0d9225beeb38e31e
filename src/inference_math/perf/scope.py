"""What a calibration was not fitted to: by name, in sentences, and how much wider that makes a prediction."""

from __future__ import annotations

from inference_math.checks.numerals import digits
from inference_math.perf.types import Scope

__all__ = ["missing", "outside", "too_long", "wider"]


def missing(scope: Scope, inputs: Scope) -> list[str]:
    """Return the names of the inputs that lie outside of a calibration's scope: names, or the ends of a range.

    An input is a name, or the ends of what is asked for: [low, high].
    """
    found = []
    for name in inputs:
        if name in scope:
            known, value = scope[name], inputs[name]
            inside = value in known if isinstance(known[0], str) else value[0] >= known[0] and value[1] <= known[1]
            if not inside:
                found.append(name)
    return found


def outside(scope: Scope, inputs: Scope) -> list[str]:
    """Return a sentence for each of these inputs."""
    found = []
    for name in missing(scope, inputs):
        known, value = scope[name], inputs[name]
        if isinstance(known[0], str):
            found.append(name + " " + value + " is not among the calibrated: " + ", ".join(known))
        else:
            asked = digits(value[0]) if value[0] == value[1] else digits(value[0]) + " to " + digits(value[1])
            span = digits(known[0]) + " to " + digits(known[1])
            found.append(name + " " + asked + " is outside the calibrated range, " + span)
    return found


def too_long(model: str, context: float, tokens: float) -> list[str]:
    """Return whether a request is longer than the sequences that a model was made for (0: not stated)."""
    if context > 0 and tokens > context:
        return [
            "a request of "
            + digits(tokens)
            + " tokens is longer than the "
            + digits(context)
            + " that "
            + model
            + " was made for"
        ]
    return []


def wider(spread: float, widths: dict[str, float], scope: Scope, inputs: Scope) -> float:
    """Return the spread of a calibration for inputs some of which lie outside of its scope."""
    variance = spread * spread
    for name in missing(scope, inputs):
        if name in widths:
            variance += widths[name] * widths[name]
    root: float = variance**0.5
    return root
