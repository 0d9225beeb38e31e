from contextlib import suppress
from dataclasses import replace
from functools import cache
from math import inf

import pytest
from grids import rest_long
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from msgspec.structs import asdict

from inference_math import SLA, Unit, Workload, catalogue
from inference_math.optimiser.case import Case
from inference_math.optimiser.choice import layouts_near, layouts_ranked
from inference_math.optimiser.types import Ranking
from inference_math_planner import Arrivals, NoFleetError, as_record, capacity, fleet, layouts, plan, search, size
from inference_math_planner.answers.deployment import planned
from inference_math_planner.fleets.mixes import mix

DENSE = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
CASE = Case(DENSE, Workload(2200, 170), SLA(1.0, 0.04))


searched = cache(search)  # of the mixture always with few draws


def test_a_dense_model_has_tp_alone():
    found = list(layouts(DENSE, 8))
    assert [(one.tp, one.dp, one.ep) for one in found] == [(1, 1, 1), (2, 1, 1), (4, 1, 1), (8, 1, 1)]
    assert all(one.gpus <= 8 and one.weights == "fp8" for one in found)


def test_a_mixture_has_groups_with_whole_experts():
    found = {(one.tp, one.dp, one.ep) for one in layouts(Unit.of("gpt-oss-120b", "h100-sxm"), 4)}
    assert found == {(1, 1, 1), (2, 1, 1), (2, 1, 2), (4, 1, 1), (4, 1, 4), (1, 2, 2), (1, 4, 4), (2, 2, 4)}


def test_the_best_layout_is_the_plan():
    found, tried = searched(CASE, 8)
    decode, prefill = found.case.decode, found.case.prefill
    again = plan(decode, CASE.work, CASE.sla, prefill=prefill)
    assert decode.tp == tried.tp[0]
    assert prefill.tp == tried.prefill[0]["tp"]
    assert found.best == again.best == tried.architecture[0] == "disaggregated"
    assert found["rate"] / found.case.unit.gpus == pytest.approx(again["rate"] / decode.gpus)
    assert found["tokens_per_gpu"] == pytest.approx(tried.tokens_per_gpu[0])
    assert tried.loss.is_monotonic_increasing
    assert tried.best_in.sum() == pytest.approx(1)
    assert tried.tokens_per_gpu.between(tried.low, tried.high).all()
    assert (tried[["ttft", "tpot"]] <= [CASE.sla.ttft, CASE.sla.tpot]).all(axis=None)
    assert (tried.rate * 170 / tried.gpus).tolist() == pytest.approx(tried.tokens_per_gpu.tolist())


@pytest.mark.usefixtures("few_draws")
def test_no_pair_that_a_bound_left_out_serves_more():
    """All pairs of a mixture on four GPUs, each planned whole."""
    found, tried = searched(MIXTURE, 4)
    (best,) = tried.tokens_per_gpu[tried.architecture == "disaggregated"].nlargest(1)
    each = list(layouts(MIXTURE.unit, 4))
    for decode in each:
        for prefill in each:
            other = plan(decode, MIXTURE.work, MIXTURE.sla, prefill=prefill)
            rate = other.compared.set_index("architecture").rate["disaggregated"]
            assert rate * 400 / decode.gpus <= best * 1.03  # a few of the draws may rank two of them otherwise
    assert found.compared.set_index("architecture").rate["disaggregated"] * 400 / found.case.unit.gpus <= best * (
        1 + 1e-9
    )


@pytest.mark.usefixtures("few_draws")
def test_each_architecture_of_a_search_is_laid_out_as_suits_it():
    """Units that do both are planned as alone, pools as their pair alone: rates of as many GPUs."""
    case = Case(Unit.of("qwen3-235b-a22b", "h200-sxm", 8, "fp8"), Workload(8000, 1000), SLA(3.0, 0.03))
    found, tried = search(case, 8)
    own = found.case
    assert own.prefill not in (own.unit, own.decode)
    alone = plan(own.unit, case.work, case.sla)
    pools = plan(own.decode, case.work, case.sla, prefill=own.prefill)
    for name in ("aggregated", "chunked"):
        assert found.solved.rates[name] == pytest.approx(alone.solved.rates[name])
    of_pools = [rate * own.unit.gpus / own.decode.gpus for rate in pools.solved.rates["disaggregated"]]
    assert found.solved.rates["disaggregated"] == pytest.approx(of_pools, rel=1e-3)  # no share of a link exceeds 1
    assert found.starts["disaggregated"].settings == pools.starts["disaggregated"].settings
    assert found.starts["disaggregated"].commands == pools.starts["disaggregated"].commands
    row = tried[tried.architecture == "disaggregated"].iloc[0]
    assert row.prefill == asdict(own.prefill.numbers.layout)
    assert row.layout.endswith(f", prefill in TP {own.prefill.tp}")
    (answer,) = [one for one in as_record(found).architectures if one.architecture == "disaggregated"]
    assert answer.pools == {"prefill": own.prefill.numbers.layout, "decode": own.decode.numbers.layout}
    split = answer.split
    assert answer.pools_gpus == split["prefill"] * own.prefill.gpus + split["decode"] * own.decode.gpus
    assert answer.pools_rate.value / answer.pools_gpus == pytest.approx(answer.unit_rate.value / own.unit.gpus)


