"""What is timed."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from refusals import refused

from inference_math.workload.points import KINDS, Point, points, shuffled


@given(kept=st.integers(0, 2**19), fresh=st.integers(0, 2**14), fp8=st.booleans())
def test_every_point_fits(kept, fresh, fp8):
    for point in points(kept, fresh, fp8=fp8):
        assert point.kept <= kept
        assert point.fresh <= fresh


def test_a_large_device_is_asked_for_every_kind_of_work():
    found = points(2**18, 2**13, fp8=True)
    assert {point.what for point in found} == set(KINDS)
    assert len(found) == len(set(found))
    plain, toy = points(2**18, 2**13, fp8=False), points(2**12, 2**7, fp8=False, shrink=64)
    assert "product-fp8" not in {point.what for point in plain}
    assert {point.context for point in toy} == {point.context // 64 for point in plain}


def test_each_mixed_step_and_each_load_comes_with_its_parts():
    """Without them the claims could not be tested without a fit."""
    found = set(points(2**18, 2**13, fp8=True))
    for step in (p for p in found if p.what == "mixed"):
        chunk = replace(step, what="prefill", decodes=0, context=0)
        decode = Point("decode", step.decodes, step.context)
        assert {chunk, decode, replace(chunk, what="attention"), replace(decode, what="attention")} <= found
        assert Point("matrices", step.decodes, 0, 1, step.tokens) in found
        assert {replace(step, what=what) for what in ("mixed-attention", "mixed-steps")} <= found
    for first in (p for p in found if p.what == "load-first"):
        parts = {replace(first, what="prefill"), replace(first, what="load-layerwise")}
        parts |= {Point("load", prompts=1, cached=first.cached)}
        parts |= {Point("prefill", prompts=1, tokens=first.cached + first.tokens)}
        assert parts <= found


def test_what_is_compared_is_measured_within_a_block():
    order = shuffled(points(2**18, 2**13, fp8=True), 1, 0)
    place = {point: i for i, point in enumerate(order)}
    for step in (p for p in order if p.what == "mixed"):
        for what in ("mixed-attention", "mixed-steps"):
            assert abs(place[replace(step, what=what)] - place[step]) < 10
    for first in (p for p in order if p.what == "load-first"):
        load = Point("load", prompts=1, cached=first.cached)
        assert abs(place[replace(first, what="load-layerwise")] - place[first]) < 4
        assert abs(place[load] - place[first]) < 4


def test_rounds_are_shuffled_each_in_its_own_order():
    chosen = points(2**18, 2**13, fp8=True)
    first, second = shuffled(chosen, 1, 0), shuffled(chosen, 2, 0)
    assert sorted(first) == sorted(second) == list(chosen)
    assert first != second
    assert first == shuffled(reversed(chosen), 1, 0)
    assert first != shuffled(chosen, 1, 7)


def test_bad_points_are_named():
    refused(Point, {"what": "decode"}, {"what": "dance"}, {"decodes": -1})
    for asked, words in (
        ({"what": "decode", "decodes": 2}, "context must be at least 1 with decodes"),
        ({"what": "prefill", "context": 5}, "context must be at least 1 with decodes and 0 without, not 5"),
        ({"what": "prefill", "prompts": 1}, "tokens must be at least 1 with prompts"),
    ):
        with pytest.raises(ValueError, match=words):
            Point(**asked)
