from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given, strategies as st
from msgspec import structs

from inference_math import SLA, Unit, Workload, simulate
from inference_math.catalogue.engines import engines
from inference_math.catalogue.tiers import Tier, tier
from inference_math.optimiser import answers, search
from inference_math.optimiser.architectures import SURE
from inference_math.optimiser.case import Case
from inference_math.optimiser.choice import decide
from inference_math.optimiser.draws import interval, median
from inference_math.optimiser.gain_error import NINTHS
from inference_math.optimiser.load import at_full_load, limit_utilisation, settings_row
from inference_math.optimiser.starts import settings
from inference_math.unit.problem import computed_tokens, max_kv_seqs, search_constants
from inference_math_planner import plan

UNIT = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
CASE = Case(UNIT, Workload(2200, 170, 0.5), SLA(0.4, 0.04), tier=tier("local_ssd"), price=2.5)


class One:
    """What is found under one set of coefficients."""

    def __init__(self, case=CASE, factors=(1.0, 1.0)):
        self.found = answers.solve(case.problem, [[case.unit.found(case.work), [*factors, 0.0]]])
        self.rows = {name: rows[0] for name, rows in self.found.each.items()}
        self.costs = self.found.costs[0]
        told = answers.numbers_of(case.problem, self.found)
        self.binding = answers.binding_limits(told)
        self.numbers = {name: ends[0] for name, ends in told.items()}


def solved(case=CASE, factors=(1.0, 1.0)):
    return One(case, factors)


def slower(factors, case=CASE):
    """Return draws whose steps and prompts take so many times as long."""
    return [[case.unit.found(case.work), [f, f, 0.0]] for f in factors]


@given(st.floats(1, 10), st.lists(st.floats(0.1, 100), min_size=1, max_size=50))
def test_an_interval_and_its_median_are_of_the_draws(value, drawn):
    found = interval(value, [*drawn, float("nan")])
    assert found == list(np.quantile(drawn, (0.5, 0.05, 0.95), method="inverted_cdf"))
    assert median(drawn) == found[0]


def test_no_draws_no_interval():
    assert interval(3.0, []) == [3.0, 3.0, 3.0]


def test_the_lead_is_of_the_first_over_the_second():
    draws = slower((0.9, 1.0, 1.1))
    problem = structs.replace(CASE.problem, gain_errors=SURE)
    found = answers.solve(problem, draws)
    first, second, _ = found.order
    told = answers.numbers_of(problem, found)
    assert found.best == first
    assert told["rate"][0] == found.goodput[first]
    leads = [a / b - 1 for a, b in zip(found.rates[first], found.rates[second], strict=True)]
    middle = found.goodput[first] / found.goodput[second] - 1
    assert told["margin"] == pytest.approx([middle, min(*leads, middle), max(*leads, middle)])


def holding(tokens):
    """The numbers of a unit whose layers see everything, with room for so many tokens."""
    unit = Unit.of("llama-3-8b", "h100-sxm").numbers
    return structs.replace(unit, kv_room=tokens * unit.caches[0].bytes)


@pytest.mark.parametrize("engine", ["vllm", "trtllm"])
def test_places_hold_what_is_met_in_a_batch(engine):
    """Long answers are met more often than short ones, and with vLLM only what is there takes room."""
    held = {"vllm": 500 + 1000 * (1 + 1) / 2, "trtllm": 500 + 1000 * (1 + 1)}[engine]
    work = Workload(500, 1000, lengths="", cv=1.0)
    many = max_kv_seqs(holding(1e7), work, engines()[engine])
    assert many <= 1e7 / held
    assert many == pytest.approx(1e7 / held, rel=0.03)  # less the margin of one that grows
    assert max_kv_seqs(holding(1400.0), work, engines()["vllm"]) == 0


@pytest.mark.parametrize("architecture", search.ARCHITECTURES)
def test_settings_are_turned_down_in_the_draws_that_miss_the_limits_with_them_which_count_as_nothing(architecture):
    factors = np.linspace(1, 1.3, 20)
    found = answers.solve(CASE.problem, slower(factors))
    own = found.settings[architecture]
    parts = [limit_utilisation(search_constants(CASE.problem), one, architecture, own) for one in found.costs]
    many = sum(part <= 1 + 1e-9 for part in parts)
    assert [part <= 1 + 1e-9 for part in parts] == [True] * many + [False] * (20 - many)  # the slower ones miss
    assert found.feasible_share[architecture] == many / 20 >= 0.5
    for i in range(many, 20):
        alone = solved(factors=(factors[i], factors[i])).rows[architecture]
        assert found["each"][architecture][i] == pytest.approx(alone, nan_ok=True)
        assert alone["batch"] <= own["batch"]
    served = [at_full_load(search_constants(CASE.problem), one, architecture, own).rate for one in found.costs[:many]]
    assert [row.rate for row in found.each[architecture][:many]] == served
    assert found.goodput[architecture] == pytest.approx(sum(served) / 20)