@pytest.mark.usefixtures("few_draws")
def test_a_fleet_of_pools_is_that_of_its_pair_beside_the_best_rival():
    found = size(MIXTURE, 4, have=8)
    pools = next(one for one in (found.fleet, *found.fleet.others) if one.architecture == "disaggregated")
    own = found.plan.case
    pair = replace(own, unit=own.decode or own.unit, prefill=own.prefill, decode=None, pool_units=None)
    alone = capacity(planned(replace(pair, units=own.pool_units or own.units)), 8, architecture="disaggregated")
    assert (pools.rate, pools.gpus, pools.commands) == (pytest.approx(alone.rate), alone.gpus, alone.commands)


def test_no_layout_that_was_left_out_would_have_been_the_first():
    found, _ = searched(CASE, 8)
    best = found["tokens_per_gpu"]
    for one in layouts(DENSE, 8):
        other = plan(one, CASE.work, CASE.sla)
        assert not other.feasible or other["tokens_per_gpu"] <= best * 1.01


def test_layouts_are_ranked_by_what_they_serve_in_the_mean():
    told = layouts_ranked([2.5, 2.0, 2.0], [[1.0, 4.0], [2.0, 2.0], [2.0, 2.0]], [1, 4, 2])
    assert told.loss == pytest.approx([0.0, 0.2, 0.2])
    assert told.order == [0, 2, 1]  # of equal ones the smaller unit
    assert told.best_in == [0.5, 0.5, 0.0]
    often = layouts_ranked([0.0, 3.9], [[0.0] * 6 + [10.0] * 4, [3.9] * 10], [1, 1])  # most draws forbid the first
    assert often.order == [1, 0]
    assert often.loss == [1.0, 0.0]
    assert layouts_ranked([0.0], [[0.0, 0.0]], [1]) == Ranking(order=[0], loss=[1.0], best_in=[0.0])
    assert layouts_near([1.0, 0.7, 0.8]) == [0, 2]


MIXTURE = Case(Unit.of("gpt-oss-120b", "h100-sxm"), Workload(3000, 400), SLA(2.0, 0.03))


@pytest.mark.usefixtures("few_draws")
def test_a_fleet_takes_the_layout_that_takes_the_fewest_gpus():
    """Of two layouts that serve as much with a GPU when all are busy, that of whole experts comes in fours."""
    found, (busy, tried) = size(MIXTURE, 4, rate=2), searched(MIXTURE, 4)
    assert {"TP 4", "TP 1, DP 2, EP 2", "TP 2, DP 2, EP 4"} <= set(tried.layout)
    assert found.fleet.gpus[0] < busy.case.unit.gpus <= fleet(busy, 2).gpus[0]
    assert found.tried["answer"][0] == found.fleet.gpus[0]
    unit = found.plan.case.unit
    assert found.tried.loc[0, ["tp", "dp", "ep", "pp"]].tolist() == [unit.tp, unit.dp, unit.ep, unit.pp]
    with pytest.raises(ValueError, match="rate must be given, or have: one of them"):
        size(MIXTURE, 4, rate=2, have=4)


@pytest.mark.usefixtures("few_draws")
def test_a_gpu_of_ones_own_serves_so_much_and_is_planned_in_twos():
    """Where there is one GPU, a replica may have the two units that pools take, and no more; traffic is no cost."""
    found = size(Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(500, 50), SLA(1.0, 0.05)), 1, have=1)
    assert found.plan.case.units == 2
    assert found.fleet.gpus[0] == 1
    assert found.tried["answer"][0] == pytest.approx(found.fleet.rate, rel=1e-6)


@pytest.mark.usefixtures("few_draws")
def test_a_question_without_an_answer_has_no_fleet():
    come = Arrivals(mix=mix("azure-code"))
    small = Case(Unit.of("llama-3-8b", "h100-sxm"), Workload.from_trace(come.mix), SLA(0.2, 0.05), units=2)
    found = size(small, 1, rate=5, quantile=0.999, arrivals=come)
    assert found.fleet is None
    assert found.plan.feasible
    assert "no architecture keeps 100% of the requests" in found.short.why
    assert found.tried["answer"].isna().all()


def test_limits_that_half_of_the_draws_keep_have_a_plan_and_why_there_is_no_fleet():
    """Too few of those draws keep them by which layouts are tried, yet most of all do."""
    case = Case(Unit.of("llama-3-70b", "l40s", 8), Workload(2200, 170), SLA(0.75, 0.04))
    found = size(case, 8, rate=10)
    assert found.plan.feasible
    assert found.fleet is None
    assert "no architecture keeps 90% of the requests" in found.short.why


