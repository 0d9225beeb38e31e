"""How often verdicts like the planner's were right on served pairs that chose nothing."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from inference_math.evidence import load
from inference_math.optimiser.verdict import word_of
from inference_math_planner.answers.notes import SET_ASIDE

__all__ = ["concurrency_bins", "rule", "scored", "unseen"]

USERS = (1.0, 3.0, 10.0, 1e9)  # on a GPU, at most, the last without an end: classes of about as many served splits


@lru_cache(maxsize=1)
def scored() -> dict[str, list[int]]:
    """Return for "sure", "likely" and "open" how many verdicts were right, were given, and `rule` has right.

    Each pair of table `predicted_split_gains` in the part that scores, as a plan would have judged it.

    Examples
    --------
    >>> from inference_math_planner.answers.verdicts import scored
    >>> list(scored())
    ['sure', 'likely', 'open']
    """
    pairs = load("predicted_split_gains").frame.query("part == 'score'").dropna(subset=["planned_chance"])
    chance, gained = pairs["planned_chance"].to_numpy(), pairs["gain"].to_numpy() > 1
    many = (pairs["users"] / pairs["gpus"]).to_numpy() > rule()
    counts = {"sure": [0, 0, 0], "likely": [0, 0, 0], "open": [0, 0, 0]}
    for split, won, crowded in zip(chance, gained, many, strict=True):
        word = word_of(max(split, 1 - split))
        counts[word][0] += int((split > 0.5) == won)
        counts[word][1] += 1
        counts[word][2] += int(crowded == won)
    return counts


@lru_cache(maxsize=1)
def rule() -> float:
    """Return the users on a GPU above which a split gains, as far as one number can tell: the baseline of verdicts.

    That of the choosing half's own numbers that is right most often there, of equals the largest. Users are all that
    are served at once, GPUs those of both pools.

    Examples
    --------
    >>> from inference_math_planner.answers.verdicts import rule
    >>> f"{rule():.2f}"
    '1.33'
    """
    pairs = load("predicted_split_gains").frame.query("part == 'choose'")
    users, gained = (pairs["users"] / pairs["gpus"]).to_numpy(), pairs["gain"].to_numpy() > 1
    return float(max((((users > one) == gained).sum(), one) for one in np.unique(users))[1])


@lru_cache(maxsize=1)
def unseen() -> float:
    """Return how far off time per token is, in the mean, on points of today that were kept for a score.

    Nothing was fitted to their sources' part that scores, nor chosen by it.

    Examples
    --------
    >>> from inference_math_planner.answers.verdicts import unseen
    >>> 0.2 < unseen() < 0.4
    True
    """
    rows = load("served_error").frame
    rows = rows[rows["source"].str.endswith(f", {SET_ASIDE}")]
    return float(np.average(rows["error"], weights=rows["points"]))


@lru_cache(maxsize=1)
def concurrency_bins() -> list[list[float]]:
    """Return [users on a GPU at most, splits that gained, splits] for classes of served splits beside their rivals.

    Examples
    --------
    >>> from inference_math_planner.answers.verdicts import concurrency_bins
    >>> few, *_, many = concurrency_bins()
    >>> few[1] / few[2] < many[1] / many[2]
    True
    """
    pairs = load("predicted_split_gains").frame
    users, gained, bins, least = pairs["users"] / pairs["gpus"], pairs["gain"] > 1, [], 0.0
    for most in USERS:
        here = (users > least) & (users <= most)
        bins.append([most, int((here & gained).sum()), int(here.sum())])
        least = most
    return bins
