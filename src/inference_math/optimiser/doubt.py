"""What no draw of coefficients moves: how far the predicted gain of one way to serve over another may be off.

A draw slows all ways down together, and hardly any comparison notices. Measured gains over predicted ones tell what is
left; see table `comparison_error`. The page prints this module.
"""

from __future__ import annotations

from math import exp, log, sqrt

from inference_math.unit.types import ComparisonError

FARTHER = 0.1  # of a spread, for each doubling of lengths beyond those compared, and for what was never compared
# Evenly likely values of a standard normal variable: the middles of ninths.
NINTHS = [-1.5932, -0.9674, -0.5895, -0.2822, 0.0, 0.2822, 0.5895, 0.9674, 1.5932]
CERTAIN = [0.0, 0.0]
# What is served within a limit hangs more on steps than what some users get: so pools as they are planned.
KINDS = {"chunked": "chunks", "disaggregated": "pools, planned"}


def doublings(value: float, ends: list[float]) -> float:
    """Return how many times a length must be doubled, or halved, to be within the ends of those compared."""
    return (max(log(ends[0] / value), 0.0) + max(log(value / ends[1]), 0.0)) / log(2)


def strange(known: list[str], name: str) -> int:
    """Return 1 for what is not known, else 0."""
    return 0 if len([one for one in known if one == name]) > 0 else 1


def doubt(known: ComparisonError, kind: str, generation: str, n_in: float, n_out: float) -> list[float]:
    """Return bias and standard deviation of the logarithm of a gain, for a model's kind on a GPU's generation.

    The spread grows by a tenth with each doubling of a length, and for a kind and a generation that no pair is of. It
    is a judgement, made before the pairs that score were looked at: the pairs show no common error of a set-up.
    """
    away = doublings(n_in, known["n_in"]) + doublings(n_out, known["n_out"])
    away += strange(known["kinds"], kind) + strange(known["generations"], generation)
    return [known["bias"], known["sd"] * (1 + FARTHER * away)]


def doubts(
    errors: dict[str, ComparisonError], kind: str, generation: str, n_in: float, n_out: float
) -> dict[str, list[float]]:
    """Return the doubt of each architecture beside aggregated serving, and of a store beside none; see `doubt`."""
    found = {"aggregated": CERTAIN, "store": doubt(errors["store"], kind, generation, n_in, n_out)}
    for name in KINDS:
        found[name] = doubt(errors[KINDS[name]], kind, generation, n_in, n_out)
    return found


def beside(own: list[float], top: list[float], bottom: list[float]) -> list[float]:
    """Return a gain's own doubt with those of the two ways to serve that it is from and to."""
    return [own[0] + top[0] - bottom[0], sqrt(own[1] ** 2 + top[1] ** 2 + bottom[1] ** 2)]


def factors_of(own: list[float]) -> list[float]:
    """Return evenly likely factors of a rate under a doubt: one where there is none."""
    return [exp(own[0] + own[1] * z) for z in NINTHS] if own[1] > 0 else [exp(own[0])]