@pytest.mark.parametrize("model", rest_long(["llama-3-70b", "qwen3-235b-a22b"]))
@pytest.mark.usefixtures("few_draws")
def test_two_nodes_serve_at_least_twice_what_one_does(model):
    """A replica lies in a node; what one node has, two have, be it that layouts on both are asked for."""
    case = Case(Unit.of(model, "h100-sxm", 4, "fp8"), Workload(3000, 400), SLA(2.0, 0.04))
    one, two = size(case, 8, have=8), size(case, 16, have=16)
    assert two.plan.case.unit.gpus <= 8
    assert RESOLVES * two.fleet.rate >= 2 * one.fleet.rate


RESOLVES = 1.04  # times a rate that simulations do not tell apart


@st.composite
def setups(draw):
    """Return what is asked for, the GPUs that there are, more of them, and a layout that somebody types."""
    mixture = draw(st.booleans())
    model = draw(st.sampled_from([name for name in catalogue.MODELS if catalogue.model(name).is_mixture == mixture]))
    gpu, weights = draw(st.sampled_from([*catalogue.GPUS])), draw(st.sampled_from([None, "fp8"]))
    base = None
    for tp in (1, 2, 4, 8):
        with suppress(ValueError):  # too few GPUs
            base = base or Unit.of(model, gpu, tp, weights)
    assume(base is not None)
    work = Workload(draw(st.sampled_from([200, 1000, 4000, 12_000])), draw(st.sampled_from([20, 200, 800])))
    sla = SLA(draw(st.sampled_from([0.6, 2.0, 6.0])), draw(st.sampled_from([0.02, 0.04, 0.1])))
    have = base.gpus * draw(st.sampled_from([1, 2, 3, 4, 8]))
    typed = draw(st.sampled_from([*layouts(base, min(have, 8))]))
    return Case(base, work, sla), have, have + draw(st.sampled_from([1, base.gpus, have])), typed


def answered(case, **question):
    """Return the GPUs, or the requests/s, of what is chosen for a question; of none, infinity, or 0."""
    have = question.get("have")
    few = replace(case, units=max(min(8, have // case.unit.gpus), 2)) if have else case
    found = size(few, min(have or 8, 8), **question).fleet
    return found.rate if found and have else found.gpus[0] if found else 0.0 if have else inf


def typed_answers(case, unit, **question):
    """Return the same of a layout that is typed."""
    have, rate = question.get("have"), question.get("rate")
    found = plan(unit, case.work, case.sla, units=max(min(8, have // unit.gpus), 2) if have else 8)
    with suppress(NoFleetError):
        if found.feasible:
            return capacity(found, have).rate if have else fleet(found, rate).gpus[0]
    return 0.0 if have else inf


def hold_the_laws(case, have, more, typed):
    """More GPUs never serve less, what some serve takes no more, and no layout that is typed does better."""
    serves = answered(case, have=have)
    assert RESOLVES * answered(case, have=more) >= serves
    assert RESOLVES * serves >= typed_answers(case, typed, have=have)
    if not serves:
        return
    takes = answered(case, rate=serves / RESOLVES)
    assert takes <= have
    assert answered(case, rate=1.5 * serves) >= takes
    assert RESOLVES * answered(case, have=int(takes)) >= serves / RESOLVES
    assert typed_answers(case, typed, rate=serves) >= takes


ASKED = {"suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow], "deadline": None}


@pytest.mark.usefixtures("few_draws")
@settings(max_examples=1, **ASKED)
@given(setups())
def test_laws_of_what_is_chosen(asked):
    hold_the_laws(*asked)


@pytest.mark.long
@settings(max_examples=30, **ASKED)
@given(setups())
def test_laws_of_what_is_chosen_with_all_draws(asked):
    hold_the_laws(*asked)


@pytest.mark.parametrize(("gpu", "many"), [("h100-sxm", 8), ("gb300", 72)])
def test_no_layout_lies_on_several_nodes(gpu, many):
    found = list(layouts(Unit.of("qwen3-235b-a22b", gpu, 8, "fp8"), 512))
    assert max(one.gpus for one in found) == min(many, 64)
    wide = Unit.of("qwen3-235b-a22b", gpu, 8, "fp8", dp=16, ep=128)
    with pytest.raises(
        ValueError, match=f"tp must be .* 128 GPUs, of which a node joins {many}, .* nearest within one"
    ):
        plan(wide, CASE.work, CASE.sla)


def test_too_few_gpus_are_refused():
    with pytest.raises(ValueError, match="gpus must be enough for deepseek-v3"):
        search(Case(Unit.of("deepseek-v3", "h200-sxm", 8), CASE.work, CASE.sla), 2)
    with pytest.raises(ValueError, match="gpus must be a whole number"):
        list(layouts(DENSE, 0))
