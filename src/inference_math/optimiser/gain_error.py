"""What no draw of coefficients moves: how far the predicted gain of one way to serve over another may be off.

A draw slows all ways down together, and hardly any comparison notices. Measured gains over predicted ones tell what is
left; see table `comparison_error`. The page prints this module.
"""

from __future__ import annotations

from math import atan, cos, erf, exp, log, pi, sin, sqrt, tan

from inference_math.unit.types import ComparisonError

FARTHER = 0.1  # of a spread, for each doubling of lengths beyond those compared, and for what was never compared
# Evenly likely values of a standard normal variable: the middles of ninths.
NINTHS = [-1.5932, -0.9674, -0.5895, -0.2822, 0.0, 0.2822, 0.5895, 0.9674, 1.5932]
CERTAIN = [0.0, 0.0, 0.0]
MANY = 30  # pairs: from so many on a normal law stands for Student's
NODES = 24  # at which the chance is asked that two errors hold together
FAR = 40.0  # standard deviations: nothing is beyond
EVEN = 1e-9  # of a rate: what rounding parts is equal
# What is served within a limit hangs more on steps than what some users get: so pools as they are planned.
KINDS = {"chunked": "chunks", "disaggregated": "pools, planned"}


def doublings(value: float, ends: list[float]) -> float:
    """Return how many times a length must be doubled, or halved, to be within the ends of those compared."""
    return (max(log(ends[0] / value), 0.0) + max(log(value / ends[1]), 0.0)) / log(2)


def strange(known: list[str], name: str) -> int:
    """Return 1 for what is not known, else 0."""
    return 0 if len([one for one in known if one == name]) > 0 else 1


def gain_error(known: ComparisonError, kind: str, generation: str, n_in: float, n_out: float) -> list[float]:
    """Return bias and sd of the logarithm of a gain, for a kind of model on a GPU's generation, and pairs behind them.

    The spread grows by a tenth with each doubling of a length, and for a kind and a generation that no pair is of. It
    is a judgement, made before the pairs that score were looked at: the pairs show no common error of a set-up.
    """
    away = doublings(n_in, known.n_in) + doublings(n_out, known.n_out)
    away += strange(known.kinds, kind) + strange(known.generations, generation)
    return [known.bias, known.sd * (1 + FARTHER * away), known.pairs]


def gain_errors(
    errors: dict[str, ComparisonError], kind: str, generation: str, n_in: float, n_out: float
) -> dict[str, list[float]]:
    """Return the error of each architecture beside aggregated serving, and of a store beside none; see `gain_error`."""
    by_architecture = {"aggregated": CERTAIN, "store": gain_error(errors["store"], kind, generation, n_in, n_out)}
    for name in KINDS:
        by_architecture[name] = gain_error(errors[KINDS[name]], kind, generation, n_in, n_out)
    return by_architecture


def add_log_errors(own: list[float], top: list[float], bottom: list[float]) -> list[float]:
    """Return a gain's own error with those of the two ways to serve that it is from and to."""
    pairs = own[2]
    for other in [top, bottom]:
        pairs = min(pairs, other[2]) if other[1] > 0 else pairs
    return [own[0] + top[0] - bottom[0], sqrt(own[1] ** 2 + top[1] ** 2 + bottom[1] ** 2), pairs]


def factors_of(own: list[float]) -> list[float]:
    """Return evenly likely factors of a rate under an error: one where there is none."""
    return [exp(own[0] + own[1] * of_few(z, own[2])) for z in NINTHS] if own[1] > 0 else [exp(own[0])]


def of_few(z: float, pairs: float) -> float:
    """Return the value of Student's law that is as likely exceeded as a value of the normal one, within a hundredth."""
    if pairs >= MANY:
        return z
    return z + (z**3 + z) / (4 * pairs) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * pairs**2)


def below(value: float, pairs: float) -> float:
    """Return the chance that an error, in standard deviations as so many pairs tell them, is below a value.

    By Student's law with as many degrees of freedom, as finite sums: Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    if pairs >= MANY:
        return 0.5 * (1 + erf(value / sqrt(2)))
    angle = atan(value / sqrt(pairs))
    odd = pairs % 2
    term = cos(angle) if odd > 0 else 1.0
    total, k = term if pairs > 1 else 0.0, 1 + odd
    while k <= pairs - 3:
        term *= k / (k + 1) * cos(angle) ** 2
        total += term
        k += 2
    within = 2 / pi * (angle + sin(angle) * total) if odd > 0 else sin(angle) * total
    return 0.5 * (1 + within)


def chance_under(rate: float, own: list[float], at: float) -> float:
    """Return the chance that the logarithm of a rate with its error is below a value; a half where they are equal."""
    ahead = at - log(rate) - own[0]
    if own[1] > 0:
        return below(ahead / own[1], own[2])
    return 0.5 if -EVEN < ahead < EVEN else 1.0 if ahead > 0 else 0.0


def chance_of(first: float, second: float, own: list[float]) -> float:
    """Return the chance that one rate is above another whose predicted ratio is so far off."""
    if not min(first, second) > 0:
        return 1.0 if first > second else 0.0
    return 1 - chance_under(first / second, own, 0.0)


def chances_best(rates: list[float], gain_errors: list[list[float]]) -> list[float]:
    """Return the chance of each rate to be the highest, each with its error; 0 of none above 0.

    Rates without an error that are equal share theirs. Of the others the one with the widest error has what is left.
    """
    chances = [0.0 for _ in rates]
    sure = [k for k in range(len(rates)) if rates[k] > 0 and not gain_errors[k][1] > 0]
    free = [k for k in range(len(rates)) if rates[k] > 0 and gain_errors[k][1] > 0]
    free.sort(key=lambda k: gain_errors[k][1])
    level = -FAR
    for k in sure:
        level = max(level, log(rates[k]) + gain_errors[k][0])
    left = 1.0
    if len(sure) > 0:
        beneath = 1.0
        for k in free:
            beneath *= chance_under(rates[k], gain_errors[k], level)
        tops = [k for k in sure if log(rates[k]) + gain_errors[k][0] > level - EVEN]
        for k in tops:
            chances[k] = beneath / len(tops)
        left = 1 - beneath
    for i in range(len(free)):
        chance = chance_above(free[i], free, rates, gain_errors, level) if i < len(free) - 1 else left
        chances[free[i]] = chance
        left -= chance
    return chances


def chance_above(own: int, free: list[int], rates: list[float], gain_errors: list[list[float]], level: float) -> float:
    """Return the chance that a rate with its error is above a level, and above all others that have one.

    The mean of the others' chances to be below it, over its own law beyond the level; their laws are the wider ones.
    """
    bias, sd, pairs = gain_errors[own]
    middle = log(rates[own]) + bias
    least = (level - middle) / sd
    total, weights = 0.0, 0.0
    scale = sqrt(min(pairs, MANY))
    start = atan(least / scale)
    for node in range(NODES):
        angle = start + (node + 0.5) / NODES * (pi / 2 - start)
        value = scale * tan(angle)
        # The law's density, by the angle.
        weight = exp(-(value**2) / 2) / cos(angle) ** 2 if pairs >= MANY else cos(angle) ** (pairs - 1)
        chance = weight
        for k in free:
            if k != own:
                chance *= chance_under(rates[k], gain_errors[k], middle + sd * value)
        total += chance
        weights += weight
    return (1 - below(least, pairs)) * total / weights if weights > 0 else 0.0
