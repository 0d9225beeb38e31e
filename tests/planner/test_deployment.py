"""Plans: the numbers are the formulas', limits are kept, infeasible SLAs say what is missing."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_math import perf, planner, theory
from inference_math.catalogue.tiers import tier, tiers
from inference_math.planner import architectures
from inference_math.planner.solve import Case, solve
from inference_math.unit import Unit
from inference_math.unit.coefficients import DATASHEET
from inference_math.workload import SLA, Workload

UNIT = Unit.of("llama-3-70b", "h100-sxm", tp=2, weights="fp8", kv="fp8")
WORK, LIMITS = Workload(2200, 170), SLA(ttft=1.0, tpot=0.040)
FOUND = planner.plan(UNIT, WORK, LIMITS, price=2.5)


def test_the_numbers_are_the_formulas():
    costs = UNIT.costs(WORK)
    # The closed form and the binomial mean over steps in quadrature agree where prompts are long.
    assert FOUND["batch_tpot"] == theory.max_batch(
        sla_tpot=0.040, tpot_1=costs.tpot_1, delta_p=costs.delta_p, delta_h=costs.read * (1 - 1 / 170)
    )
    assert FOUND["batch_memory"] == theory.max_batch_memory(kv_capacity=UNIT.kv_capacity, n_in=2200, n_out=170)
    compared = architectures.compare(costs, 0.040, 1.0).set_index("architecture")
    assert FOUND["rate"] == compared.rate.max()
    assert FOUND["batch"] == compared.batch["aggregated"]
    assert FOUND["pdd_gain"] == pytest.approx(compared.rate["disaggregated"] / compared.rate["aggregated"])
    tokens = FOUND["rate"] * 170 / 2
    assert FOUND["tokens_per_gpu"] == pytest.approx(tokens)
    assert FOUND["usd_per_million"] == pytest.approx(2.5 / 3600 / tokens * 1e6)
    assert FOUND.answers["batch"].why.endswith("TPOT binds")
    for answer in FOUND.answers.values():
        assert answer.formula == "" or answer.formula in theory.CATALOGUE


def test_intervals_hold_the_values():
    for answer in FOUND.answers.values():
        assert answer.low <= answer.value <= answer.high, answer.name
    for row in FOUND.compared.itertuples():
        assert row.rate_low <= row.rate <= row.rate_high
    assert FOUND.compared.best_in.sum() == pytest.approx(1)
    sure = planner.plan(UNIT.calibrated(DATASHEET), WORK, LIMITS)
    assert all(answer.low == answer.value == answer.high for answer in sure.answers.values())
    assert "too close" not in sure.verdict


def test_a_narrow_lead_is_no_verdict():
    close = planner.plan(UNIT, replace(WORK, alpha=0.9), SLA(ttft=0.4, tpot=0.040, quantile=0.9))
    assert "too close to call" in close.verdict
    margin = close.answers["margin"]
    assert margin.low < 0 < margin.high


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
    rows = solve(Case(unit, work, SLA(5.0, tpot))).compared.set_index("architecture")
    context, cached = n_in + n_out / 2, alpha * (n_in - 1)
    new = n_in - cached
    chunk = rows.loc["chunked"]
    if chunk.rate > 0:
        step = unit._step(chunk.batch, context, new, cached, chunk.chunk / n_in)
        assert step <= tpot * (1 + 1e-9)
        assert step >= unit.limit._step(chunk.batch, context, new, cached, chunk.chunk / n_in)
    split = rows.loc["disaggregated"]
    if split.rate > 0:
        assert unit.step_time(split.batch, context) <= tpot * (1 + 1e-9)
        assert split.step == pytest.approx(unit.step_time(split.batch, context))
        assert split.batch * (n_in + n_out) <= unit.kv_capacity
    whole = rows.loc["aggregated"]
    if whole.rate > 0 and unit.kind == "dense":  # whose steps are convex in their prompts
        assert unit.tpot(work, whole.batch) <= tpot * (1 + 1e-9)  # a lower bound of the binomial mean


@settings(max_examples=30)
@given(n_in=st.integers(64, 8000), n_out=st.integers(8, 800), tpot=st.floats(0.02, 0.2), ttft=st.floats(0.2, 5))
def test_looser_limits_never_serve_fewer(n_in, n_out, tpot, ttft):
    case = Case(UNIT, Workload(n_in, n_out), SLA(ttft, tpot))
    rate = solve(case).numbers["rate"]
    assert solve(replace(case, sla=SLA(2 * ttft, 2 * tpot))).numbers["rate"] >= rate * (1 - 1e-9)
    # The datasheet serves at least as many.
    assert solve(replace(case, unit=UNIT.limit)).numbers["rate"] >= rate * (1 - 1e-9)


def test_a_quantile_allows_a_smaller_batch_than_the_mean():
    tail = planner.plan(UNIT, WORK, replace(LIMITS, quantile=0.99), intervals=False)
    assert tail["batch"] < FOUND["batch"]


def test_stored_caches_gain_and_slower_tiers_gain_less():
    work = replace(WORK, alpha=0.9)
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
    assert slow.ttft_1 == pytest.approx(0.9 * 2200 * UNIT.model.kv_token("fp8") / (2 * 1e8))
    assert slow.ttft_1 > UNIT.costs(WORK).ttft_1


@pytest.mark.parametrize("engine", ["vllm", "trtllm", "sglang"])
@pytest.mark.parametrize("best", architectures.ARCHITECTURES)
def test_settings_speak_the_engine_s_language(engine, best, monkeypatch):
    real = perf.plan.compared

    def only(*arguments):
        rows = real(*arguments)
        return {name: row if name == best else row | {"rate": row["rate"] * 1e-3} for name, row in rows.items()}

    monkeypatch.setattr(perf.plan, "compared", only)
    found = planner.plan(replace(UNIT, engine=engine), WORK, LIMITS, intervals=False)
    assert found.best == best
    row = found.compared.set_index("architecture").loc[best]
    text = " ".join(f"{name} {value}" for name, value in found.settings.items())
    seqs = {"vllm": "--max-num-seqs", "trtllm": "max_batch_size", "sglang": "--max-running-requests"}[engine]
    extra = 1 if best == "chunked" else 0
    assert f"{seqs} {int(np.ceil(row.batch)) + extra}" in text
    if best == "disaggregated":
        assert found.settings["prefill units"] + found.settings["decode units"] == 8
    if best == "chunked" and engine == "vllm":
        assert found.settings["--max-num-batched-tokens"] == int(np.ceil(row.chunk)) + int(np.ceil(row.batch))


def test_an_impossible_sla_says_by_how_much_and_what_would_meet_it():
    found = planner.plan(UNIT, WORK, SLA(ttft=0.1, tpot=0.010))
    assert not found.feasible
    assert found.best == ""
    assert found["batch"] == found["rate"] == 0
    assert found.settings == {}
    text = str(found)
    assert "no architecture meets the SLA" in text
    assert "TPOT: a request alone takes" in text
    assert "TTFT: a request alone takes" in text
    assert "TP 8 in fp8 would meet the SLA" in text
    better = planner.plan(Unit.of("llama-3-70b", "h100-sxm", 8, "fp8", "fp8"), WORK, SLA(ttft=0.1, tpot=0.010))
    assert better.feasible
    never = planner.plan(UNIT, WORK, SLA(ttft=1e-6, tpot=1e-6), intervals=False)
    assert never.advice[-1].startswith("neither more GPUs")
    large = planner.plan(UNIT, Workload(600_000, 10), SLA(ttft=1e4, tpot=10), intervals=False)
    assert "tokens of KV cache" in large.advice[0]


def test_it_prints_as_text_html_and_json():
    text = str(FOUND)
    assert "llama-3-70b (fp8, KV fp8) on 2 x h100-sxm" in text
    assert "Start with (keeps the SLA in " in text
    assert "[max_batch]" in text
    page = FOUND._repr_html_()
    assert page.count("<table") == 2
    assert "max_batch_memory" in page
    content = json.loads(json.dumps(FOUND.to_dict(), allow_nan=False))
    assert content["answers"]["batch"]["value"] == FOUND["batch"]
    assert content["best"] == FOUND.best
    assert len(FOUND.frame()) == len(FOUND.answers)
    empty = planner.plan(UNIT, WORK, SLA(0.1, 0.01))
    json.dumps(empty.to_dict(), allow_nan=False)
    assert "would meet" in empty._repr_html_()


def test_what_was_never_calibrated_is_said():
    found = planner.plan(Unit.of("mixtral-8x7b", "b200", tp=1), WORK, LIMITS, intervals=False)
    assert {line.split()[0] for line in found.outside} == {"kind", "gpu"}
    assert "! not calibrated: gpu b200" in str(found)


def test_the_tornado_is_sorted_and_true():
    frame = planner.sensitivity(UNIT, WORK, LIMITS)
    assert (np.diff(frame.swing) <= 0).all()
    assert {"n_in", "n_out", "sla_tpot", "sla_ttft", "fp8", "request"} <= set(frame.input)
    assert "alpha" not in set(frame.input)  # there is nothing stored to vary
    row = frame.set_index("input").loc["n_in"]
    shorter = solve(Case(UNIT, Workload(0.8 * 2200, 170), LIMITS)).numbers["rate"]
    assert row.low == pytest.approx(shorter)
    with pytest.raises(ValueError, match="answer must be one of"):
        planner.sensitivity(UNIT, WORK, LIMITS, "speed")


def test_a_sweep_has_a_row_for_each_pair():
    units = [UNIT, Unit.of("llama-3-70b", "h100-sxm", 4, "fp8", "fp8")]
    frame = planner.sweep(units, [WORK, Workload(512, 512)], LIMITS, price=2.5)
    assert len(frame) == 4
    assert frame.rate[0] == FOUND["rate"]
    assert frame.usd_per_million.notna().all()


@pytest.mark.parametrize(
    ("options", "words"), [({"price": 0}, "price must be"), ({"units": 1}, "units must be a whole number >= 2")]
)
def test_bad_plans(options, words):
    with pytest.raises(ValueError, match=words):
        planner.plan(UNIT, WORK, LIMITS, **options)


def test_answers_need_a_second_token():
    with pytest.raises(ValueError, match="n_out must be more than one token"):
        planner.plan(UNIT, Workload(100, 1), LIMITS)
    with pytest.raises(ValueError, match="quantile must be"):
        SLA(1, 1, 1.0)
    with pytest.raises(ValueError, match="tpot must be"):
        SLA(1, 0)


def test_the_frontier_is_what_the_costs_say():
    costs = UNIT.costs(WORK)
    frame = planner.frontier(UNIT, WORK, [1, 8, 64, 4096])
    assert list(frame.batch) == [1, 8, 64]  # more do not fit the KV cache
    assert frame.per_user.to_numpy() == pytest.approx(1 / costs.tpot(np.array([1, 8, 64])))
    assert frame.per_gpu.to_numpy() == pytest.approx(costs.rate(np.array([1, 8, 64])) * 170 / 2)
    for name in ("per_user", "per_gpu"):
        assert (frame[f"{name}_low"] < frame[name]).all()
        assert (frame[name] < frame[f"{name}_high"]).all()


def test_batches_by_prompt_fall_and_hold_the_closed_form():
    frame = planner.batches(UNIT, WORK, LIMITS, [500, 2200, 6000])
    assert (np.diff(frame.batch) < 0).all()
    assert (frame.batch_low <= frame.batch).all()
    assert (frame.batch <= frame.batch_high).all()
    assert frame.batch[1] == FOUND["batch"]
    stored = planner.batches(UNIT, replace(WORK, alpha=0.9), LIMITS, [500, 2200, 6000], tier("dram"))
    assert (stored.batch >= frame.batch).all()
