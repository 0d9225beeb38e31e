"""The prompts of the fullest group of GPUs: laws of probability, limits, and chance itself."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from inference_math.unit.max_load import LARGE, expected_max_load


@given(groups=st.integers(1, 64), mean=st.floats(0.05, 100))
def test_over_poisson_numbers_it_is_the_largest_of_independent_ones(groups, mean):
    """Thinning: a Poisson number of prompts comes to independent ones on the groups, whose largest has a known law."""
    numbers = np.arange(LARGE)
    each = [expected_max_load(float(k), groups, 1) for k in numbers]
    largest = (1 - stats.poisson.cdf(numbers, mean / groups) ** groups).sum()
    assert stats.poisson.pmf(numbers, mean) @ each == pytest.approx(largest, rel=1e-9)


@pytest.mark.parametrize(
    ("prompts", "groups", "stages"),
    [(2, 8, 1), (5, 8, 1), (64, 8, 1), (255, 8, 1), (9, 4, 2), (40, 64, 1), (400, 2, 1), (1024, 8, 1), (4096, 64, 1)],
)
def test_it_is_what_chance_gives(prompts, groups, stages):
    found = np.random.default_rng(0).multinomial(prompts, np.full(groups, 1 / groups), size=40_000).max(axis=1)
    counted = np.maximum(found / stages, 1)
    rough = 0.005 * counted.mean() if prompts > LARGE else 0
    assert expected_max_load(prompts, groups * stages, stages) == pytest.approx(
        counted.mean(), abs=4 * counted.std() / 200 + rough
    )


@given(groups=st.integers(2, 4), whole=st.integers(0, 4), piece=st.floats(0, 0.999))
def test_a_piece_of_a_prompt_is_on_one_of_the_groups_too(groups, whole, piece):
    """All places that some prompts and a piece of one may have, each as likely."""
    sizes = [1.0] * whole + [piece]
    longest = [
        np.bincount(places, weights=sizes, minlength=groups).max()
        for places in product(range(groups), repeat=len(sizes))
    ]
    assert expected_max_load(whole + piece, groups, 1) == pytest.approx(np.mean(longest))


@given(groups=st.integers(1, 72), stages=st.integers(1, 4), prompts=st.floats(0, 3000), more=st.floats(0, 500))
def test_it_grows_from_a_prompt_by_itself_towards_an_even_share(groups, stages, prompts, more):
    ranks = groups * stages
    found = expected_max_load(prompts, ranks, stages)
    assert max(prompts / ranks, min(prompts, 1)) - 1e-9 <= found <= max(prompts / stages, min(prompts, 1)) + 1e-9
    assert expected_max_load(prompts + more, ranks, stages) >= found - 1e-9
    assert expected_max_load(1, ranks, stages) == pytest.approx(1)
    assert expected_max_load(prompts, stages, stages) == pytest.approx(max(prompts / stages, min(prompts, 1)))
    assert expected_max_load(1e7, ranks, stages) == pytest.approx(1e7 / ranks, rel=0.02)
