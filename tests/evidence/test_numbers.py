from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, SHARE, as_numbers, as_one_of, as_whole


@pytest.mark.parametrize(
    "value", [0.5, np.float32(0.5), Fraction(1, 2), np.array([0.0, 1.0]), [0, 1], pd.Series([0.1])]
)
def test_numbers_come_back_as_floats(value):
    assert as_numbers("alpha", value, SHARE).dtype == np.float64


@pytest.mark.parametrize("value", ["0.5", None, True, [True], 1j, [1j], ["a"], [[1], [1, 2]], object(), {}])
def test_what_is_no_number_is_a_type_error_that_names_the_argument(value):
    with pytest.raises(TypeError, match=r"^alpha "):
        as_numbers("alpha", value, SHARE)


def test_a_mask_is_not_lost_silently():
    with pytest.raises(TypeError, match="masked"):
        as_numbers("alpha", np.ma.masked_array([0.1, 0.2], [True, False]), SHARE)


@pytest.mark.parametrize(
    ("value", "accepted", "words"),
    [
        (-0.1, SHARE, r"alpha must be a number from 0 to 1, not -0\.1"),
        ([0.2, 1.5], SHARE, r"not 1\.5"),
        (float("nan"), SHARE, "not nan"),
        ([0.1, float("nan"), 0.2], SHARE, "not nan"),
        (0, ANY_POSITIVE, r"finite number > 0, not 0\.0"),
        (-1, AT_LEAST_ZERO, ">= 0"),
        (float("inf"), AT_LEAST_ZERO, "not inf"),
    ],
)
def test_numbers_outside_are_named(value, accepted, words):
    with pytest.raises(ValueError, match=words):
        as_numbers("alpha", value, accepted)


def test_ends_belong_to_a_share_and_empty_arrays_pass():
    assert as_numbers("alpha", [0, 1], SHARE).tolist() == [0, 1]
    assert as_numbers("alpha", np.array([]), SHARE).size == 0


def test_whole_numbers():
    assert as_whole("tp", 4.0) == 4
    for bad in (0, 1.5, float("inf"), float("nan"), -1):
        with pytest.raises(ValueError, match="tp must be a whole number >= 1"):
            as_whole("tp", bad)
    for bad in ("4", None, True):
        with pytest.raises(TypeError, match="tp"):
            as_whole("tp", bad)


def test_an_unknown_name_gets_the_closest_and_all():
    with pytest.raises(ValueError, match=r"gpu must be one of h100-sxm, a6000, not 'h100'; did you mean 'h100-sxm'"):
        as_one_of("gpu", "h100", ["h100-sxm", "a6000"])
    with pytest.raises(TypeError, match="gpu must be a name"):
        as_one_of("gpu", 100, ["h100-sxm"])
