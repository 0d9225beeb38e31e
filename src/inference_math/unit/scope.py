"""What a calibration was not fitted to: by name, as what is said of it, and how much wider a prediction is for it.

A plan is *foreign* where its engine is none of its calibration's sources, those that `scope["engine"]` names. Of the
H100's operators they are vLLM and TensorRT-LLM; of served points these two and SGLang; of a profile the engines that
ran. Kernels of one's own GPU know no engine, and a version whose age nobody can tell is foreign to all. The spread of a
foreign plan grows by what sources differ by to which nothing was fitted: the width of "engine" in the table `widths`.
So intervals hold what they say within our sources.
"""

from __future__ import annotations

from inference_math.unit.types import Part, Scope

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


def outside(scope: Scope, inputs: Scope) -> list[Part]:
    """Return what is said of each of these inputs."""
    found: list[Part] = []
    for name in missing(scope, inputs):
        known, value = scope[name], inputs[name]
        if isinstance(known[0], str):
            found.append({"key": "outside.name", "name": name, "value": value, "known": known})
        else:
            found.append({"key": "outside.number", "name": name, "value": span(value), "known": span(known)})
    return found


def span(ends: list[float]) -> Part:
    """Return a range by its ends, or the one number that it is."""
    return {"key": "outside.range" if ends[0] < ends[1] else "outside.one", "low": ends[0], "high": ends[1]}


def too_long(model: str, context: float, tokens: float) -> list[Part]:
    """Say that a request is longer than the sequences that a model was made for (0: not stated)."""
    if not (context > 0 and tokens > context):
        return []
    return [{"key": "outside.long", "tokens": tokens, "context": context, "model": model}]


def wider(spread: float, widths: dict[str, float], scope: Scope, inputs: Scope) -> float:
    """Return the spread of a calibration for inputs some of which lie outside of its scope: variances add up."""
    variance = spread * spread
    for name in missing(scope, inputs):
        if name in widths:
            variance += widths[name] * widths[name]
    root: float = variance**0.5
    return root
