import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from inference_math.optimiser.gain_error import (
    CERTAIN,
    FARTHER,
    MANY,
    NINTHS,
    add_log_errors,
    below,
    factors_of,
    gain_error,
    gain_errors,
)
from inference_math.unit.nearest import known_comparisons
from inference_math.unit.types import ComparisonError

KNOWN = ComparisonError(
    bias=0.1, sd=0.2, pairs=6, setups=3, n_in=[1000.0, 8000.0], n_out=[100.0, 200.0], kinds=["MLA"],
    generations=["Hopper"],
)  # fmt: skip


def test_inside_of_what_was_compared_a_doubt_is_that_of_the_pairs():
    for n_in, n_out in ((1000, 100), (8000, 200), (3000, 150)):
        assert gain_error(KNOWN, "MLA", "Hopper", n_in, n_out) == [0.1, 0.2, 6]


@pytest.mark.parametrize(
    ("asked", "away"),
    [
        (("MLA", "Hopper", 16_000, 100), 1),
        (("MLA", "Hopper", 250, 100), 2),
        (("MLA", "Hopper", 1000, 800), 2),
        (("dense", "Hopper", 1000, 100), 1),
        (("MLA", "CDNA 4", 1000, 100), 1),
        (("dense", "CDNA 4", 32_000, 25), 6),
    ],
)
def test_it_grows_with_each_doubling_and_with_what_was_never_compared(asked, away):
    assert gain_error(KNOWN, *asked) == pytest.approx([0.1, 0.2 * (1 + FARTHER * away), 6])


@given(st.floats(-1, 1), st.floats(0.001, 2))
def test_factors_are_evenly_likely_about_their_bias(bias, sd):
    logs = np.log(factors_of([bias, sd, 77]))
    assert logs.mean() == pytest.approx(bias, abs=1e-9)
    assert 0.85 * sd < logs.std() < sd
    for pairs in (4, 6, 12):  # those of Student's law, as likely exceeded
        few = (np.log(factors_of([0.0, 1.0, pairs])) - stats.t(pairs).ppf(stats.norm.cdf(NINTHS))) / NINTHS[-1]
        assert abs(few).max() < 0.02
    assert (np.diff(logs) > 0).all()
    assert len(logs) == len(NINTHS)


def test_aggregated_serving_is_what_others_are_compared_with():
    found = gain_errors(known_comparisons(), "MLA", "Blackwell", 7373, 921.6)
    pairs = known_comparisons()["pools, planned"]
    assert found["aggregated"] == CERTAIN
    assert found["disaggregated"] == [pairs.bias, pairs.sd, pairs.pairs]
    assert factors_of(CERTAIN) == [1.0]
    assert factors_of([0.1, 0.0, 0]) == [pytest.approx(np.exp(0.1))]
    assert found["chunked"] == gain_error(known_comparisons()["chunks"], "MLA", "Blackwell", 7373, 921.6)


@given(st.floats(-8, 8), st.integers(1, 80))
def test_the_chance_below_a_value_is_student_s_of_few_pairs_and_normal_of_many(value, pairs):
    law = stats.t(pairs) if pairs < MANY else stats.norm
    assert below(value, pairs) == pytest.approx(law.cdf(value), abs=1e-9)


def test_a_gain_s_doubt_has_the_bias_of_what_it_is_to_and_less_that_of_what_it_is_from():
    assert add_log_errors([0.1, 0.3, 30], [0.2, 0.4, 6], [0.05, 0.0, 0]) == pytest.approx([0.25, 0.5, 6])
    assert add_log_errors([0.1, 0.3, 30], CERTAIN, [0.05, 0.4, 77]) == pytest.approx([0.05, 0.5, 30])
