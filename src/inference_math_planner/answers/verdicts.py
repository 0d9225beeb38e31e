"""How often verdicts like the planner's were right on served pairs that chose nothing."""

from __future__ import annotations

from functools import lru_cache

from inference_math.evidence import load
from inference_math.optimiser.verdict import word_of

__all__ = ["crowds", "scored"]

USERS = (1.0, 3.0, 10.0, 1e9)  # on a GPU, at most, the last without an end: classes of about as many served splits


@lru_cache(maxsize=1)
def scored() -> dict[str, list[int]]:
    """Return for "sure", "likely" and "open" how many verdicts were right, and how many were given.

    Each pair of table `predicted_split_gains` in the part that scores, as a plan would have judged it.

    Examples
    --------
    >>> from inference_math_planner.answers.verdicts import scored
    >>> list(scored())
    ['sure', 'likely', 'open']
    """
    pairs = load("predicted_split_gains").frame.query("part == 'score'").dropna(subset=["planned_chance"])
    chance, gained = pairs["planned_chance"].to_numpy(), pairs["gain"].to_numpy() > 1
    found = {"sure": [0, 0], "likely": [0, 0], "open": [0, 0]}
    for split, won in zip(chance, gained, strict=True):
        word = word_of(max(split, 1 - split))
        found[word][0] += int((split > 0.5) == won)
        found[word][1] += 1
    return found


@lru_cache(maxsize=1)
def crowds() -> list[list[float]]:
    """Return [users on a GPU at most, splits that gained, splits] for classes of served splits beside their rivals.

    Examples
    --------
    >>> from inference_math_planner.answers.verdicts import crowds
    >>> few, *_, many = crowds()
    >>> few[1] / few[2] < many[1] / many[2]
    True
    """
    pairs = load("predicted_split_gains").frame
    users, gained, found, least = pairs["users"] / pairs["gpus"], pairs["gain"] > 1, [], 0.0
    for most in USERS:
        here = (users > least) & (users <= most)
        found.append([most, int((here & gained).sum()), int(here.sum())])
        least = most
    return found
