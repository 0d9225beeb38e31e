from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refused
from scipy import stats

from inference_math_planner.laws.laws import Law

times = st.lists(st.floats(1e-4, 10), min_size=1, max_size=30)


@given(values=times)
def test_a_law_of_what_was_met_has_its_mean_and_scatter(values):
    law = Law.of(values)
    assert law.mean == pytest.approx(np.mean(values))
    assert law.deviation == pytest.approx(np.std(values), abs=1e-7)
    assert (np.diff(law.values) > 0).all()
    assert law.quantile(0) == min(values)
    assert law.quantile(1) == max(values)


@given(values=times, q=st.floats(0, 1))
def test_a_quantile_is_reached_by_that_share_and_no_lower_time_is(values, q):
    law = Law.of(values)
    found = law.quantile(q)
    assert law.share_within(found) >= q - 1e-9
    assert law.probabilities[law.values < found].sum() <= q + 1e-9


def test_weights_are_counts():
    weighted, listed = Law.of([3, 1], weights=[2, 6]), Law.of([1, 1, 1, 3])
    assert weighted.values.tolist() == listed.values.tolist() == [1, 3]
    assert weighted.probabilities == pytest.approx(listed.probabilities)
    assert Law.of([1, 2], weights=[0, 5]).values.tolist() == [2]


@given(mean=st.floats(1e-3, 10), cv=st.floats(0.01, 3))
def test_a_lognormal_law_has_the_mean_and_the_quantiles(mean, cv):
    law = Law.lognormal(mean, cv)
    sd = np.sqrt(np.log1p(cv**2))
    exact = stats.lognorm(sd, scale=mean * np.exp(-(sd**2) / 2))
    assert law.mean == pytest.approx(mean)
    for q in (0.1, 0.5, 0.9, 0.99):
        assert law.quantile(q) == pytest.approx(exact.ppf(q), rel=0.05)
    assert 0.75 * cv < law.cv < cv * (1 + 1e-9)


def test_a_lognormal_law_without_scatter_is_one_value():
    assert Law.lognormal(0.3, 0).values.tolist() == [0.3]
    assert Law.lognormal(0.3, 0).cv == 0


@given(values=times, others=times, share=st.floats(0, 1))
def test_between_two_laws_means_are_mixed(values, others, share):
    one, other = Law.of(values), Law.of(others)
    between = one.between(other, share)
    assert between.mean == pytest.approx((1 - share) * one.mean + share * other.mean)
    assert between.probabilities.sum() == pytest.approx(1)
    assert one.between(other, 0).quantile(0.5) == pytest.approx(one.quantile(0.5), rel=1e-9)


def test_bad_input_is_named():
    for values, weights in (([], None), ([1, 2], [1])):
        with pytest.raises(ValueError, match="values and weights must be two lists"):
            Law.of(values, weights)
    refused(Law.of, {"values": [1, 2]}, {"values": [0.0, 1.0]}, {"values": "fast"})
    refused(Law.of, {"values": [1, 2]}, {"weights": [1, -1]}, {"weights": [0, 0]})
    refused(Law.equal, {}, {"seconds": 0})
    refused(partial(Law.lognormal, 1), {}, {"cv": -1})
    with pytest.raises(ValueError, match="the logarithm's standard deviation"):
        Law.lognormal(1, 1000)
    refused(Law.equal(1).quantile, {}, {"q": 1.1})
    refused(Law.equal(1).share_within, {}, {"limit": -1})
    refused(partial(Law.equal(1).between, Law.equal(2)), {}, {"share": 3})
