"""Small laws of fleets, by hand: quantiles of few values, sizes of replicas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_math.perf import queues


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), share=st.floats(0, 1))
def test_quantiles_lie_in_the_middles_of_their_parts(values, share):
    """As NumPy's method of Hazen."""
    told = queues.between(sorted(values), share)
    assert told == pytest.approx(float(np.quantile(values, share, method="hazen")), abs=1e-6)


def test_the_ends_of_nine_tenths_by_hand():
    assert queues.spread_of([3.0, 1.0, 2.0, 4.0]) == [1.0, 4.0]
    assert queues.spread_of([float(k) for k in range(20)]) == pytest.approx([0.5, 18.5])
    assert queues.spread_of([1.0] * 19 + [float("inf")])[1] == float("inf")


def test_sizes_of_replicas_are_an_eighth_apart_and_end_at_two():
    asked = {"units": 64}
    assert queues.sizes_of(asked, "chunked") == [1]
    sizes = queues.sizes_of(asked, "disaggregated")
    assert sizes[0] == 64
    assert sizes[-1] == 2
    assert sizes[:3] == [64, 57, 51]
    assert queues.sizes_of({"units": 2}, "disaggregated") == [2]
