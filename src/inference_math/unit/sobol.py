"""Sobol points: numbers that fill a cube evenly, the same ones every time.

SciPy's are the same (`scipy.stats.qmc.Sobol`, not scrambled), but take a second to load, which is half of a plan.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST", "sobol"]

# Of each dimension but the first its polynomial, in binary, and as many odd numbers as its degree to begin with: Joe
# and Kuo, SIAM J. Sci. Comput. 30 (2008) 2635, new-joe-kuo-6.21201.
_BEGUN = (
    (0b11, (1,)), (0b111, (1, 3)), (0b1011, (1, 3, 1)), (0b1101, (1, 1, 1)), (0b10011, (1, 1, 3, 3)),
    (0b11001, (1, 3, 5, 13)), (0b100101, (1, 1, 5, 5, 17)), (0b101001, (1, 1, 5, 5, 5)), (0b101111, (1, 1, 7, 11, 19)),
    (0b110111, (1, 1, 5, 1, 1)), (0b111011, (1, 1, 1, 3, 11)), (0b111101, (1, 3, 5, 5, 31)),
    (0b1000011, (1, 3, 3, 9, 7, 49)), (0b1011011, (1, 1, 1, 15, 21, 21)), (0b1100001, (1, 3, 1, 13, 27, 49)),
    (0b1100111, (1, 1, 1, 15, 7, 5)),
)  # fmt: skip
MOST = 1 + len(_BEGUN)  # dimensions


def sobol(dimensions: int, bits: int) -> NDArray[np.float64]:
    """Return the first 2**bits points, one a row: of each dimension all multiples of 2**-bits in [0, 1), once each.

    Examples
    --------
    >>> from inference_math.unit.sobol import sobol
    >>> sobol(2, 2).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """
    turned = np.array(list(_directions(bits))[:dimensions]).reshape(dimensions, bits)
    points = np.zeros((2**bits, dimensions), dtype=np.int64)
    for place in range(1, 2**bits):  # Gray's order: one direction more or less than the point before
        points[place] = points[place - 1] ^ turned[:, (place & -place).bit_length() - 1]
    return np.asarray(points / 2**bits)


def _directions(bits: int) -> Iterator[list[int]]:
    """Yield each dimension's directions as multiples of 2**-bits."""
    yield [2 ** (bits - 1 - place) for place in range(bits)]
    for polynomial, begun in _BEGUN:
        numbers, degree = list(begun), len(begun)
        for place in range(degree, bits):
            number = numbers[place - degree]
            for back in range(1, degree + 1):
                if polynomial >> degree - back & 1:
                    number ^= numbers[place - back] << back
            numbers.append(number)
        yield [numbers[place] << (bits - 1 - place) for place in range(bits)]
