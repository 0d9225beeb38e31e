"""Plans: the numbers are the formulas', limits are kept, infeasible SLAs say what is missing."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from msgspec import structs

import inference_math_planner as planner
from inference_math import simulate, theory
from inference_math.catalogue.tiers import tier, tiers
from inference_math.optimiser import answers, architectures
from inference_math.optimiser.answers import best_rate
from inference_math.optimiser.case import Case
from inference_math.optimiser.choice import LIKELY
from inference_math.optimiser.load import limit_utilisation
from inference_math.simulate import Steps
from inference_math.unit import Unit
from inference_math.unit.coefficients import DATASHEET, Anchor
from inference_math.unit.front import handover
from inference_math.unit.problem import search_constants
from inference_math.workload import SLA, Workload
from inference_math_planner.answers.deployment import Plan
from inference_math_planner.fleets import queues

UNIT = Unit.of("llama-3-70b", "h100-sxm", tp=2, weights="fp8", kv="fp8")
WORK, LIMITS = Workload(2200, 170), SLA(ttft=1.0, tpot=0.040)
FOUND = planner.plan(UNIT, WORK, LIMITS, price=2.5)


def served(case):
    """Return the requests/s of the best architecture by the calibration itself; 0 where none meets the SLA."""
    return best_rate(answers.solve(case.problem, case.pairs(0)))


PLAIN = planner.plan(UNIT, WORK, LIMITS, price=2.5, intervals=False)


def test_the_numbers_are_those_of_the_comparison_and_of_the_formulas():
    costs = UNIT.costs(WORK)
    assert PLAIN["batch_memory"] == UNIT.places(WORK)
    compared = architectures.compare(costs, 0.040, 1.0 - UNIT.front.seconds).set_index("architecture")
    assert PLAIN["rate"] == pytest.approx(compared.rate.max())
    assert PLAIN["batch"] == compared.batch["aggregated"]
    assert PLAIN["pdd_gain"] == pytest.approx(compared.rate["disaggregated"] / compared.rate["aggregated"])
    tokens = PLAIN["rate"] * 170 / 2
    assert PLAIN["tokens_per_gpu"] == pytest.approx(tokens)
    assert PLAIN["usd_per_million"] == pytest.approx(2.5 / 3600 / tokens * 1e6)
    assert PLAIN.answers["batch"].why.startswith("limited by TPOT,")
    for answer in PLAIN.answers.values():
        assert answer.formula == "" or answer.formula in theory.CATALOGUE
        assert answer.by in ("step", "formula", "search", "compare", "fitted")


@pytest.mark.parametrize(
    ("model", "tp", "n_in", "n_out"),
    [("llama-3-8b", 1, 256, 170), ("qwen3-32b", 2, 1000, 170), ("llama-3-8b", 1, 500, 300), ("gpt-oss-20b", 1, 80, 9)],
)
@pytest.mark.parametrize("quantile", [None, 0.99])
def test_the_comparison_of_a_unit_s_costs_is_the_plan_of_one_draw(model, tp, n_in, n_out, quantile):
    unit, work = Unit.of(model, "h100-sxm", tp, "fp8", "fp8"), Workload(n_in, n_out)
    found = planner.plan(unit, work, SLA(2.0, 0.04, quantile), front=0.0, intervals=False)
    rows = found.compared.set_index("architecture")
    compared = architectures.compare(unit.costs(work), 0.04, 2.0, quantile=quantile).set_index("architecture")
    compared.loc["disaggregated", "ttft"] += handover().seconds  # which no step takes
    assert (compared.rate > 0).all()
    pd.testing.assert_frame_equal(compared, rows.loc[compared.index, compared.columns], check_dtype=False)


def test_a_formula_beside_a_number_says_what_it_gives():
    costs, said = UNIT.costs(WORK), PLAIN.answers
    numbers = {"delta_p_gross": costs.delta_p_gross, "delta_h": costs.delta_h, "t_w": costs.t_w}
    by_tpot = theory.max_batch(sla_tpot=0.04, tpot_1=costs.tpot_1, delta_p=costs.delta_p, delta_h=costs.delta_h)
    assert said["batch_tpot"].by_formula == by_tpot
    gain = theory.chunked_gain_sla_serial(sla_tpot=0.04, **numbers)
    assert said["chunked_gain"].by_formula == pytest.approx(gain)
    # It lets a decode unit have as many requests as the limit allows; HBM holds fewer here, so it does not stand.
    assert (0.05 - costs.t_w) / costs.delta_h > UNIT.places(WORK)
    loose = planner.plan(UNIT, WORK, SLA(1.0, 0.05), intervals=False).answers
    assert np.isnan(loose["pdd_gain"].by_formula)
    assert np.isnan(loose["prefill_units"].by_formula)
    tight = planner.plan(UNIT, WORK, SLA(1.0, 0.03), intervals=False).answers
    same = theory.pdd_gain_same(delta_p=costs.delta_p, delta_h=costs.delta_h, t_w=costs.t_w, sla_tpot=0.03, n_out=170)
    assert tight["pdd_gain"].by_formula == pytest.approx(same)
    assert tight["pdd_gain"].by == "compare"
    at = {"t_w": costs.t_w, "sla_tpot": 0.03, "n_out": 170}
    split = theory.pdd_split(delta_p_gross=costs.delta_p_gross, delta_h=costs.delta_h, **at)
    assert tight["prefill_units"].by_formula == pytest.approx(8 * split / (1 + split))
    whole = planner.plan(UNIT, Workload(64, 2000), SLA(1.0, 0.03), intervals=False)
    if whole.best == "aggregated":
        of = UNIT.costs(Workload(64, 2000))
        rate = theory.request_rate(B=whole["batch"], n_out=2000, t_w=of.t_w, delta_p=of.delta_p, delta_h=of.delta_h)
        assert whole.answers["rate"].by_formula == pytest.approx(rate)
    assert PLAIN["gain_bound"] == pytest.approx(1 + costs.delta_p / costs.delta_h)
    assert PLAIN["delta_p_gross"] == pytest.approx(UNIT.prefill_time(2200) / 170)


def test_a_printed_number_is_the_median_of_what_is_drawn_and_a_rate_the_goodput():
    case = Case(UNIT, WORK, LIMITS, price=2.5)
    drawn = [Plan(case, (one,), answers.solve(case.problem, [one])) for one in case.pairs(64)]
    for row in FOUND.compared.itertuples():
        rates, settings = FOUND.solved.rates[row.architecture], FOUND.solved.settings[row.architecture]
        constants = search_constants(case.of_architecture(row.architecture))
        costs = FOUND.solved.pool_costs if row.architecture == "disaggregated" else FOUND.solved.costs
        kept = [limit_utilisation(constants, one, row.architecture, settings) <= 1 + 1e-9 for one in costs]
        assert row.rate == pytest.approx(np.mean(np.array(rates) * kept))
        assert row.kept == np.mean(kept)
        for name in ("rate", "ttft", "tpot"):
            low, value, high = (getattr(row, key) for key in (f"{name}_low", name, f"{name}_high"))
            assert low <= value <= high
        # No draw serves more with settings for all than with its own.
        own = [one.solved.rates[row.architecture][0] for one in drawn]
        assert (
            np.array(FOUND.solved.rates[row.architecture]) <= np.array(own) * 1.011
        ).all()  # pools take the fewest prompts that give nearly all
    for answer in FOUND.answers.values():
        assert answer.low <= answer.value <= answer.high, answer.name
    for name in ("batch", "batch_tpot", "t_w", "delta_p", "delta_h", "gain_bound"):
        assert FOUND[name] == pytest.approx(sorted(one[name] for one in drawn)[31])
    assert FOUND["rate"] == FOUND.compared.rate[0]


def test_the_rule_chooses_what_serves_most_in_the_mean():
    means = np.array([FOUND.solved.goodput[name] for name in FOUND.order])
    assert FOUND.compared.loss.to_numpy() == pytest.approx(1 - means / means.max())
    assert FOUND.best == FOUND.order[0]
    assert FOUND.compared.best_in.sum() + FOUND.solved.none_in == pytest.approx(1)
    assert FOUND.solved.lead == pytest.approx(1 - means[1] / means[0])
    assert FOUND.tie == (FOUND.solved.best_in[FOUND.best] < LIKELY)


def test_where_some_draws_have_nothing_shares_still_add_up():
    found = planner.plan(Unit.of("llama-3-70b", "h100-sxm", 1, "fp8", "fp8"), WORK, SLA(0.35, 0.04))
    assert 0.02 < found.solved.none_in < 0.9
    assert found.compared.best_in.sum() + found.solved.none_in == pytest.approx(1)


@pytest.mark.parametrize("name", architectures.ARCHITECTURES)
@pytest.mark.parametrize(("limits", "work"), [(LIMITS, WORK), (SLA(2.0, 0.06), Workload(800, 300))])
def test_the_printed_times_are_those_of_the_package_s_simulator(name, limits, work):
    """A closed loop with the printed decodes, beside them as many prompts as are under way."""
    found = planner.plan(UNIT, work, limits, intervals=False)
    (row,), own = found.solved.each[name], found.solved.settings[name]
    system = queues.system_for(found.case.problem, name, own)
    users, start = int(np.ceil(row.decodes)), "steady"
    scheduler = simulate.Aggregated() if name == "aggregated" else simulate.Chunked(int(system.budget))
    if name == "disaggregated":  # users of all decode units, and time to forget that they began together
        decoding = own.decode_units
        users, start = int(np.ceil(decoding * row.decodes)), "together"
        scheduler = simulate.Disaggregated(own.prefill_units, decoding, system.transfer, budget=system.budget)
    run = simulate.closed_loop(
        work, Steps(UNIT), concurrency=users, requests=8 * users, scheduler=scheduler, start=start, warmup=4 * users
    )
    assert run.requests.tpot.mean() == pytest.approx(row.tpot, rel=0.05)
    beside = UNIT.front.seconds + (handover().seconds if name == "disaggregated" else 0.0)
    assert run.requests.ttft.mean() + beside == pytest.approx(row.ttft, rel=0.2)


def test_prompts_in_chunks_bunch_where_answers_scatter():
    """What the planner's page says of full load: printed are equal answers, of which no two prompts meet."""
    found = planner.plan(UNIT, WORK, LIMITS, intervals=False)
    (row,), own = found.solved.each["chunked"], found.solved.settings["chunked"]
    budget = int(queues.system_for(found.case.problem, "chunked", own).budget)
    users = int(np.ceil(row.decodes))
    waited = [
        simulate.closed_loop(
            structs.replace(WORK, lengths=lengths), Steps(UNIT), concurrency=users, requests=40 * users,
            warmup=4 * users, scheduler=simulate.Chunked(budget), start="steady",
        ).requests.ttft.mean()
        for lengths in ("fixed", "geometric")
    ]  # fmt: skip
    assert waited[1] > 1.4 * waited[0]


