"""For arrays, what `unit.batch` and `unit.max_load` have for numbers: means of steps, prompts of the fullest group."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inference_math.evidence.checks import Numbers
from inference_math.unit.batch import concurrent_prefill_pmf
from inference_math.unit.max_load import expected_max_load

__all__ = ["as_scalar", "expected_max_loads", "mean_seen"]


def mean_seen(step: Callable[[Any, Any], Any], users: ArrayLike, n_out: float, own: int) -> NDArray[np.float64]:
    """Return the mean step that a request sees which prefills itself (`own` = 1) or decodes (0) [C13, C14].

    Parameters
    ----------
    step
        Seconds of a step with so many decodes and prompts, of arrays of both.
    users
        Requests at once, at least one; an array of any shape. Between two whole numbers the mean is that of a batch
        which is now the one, now the other.
    n_out
        Mean output tokens.
    """
    wanted = np.asarray(users, dtype=np.float64)
    low = np.floor(wanted)
    sizes, places = np.unique([low, np.ceil(wanted)], return_inverse=True)
    counts, shares = _laws(tuple(sizes.astype(int).tolist()), float(n_out))
    means = (shares * step(sizes - own - counts, own + counts)).sum(axis=0)
    below, above = means[places].reshape(2, *wanted.shape)
    return np.asarray(below + (wanted - low) * (above - below))


def as_scalar(value: Numbers) -> Numbers:
    """Return an array as it is, a single number as a float."""
    return float(value) if np.ndim(value) == 0 else value


def expected_max_loads(prompts: ArrayLike, ranks: float, stages: float) -> NDArray[np.float64]:
    """Return `unit.max_load.expected_max_load` of arrays of prompts."""
    numbers, places = np.unique(prompts, return_inverse=True)
    each = [expected_max_load(one, ranks, stages) for one in numbers.tolist()]
    return np.array(each, dtype=np.float64)[places].reshape(np.shape(prompts))


@lru_cache(maxsize=256)
def _laws(sizes: tuple[int, ...], n_out: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how many of the others prefill beside a request, and how often: a column for each batch, filled with 0."""
    laws = [np.array(concurrent_prefill_pmf(size, n_out)).T for size in sizes]
    counts = np.zeros((max(law.shape[1] for law in laws), len(laws)))
    shares = counts.copy()
    for column, (count, share) in enumerate(laws):
        counts[: len(count), column], shares[: len(share), column] = count, share
    return counts, shares