def test_a_longer_prompt_part_alone_moves_what_prompts_cost():
    plain, slow = solved(), solved(factors=(1.0, 1.5))
    assert slow.numbers["t_w"] == plain.numbers["t_w"]
    assert slow.numbers["delta_h"] == plain.numbers["delta_h"]
    # What a prompt alone adds to an empty step grows, too; t_w is in the gross time and does not.
    assert 1 < slow.numbers["delta_p"] / plain.numbers["delta_p"] < 1.6
    step, longer = plain.costs.step_seconds, slow.costs.step_seconds
    bare = step(8, 0)
    assert longer(8, 1) - bare == pytest.approx(1.5 * (step(8, 1) - bare))


DRAFTING = Unit.of("deepseek-v3", "h200-sxm", 8, engine="sglang")


def rows_of(limit=0.04, **drafts):
    """Return the rows of DeepSeek-V3 under some drafts and engine."""
    return solved(Case(DRAFTING.resized(**drafts), Workload(2000, 500), SLA(2, limit))).rows


@pytest.mark.parametrize("architecture", search.ARCHITECTURES)
def test_drafts_that_are_accepted_serve_more_and_others_less(architecture):
    rates = [rows_of(drafts=3, accepted=a, engine="vllm")[architecture].rate for a in (0, 0.5, 0.9)]
    plain = rows_of(engine="vllm")[architecture].rate
    assert rates == sorted(rates)
    assert rates[0] < plain < rates[-1]


@pytest.mark.parametrize("architecture", search.ARCHITECTURES)
def test_a_token_not_a_step_keeps_the_limit(architecture):
    """With free drafts the same step gives each request more: as if the limit were looser, and answers shorter."""
    free = structs.replace(DRAFTING.numbers, accepted_per_step=3.0)  # nothing is drafted, yet three tokens come
    case = structs.replace(Case(DRAFTING, Workload(2000, 1 + 3 * 200), SLA(2, 0.02)).problem, unit=free)
    found = DRAFTING.found()
    few = answers.solve(case, [[found, [1.0, 1.0, 0.0]]]).each[architecture][0]
    same = answers.under(case, found, [1.0, 1.0, 0.0])  # contexts are those of the longer answers
    slow = structs.replace(case, unit=DRAFTING.numbers, work=structs.replace(case.work, n_out=201.0), tpot=0.06)
    room = max_kv_seqs(free, case.work, engines()["sglang"])
    assert room > few.batch
    row = decide([search_constants(slow)] * 2, [[same]] * 2, SURE).each[architecture][0]
    assert few.rate == pytest.approx(row.rate, rel=1e-6)
    assert few.tpot == pytest.approx(row.tpot / 3, rel=1e-6)
    assert few.tpot <= 0.02 * (1 + 1e-9)


@pytest.mark.parametrize("architecture", search.ARCHITECTURES)
def test_a_quantile_is_of_gaps_which_no_tokens_share(architecture):
    """The tokens of a step come together: who promises gaps promises steps."""
    unit = DRAFTING.resized(drafts=3, accepted=0.9, engine="vllm")
    case = Case(unit, Workload(2000, 500), SLA(2, 0.04, quantile=0.99))
    row = solved(case).rows[architecture]
    step = answers.under(case.problem, unit.found(case.work), [1.0, 1.0, 0.0]).step_seconds
    longest = step(row.batch, row.chunk / 2000 if architecture == "chunked" else 0.0)
    assert longest <= 0.04 * (1 + 1e-6)
    assert row.tpot >= 0.9 * step(row.decodes, 0.0)
    assert row.rate < solved(Case(unit, case.work, SLA(2, 0.04))).rows[architecture].rate


def test_sglang_computes_no_chunks_beside_drafts():
    rows = rows_of(drafts=1, accepted=0.9)
    assert rows["chunked"].rate == 0
    assert rows["aggregated"].rate > 0
    assert rows_of(drafts=1, accepted=0.9, engine="vllm")["chunked"].rate > 0
    found = plan(DRAFTING.resized(drafts=1, accepted=0.9), Workload(2000, 500), SLA(2, 0.04), intervals=False)
    assert found.hindered == {"chunked": "SGLang does not compute chunks beside decodes where tokens are drafted"}


