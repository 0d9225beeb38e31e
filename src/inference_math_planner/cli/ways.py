"""What would do in place of a set-up that has no answer: options to add to the command, each tried before it is named.

The page offers such changes, those of `answers.ways`, as buttons.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from inference_math import catalogue
from inference_math.unit.deployed import ServingGpu
from inference_math.unit.types import Message
from inference_math.unit.unit import serving_gpu
from inference_math_planner.answers.ways import SIZES, Change, changes, larger_gpus, looser, round_up

__all__ = ["LONGEST_LIMITS", "Tries", "as_flags", "would"]

Tried = Callable[[Namespace], bool]

LAYOUT = ("tp", "dp", "ep", "pp")
LONGEST_LIMITS = {"ttft": 60.0, "tpot": 1.0}  # seconds: whoever asks for more means milliseconds
NODES = (16, 32, 64)  # GPUs of a unit on several nodes
LOOSENED = [1.3**i for i in range(7)]
FEW = 3  # ways that are named
LAST = 2  # kinds that are tried where nothing else does: two options at once, several nodes


@dataclass(frozen=True)
class Tries:
    """How changed options are tried: whether a unit at full load `works`, and whether the whole question `answers`."""

    works: Tried
    answers: Tried


def would(options: Namespace, tries: Tries, weights: str, fixes: Sequence[Change] | None = None) -> Message:
    """Say which options, added to a command without an answer, would do, at most three, all of them tried.

    Limits come first where they are what is missed. Where `weights` do not fit, `fixes` do; limits are changed with
    them if nothing else would do.
    """
    changes = list(islice(_answering(options, tries, weights, fixes), FEW))
    return {
        "key": "ways.would" if changes else "ways.none",
        "many": len(changes) > 1,
        "each": [as_flags(one) for one in changes],
    }


def as_flags(change: Change) -> str:
    """Return options as one types them.

    >>> as_flags({"gpu": "b200", "ttft": 2.0})
    '--gpu b200 --ttft 2'
    """
    return " ".join(f"--{name} {value if isinstance(value, str) else f'{value:g}'}" for name, value in change.items())


def _answering(options: Namespace, tries: Tries, weights: str, fixes: Sequence[Change] | None) -> Iterator[Change]:
    """Yield the changes with which the whole question has an answer."""
    answered = False
    for limits in _looser(options, tries.works) if fixes is None else ():
        for one in _looser_still(options, limits, tries.answers):
            answered = True
            yield one
    kinds = _kinds(options, weights, list(fixes or ()))
    for kind, left in zip(kinds, range(len(kinds), 0, -1), strict=True):
        if answered and left <= LAST:
            return
        for change in kind:
            other = changed(options, change)
            if tries.works(other) and tries.answers(other):
                answered = True
                yield change
                break
    gpu = catalogue.GPUS.get(options.gpu)
    gpus = [{"gpu": name} for name in larger_gpus(serving_gpu(gpu), _gpus())] if gpu and not answered else []
    for change in () if answered else (*(fixes or ()), *gpus):
        for limits in _looser(changed(options, change), tries.works):
            yield from _looser_still(options, {**change, **limits}, tries.answers)


def _looser_still(options: Namespace, change: Change, answers: Tried) -> Iterator[Change]:
    """Yield a change of limits, loosened on until the whole question has an answer: queues take some of them."""
    for factor in LOOSENED:
        at = {one: round_up(factor * float(change[one])) for one in LONGEST_LIMITS if one in change}
        limits = {one: min(limit, LONGEST_LIMITS[one]) for one, limit in at.items()}
        if answers(changed(options, {**change, **limits})):
            yield {**change, **limits}
            return


def changed(options: Namespace, change: Change) -> Namespace:
    """Return the options with some of them changed, as if they were added to the command."""
    return Namespace(**{**vars(options), **change})


def _looser(options: Namespace, works: Tried) -> list[Change]:
    """Return the change to the smallest limits that would do, in a list; an empty one if none would."""
    limits = {name: getattr(options, name) for name in LONGEST_LIMITS}
    wide = looser(limits, LONGEST_LIMITS, lambda change: works(changed(options, change)))
    return [wide] if wide else []


def _kinds(options: Namespace, weights: str, fixes: list[Change]) -> list[list[Change]]:
    """Return the changes of each kind, the nearest first; several nodes come last."""
    gpu, named = catalogue.GPUS.get(options.gpu), any(getattr(options, name) is not None for name in LAYOUT)
    tp = (options.tp or 1) if named else 0
    if gpu is None:  # of a file
        kinds = [*([fix] for fix in fixes), [{"tp": size} for size in SIZES if 0 < tp < size]]
    else:
        kinds = changes(weights, serving_gpu(gpu), _gpus(), tp, {}, fixes)
    return [*kinds, [{"tp": 8, "pp": stages} for stages in SIZES] if named else [{"search": most} for most in NODES]]


def _gpus() -> list[ServingGpu]:
    return [serving_gpu(gpu) for gpu in catalogue.GPUS.values()]