@pytest.mark.parametrize(
    ("model", "gpu", "tp", "precision"), [("llama-3-8b", "h200-sxm", 1, "bf16"), ("deepseek-v3", "h200-sxm", 8, "fp8")]
)
def test_the_verdict_follows_the_draws_and_what_was_never_measured_is_wider(model, gpu, tp, precision):
    unit, work = Unit.of(model, gpu, tp, precision, precision), Workload(500, 250)
    found = planner.plan(unit, work, SLA(0.5, 0.05))
    rows = found.compared.set_index("architecture")
    assert rows.best_in[found.best] == rows.best_in.max() or found.tie
    known = planner.plan(Unit.of("qwen3-8b", "h100-sxm"), work, SLA(0.5, 0.05)).answers["delta_p"]
    wide = found.answers["delta_p"]
    assert wide.high / wide.low > known.high / known.low


def test_anchors_act_in_plans_as_in_predictions():
    """A unit whose runs took 5 ms a token longer plans with steps 5 ms longer."""
    slow = UNIT.calibrated(replace(UNIT.calibration, anchors=(Anchor(2200, 170, 0.005),)))
    assert slow.tpot(WORK, 8) == pytest.approx(UNIT.tpot(WORK, 8) + 0.005)
    assert slow.costs(WORK).tpot(8) == pytest.approx(slow.tpot(WORK, 8))
    case = Case(slow, WORK, LIMITS)
    assert Plan.of(case, 0).numbers["t_w"][0] == pytest.approx(UNIT.costs(WORK).t_w + 0.005)
    assert Plan.of(case, 0).numbers["batch_tpot"][0] < PLAIN["batch_tpot"]
    assert planner.plan(slow, WORK, LIMITS)["batch"] < FOUND["batch"]
    fast = UNIT.calibrated(replace(UNIT.calibration, anchors=(Anchor(2200, 170, -1.0),)))
    assert fast.tpot(WORK, 8) >= fast.floor.tpot(WORK, 8)
    assert fast.costs(WORK).step_seconds(8, 0) >= fast.floor.step_time(8, 2285)


