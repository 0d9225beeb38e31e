"""How many of a step's prompts the fullest group of GPUs has where chance puts each on one of the groups: exactly."""

from __future__ import annotations

from math import floor

LARGE = 256  # prompts: up to here sums, beyond them what they tend to
SOME = 64  # prompts, that tell with so many how it goes on
FAINT = 1e-12  # chance
MAX_LOADS: dict[str, list[float]] = {}  # means by whole numbers of prompts, of each layout that somebody asked for


def expected_max_load(prompts: float, ranks: float, stages: float) -> float:
    """Return the mean number of prompts that the fullest group has; its stages share them, and have one at least.

    Of k prompts, each on any of D groups with the same chance, it has E[max] = the sum of 1 - P(max <= m) from m = 0,
    multinomial(k; 1/D). The share f of one more, a chunk, lengthens the fullest by f where it is on that: so often one
    whole prompt would by 1, and between whole numbers the mean is a straight line. No caller asks for a mean of
    prompts: they sum over whole numbers, and E[max] of Poisson numbers is what such a sum comes to.

    >>> [expected_max_load(prompts, 8, 1) for prompts in (1, 1.5, 2)]  # two prompts meet with a chance of an eighth
    [1, 1.0625, 1.125]
    """
    if prompts <= 1:
        return prompts
    low = floor(prompts)
    if low >= LARGE:
        return beyond(means_to(LARGE, ranks, stages), prompts, ranks)
    means = means_to(low + 1, ranks, stages)
    return means[low] + (prompts - low) * (means[low + 1] - means[low])


def means_to(last: int, ranks: float, stages: float) -> list[float]:
    """Return the mean of the fullest for 0 to `last` prompts, or more; each is computed once."""
    name = f"{ranks}/{stages}"
    if name not in MAX_LOADS or len(MAX_LOADS[name]) <= last:
        top = 32
        while top < last:
            top *= 2
        MAX_LOADS[name] = summed(top, floor(ranks / stages), stages)
    return MAX_LOADS[name]


def summed(top: int, groups: int, stages: float) -> list[float]:
    """Return the same: the sum over what the fullest exceeds, of which a prompt of each of its stages counts."""
    means = [0.0 for _ in range(top + 1)]
    most = 0
    while most < top:
        within = chances_within(most, top, groups)
        if most == 0 or most >= stages:
            for k in range(top + 1):
                means[k] += (1 - within[k]) / (1 if most == 0 else stages)
        if 1 - within[top] < FAINT:
            return means
        most += 1
    return means


def chances_within(most: int, top: int, groups: int) -> list[float]:
    """Return the chance that no group has more than `most` of 0 to `top` prompts.

    One more prompt ends that if it meets a group with `most`, the others having no more of the rest: a group after the
    other.
    """
    within = [1.0 if k <= most else 0.0 for k in range(top + 1)]
    for d in range(2, groups + 1):
        fewer, still, meets = within, 1.0, d ** (-most)  # `meets`: its group has `most` of k
        within = []
        for k in range(top + 1):
            within.append(still)
            if k >= most:
                still -= meets * fewer[k - most]
                still = still if still > FAINT else 0.0
                meets *= (k + 1) / (k + 1 - most) * (1 - 1 / d)
    return within


def beyond(means: list[float], prompts: float, ranks: float) -> float:
    """Return the mean of the fullest of more prompts than `means` has: above an even share by a root of them, and more.

    As of normal numbers. What the root counts is told by two of the means: within 0.5 % for 64 groups.
    """
    near, far = means[SOME] - SOME / ranks, means[LARGE] - LARGE / ranks
    root: float = (prompts**0.5 - SOME**0.5) / (LARGE**0.5 - SOME**0.5)
    return prompts / ranks + near + (far - near) * root
