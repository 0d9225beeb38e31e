"""Coefficients of an engine on a GPU for a kind of model: composed of what each of them was found to change.

Served points tell a centre for each engine, and by how much a generation of GPUs, a kind of model and the precision of
the weights move it, in logarithms. What was never seen moves nothing, and is as unsure as levels were assumed to differ
before a point was seen; so is a combination of which only the parts were.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import Any

from inference_math.perf.types import CoefficientValues, DrawnCoefficients

__all__ = [
    "FACTORS",
    "FRONTS",
    "MOST",
    "SHARE_NAMES",
    "anchored",
    "away",
    "by_operators",
    "composed",
    "drawn",
    "front_levels",
    "fronted",
    "own_root",
    "precisions_seen",
]

FACTORS = ["generation", "kind", "weights"]
# What moves the front of a request, from what all share to what one set-up has of its own.
FRONTS = ["base", "kind", "model", "engine", "engine, model", "engine, model, gpu"]
MOST = 0.995  # of a share: nothing reaches all of the datasheet
# Coefficients that are shares of a rate.
SHARE_NAMES = ["memory", "bf16", "fp8", "fp4", "attention", "experts", "grouped", "kv", "interconnect_efficiency"]


def by_operators(kernels: bool, given: dict[str, str]) -> bool:
    """Tell whether measured operators of the H100 stand nearer to a unit than served points do.

    `kernels` tells whether the engine runs them today. They do for a dense model in BF16 or FP8 under vLLM: what was
    served of those ran on vLLM of 2025. On Blackwell, whose kernels are others, served points do.
    """
    plain = given["weights"] == "bf16" or given["weights"] == "fp8"
    return kernels and given["kind"] == "dense" and plain and given["generation"] != "Blackwell"


def composed(levels: dict[str, Any], engine: str, given: dict[str, str]) -> dict[str, CoefficientValues]:
    """Return the coefficients (`values`), and the standard deviations of their logarithms (`widths`).

    `levels` has the engines' centres, the moves by factor and level, the widths of what was seen and of what was not.
    """
    values: CoefficientValues = {}
    widths: CoefficientValues = {}
    centre = levels["engine"][engine]
    together = given["weights"] in precisions_seen(levels, given["generation"], given["kind"])
    for name in centre:
        moved, variance = 0.0, levels["seen"][name] ** 2
        if not together:
            variance += levels["unseen"][name] ** 2
        for factor in FACTORS:
            known = levels[factor]
            if given[factor] in known:
                moved += known[given[factor]][name]
            else:
                variance += levels["unseen"][name] ** 2
        value = centre[name] * exp(moved)
        values[name] = min(MOST, value) if name in SHARE_NAMES else value
        widths[name] = variance**0.5
    return {"values": values, "widths": widths}


def precisions_seen(levels: dict[str, Any], generation: str, kind: str) -> list[str]:
    """Return the precisions in which models of a kind were served on a generation of GPUs."""
    return [row[2] for row in levels["together"] if row[0] == generation and row[1] == kind]


def own_root(names: list[str], widths: CoefficientValues) -> list[list[float]]:
    """Return the root of the covariance of coefficients that vary each by itself."""
    return [[widths[name] if name == other else 0.0 for other in names] for name in names]


def away(name: str, value: float, moved: float) -> float:
    """Return a coefficient that is `moved` away from its value on the scale of its logarithm.

    Beyond the value of a share, what it leaves unused shrinks instead, at first by as much: it never gets to 1.
    """
    if name not in SHARE_NAMES or moved < 0:
        return value * exp(moved)
    return 1 - (1 - value) * exp(-moved * value / (1 - value)) if value < 1 else 1.0


def anchored(anchors: list[dict[str, float]], n_in: float, n_out: float) -> float:
    """Return the seconds of an output token by which the run with the nearest lengths was off; 0 without any."""
    seconds, nearest = 0.0, inf
    for anchor in anchors:
        far = abs(log(anchor["n_in"] / n_in)) + abs(log(anchor["n_out"] / n_out))
        if far < nearest:
            nearest = far
            seconds = anchor["seconds"]
    return seconds


def drawn(
    names: list[str], values: CoefficientValues, root: list[list[float]], normals: list[list[float]], spread: float
) -> list[DrawnCoefficients]:
    """Return (coefficients, factors) for each row of normal numbers: the errors of a step and of its prompts' part, and
    a normal number for the front.

    `root` is the symmetric root of the covariance of the logarithms. An anchor is not drawn.
    """
    told: list[DrawnCoefficients] = []
    size = len(names)
    for row in normals:
        found: CoefficientValues = {}
        for j in range(size):
            moved = 0.0
            for i in range(size):
                moved += row[i] * root[i][j]
            found[names[j]] = away(names[j], values[names[j]], moved)
        found["anchor"] = values["anchor"]
        told.append((found, [exp(spread * row[size]), exp(spread * row[size + 1]), row[size + 2]]))
    return told


def front_levels(engine: str, kind: str, model: str, gpu: str) -> dict[str, str]:
    """Return the level of each of `FRONTS` that a set-up stands at; the engine by the name of its generation."""
    both = engine + "/" + model
    return {
        "base": "all",
        "kind": kind,
        "model": model,
        "engine": engine,
        "engine, model": both,
        "engine, model, gpu": both + "/" + gpu,
    }


def fronted(moves: dict[str, CoefficientValues], told: dict[str, str]) -> float:
    """Return the seconds of a request's front; a level that was never measured moves nothing."""
    moved = 0.0
    for factor in FRONTS:
        known = moves[factor]
        if told[factor] in known:
            moved += known[told[factor]]
    return exp(moved)
