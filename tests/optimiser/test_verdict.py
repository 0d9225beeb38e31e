from math import isnan
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from inference_math import SLA, Unit, Workload
from inference_math.evidence.sentences import render
from inference_math.optimiser.answers import gains
from inference_math.optimiser.case import Case
from inference_math.optimiser.gain_error import add_log_errors, gain_error
from inference_math.optimiser.verdict import MOST_TOLD, UNSAID, cell, stands_on, verdict, word_of, worded
from inference_math.unit.nearest import known_comparisons

RATES = st.floats(0.01, 100)
DOUBTS = st.tuples(st.floats(-0.5, 0.5), st.floats(0.01, 2), st.just(77)).map(list)


@pytest.mark.parametrize(
    ("chance", "word"), [(0.5, "open"), (0.699, "open"), (0.7, "likely"), (0.899, "likely"), (0.9, "sure"), (1, "sure")]
)
def test_words_begin_at_seven_and_at_nine_in_ten(chance, word):
    assert word_of(chance) == word


@given(RATES, RATES, DOUBTS)
def test_a_chance_is_the_normal_distribution_s(first, second, own):
    found = verdict([first], [second], own)
    assert found.chance == pytest.approx(NormalDist(-own[0], own[1]).cdf(np.log(first / second)), abs=1e-9)
    assert found.sure == word_of(max(found.chance, 1 - found.chance))


@given(RATES, RATES, st.floats(0.01, 2))
def test_the_other_way_round_is_as_sure(first, second, sd):
    there, back = verdict([first], [second], [0.0, sd, 77]), verdict([second], [first], [0.0, sd, 77])
    assert there.chance + back.chance == pytest.approx(1)
    assert there.sure == back.sure


def test_a_chance_is_the_mean_over_the_draws_that_tell_anything():
    own = [0.0, 0.2, 77]
    each = [verdict([first], [second], own).chance for first, second in ((2.0, 1.0), (1.0, 1.2))]
    assert verdict([2.0, 1.0], [1.0, 1.2], own).chance == pytest.approx(np.mean(each))
    assert verdict([2.0, 0.0], [0.0, 0.0], own).chance == 1
    assert verdict([0.0, 2.0], [1.0, 0.0], own).chance == 0.5
    assert verdict([0.0], [0.0], own) == UNSAID


def test_without_a_doubt_the_prediction_decides():
    assert [verdict([one], [1.0], [0.0, 0.0, 0]).chance for one in (2.0, 1.0, 0.5)] == [1, 0.5, 0]


def test_a_cell_has_word_and_chance_and_never_tells_more_than_pairs_do():
    assert render(cell(verdict([1.0], [2.0], [0.0, 0.5, 77]))) == "sure (91 of 100)"
    assert render(cell(verdict([1e3], [1.0], [0.0, 0.5, 77]))) == f"sure ({MOST_TOLD} of 100)"
    assert cell(UNSAID) == []
    fewer = render(worded("sure.store", verdict([1.0], [1.2], [0.0, 0.5, 77])))
    assert fewer.startswith("; that it is fewer than HBM alone serves is open (64 of 100 times: measure")
    assert "4 pairs of one set-up" in render(stands_on(known_comparisons()["store"]))


def test_a_store_that_changes_the_architecture_has_the_doubts_of_both():
    """The case with 90 % of each prompt stored: pools where all is computed, chunks where it is loaded."""
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), Workload(2200, 170, 0.9), SLA(0.4, 0.04)).checked()
    nowhere, stored = gains(case.problem, case.pairs(0), {"dram": 128e9})
    assert isnan(nowhere.chance)
    assert nowhere.sure == ""
    own = gain_error(known_comparisons()["store"], "dense", "Hopper", 2200, 170)
    assert case.problem.gain_errors["store"] == own
    chunks, pools = case.problem.gain_errors["chunked"], case.problem.gain_errors["disaggregated"]
    both = add_log_errors(own, chunks, pools)
    assert both[1] == pytest.approx(np.linalg.norm([own[1], chunks[1], pools[1]]))
    assert stored.chance == pytest.approx(stats.t(4).cdf((np.log(stored.gain) + both[0]) / both[1]))
    assert verdict([stored.rate], [nowhere.rate], own).chance > stored.chance
