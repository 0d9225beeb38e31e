"""Coefficients that start from known ones and move as far as measured seconds pull them.

What the measurement cannot tell is not guessed: each coefficient has a width of a prior, and one on which the
seconds say nothing keeps the value that it started from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from inference_math.evidence.fits import rounded
from inference_math.unit.coefficients import COEFFICIENTS, SHARES, Calibration, Coefficients

__all__ = ["jackknife", "moved_to"]

_NOISE = 0.05  # of the logarithm of a time: repeats, and what the form leaves out
_FARTHEST = 5.0  # widths of the prior: what moves a coefficient beyond is another thing, not another value
_MOST = 2.0  # of a spread: what is off by more was not fitted
_FREE = 3  # errors beyond the coefficients that they decided: fewer do not tell how wide errors are
_NEAR = 1e-10  # of a fit's end: relative, of errors and coefficients
_UNTOLD = 0.99  # of the starting width: a coefficient that is left so wide was not told


def moved_to(
    seconds: NDArray[np.float64],
    predicted: Callable[[Calibration], NDArray[np.float64]],
    start: Calibration,
    widths: Mapping[str, float],
    mode: str,
) -> tuple[Calibration, tuple[str, ...]]:
    """Return the calibration whose predictions are nearest to `seconds`, and the coefficients that keep their value.

    The maximum a posteriori of log(predicted / seconds) under a normal prior: the logarithm of each coefficient of
    `widths` is that of `start`, with its variance there and, in quadrature, a width of its own for how far one may be
    from the other. The covariance is the Gauss-Newton one at that maximum: the inverse of prior plus curvature, at the
    spread that the fit leaves.
    """
    names = tuple(widths)
    places = [COEFFICIENTS.index(name) for name in names]
    prior = np.hypot(np.sqrt(np.diag(start.covariance))[places], list(widths.values()))

    def misses(moved: NDArray[np.float64]) -> NDArray[np.float64]:
        at = replace(start, coefficients=_moved(start.coefficients, names, prior * moved))
        return np.concatenate([np.log(predicted(at) / seconds) / _NOISE, moved])

    room = np.array([-np.log(getattr(start.coefficients, n)) if n in SHARES else np.inf for n in names])
    bounds = (-_FARTHEST, np.minimum(room / np.maximum(prior, 1e-9), _FARTHEST) + 1e-9)
    # So near to the minimum that another processor finds the same digits: with slopes of one side it stops before.
    solution = least_squares(misses, np.zeros(len(names)), "3-point", bounds, ftol=_NEAR, xtol=_NEAR, gtol=_NEAR)
    logs = solution.fun[: len(seconds)] * _NOISE
    slopes = solution.jac[: len(seconds)] * _NOISE
    precision = slopes.T @ slopes
    width = np.linalg.inv(precision / _NOISE**2 + np.eye(len(names)))
    used = len(names) - np.trace(width)  # coefficients that the seconds decide, in effect
    free = len(logs) - used
    spread = min(float(np.sqrt(np.sum(logs**2) / max(free, 1))), _MOST)
    if free < _FREE:
        spread = max(spread, start.spread)
    width = np.linalg.inv(precision / max(spread, 1e-3) ** 2 + np.eye(len(names)))
    # What was not told is as wide as before and where it was. One that went to nothing is wide, too, but not there.
    untold = (np.sqrt(np.diag(width)) > _UNTOLD) & (np.abs(solution.x) < 1 - _UNTOLD)
    kept = tuple(name for name, left in zip(names, untold, strict=True) if left)
    covariance = start.covariance.copy()
    free = [i for i, name in enumerate(names) if name not in kept]
    for i in free:  # what was fitted goes no longer with what was not
        covariance[places[i], :] = covariance[:, places[i]] = 0.0
    for i in free:
        for j in free:
            covariance[places[i], places[j]] = width[i, j] * prior[i] * prior[j]
    steps = [0.0 if name in kept else float(step) for name, step in zip(names, prior * solution.x, strict=True)]
    values = asdict(_moved(start.coefficients, names, steps))
    few = {name: float(rounded(value)) for name, value in values.items() if value != getattr(start.coefficients, name)}
    ended = replace(start.coefficients, **few)
    return replace(start, mode=mode, coefficients=ended, covariance=covariance, spread=float(rounded(spread))), kept


def jackknife(without: ArrayLike) -> NDArray[np.float64]:
    """Return the standard deviation of each column of values, a row for each fit with one thing left out."""
    values = np.asarray(without, dtype=np.float64)
    return np.asarray(values.std(axis=0) * (len(values) - 1) ** 0.5)


def _moved(start: Coefficients, names: Sequence[str], steps: Iterable[float]) -> Coefficients:
    """Return the coefficients so far away from the start, in logarithms; both shares of attention go with BF16."""
    moved = dict(zip(names, steps, strict=True))
    if "bf16" in moved:
        moved = dict.fromkeys(("attention", "decode_attention"), moved["bf16"]) | moved
    values = {name: getattr(start, name) * float(np.exp(step)) for name, step in moved.items()}
    return replace(start, **{name: min(value, 1.0) if name in SHARES else value for name, value in values.items()})
