"""What a calibration was not fitted to: by name, as what is said of it, and how much wider a prediction is for it.

A plan is *foreign* where its engine is none of its calibration's sources, those that `scope["engine"]` names. Of the
H100's operators they are vLLM and TensorRT-LLM; of served points these two and SGLang; of a profile the engines that
ran. Kernels of one's own GPU know no engine, and a version whose age nobody can tell is foreign to all. So is,
to a calibration that ships, a *set-up* of which no point was fitted or scored: a model, a GPU, an engine and a
precision; see `foreign`. The spread of a foreign plan grows by what such set-ups were off by: the width of "engine" in
the table `widths`. Of the others intervals hold what they say, whoever ran them.

Where intervals were seen to hold fewer than they say, of points that set no coefficient, they are wider by what was
missing: `extra_log_sd`.
"""

from __future__ import annotations

from inference_math.unit.types import ErrorRow, Message, Scope, ScoreKey

__all__ = [
    "FEW_HELD",
    "KERNELS_BY",
    "crowding",
    "extra_log_sd",
    "few_of",
    "foreign",
    "missing",
    "outside",
    "own_rows",
    "set_up_of",
    "set_ups_of",
    "too_long",
    "wider",
]

FEW_HELD = 0.75  # of some points: an interval that held fewer is not printed as nine in ten
KERNELS_BY = "NVIDIA"  # whose GPUs' kernels were measured; of others served points alone tell


def missing(scope: Scope, inputs: Scope) -> list[str]:
    """Return the names of the inputs that lie outside of a calibration's scope: names, or the ends of a range.

    An input is a name, or the ends of what is asked for: [low, high].
    """
    names = []
    for name in inputs:
        if name in scope:
            known, value = scope[name], inputs[name]
            inside = value in known if isinstance(known[0], str) else value[0] >= known[0] and value[1] <= known[1]
            if not inside:
                names.append(name)
    return names


def outside(scope: Scope, inputs: Scope) -> list[Message]:
    """Return what is said of each of these inputs."""
    messages: list[Message] = []
    for name in missing(scope, inputs):
        known, value = scope[name], inputs[name]
        if isinstance(known[0], str):
            messages.append({"key": "outside.name", "name": {"key": "scope." + name}, "value": value, "known": known})
        else:
            ends: Message = {"key": "outside.number", "value": span(value), "known": span(known)}
            ends["name"] = {"key": "scope." + name}
            messages.append(ends)
    return messages


def span(ends: list[float]) -> Message:
    """Return a range by its ends, or the one number that it is."""
    return {"key": "outside.range" if ends[0] < ends[1] else "outside.one", "low": ends[0], "high": ends[1]}


def too_long(model: str, context: float, tokens: float) -> list[Message]:
    """Say that a request is longer than the sequences that a model was made for (0: not stated)."""
    if not (context > 0 and tokens > context):
        return []
    return [{"key": "outside.long", "tokens": tokens, "context": context, "model": model}]


def crowding(users: float, places: float) -> list[Message]:
    """Say that more users are there at once than the KV cache has places for."""
    return [{"key": "outside.places", "users": users, "places": places}] if users > places else []


def wider(spread: float, widths: dict[str, float], scope: Scope, inputs: Scope) -> float:
    """Return the spread of a calibration for inputs some of which lie outside of its scope: variances add up."""
    variance = spread * spread
    for name in missing(scope, inputs):
        if name in widths and name != "engine":
            variance += widths[name] * widths[name]
    if foreign(scope, inputs):
        variance += widths["engine"] * widths["engine"]
    root: float = variance**0.5
    return root


def set_up_of(model: str, gpu: str, engine: str, weights: str) -> str:
    """Return the name of a set-up."""
    return model + " " + gpu + " " + engine + " " + weights


def set_ups_of(rows: list[ErrorRow]) -> list[str]:
    """Return the set-ups of which points were fitted or scored, once for each of their rows."""
    return [set_up_of(row.model, row.gpu, row.engine, row.weights) for row in rows]


def foreign(scope: Scope, inputs: Scope) -> bool:
    """Tell whether an engine is none of a calibration's sources, or nobody fitted or scored a point of its set-up.

    Calibrations of one's own name no set-ups: theirs is the one that was run.
    """
    if "engine" in missing(scope, inputs):
        return True
    if "set_up" not in scope or "model" not in inputs or "weights" not in inputs:
        return False
    return set_up_of(inputs["model"], inputs["gpu"], inputs["engine"], inputs["weights"]) not in scope["set_up"]


def own_rows(at: ScoreKey, rows: list[ErrorRow]) -> list[ErrorRow]:
    """Return the scored points that tell how wide a unit's intervals must be: of its model on its GPU and engine.

    Those in its precision, where there are some. GPUs of a maker of which no kernel was measured have those of others:
    there the points of any model on that generation tell, under any engine.
    """
    scored = [row for row in rows if row.drafts == "none" and row.inside >= 0]
    if at.maker != KERNELS_BY:
        return [row for row in scored if row.generation == at.generation]
    rows_of_unit = [row for row in scored if row.model == at.model and row.gpu == at.gpu]
    rows_of_unit = [row for row in rows_of_unit if row.engine == at.engine]
    same = [row for row in rows_of_unit if row.weights == at.weights]
    return same if len(same) > 0 else rows_of_unit


def few_of(at: ScoreKey, rows: list[ErrorRow]) -> list[ErrorRow]:
    """Return those of them of which the calibration's own intervals held fewer than `FEW_HELD`."""
    return [row for row in own_rows(at, rows) if row.inside < FEW_HELD]


def extra_log_sd(at: ScoreKey, rows: list[ErrorRow]) -> float:
    """Return the standard deviation of the logarithm by which a unit's intervals are wider than its calibration's.

    Where its 90 % intervals held fewer than `FEW_HELD` of its own scored points: as much as would have made them hold
    nine in ten of the group that it fits least. Variances add up, as in `wider`.
    """
    count, held, most = 0.0, 0.0, 0.0
    for row in own_rows(at, rows):
        count += row.points
        held += row.points * row.inside
    if not held < FEW_HELD * count:
        return 0.0
    for row in few_of(at, rows):
        most = max(most, row.lacked)
    return most
