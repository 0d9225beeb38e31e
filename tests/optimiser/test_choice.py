"""The rule by itself: whose loss is least, how likely it is the best, and what is a tie."""

from math import exp, isnan

import numpy as np
import pytest
from grids import rest_long
from hypothesis import given, strategies as st
from msgspec.structs import replace
from scipy import stats

from inference_math import SLA, Unit, Workload
from inference_math.optimiser import answers
from inference_math.optimiser.case import Case
from inference_math.optimiser.choice import LIKELY, chosen, layouts_ranked, leads, shares_best, told_rate
from inference_math.optimiser.draws import mean_of, median
from inference_math.optimiser.gain_error import CERTAIN
from inference_math.optimiser.load import at_full_load, limit_utilisation, settings_row
from inference_math.optimiser.search import NEVER
from inference_math.optimiser.settings import chosen_settings, most_beside, served_beside, widest
from inference_math.unit.problem import search_constants
from inference_math_planner import plan

NAMES = ("aggregated", "chunked", "disaggregated")
rates = st.lists(st.tuples(*[st.just(0.0) | st.floats(0.1, 100)] * 3), min_size=1, max_size=20)


SURE = dict.fromkeys(NAMES, CERTAIN)


def of(*by, gain_errors=SURE):
    rates = dict(zip(NAMES, map(list, by), strict=True))
    return chosen(rates, {name: mean_of(own) for name, own in rates.items()}, gain_errors)


def test_a_draw_in_which_the_other_serves_nothing_is_no_reason_for_doubt():
    """Ahead in each of a hundred draws, by a tenth, and once by all: the lead is sure."""
    assert of([1.0] * 100, [0.9] * 99 + [0.0], [0.1] * 100).tie is False


@given(rates)
def test_the_rule_on_any_rates(drawn):
    by = np.array(drawn).T
    found = of(*by.tolist())
    assert sum(found.best_in.values()) + found.none_in == pytest.approx(1)
    able = [name for name, one in zip(NAMES, by, strict=True) if median(one.tolist()) > 0]
    mean = dict(zip(NAMES, by.mean(axis=1), strict=True))
    if not able:
        assert (found.best, found.tie) == ("", False)
        return
    assert mean[found.best] == pytest.approx(max(mean[name] for name in able))
    assert found.loss == pytest.approx(
        {name: 1 - one / mean[found.best] if name in able else 1.0 for name, one in mean.items()}
    )
    first, second, _ = found.order
    if not isnan(found.lead):
        assert found.lead == pytest.approx(1 - mean[second] / mean[first], abs=1e-9)
    assert found.tie is (found.best_in[first] < LIKELY)


@given(rates, st.permutations(range(3)))
def test_an_option_that_nobody_chooses_changes_nothing(drawn, places):
    """Who else is asked moves no choice, no order of the others, and no lead over the one that was next."""
    by = np.array(drawn).T[list(places)]
    out = NAMES[2]
    without, beside = of(by[0], by[1], np.zeros_like(by[2])), of(*by)
    if beside.best != out:
        assert beside.best == without.best
        assert [name for name in beside.order if name != out] == [n for n in without.order if n != out]
    if beside.order[2] == out and without.order[2] == out:
        assert beside.lead == pytest.approx(without.lead, nan_ok=True)


@given(rates, st.lists(st.floats(0.1, 10), min_size=1, max_size=6))
def test_an_error_common_to_all_cancels_in_the_mean(drawn, factors):
    """A factor that does not hang on what differs moves no loss and no lead."""
    by = np.array(drawn).T
    plain, moved = of(*by), of(*(np.outer(factors, one).ravel() for one in by))
    assert moved.loss == pytest.approx(plain.loss, abs=1e-9)
    assert moved.lead == pytest.approx(plain.lead, abs=1e-9, nan_ok=True) or moved["order"] != plain["order"]


def test_equal_ones_share_a_draw_and_draws_that_serve_nothing_go_to_none():
    rates = {"aggregated": [1.0, 2.0, 0.0, 3.0], "chunked": [1.0, 1.0, 0.0, 3.0], "disaggregated": [0.5, 0.1, 0.0, 3.0]}
    assert shares_best(rates, SURE) == pytest.approx(
        {"aggregated": 0.125 + 0.25 + 1 / 12, "chunked": 0.125 + 1 / 12, "disaggregated": 1 / 12}
    )