def test_intervals_of_the_datasheet_are_points():
    sure = planner.plan(UNIT.calibrated(DATASHEET), WORK, LIMITS, front=0.03)
    gains = {"margin", "pdd_gain", "chunked_gain"}  # off by what no calibration has
    assert all(
        [one.low, one.high] == pytest.approx([one.value] * 2, nan_ok=True)
        for name, one in sure.answers.items()
        if name not in gains
    )
    assert all(sure.answers[name].low < sure.answers[name].value < sure.answers[name].high for name in gains)


def test_a_prefill_pool_in_its_own_layout():
    pair = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8")
    plain, same, own = (
        planner.plan(pair, Workload(2200, 170), SLA(0.4, 0.04), prefill=prefill, intervals=False)
        for prefill in (None, pair.resized(tp=2), pair.resized(tp=4))
    )
    assert same.solved.rates == plain.solved.rates
    rows = [one.compared.set_index("architecture").loc["disaggregated"] for one in (plain, own)]
    steps = [row.ttft - pair.front.seconds - handover().seconds for row in rows]
    assert steps[1] / rows[1].chunk < 0.7 * steps[0] / rows[0].chunk  # seconds of a prompt's token
    assert rows[1].prefill_units * 2 <= 7
    (prefill, decode, *_) = own.starts["disaggregated"].commands
    assert "--tensor-parallel-size 4" in prefill[1]
    assert "--tensor-parallel-size 2" in decode[1]
    choice = next(one for one in planner.as_record(own).architectures if one.architecture == "disaggregated")
    assert (choice.pools["prefill"].tp, choice.pools["decode"].tp, choice.layout.tp) == (4, 2, 2)
    assert 2 * choice.split["prefill"] + choice.split["decode"] <= 8
    for name in ("aggregated", "chunked"):
        assert own.solved.rates[name] == plain.solved.rates[name]


