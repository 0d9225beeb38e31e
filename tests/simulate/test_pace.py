"""Steps as a simulation takes them, against the step itself."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from inference_math import Unit
from inference_math.simulate.pace import Pace
from inference_math.unit.steps import floor_terms

UNITS = [Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8"), Unit.of("gpt-oss-120b", "b200", 2)]


def pace(unit, factor, prompt_factor):
    return Pace(unit.terms, floor_terms(unit.numbers), factor, prompt_factor, 1e9)


@given(
    st.sampled_from([*UNITS, Unit.of("llama-4-scout", "h100-sxm", 8)]),
    st.integers(1, 300),
    st.integers(1, 9000),
    st.floats(0.05, 3),
)
def test_a_line_is_what_steps_are_and_never_below_the_floor(unit, decodes, context, factor):
    steps = pace(unit, factor, 1.0)
    seconds = steps.seconds(decodes, decodes * context, 0.0, 0, 0.0)
    fixed, slope, low, high = steps.line(decodes, decodes * context)
    assert low <= decodes * context <= high
    for other in {low, decodes * context, min(high, low + 10**6) * (1 - 1e-9)}:
        assert fixed + slope * other == pytest.approx(steps.seconds(decodes, other, 0.0, 0, 0.0), rel=1e-7)
    assert seconds >= float(unit.floor.step_time(decodes, context)) * (1 - 1e-9)


def test_a_draw_below_the_floor_runs_on_the_floor_s_lines():
    """As many steps in a row as on any line: a fast draw takes no longer to simulate than a slow one."""
    fixed, slope, low, high = pace(UNITS[0], 0.01, 1.0).line(10, 1000)
    assert (low, high) == (0, inf)
    assert fixed + slope * 1000 == pytest.approx(float(UNITS[0].floor.step_time(10, 100)))
    assert pace(UNITS[0], 1.0, 1.0).line(10, 1000)[2:] == (0, inf)


def test_a_window_bends_the_line_where_it_is_full():
    windows = pace(UNITS[1], 1.0, 1.0)
    reach = min(cache.reach for cache in UNITS[1].terms.caches)
    before, after = windows.line(10, 10 * reach - 1), windows.line(10, 10 * reach)
    assert before[2:] == (0, 10 * reach)
    assert after[2:] == (10 * reach, inf)
    assert before[1] > after[1] > 0
    assert before[0] + before[1] * 10 * reach == pytest.approx(after[0] + after[1] * 10 * reach)


@given(st.sampled_from(UNITS), st.integers(0, 300), st.integers(1, 9000), st.integers(1, 4000), st.integers(0, 4000))
def test_a_step_is_the_unit_s_stretched_in_parts_and_cut_at_the_floor(unit, decodes, context, tokens, cached):
    asked = decodes, context * decodes, 1.0, tokens, tokens * (cached + tokens / 2)
    plain, least = pace(unit, 1.0, 1.0), float(unit.floor.step_time(decodes, context, tokens)) * (1 - 1e-9)
    whole, bare = plain.seconds(*asked), plain.seconds(decodes, context * decodes, 0.0, 0, 0.0)
    if unit is UNITS[0] or cached == 0:  # the simulator knows of a prompt's chunk how many pairs it has, not where
        assert whole == pytest.approx(float(unit.step_time(decodes, context, tokens, cached)), rel=1e-9)
    assert pace(unit, 2.0, 1.5).seconds(*asked) == pytest.approx(2 * bare + 1.5 * (whole - bare), rel=1e-9)
    assert pace(unit, 1.0, 0.05).seconds(*asked) >= least
    early = Pace(replace(unit.terms, fixed=-1.0), floor_terms(unit.numbers), 1.0, 1.0, 1e9)
    assert early.seconds(*asked) >= least


def test_ranks_are_asked_for_the_fullest_and_pay_for_what_all_have():
    """Two ranks of two stages: a prompt on one of them takes as long as by itself; three and one more than two each."""
    ranks = pace(Unit.of("deepseek-v3", "h200-sxm", 2, dp=2, ep=2, pp=2), 1.0, 1.0)
    for decodes in (0, 40):
        told = decodes, 3000.0 * decodes
        assert ranks.uneven(*told, 2.0, 2000, 1e6, 0.5) == pytest.approx(ranks.seconds(*told, 1.0, 1000, 5e5))
        most, even = ranks.uneven(*told, 6.0, 6000, 3e6, 4 / 6), ranks.uneven(*told, 4.0, 4000, 2e6, 1.0)
        assert even < most < ranks.uneven(*told, 6.0, 6000, 3e6, 1.0)
        if decodes == 0:  # dealt out
            assert even == pytest.approx(ranks.seconds(*told, 4.0, 4000, 2e6))
            continue
        placed = [ranks.uneven(*told, 2.0 * most, 2000 * most, 1e6 * most, 2 / most) for most in (2, 3, 4)]
        mean = np.average(placed, weights=[6, 8, 2])  # of sixteen ways to place four prompts on two ranks
        assert mean == pytest.approx(ranks.seconds(*told, 4.0, 4000, 2e6), rel=1e-3)


def test_the_floor_of_ranks_has_the_prompts_that_are_there():
    own, fast = Unit.of("deepseek-v3", "h200-sxm", 2, dp=4, ep=8), 1e-4
    ranks = pace(own, fast, fast)
    for decodes in (0, 40):
        least = [ranks.uneven(decodes, 3000.0 * decodes, 4.0, 16_000, 3.2e7, share) for share in (0.25, 1.0)]
        assert least[0] == pytest.approx(float(own.floor.step_time(decodes, 3000 if decodes else 0, 4000)), rel=1e-6)
        assert least[1] > 2 * least[0]


def test_prompts_without_decodes_are_priced_as_if_for_the_first_time():
    """One pace is asked many times; each question has its own answer, whatever was asked before."""
    asked, whole = pace(UNITS[0], 1.1, 1.2), (1.0, 1000, 500_000.0)
    others = [(2.0, 1000, 500_000.0), (1.0, 900, 500_000.0), (1.0, 1000, 800_000.0)]
    for other in others:
        for prompts in (whole, other, whole):
            assert asked.seconds(0, 0, *prompts) == pace(UNITS[0], 1.1, 1.2).seconds(0, 0, *prompts)
    assert len({asked.seconds(0, 0, *prompts) for prompts in (whole, *others[1:])}) == 3


def test_an_interrupted_question_leaves_no_answer(monkeypatch):
    asked, right = pace(UNITS[0], 1.0, 1.0), pace(UNITS[0], 1.0, 1.0).seconds(0, 0, 1.0, 1000, 500_000.0)
    with monkeypatch.context() as patch:
        patch.setattr(Pace, "_seconds", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            asked.seconds(0, 0, 1.0, 1000, 500_000.0)
    assert asked.seconds(0, 0, 1.0, 1000, 500_000.0) == right