def test_what_rounding_parts_is_equal():
    rates = {"aggregated": [1.0], "chunked": [1.0 + 1e-12], "disaggregated": [0.0]}
    assert shares_best(rates, SURE) == {"aggregated": 0.5, "chunked": 0.5, "disaggregated": 0.0}


@given(rates, st.floats(0, 1), st.floats(0, 1))
def test_doubts_move_chances_and_nothing_else(drawn, chunks, pools):
    by = np.array(drawn).T
    sure, found = of(*by), of(*by, gain_errors={**SURE, "chunked": [0.0, chunks, 6], "disaggregated": [0.0, pools, 77]})
    assert sum(found.best_in.values()) + found.none_in == pytest.approx(1)
    for key in ("best", "order", "loss", "none_in"):
        assert getattr(found, key) == getattr(sure, key)


@given(st.floats(1.01, 4), st.floats(0.05, 1), st.sampled_from([4, 6, 77]))
def test_a_lead_is_doubted_as_the_law_of_its_logarithm_s_error_says(gain, sd, pairs):
    found = of([1.0], [0.0], [gain], gain_errors={**SURE, "disaggregated": [0.0, sd, pairs]})
    law = stats.norm if pairs == 77 else stats.t(pairs)
    assert found.best_in["disaggregated"] == pytest.approx(law.cdf(np.log(gain) / sd), abs=1e-9)


@given(st.tuples(*[st.floats(0.3, 3)] * 3), st.floats(0.02, 0.8), st.floats(0.02, 0.8))
def test_chances_of_three_are_those_of_many_errors(rates, chunks, pools):
    gain_errors = {**SURE, "chunked": [0.05, chunks, 6], "disaggregated": [0.012, pools, 77]}
    even = (np.arange(2000) + 0.5) / 2000
    logs = np.log(rates)[:, None, None] + np.array([0, 0.05, 0.012])[:, None, None]
    errors = np.zeros((3, 2000, 2000))
    errors[1], errors[2] = chunks * stats.t(6).ppf(even)[:, None], pools * stats.norm.ppf(even)[None, :]
    often = np.bincount((logs + errors).argmax(axis=0).ravel(), minlength=3) / even.size**2
    shares = shares_best({name: [rate] for name, rate in zip(NAMES, rates, strict=True)}, gain_errors)
    assert [*shares.values()] == pytest.approx(often, abs=4e-3)


TALK = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")


@pytest.mark.parametrize("architecture", NAMES)
def test_settings_have_the_highest_goodput_of_a_scan(architecture):
    """Every batch, chunk and split of a grid under a few draws, counted where they keep both limits."""
    case = Case(TALK, Workload(2200, 170), SLA(0.45, 0.035), units=4)
    constants, drawn = search_constants(case.problem), answers.drawn_costs(case.problem, case.pairs(12))
    batches = np.arange(1, 120)
    rows = {
        "aggregated": [settings_row(b, NEVER, NEVER, NEVER) for b in batches[:40]],
        "chunked": [
            settings_row(b, c, NEVER, NEVER) for b in np.linspace(1, 40, 80) for c in np.geomspace(60, 900, 40)
        ],
        "disaggregated": [
            settings_row(b, 2200 * k, p, d)
            for b in batches[::3] for k in (1, 2, 3) for p in (1, 2, 3) for d in range(1, 5 - p)
        ],
    }[architecture]  # fmt: skip

    def goodput(row):
        kept = [one for one in drawn if limit_utilisation(constants, one, architecture, row) <= 1]
        return sum(at_full_load(constants, one, architecture, row).rate for one in kept) / len(drawn)

    def fed(row):  # a chunk computes no less than its decodes ask for
        return architecture != "chunked" or row.chunk >= row.batch * 2200 / 169

    own = goodput(chosen_settings(constants, architecture, drawn))
    assert own >= 0.999 * max(goodput(row) for row in rows if fed(row))
    assert own > 0