@pytest.mark.parametrize(
    ("prefill", "error", "words"),
    [
        (
            Unit.of("llama-3-70b", "h200-sxm", 2, "fp8"),
            ValueError,
            "prefill must be the case's unit with another layout",
        ),
        (Unit.of("llama-3-70b", "h100-sxm", 4), ValueError, "prefill must be the case's unit with another layout"),
        ("tp 4", TypeError, "prefill must be a Unit or None"),
    ],
)
def test_a_prefill_unit_is_another_layout_and_nothing_else(prefill, error, words):
    with pytest.raises(error, match=words):
        planner.plan(Unit.of("llama-3-70b", "h100-sxm", 2, "fp8"), WORK, LIMITS, prefill=prefill)


def test_a_narrow_lead_is_no_verdict():
    close = planner.plan(UNIT, WORK, SLA(0.4, 0.1))
    assert close.tie
    assert close.card.sure == "open"
    sure = planner.plan(UNIT, WORK, SLA(0.4, 0.022), front=0.03)
    assert not sure.tie
    assert sure.card.sure != "open"


@settings(max_examples=25)
@given(
    model=st.sampled_from(["llama-3-8b", "llama-3-70b", "mixtral-8x7b", "deepseek-v3"]),
    n_in=st.integers(32, 6000), n_out=st.integers(4, 1500), tpot=st.floats(0.02, 0.1),
    alpha=st.sampled_from([0, 0.5, 0.95]),
)  # fmt: skip
def test_every_setting_keeps_the_limits_by_the_unit_s_own_step(model, n_in, n_out, tpot, alpha):
    """And none is faster than the datasheet."""
    unit = Unit.of(model, "h200-sxm", 8, "fp8", "fp8")
    work = Workload(n_in, n_out, alpha)
    rows = Plan.of(Case(unit, work, SLA(5.0, tpot)), 0).compared.set_index("architecture")
    context, cached = n_in + n_out / 2, min(alpha * n_in, n_in - 1)
    new = n_in - cached
    chunk = rows.loc["chunked"]
    if chunk.rate > 0:
        step = unit._step(chunk.batch, context, new, cached, chunk.chunk / n_in)
        assert step <= tpot * (1 + 1e-9)
        tokens = chunk.chunk / n_in * new
        assert step >= unit.floor.step_time(chunk.batch, context, tokens) * (1 - 1e-9)
    split = rows.loc["disaggregated"]
    if split.rate > 0:
        assert unit.step_time(split.batch, context) <= tpot * (1 + 1e-9)
        assert split.decodes <= split.batch * (1 + 1e-9)
        assert split.step == pytest.approx(unit.step_time(split.decodes, context))
        assert split.batch <= unit.places(work)
    whole = rows.loc["aggregated"]
    if whole.rate > 0:
        assert unit.tpot(work, whole.batch) <= tpot * (1 + 1e-9)
        assert whole.tpot == pytest.approx(unit.tpot(work, whole.batch))
        assert whole.ttft == pytest.approx(unit.ttft(work, whole.batch) + unit.front.seconds)