def test_the_chance_of_a_draft_is_swung_and_what_none_would_bring_is_said():
    unit = DRAFTING.resized(drafts=2, accepted=0.9, engine="vllm")
    found = plan(unit, Workload(2000, 500), SLA(2, 0.04), intervals=False)
    (row,) = (one for one in found.sensitivities if one.input == "accepted")
    without = unit.resized(drafts=0)
    ends = [plan(unit.resized(accepted=a), Workload(2000, 500), SLA(2, 0.04), intervals=False) for a in (0.72, 1.0)]
    assert [row.low, row.high] == pytest.approx([one["rate"] for one in ends])
    plain = plan(without, Workload(2000, 500), SLA(2, 0.04), intervals=False)
    both = found.drafting.set_index("drafts")
    assert both.rate.to_dict() == pytest.approx({"2 drafts a step": found["rate"], "none": plain["rate"]})
    assert both.tpot["none"] == pytest.approx(plain.compared.tpot[0])
    assert plain.drafting.empty
    assert not [one for one in plain.sensitivities if one.input == "accepted"]
    assert any(one.startswith("without drafts a unit would serve") for one in found.cautions)


LLAMA = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", drafts=3, accepted=0.6)
YIELD = 1 + 0.6 + 0.6**2 + 0.6**3


@pytest.fixture(scope="module")
def drafted():
    """Return a question about requests that draft, and what is found."""
    case = Case(LLAMA, Workload(1000, 200), SLA(1.0, 0.02), front=0.0)
    return case.problem, solved(case)


def test_the_largest_batch_by_ttft_is_the_unit_s_own():
    work = Workload(1000, 20)
    batch = int(solved(Case(LLAMA, work, SLA(0.12, 1.0), front=0.0)).numbers["batch_ttft"])
    assert LLAMA.ttft(work, batch) <= 0.12 < LLAMA.ttft(work, batch + 1)


def test_the_talks_numbers_count_steps(drafted):
    problem, found = drafted
    steps = 1 + 199 / YIELD
    assert found.numbers["delta_p"] == pytest.approx(found.costs.ttft_1 / steps)
    assert found.numbers["pdd_concurrency"] == pytest.approx(1.0 / (steps * 0.02 * YIELD), rel=0.02)
    ends = {name: [value] * 3 for name, value in found.numbers.items()}
    told = answers.by_formula(problem, found.found, ends)
    assert told["batch_tpot"] == pytest.approx(found.numbers["batch_tpot"], rel=0.25)
    plain = answers.by_formula(problem, structs.replace(found.found, best="aggregated"), ends)
    assert plain["tpot"] == pytest.approx(found.rows["aggregated"].tpot, rel=0.25)


@pytest.mark.parametrize("architecture", search.ARCHITECTURES)
def test_a_row_of_drafts_keeps_its_own_limit(drafted, architecture):
    problem, found = drafted
    row, costs = found.rows[architecture], found.costs
    assert limit_utilisation(search_constants(problem), costs, architecture, row) <= 1 + 1e-9
    assert (
        limit_utilisation(search_constants(problem), costs, architecture, structs.replace(row, batch=1.2 * row.batch))
        > 1
    )


def test_a_chunk_s_budget_has_room_for_drafts(drafted):
    problem, found = drafted
    row = found.rows["chunked"]
    told = settings(problem, "chunked", row)
    assert told["--max-num-batched-tokens"] == np.ceil(row.chunk) + 4 * np.ceil(row.batch)


def test_a_prompt_passes_the_drafter_once_and_a_decode_as_often_as_it_drafts():
    one, three = LLAMA.resized(drafts=1), LLAMA
    assert one.prefill_time(4000) == pytest.approx(three.prefill_time(4000))
    plain = LLAMA.resized(drafts=0)
    assert 1 < one.prefill_time(4000) / plain.prefill_time(4000) < 1 + 1.01 / 80
    heads = [unit.parts(1, 1000)["weights"] - plain.parts(1, 1000)["weights"] for unit in (one, three)]
    assert heads[1] == pytest.approx(3 * heads[0])
    head = plain.numbers.head_bytes / plain.numbers.hbm_bw
    assert heads[0] > head + plain.parts(1, 1000)["weights"] / 80 * 0.99
    assert three.parts(8, 1000)["KV cache"] == pytest.approx(plain.parts(8, 1000)["KV cache"] * (1 + 3 / 80), rel=0.05)


