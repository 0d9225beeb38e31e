"""What a fit gives: numbers with no more digits than it has."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["rounded"]

_DIGITS = 6  # more than measurements have, fewer than processors agree on, whose linear algebra differs from the tenth


def rounded(found: ArrayLike) -> NDArray[np.float64]:
    """Return what a solver found with six digits, the same on every machine; the shape stays (none for one number).

    >>> rounded([0.0737299409424, 7.26297689906952e-8]).tolist()
    [0.0737299, 7.26298e-08]
    """
    values = np.asarray(found, dtype=np.float64)
    return np.array([float(f"{value:.{_DIGITS}g}") for value in values.flat]).reshape(values.shape)
