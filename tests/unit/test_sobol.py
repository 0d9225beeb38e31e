import numpy as np
import pytest
from scipy.stats import norm, qmc

from inference_math.unit.coefficients import COEFFICIENTS, normals
from inference_math.unit.sobol import MOST, sobol


@pytest.mark.parametrize("bits", [0, 1, 3, 6, 11])
@pytest.mark.parametrize("dimensions", [1, MOST])
def test_points_are_scipy_s(dimensions, bits):
    assert (sobol(dimensions, bits) == qmc.Sobol(dimensions, scramble=False).random_base2(bits)).all()


@pytest.mark.parametrize("count", [1, 2, 16, 50, 64])
def test_normal_numbers_are_those_of_the_middles_of_scipy_s_cells(count):
    bits = int(np.ceil(np.log2(max(count, 2))))
    cells = qmc.Sobol(len(COEFFICIENTS) + 3, scramble=False).random_base2(bits)[:count]
    assert normals(count) == norm.ppf(cells + 0.5 / 2**bits).tolist()