def test_a_closed_form_stands_only_beside_what_it_is_about():
    """The forms of whole prefills are means, and that of chunks knows no limit on TTFT."""
    wide, late, tail = (SLA(*limits) for limits in ((30.0, 0.04), (0.3, 0.04), (30.0, 0.04, 0.99)))
    work, told = Workload(2200, 170), {}
    for name, sla in (("wide", wide), ("late", late), ("tail", tail)):
        case = Case(UNIT, work, sla)
        found = solved(case)
        ends = {key: [value] * 3 for key, value in found.numbers.items()}
        told[name] = answers.by_formula(case.problem, found.found, ends)
        if name == "wide":  # a decode whose read alone is longer than what the weight read leaves of the limit
            ends["delta_h"] = [0.04 - found.numbers["t_w"] + 1e-6] * 3
            told["none fits"] = answers.by_formula(case.problem, found.found, ends)
    assert {"batch", "batch_tpot", "batch_ttft", "chunked_gain", "pdd_gain"} <= set(told["wide"])
    assert "chunked_gain" not in told["late"]
    assert not {"chunked_gain", "pdd_gain", "prefill_units"} & set(told["none fits"])
    assert not {"batch", "batch_tpot", "batch_ttft", "chunked_gain", "pdd_gain", "ttft"} & set(told["tail"])


@pytest.mark.parametrize(("bandwidth", "near"), [(4e9, 0.07), (2e9, 0.04), (1e9, 0.04)])
def test_chunks_serve_from_a_slow_store_what_the_simulator_plays(bandwidth, near):
    """Nearly: where a load is about as long as a step, the mean leaves out that two prompts may begin in one."""
    work = Workload(2200, 170, 0.9, lengths="geometric")
    case = Case(UNIT, work, SLA(1.0, 0.06), tier=Tier.of_bandwidth(bandwidth))
    solved = answers.solve(case.problem, case.pairs(0))
    row, rate = solved.settings["chunked"], solved.rates["chunked"][0]
    decodes, chunk = row.batch, row.chunk
    places = ceil(decodes) + ceil(chunk / 2200)
    engine = simulate.Chunked(computed_tokens(case.problem, row) + ceil(decodes), max_batch=places)
    moved = answers.under(case.problem, UNIT.found(work), [1.0, 1.0, 0.0]).load  # what is written, too
    reuse = simulate.Reuse(moved / (0.9 * 2200))
    run = simulate.closed_loop(
        work,
        simulate.Steps(UNIT.near(work)),
        concurrency=places,
        requests=3000,
        warmup=300,
        scheduler=engine,
        reuse=reuse,
        seed=3,
    )
    assert rate == pytest.approx(run.request_rate, rel=near)


def test_a_quantile_of_gaps_sees_the_loads_of_chunks():
    """Steps in which a prompt begins last as long as its load: if they are more than one in a hundred, P99 is."""
    case = Case(UNIT, Workload(2200, 170, 0.9), SLA(1.0, 0.06), tier=Tier.of_bandwidth(1e9))
    each = answers.under(case.problem, UNIT.found(case.work), [1.0, 1.0, 0.0])
    row = settings_row(20.0, 300.0, 0.0, 0.0)
    gaps = {
        q: at_full_load(search_constants(structs.replace(case.problem, quantile=q)), each, "chunked", row).tpot
        for q in (0, 0.5, 0.99)
    }
    assert gaps[0.99] == pytest.approx(each.load)
    assert gaps[0.5] < gaps[0] < gaps[0.99]
    tail = structs.replace(case.problem, quantile=0.99)
    assert limit_utilisation(search_constants(tail), each, "chunked", row) == pytest.approx(each.load / 0.06)
    assert answers.solve(tail, case.pairs(0)).settings["chunked"].rate == 0  # no chunk makes the load shorter


def test_gains_are_of_the_rates_beside_them_and_of_stores_that_hold_the_sessions():
    case = replace(CASE, work=Workload(2200, 170, 0.9))
    rows = {row.where: row for row in answers.gains(case.problem, case.pairs(8), {"hbm": 0.0, "slow": 4e9})}
    for row in rows.values():
        assert row.gain == row.rate / rows["nowhere"].rate
    many = structs.replace(case.problem, sessions=10_000)
    held = {row.where: row for row in answers.gains(many, case.pairs(0), {"hbm": 0.0, "slow": 4e9})}
    assert held["hbm"].rate == 0
    assert "does not hold the sessions" in held["hbm"].binds
    assert held["slow"].rate > 0


