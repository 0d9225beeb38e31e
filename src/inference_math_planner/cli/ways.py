"""What would do in place of a set-up that has no answer: options to add to the command, each tried before it is named.

The page offers the same changes as buttons, in the same order (`nearest` and `looser` of its scripts).
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil, floor, log10

from inference_math import catalogue
from inference_math.catalogue import Gpu
from inference_math.unit.types import Part

__all__ = ["LONGEST_LIMITS", "Tries", "as_flags", "round_up", "would"]

Change = Mapping[str, str | int | float]
Tried = Callable[[Namespace], bool]

LAYOUT = ("tp", "dp", "ep", "pp")
LONGEST_LIMITS = {"ttft": 60.0, "tpot": 1.0}  # seconds: whoever asks for more means milliseconds
SIZES = (2, 4, 8)  # GPUs that share each matrix, or stages
NODES = (16, 32, 64)  # GPUs of a unit on several nodes
LOOSE = 100.0  # times a limit: where that is not enough nothing is
NEAR = 1.05  # to which a limit is found
LOOSENED = [1.3**i for i in range(7)]
FEW = 3  # ways that are named
LAST = 2  # kinds that are tried where nothing else does: two options at once, several nodes
BITS = {"bf16": 16, "fp8": 8, "int4": 4, "nvfp4": 4, "mxfp4": 4}


@dataclass(frozen=True)
class Tries:
    """How changed options are tried: whether a unit at full load `works`, and whether the whole question `answers`."""

    works: Tried
    answers: Tried


def would(options: Namespace, tries: Tries, weights: str, fixes: Sequence[Change] | None = None) -> Part:
    """Say which options, added to a command without an answer, would do, at most three, all of them tried.

    Limits come first where they are what is missed. Where `weights` do not fit, `fixes` do; limits are changed with
    them if nothing else would do.
    """
    found = list(islice(_answering(options, tries, weights, fixes), FEW))
    return {
        "key": "ways.would" if found else "ways.none",
        "many": len(found) > 1,
        "each": [as_flags(one) for one in found],
    }


def as_flags(told: Change) -> str:
    """Return options as one types them.

    >>> as_flags({"gpu": "b200", "ttft": 2.0})
    '--gpu b200 --ttft 2'
    """
    return " ".join(f"--{name} {value if isinstance(value, str) else f'{value:g}'}" for name, value in told.items())


def _answering(options: Namespace, tries: Tries, weights: str, fixes: Sequence[Change] | None) -> Iterator[Change]:
    """Yield the changes with which the whole question has an answer."""
    found = False
    for limits in looser(options, tries.works) if fixes is None else ():
        for one in _looser_still(options, limits, tries.answers):
            found = True
            yield one
    kinds = list(_kinds(options, weights, list(fixes or ())))
    for kind, left in zip(kinds, range(len(kinds), 0, -1), strict=True):
        if found and left <= LAST:
            return
        for change in kind:
            other = changed(options, change)
            if tries.works(other) and tries.answers(other):
                found = True
                yield change
                break
    gpus: list[Change] = [{"gpu": one} for one in _others(options)]
    for change in () if found else (*(fixes or ()), *gpus):
        for limits in looser(changed(options, change), tries.works):
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


def looser(options: Namespace, works: Tried) -> Iterator[Change]:
    """Yield the smallest limits that would do, TTFT's alone if that is enough: rounded up to two digits."""
    for names in (("ttft",), ("tpot",), ("ttft", "tpot")):

        def widened(factor: float, names: tuple[str, ...] = names) -> Change:
            return {one: min(LONGEST_LIMITS[one], round_up(factor * getattr(options, one))) for one in names}

        if not works(changed(options, widened(LOOSE))):
            continue
        low, high = 1.0, LOOSE
        while high / low > NEAR:
            middle = (low * high) ** 0.5
            if works(changed(options, widened(middle))):
                high = middle
            else:
                low = middle
        yield widened(high)
        return


def round_up(number: float) -> float:
    """Return a number rounded up to two digits.

    >>> round_up(0.3841), round_up(1.7)
    (0.39, 1.7)
    """
    unit = 10.0 ** (floor(log10(number)) - 1)
    return float(f"{ceil(number / unit - 1e-9) * unit:.2g}")


def _kinds(options: Namespace, weights: str, fixes: list[Change]) -> Iterator[list[Change]]:
    """Yield the changes of each kind, the nearest first: of layout, precision, GPU, two of these, several nodes."""
    gpu, larger = catalogue.GPUS.get(options.gpu), _others(options)
    fewer = _fewer(gpu, weights) if gpu else []
    named = any(getattr(options, name) is not None for name in LAYOUT)
    yield from ([fix] for fix in fixes)
    yield [{"tp": size} for size in SIZES if named and size > (options.tp or 1)]
    yield [{"weights": one} for one in fewer if BITS[one] > 4]
    yield [{"gpu": one} for one in larger]
    yield [{"weights": one} for one in fewer if BITS[one] == 4]
    yield [{"gpu": one, "weights": less} for less in fewer for one in larger]
    yield [{"tp": 8, "pp": stages} for stages in SIZES] if named else [{"search": gpus} for gpus in NODES]


def _fewer(gpu: Gpu, weights: str) -> list[str]:
    """Return precisions with fewer bits than the weights have, or where a GPU has no such unit, any that it has."""
    known = ["fp8" if gpu.fp8_flops else "bf16", *(["nvfp4"] if gpu.fp4_flops else []), "int4"]
    return [one for one in known if BITS[one] < BITS[weights] or (weights == "fp8" and not gpu.fp8_flops)]


def _others(options: Namespace) -> list[str]:
    """Return the GPUs of the same maker with as much memory, or more, the nearest first."""
    gpu = catalogue.GPUS.get(options.gpu)
    if gpu is None:
        return []
    others = [one for one in catalogue.GPUS.values() if one.name != gpu.name and one.maker == gpu.maker]
    others.sort(key=lambda one: (_memory(one), one.bf16_flops))
    return [one.name for one in others if _memory(one) >= _memory(gpu)]


def _memory(gpu: Gpu) -> float:
    return gpu.driver_bytes or gpu.hbm_bytes