@pytest.mark.parametrize(("n_in", "n_out"), rest_long([(50, 5), (2000, 300), (16, 16), (200, 20), (20, 200)], 2))
def test_chunks_serve_as_much_as_the_best_of_a_scan(n_in, n_out):
    """Short prompts ask for chunks of many of them; what is scanned is chunk by chunk, with all draws."""
    found = plan(Unit.of("llama-3-8b", "h100-sxm"), Workload(n_in, n_out), SLA(2, 0.1))
    constants, drawn = search_constants(found.case.problem), list(found.solved.costs)
    rates = [served_beside(constants, drawn, chunk)[1] for chunk in np.geomspace(1, 3e5, 200)]
    assert found.compared.set_index("architecture").rate["chunked"] >= 0.995 * max(rates)


def test_a_narrow_window_of_chunks_is_found():
    """Where few chunks alone keep the limits in most draws, they are what is searched."""
    unit = Unit.of("gpt-oss-120b", "h100-sxm", weights="mxfp4")
    found = plan(unit, Workload(2000, 500), SLA(0.68, 0.0295))
    constants, drawn = search_constants(found.case.problem), list(found.solved.costs)
    most = max(served_beside(constants, drawn, chunk)[1] for chunk in np.geomspace(20, 2000, 120))
    assert most > 0
    assert found.compared.set_index("architecture").rate["chunked"] >= 0.995 * most


@pytest.mark.parametrize(("n_in", "prompts"), [(1000, 16), (8192, 2), (8193, 1), (20_000, 1)])
def test_prompts_of_a_pool_are_computed_together_up_to_the_workspace(n_in, prompts):
    """16,384 tokens, and one prompt at least, where the KV cache has room for more."""
    case = Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(n_in, 200), SLA(1e3, 1.0))
    assert search_constants(case.problem).together == prompts


@pytest.mark.parametrize("place", [4.8, 5.2, 5.4])
def test_a_chunk_is_moved_to_where_the_draw_with_fewest_decodes_has_most(place):
    case = Case(TALK, Workload(2200, 170), SLA(1.0, 0.035))
    constants, found = search_constants(case.problem), case.unit.found(case.work)
    drawn = answers.drawn_costs(case.problem, [[found, [slow, slow, 0.0]] for slow in (1.0, 1.1)])

    def fewest(at):
        return min(most_beside(constants, one, exp(at)) for one in drawn)

    most = max(fewest(at) for at in np.linspace(place - 1, place + 1, 200))
    assert fewest(widest(constants, drawn, [0.001, 1.0, place], 1.0)) >= 0.995 * most > 0


def even(decodes, prompts):
    return 0.02


@pytest.mark.parametrize("chunk", [300.0, 2200.0, 9000.0])
def test_prompts_under_way_beside_a_chunk_hold_places(chunk):
    case = Case(TALK, Workload(2200, 170), SLA(1e3, 10.0))
    constants = replace(search_constants(case.problem), room=10.0)
    costs = replace(
        answers.drawn_costs(case.problem, case.pairs(0))[0],
        front=0.0,
        load=0.0,
        step_with_chunk_each=even,
        step_seconds=even,
    )
    most = most_beside(constants, costs, chunk)
    assert most + most * 2200 / 169 / min(chunk, 2200) == pytest.approx(10)


def test_a_lead_counts_draws_in_which_only_one_serves_and_leaves_out_those_in_which_none_does():
    assert leads([2.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]) == [1.0, 1.0, -1.0]
    assert leads([0.0, 0.0], [1.0, 0.0]) == [-1.0]


def test_the_goodput_told_is_within_its_ends_where_settings_are_turned_down_in_some_draws():
    found = of([0.0] * 10, [2.0] * 10, [0.0] * 10)
    solved = replace(found, goodput=found.goodput | {"chunked": 1.4})
    assert told_rate(solved, "chunked") == [1.4, 1.4, 2.0]


def test_equal_layouts_share_no_draw():
    """The first of them has it; the smaller unit comes first."""
    ranked = layouts_ranked([4.0, 4.0, 2.0], [[4.0, 4.0], [4.0, 4.0], [2.0, 2.0]], [2, 1, 4])
    assert ranked.order == [1, 0, 2]
    assert ranked.best_in == [1.0, 0.0, 0.0]