@settings(max_examples=30)
@given(n_in=st.integers(64, 8000), n_out=st.integers(8, 800), tpot=st.floats(0.02, 0.2), ttft=st.floats(0.2, 5))
def test_looser_limits_never_serve_fewer(n_in, n_out, tpot, ttft):
    case = Case(UNIT, Workload(n_in, n_out), SLA(ttft, tpot))
    rate = served(case)
    assert served(replace(case, sla=SLA(2 * ttft, 2 * tpot))) >= rate * (1 - 1e-7)
    # The datasheet serves at least as many.
    assert served(replace(case, unit=UNIT.at_datasheet)) >= rate * (1 - 1e-7)


def test_a_quantile_allows_a_smaller_batch_than_the_mean():
    tail = planner.plan(UNIT, WORK, replace(LIMITS, quantile=0.99), intervals=False)
    assert tail["batch"] < PLAIN["batch"]


def test_stored_caches_gain_and_slower_tiers_gain_less():
    work = structs.replace(WORK, alpha=0.9)
    found = planner.plan(UNIT, work, LIMITS, intervals=False)
    table = found.offloading.set_index("where")
    assert list(table.index) == ["nowhere", *tiers()]
    assert table.gain["nowhere"] == 1
    assert (np.diff(table.rate[1:]) <= 1e-9).all()
    assert table.rate["hbm"] == pytest.approx(found["rate"])
    assert table.rate["nowhere"] == pytest.approx(planner.plan(UNIT, WORK, LIMITS, intervals=False)["rate"])
    disk = planner.plan(UNIT, work, LIMITS, tier=tier("local_ssd"), intervals=False)
    assert disk["rate"] == pytest.approx(table.rate["local_ssd"])
    # A store slower than computing makes prefills longer.
    slow = UNIT.costs(work, 2 * 1e8)
    assert slow.step_seconds(0, 1) == pytest.approx(0.9 * 2200 * UNIT.model.kv_token("fp8") / (2 * 1e8))
    assert slow.ttft_1 > UNIT.costs(WORK).ttft_1


@pytest.mark.parametrize("engine", ["vllm", "trtllm", "sglang"])
@pytest.mark.parametrize("best", architectures.ARCHITECTURES)
def test_settings_speak_the_engine_s_language(engine, best):
    found = planner.plan(replace(UNIT, engine=engine), WORK, LIMITS, intervals=False)
    row, told = found.solved.settings[best], found.starts[best].settings
    text = " ".join(f"{name} {value}" for name, value in told.items())
    seqs = {"vllm": "--max-num-seqs", "trtllm": "max_batch_size", "sglang": "--max-running-requests"}[engine]
    extra = 1 if best == "chunked" else 0
    assert f"{seqs} {int(np.ceil(row.batch)) + extra}" in text
    assert ("fp8" in text) == (UNIT.kv == "fp8")  # engines keep BF16 if nobody says
    if best == "disaggregated":
        assert (told["prefill units"], told["decode units"]) == (row.prefill_units, row.decode_units)
    if best == "chunked" and engine == "vllm":
        assert told["--max-num-batched-tokens"] == int(np.ceil(row.chunk)) + int(np.ceil(row.batch))