def solution(rates, goodput):
    """Return what is found under some draws, of which the rates and their means are known alone."""
    return structs.replace(answers.solve(CASE.problem, CASE.pairs(0)), rates=rates, goodput=goodput)


def test_what_few_draws_have_is_no_number():
    """A gain is the ratio of the two goodputs, and of nothing where most draws have none of one."""

    def gained(top, bottom, gain_errors=SURE):
        names = ("disaggregated", "aggregated")
        rates = dict(zip(names, (top, bottom), strict=True))
        goodput = {name: np.mean(own) for name, own in rates.items()}
        return answers.gained(structs.replace(CASE.problem, gain_errors=gain_errors), solution(rates, goodput), *names)

    doubted = gained([3.0] * 9, [2.0] * 9, SURE | {"disaggregated": [0.0, 0.5, 77]})
    assert doubted == pytest.approx([1.5, 1.5 * np.exp(0.5 * NINTHS[0]), 1.5 * np.exp(0.5 * NINTHS[-1])])
    assert gained([3.0] * 9, [2.0] * 9, SURE | {"aggregated": [0.0, 0.5, 77]}) == pytest.approx(doubted)
    assert gained([3.0] * 9, [2.0] * 9, SURE | {"disaggregated": [1.0, 0.0, 0]})[:2] == [1.5, 1.5]
    assert gained([2.0, 3.0, 4.0], [1.0, 2.0, 2.0]) == pytest.approx([1.8, 1.5, 2.0])
    assert gained([2.0, 3.0, 4.0], [0.0, 2.0, 2.0]) == pytest.approx([2.25, 1.5, 2.25])
    assert all(np.isnan(gained([0.0, 0.0, 4.0], [1.0, 2.0, 2.0])))
    assert all(np.isnan(gained([2.0, 3.0, 4.0], [0.0, 0.0, 2.0])))


def test_what_is_spent_on_a_token_is_that_of_the_rates_beside_it():
    """Where some draws serve nothing, a token costs without end in these, and the middle is that of all."""
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8"), Workload(2200, 170), SLA(0.23, 0.04), price=2.5)
    found = answers.solve(case.problem, case.pairs(64))
    told = answers.numbers_of(case.problem, found)
    assert 0.1 < found.none_in < 0.5
    assert told["tokens_per_gpu"][1] == 0
    for name, spent in (("usd_per_million", 2.5e6 / 3600), ("joules_per_token", 700)):
        assert told[name][0] == pytest.approx(spent / told["tokens_per_gpu"][0])
        assert told[name][1] == pytest.approx(spent / told["tokens_per_gpu"][2])
        assert told[name][2] == float("inf")


def test_no_closed_form_of_chunks_stands_where_the_slow_draws_reach_the_limit_on_ttft():
    """The talks' case: chunks serve little more than aggregated within 400 ms; the form knows no limit: 1.75."""
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
    case = plan(unit, Workload(2200, 170), SLA(ttft=0.4, tpot=0.04))
    assert case["chunked_gain"] < 1.2
    assert np.isnan(case.answers["chunked_gain"].by_formula)
    loose = plan(unit, Workload(2200, 170), SLA(ttft=4, tpot=0.04))
    assert loose.answers["chunked_gain"].by_formula > 1


def test_a_prefill_unit_costs_what_such_a_unit_does():
    """Its tier's bandwidth, too, is that of its own GPUs, and a draw slows it as it slows the others."""
    first = UNIT.resized(tp=4)
    slow = replace(CASE, tier=Tier.of_bandwidth(1e9))  # a prompt waits for it
    both, own = replace(slow, prefill=first), replace(slow, unit=first)
    found, factors = UNIT.found(CASE.work), [1.1, 1.4, 0.0]
    one, alone = answers.under(both.problem, found, factors), answers.under(own.problem, found, factors)
    for prompts in (1.0, 3.0):
        assert one.prefill(0.0, prompts) == pytest.approx(alone.step_seconds(0.0, prompts))
    assert one.step_seconds(0.0, 1.0) == answers.under(slow.problem, found, factors).step_seconds(0.0, 1.0)


def test_a_kv_cache_without_room_for_a_request_serves_none_under_any_draw():
    case = Case(Unit.of("llama-3-70b", "h100-sxm", 1, "fp8"), Workload(16_000, 500), SLA(10, 1))
    found = answers.solve(case.problem, slower((0.9, 1.1), case))
    assert not any(max(rates) for rates in found.rates.values())
    assert found.best == ""
