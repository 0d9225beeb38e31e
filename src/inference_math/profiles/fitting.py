"""Coefficients that start from known ones and move as far as measured seconds pull them.

What the measurement cannot tell is not guessed: each coefficient has a width of a prior, and one on which the
seconds say nothing keeps the value that it started from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from inference_math.unit.coefficients import COEFFICIENTS, SHARES, Calibration, Coefficients

__all__ = ["jackknife", "moved_to"]

_NOISE = 0.05  # of the logarithm of a time: repeats, and what the form leaves out
_UNTOLD = 0.99  # of the starting width: a coefficient that is left so wide was not told


def moved_to(
    seconds: NDArray[np.float64],
    predicted: Callable[[Calibration], NDArray[np.float64]],
    start: Calibration,
    widths: Mapping[str, float],
    mode: str,
) -> tuple[Calibration, tuple[str, ...]]:
    """Return the calibration whose predictions are nearest to `seconds`, and the coefficients that keep their value.

    Least squares of log(predicted / seconds) from `start`. `widths` are one standard deviation of the prior: of the
    logarithm of a share, of a layer's time relative to the start, of the seconds of a request. Uncertainty is what
    the seconds leave of it at the spread that the fit leaves.
    """
    names = tuple(widths)

    def misses(moved: NDArray[np.float64]) -> Any:
        at = replace(start, coefficients=_moved(start.coefficients, moved, widths))
        return np.concatenate([np.log(predicted(at) / seconds) / _NOISE, moved])

    found = least_squares(misses, np.zeros(len(names)), bounds=_bounds(start.coefficients, widths))
    values = _moved(start.coefficients, found.x, widths)
    logs = found.fun[: len(seconds)] * _NOISE
    told = found.jac[: len(seconds)] * _NOISE
    precision = told.T @ told
    width = np.linalg.inv(precision / _NOISE**2 + np.eye(len(names)))
    used = len(names) - np.trace(width)  # coefficients that the seconds decide, in effect
    spread = float(np.sqrt(np.sum(logs**2) / max(len(logs) - used, 1)))
    width = np.linalg.inv(precision / max(spread, 1e-3) ** 2 + np.eye(len(names)))
    kept = tuple(n for n, sd in zip(names, np.sqrt(np.diag(width)), strict=True) if sd > _UNTOLD)
    scale = np.array([widths[n] * _per_width(start.coefficients, values, n) for n in names])
    covariance = start.covariance.copy()
    places = [COEFFICIENTS.index(name) for name in names]
    free = [i for i, name in enumerate(names) if name not in kept]
    for i in free:  # kv is a coefficient of its own now
        covariance[places[i], :] = covariance[:, places[i]] = 0.0
    for i in free:
        for j in free:
            covariance[places[i], places[j]] = width[i, j] * scale[i] * scale[j]
    final = replace(values, **{name: getattr(start.coefficients, name) for name in kept})
    return replace(start, mode=mode, coefficients=final, covariance=covariance, spread=spread), kept


def jackknife(without: Any) -> NDArray[np.float64]:
    """Return the standard deviation of each column of values, a row for each fit with one thing left out."""
    values = np.asarray(without, dtype=np.float64)
    return np.asarray(values.std(axis=0) * (len(values) - 1) ** 0.5)


def _moved(start: Coefficients, moved: NDArray[np.float64], widths: Mapping[str, float]) -> Coefficients:
    """Return the coefficients so many standard deviations away from the start."""
    values = {}
    for (name, width), step in zip(widths.items(), moved.tolist(), strict=True):
        before, wide = getattr(start, name), width * step
        if name in SHARES:
            values[name] = min(before * float(np.exp(wide)), 1.0)
        else:
            values[name] = max(before * (1 + wide) if name == "layer" else before + wide, 0.0)
    return replace(start, **values)


def _bounds(start: Coefficients, widths: Mapping[str, float]) -> tuple[list[float], list[float]]:
    """Return how far each may move: shares up to 1, seconds down to 0 (the start must lie inside)."""
    low = [-np.inf if n in SHARES else -(1 / width if n == "layer" else 1e-9) for n, width in widths.items()]
    high = [-np.log(getattr(start, n)) / w + 1e-9 if n in SHARES else np.inf for n, w in widths.items()]
    return low, high


def _per_width(start: Coefficients, values: Coefficients, name: str) -> float:
    """Return what a coefficient changes by when it moves by one unit of what a width states."""
    if name in SHARES:
        return float(getattr(values, name))
    return start.layer if name == "layer" else 1.0
