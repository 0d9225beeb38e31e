"""Changes that may do in place of a set-up without an answer; the command line and the page try them in this order."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, log10
from typing import Any

from inference_math.unit.deployed import ServingGpu

__all__ = ["BITS", "SIZES", "Change", "changes", "looser", "round_up", "with_changes"]

# Values of options, or of fields, by their names.
Change = dict[str, Any]

BITS = {"bf16": 16, "fp8": 8, "int4": 4, "nvfp4": 4, "mxfp4": 4}
SIZES = [2, 4, 8]  # GPUs that share each matrix, or stages
LOOSE = 100.0  # times a limit: where that is not enough nothing is
WITHIN = 1.05  # to which a limit is found


def with_changes(setup: Change, change: Change) -> Change:
    """Return a set-up of which some values are changed."""
    other = setup.copy()
    other.update(change)
    return other


def looser(limits: Change, most: Change, works: Callable[[Change], bool]) -> Change:
    """Return the smallest limits that would do, TTFT's alone if that is enough: rounded up to two digits; or none.

    A limit is at `most` so long.
    """
    for names in [["ttft"], ["tpot"], ["ttft", "tpot"]]:
        if not works(limits_times(limits, most, names, LOOSE)):
            continue
        low, high = 1.0, LOOSE
        while high / low > WITHIN:
            middle = (low * high) ** 0.5
            if works(limits_times(limits, most, names, middle)):
                high = middle
            else:
                low = middle
        return limits_times(limits, most, names, high)
    return {}


def limits_times(limits: Change, most: Change, names: list[str], factor: float) -> Change:
    """Return some of the limits, so many times as long, as far as that may be."""
    wide: Change = {}
    for name in names:
        wide[name] = min(most[name], round_up(factor * limits[name]))
    return wide


def round_up(number: float) -> float:
    """Return a number rounded up to two digits.

    >>> round_up(0.3841), round_up(1.7), round_up(16001)
    (0.39, 1.7, 17000)
    """
    place = floor(log10(number)) - 1
    digits = ceil(number / 10.0**place - 1e-9)
    rounded: float = digits * 10**place if place > 0 else digits / 10**-place
    return rounded


def changes(
    weights: str, gpu: ServingGpu, gpus: list[ServingGpu], tp: int, freed: Change, fixes: list[Change]
) -> list[list[Change]]:
    """Return the changes of each kind, the nearest first: layout, precision, GPU, then two of these at once.

    `fixes` come first; `tp` is that of a layout that is named, else 0; `freed` is what searches one.
    GPUs of the same maker have as much memory, or more.
    """
    fewer, larger = fewer_bits(weights, gpu), larger_gpus(gpu, gpus)
    kinds: list[list[Change]] = [[fix] for fix in fixes]
    kinds.append([{"tp": size} for size in SIZES if 0 < tp < size])
    kinds.append([freed] if tp > 0 and "tp" in freed else [])
    kinds.append([{"weights": name} for name in fewer if BITS[name] > 4])
    kinds.append([with_changes({"gpu": name}, freed) for name in larger])
    kinds.append([{"weights": name} for name in fewer if BITS[name] == 4])
    both = [[name, less] for less in fewer for name in larger]
    kinds.append([with_changes({"gpu": pair[0], "weights": pair[1]}, freed) for pair in both])
    return kinds


def of_bits(weights: str) -> int:
    """Return the bits of a precision."""
    return BITS[weights]


def fewer_bits(weights: str, gpu: ServingGpu) -> list[str]:
    """Return precisions with fewer bits than the weights have, or where a GPU has no such unit, any that it has."""
    flops = gpu.rates.flops
    known = ["fp8" if flops["fp8"] > 0 else "bf16"]
    known.extend(["nvfp4", "int4"] if flops["fp4"] > 0 else ["int4"])
    return [name for name in known if BITS[name] < BITS[weights] or (weights == "fp8" and not flops["fp8"] > 0)]


def larger_gpus(gpu: ServingGpu, gpus: list[ServingGpu]) -> list[str]:
    """Return the names of other GPUs of the same maker with as much memory, or more, the nearest first."""
    there = gpu.rates.driver_bytes
    others = [one for one in gpus if one.name != gpu.name and one.maker == gpu.maker]
    others = [one for one in others if one.rates.driver_bytes >= there]
    others.sort(key=lambda one: one.rates.flops["bf16"])
    others.sort(key=lambda one: one.rates.driver_bytes)
    return [one.name for one in others]