def test_an_impossible_sla_says_by_how_much_and_what_would_meet_it():
    found = planner.plan(UNIT, WORK, SLA(ttft=0.1, tpot=0.010), front=0.0)
    assert not found.feasible
    assert found.best == ""
    assert found["batch"] == 0
    assert "rate" not in found.answers  # what is impossible is absent
    assert found.settings == {}
    text = str(found)
    assert "No architecture keeps the limits" in text
    assert "TPOT: a request alone takes" in text
    assert "TTFT: a request alone takes" in text
    assert "TP 8 in fp8 would meet the SLA" in text
    better = planner.plan(
        Unit.of("llama-3-70b", "h100-sxm", 8, "fp8", "fp8"), WORK, SLA(ttft=0.1, tpot=0.010), front=0.0
    )
    assert better.feasible
    never = planner.plan(UNIT, WORK, SLA(ttft=1e-6, tpot=1e-6), intervals=False)
    assert never.advice[-1].startswith("neither more GPUs")
    large = planner.plan(UNIT, Workload(600_000, 10), SLA(ttft=1e4, tpot=10), intervals=False)
    assert "tokens of KV cache" in large.advice[0]


def test_where_nothing_meets_the_limits_all_is_printed_that_is_known():
    empty = planner.plan(UNIT, WORK, SLA(0.1, 0.01), intervals=False)
    assert json.loads(planner.as_record(empty).as_json())["answer"]["architecture"] is None
    assert "would meet" in empty._repr_html_()
    assert len(empty.frame()) == len(empty.answers)


def test_what_was_never_calibrated_is_said():
    found = planner.plan(Unit.of("llama-3-8b", "l40s", tp=1), WORK, LIMITS, intervals=False)
    assert {line.split()[0] for line in found.outside} == {"GPU"}
    assert "! not calibrated: GPU l40s" in str(found)


def test_the_tornado_is_sorted_and_true():
    frame = planner.sensitivity(UNIT, WORK, LIMITS)
    assert (np.diff(frame.swing) <= 0).all()
    assert {"n_in", "n_out", "sla_tpot", "sla_ttft", "fp8", "per_sequence_overhead"} <= set(frame.input)
    assert "alpha" not in set(frame.input)  # there is nothing stored to vary
    row = frame.set_index("input").loc["n_in"]
    shorter = served(Case(UNIT, Workload(0.8 * 2200, 170), LIMITS))
    assert row.low == pytest.approx(shorter)
    with pytest.raises(ValueError, match="answer must be one of"):
        planner.sensitivity(UNIT, WORK, LIMITS, "speed")


def test_a_sweep_has_a_row_for_each_pair():
    units = [UNIT, Unit.of("llama-3-70b", "h100-sxm", 4, "fp8", "fp8")]
    frame = planner.sweep(units, [WORK, Workload(512, 512)], LIMITS, price=2.5)
    assert len(frame) == 4
    assert frame.rate[0] == FOUND["rate"]
    assert frame.usd_per_million.notna().all()


def test_bad_plans():
    for options, words in (({"price": 0}, "price must be"), ({"units": 1}, "units must be a whole number from 2")):
        with pytest.raises(ValueError, match=words):
            planner.plan(UNIT, WORK, LIMITS, **options)
    with pytest.raises(ValueError, match="n_out must be more than one token"):
        planner.plan(UNIT, Workload(100, 1), LIMITS)
    for options, words in (({"quantile": 1.0}, "quantile must be"), ({"tpot": 0}, "tpot must be")):
        with pytest.raises(ValueError, match=words):
            replace(LIMITS, **options)


def test_delta_h_of_a_plan_is_the_increment_and_no_formula_of_the_read_stands_beside_it():
    costs = UNIT.costs(WORK)
    assert PLAIN["delta_h"] == pytest.approx(costs.delta_h)
    assert PLAIN["delta_h"] > costs.cache_read
    assert PLAIN.answers["delta_h"].formula == ""
