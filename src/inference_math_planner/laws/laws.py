"""Distributions of a time, as values with probabilities: prompts' lengths, gaps between tokens, waits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, SHARE, Interval, as_number, as_numbers

__all__ = ["Law"]

_POINTS = 2000  # equally likely values that stand for a continuous distribution
_LOG_SD = Interval(0, 3)  # beyond it, that many points no longer hold the tail


@dataclass(frozen=True, eq=False)
class Law:
    """The distribution of a time: `values` in seconds, ascending, each with one of `probabilities`.

    Make one by `of`, `equal` or `lognormal`; `latency` and `waiting` return others.

    Examples
    --------
    >>> prompts = Law.of([0.05, 0.15], weights=[3, 1])
    >>> f"{prompts.mean:.3f} {prompts.quantile(0.9):.3f} {prompts.share_within(0.1):.2f}"
    '0.075 0.150 0.75'
    """

    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]

    @classmethod
    def of(cls, values: ArrayLike, weights: ArrayLike | None = None) -> Law:
        """Return the law of times that were met, `values` in seconds > 0, each as often as `weights` says.

        Raises
        ------
        TypeError
            For anything but numbers.
        ValueError
            For no value, for lists of different lengths, for a value that is not > 0, a weight below 0, or
            weights that are all 0.
        """
        times = np.atleast_1d(as_numbers("values", values, ANY_POSITIVE))
        counts = (
            np.ones(times.shape) if weights is None else np.atleast_1d(as_numbers("weights", weights, AT_LEAST_ZERO))
        )
        if times.ndim != 1 or not times.size or counts.shape != times.shape:
            raise ValueError(
                f"values and weights must be two lists as long as each other, not {times.shape} and {counts.shape}"
            )
        if not counts.sum():
            raise ValueError("weights must not all be 0")
        distinct, where = np.unique(times, return_inverse=True)
        mass = np.bincount(where.ravel(), counts / counts.sum(), distinct.size).astype(np.float64)
        return cls(distinct[mass > 0], mass[mass > 0])

    @classmethod
    def equal(cls, seconds: float) -> Law:
        """Return the law of times that are all `seconds` > 0."""
        return cls(np.array([as_number("seconds", seconds, ANY_POSITIVE)]), np.ones(1))

    @classmethod
    def lognormal(cls, mean: float, cv: float) -> Law:
        """Return a heavy-tailed law by its mean in seconds and its coefficient of variation, by 2,000 points.

        Each point is the mean of one 2,000th of the distribution: the mean is exact, the coefficient of variation
        slightly lower. `cv` >= 0, such that the logarithm's standard deviation is at most 3.

        Raises
        ------
        ValueError
            For a mean not > 0 or a `cv` outside its range.
        """
        centre, spread = as_number("mean", mean, ANY_POSITIVE), as_number("cv", cv, AT_LEAST_ZERO)
        sd = float(np.sqrt(np.log1p(spread**2)))
        if not sd:
            return cls.equal(centre)
        as_number("the logarithm's standard deviation, √ln(1 + cv²),", sd, _LOG_SD)
        # The mass of time below a quantile is a normal distribution again, shifted by sd.
        edges = stats.norm.ppf(np.linspace(0, 1, _POINTS + 1))
        below = stats.norm.cdf(edges - sd)
        above = stats.norm.sf(edges - sd)
        parts = np.where(edges[:-1] < sd, np.diff(below), -np.diff(above))
        return cls(centre * _POINTS * parts, np.full(_POINTS, 1 / _POINTS))

    @property
    def mean(self) -> float:
        """Mean in seconds."""
        return float(self.values @ self.probabilities)

    @property
    def deviation(self) -> float:
        """Standard deviation in seconds."""
        return float(np.sqrt((self.values - self.mean) ** 2 @ self.probabilities))

    @property
    def cv(self) -> float:
        """Coefficient of variation: standard deviation over mean; 0 where both are 0."""
        return self.deviation / self.mean if self.mean else 0.0

    def quantile(self, q: float) -> float:
        """Return the smallest time, in seconds, that at least the share `q` does not exceed; `q` from 0 to 1."""
        share = as_number("q", q, SHARE)
        reached = np.cumsum(self.probabilities) >= share * (1 - 1e-12) - 1e-15
        return float(self.values[np.argmax(reached)] if reached.any() else self.values[-1])

    def share_within(self, limit: float) -> float:
        """Return the share of the times that do not exceed `limit`, in seconds."""
        within = self.values <= as_number("limit", limit, AT_LEAST_ZERO) * (1 + 1e-12)
        return float(self.probabilities[within].sum())

    def between(self, other: Law, share: float) -> Law:
        """Return the law whose quantiles lie between these and `other`'s, by `share` of the way, from 0 to 1."""
        part = as_number("share", share, SHARE)
        levels = [np.minimum(np.cumsum(law.probabilities), 1) for law in (self, other)]
        for level in levels:
            level[-1] = 1  # whatever rounding made of it
        edges = np.unique(np.concatenate(levels))
        middles = edges - np.diff(edges, prepend=0) / 2
        ends = [law.values[np.searchsorted(level, middles)] for law, level in zip((self, other), levels, strict=True)]
        return Law((1 - part) * ends[0] + part * ends[1], np.diff(edges, prepend=0))
