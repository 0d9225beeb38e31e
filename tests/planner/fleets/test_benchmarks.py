"""A benchmark foreseen: what it holds, and what it says of itself."""

import json
from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import pytest
from made import Made
from refusals import refused
from scipy.stats import t as student

from inference_math import Unit, Workload, simulate
from inference_math.catalogue.engines import engines
from inference_math.catalogue.links import link
from inference_math.evidence.numerals import in_seconds
from inference_math.evidence.sentences import render
from inference_math.optimiser.gain_error import FARTHER
from inference_math.simulate.cost import timed
from inference_math.simulate.engine import Request
from inference_math.simulate.schedulers import system_of
from inference_math.unit.front import handover
from inference_math.unit.nearest import known_comparisons
from inference_math.workload import Requests, Trace
from inference_math_planner import Benchmark, cadences, foresee
from inference_math_planner.fleets import bench, queues, traffic
from inference_math_planner.fleets.bench import bench_lengths

UNIT = Unit.of("llama-3-8b", "h100-sxm")
AHEAD = simulate.SchedulerPolicy(ahead=True)  # as today's vLLM plans its steps


def test_more_prompts_at_the_same_load_show_another_ttft():
    few, many = (
        foresee(UNIT, Benchmark(1000, 200, prompts=32 * each, concurrency=32, range_ratio=0.3)) for each in (2, 60)
    )
    assert few.table.loc["TTFT", "mean"] > 1.5 * many.table.loc["TTFT", "mean"]
    assert few.enough == many.enough
    assert few.enough % 32 == 0
    assert many.burst == pytest.approx(few.burst, rel=0.05)
    # With as many as it says the mean is within a twentieth of the steady one, and a little for the play itself.
    enough = foresee(UNIT, Benchmark(1000, 200, prompts=int(few.enough), concurrency=32, range_ratio=0.3, seed=1))
    assert enough.table.loc["TTFT", "mean"] / few.steady == pytest.approx(1.05, abs=0.04)


def test_users_who_wait_for_a_place_are_a_queue_and_no_burst():
    told = foresee(UNIT, Benchmark(8000, 1000, prompts=300, concurrency=100, range_ratio=0.1))
    assert told.steady > 10
    assert told.enough != told.enough
    assert "opening burst" not in str(told)
    assert any("more than the" in note for note in told.notes)


def test_a_set_up_that_nobody_served_says_so():
    run = Benchmark(1000, 100, prompts=20, concurrency=2)
    notes = {name: foresee(Unit.of(name, "h100-sxm"), run).notes for name in ("qwen3-8b", "qwen3-14b")}
    assert notes["qwen3-8b"] == ()
    assert "intervals are those of another engine than ours" in notes["qwen3-14b"][0]


class Same:
    """The lengths of a benchmark that is foreseen, for the simulator."""

    def __init__(self, n_in, n_out, span, seed=0):
        self.asked = n_in, n_out, span, traffic.chances(seed, 1.0)[1]

    def draw(self, count, rng):
        n_in, n_out, span, chances = self.asked
        orders = [queues.shuffled(chances, place, count, 0.0) for place in (1, 2)]
        drawn = (np.array(bench.bench_lengths(*one)) for one in zip((n_in, n_out), (span, span), orders, strict=True))
        return Requests(*drawn, np.zeros(count, dtype=int))


def simulated(asked, scheduler, unit=UNIT, front=None):
    """Return the simulator's run of a benchmark, with every gap."""
    return simulate.benchmark(
        Same(asked.n_in, asked.n_out, asked.range_ratio, asked.seed), simulate.Steps(unit), scheduler=scheduler,
        concurrency=asked.concurrency, requests=asked.prompts, every_gap=True,
        front=unit.front.seconds if front is None else front,
    )  # fmt: skip


def test_groups_of_attention_have_a_budget_each_and_drafts_wider_ends():
    deep = Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8, engine="sglang")
    asked = Benchmark(1000, 100, prompts=64, concurrency=32, range_ratio=0.2, budget=2048)
    told, drafting = foresee(deep, asked), foresee(replace(deep, drafts=2), asked)
    policy, most = simulate.SchedulerPolicy(alone=True, ahead=True), deep.places(Workload(1000, 100))
    run = simulated(asked, simulate.Chunked(8 * 2048, max_batch=most, policy=policy, ranks=8), deep)
    assert told.table.loc["TTFT", "mean"] == pytest.approx(run.requests.ttft.mean())
    assert "8 ranks step together" in str(told)
    assert "ranks" not in str(foresee(UNIT, Benchmark(1000, 20, prompts=4)))
    assert drafting.spread["ttft"][1] > told.spread["ttft"][1]


@pytest.mark.parametrize(
    ("unit", "users"), [(Unit.of("llama-3-70b", "h100-sxm", 2), 32), (Unit.of("llama-3-8b", "a100-80gb"), 300)]
)
def test_a_latency_is_as_unsure_as_the_law_of_means_under_many_draws(unit, users):
    asked = Benchmark(2200, 170, prompts=2 * users, concurrency=users)
    told = foresee(unit, asked)
    at_once = told.rate * told.table.loc["latency", "mean"]  # Little's law

    def latency(one):
        return one.e2e(asked.work, at_once)

    wide = unit.left(asked.work, at_once) / unit.calibration.spread
    low, high = np.array(unit.spread(latency, 0.9, draws=4096, wide=wide)) / latency(unit)
    assert told.spread["e2e"] == pytest.approx((low, high), rel=0.04)
    mean = told.table.loc["latency", "mean"]
    ends = [in_seconds(mean * end) for end in told.spread["e2e"]]
    assert f"Nine runs of ten measure a mean latency of {ends[0]} to {ends[1]}." in str(told)


def test_one_token_answers_have_no_time_between_tokens():
    told = foresee(UNIT, Benchmark(1000, 1, prompts=32, concurrency=8))
    assert json.loads(json.dumps(told.to_dict(), allow_nan=False))["table"]["TPOT"]["mean"] is None
    assert "nan" not in str(told)


def test_it_is_the_simulator_with_the_front():
    asked = Benchmark(900, 150, prompts=120, concurrency=12, range_ratio=0.2, seed=5)
    told, most = foresee(UNIT, asked, front=0.03), UNIT.places(Workload(900, 150))
    run = simulated(asked, simulate.Chunked(8192, max_batch=most, policy=AHEAD), front=0.03)
    for row, name in (("TTFT", "ttft"), ("latency", "latency"), ("TPOT", "tpot"), ("ITL", "gap")):
        near = 1e-6 if row != "ITL" else 0.01  # gaps of steps in a row are noted by their mean
        for column in told.table:
            assert told.table.loc[row, column] == pytest.approx(run.summary()[f"{name}_{column.lower()}"], rel=near)
    assert told.rate == pytest.approx(run.request_rate)


def test_an_engine_of_before_0_13_plans_no_step_ahead():
    """A request alone finds nothing planned; of those that come while others decode each waits a step more."""
    today, old = Unit.of("llama-3-8b", "h100-sxm"), Unit.of("llama-3-8b", "h100-sxm", version="0.12.0")
    old = old.calibrated(today.calibration)
    one, many = Benchmark(1000, 200, prompts=1), Benchmark(1000, 200, prompts=400, rate=8.0)
    first, others = ([foresee(unit, run, front=0.01).table for unit in (old, today)] for run in (one, many))
    assert first[0].equals(first[1])
    step = others[1].loc["ITL", "P50"]
    assert others[1].loc["TTFT", "P50"] - others[0].loc["TTFT", "P50"] == pytest.approx(step, rel=0.3)
    (row,) = cadences(old, many, front=0.01, every=(1,)).to_dict("records")
    assert row["ttft"] == pytest.approx(others[0].loc["TTFT", "mean"])
    told = Unit.of("llama-3-8b", "h100-sxm", async_scheduling=False).calibrated(today.calibration)
    assert foresee(told, many, front=0.01).table.equals(others[0])


@pytest.mark.parametrize(("n_out", "span"), [(200, 0.0), (10, 0.01)])  # the latter round to one length
def test_equal_answers_never_reach_the_steady_state_and_it_says_so(n_out, span):
    told = foresee(UNIT, Benchmark(1000, n_out, prompts=64, concurrency=16, range_ratio=span))
    assert told.enough == inf
    assert "Equal answers never spread users who began together" in str(told)
    assert told.to_dict()["enough"] is None


def test_arrivals_have_no_burst_and_bunches_wait_longer():
    calm, bunched = (foresee(UNIT, Benchmark(1000, 200, prompts=400, rate=8.0, burstiness=each)) for each in (1.0, 0.1))
    assert bunched.table.loc["TTFT", "P99"] > calm.table.loc["TTFT", "P99"]
    run = simulate.open_loop(
        Same(1000, 200, 0.0), simulate.Steps(UNIT), rate=8.0, requests=400, seed=0,
        scheduler=simulate.Chunked(8192, max_batch=UNIT.places(Workload(1000, 200)), policy=AHEAD),
    )  # fmt: skip
    for row, seen in (("TTFT", run.requests.ttft), ("latency", run.requests.latency)):
        assert calm.table.loc[row, "mean"] == pytest.approx(seen.mean() + UNIT.front.seconds, rel=0.1)
    assert calm.to_dict()["burst"] is None


def test_all_at_once_is_one_burst():
    told = foresee(UNIT, Benchmark(1000, 50, prompts=24))
    assert told.burst == pytest.approx(told.table.loc["TTFT", "mean"])


def test_a_rate_and_a_concurrency_are_the_smaller_of_both():
    """A client that sends at a rate to a few users: slow, it is open; fast, a closed loop."""

    def seen(**asked):
        return foresee(UNIT, Benchmark(1000, 100, prompts=300, **asked))

    slow, closed = seen(rate=0.5, concurrency=8), seen(concurrency=8)
    assert slow.table.loc["TTFT", "mean"] == pytest.approx(seen(rate=0.5).table.loc["TTFT", "mean"])
    assert seen(rate=1e5, concurrency=8).rate == pytest.approx(closed.rate, rel=0.02)
    assert slow.rate < seen(rate=0.8 * closed.rate, concurrency=8).rate < closed.rate


def test_who_must_wait_for_a_user_is_sent_when_one_is_free():
    """By hand: one user, two prompts at once, one later."""
    cost = simulate.StepCost(t_w=1.0, prompt=0.5)
    requests = [Request(i, time, 10, 3, 0) for i, time in enumerate((0.0, 0.1, 20.0))]
    asked = Made({"users": 1, "front": 0.0, "prefill": []})
    noted, seconds = bench.bench_played(system_of(simulate.Chunked(100), None), timed(cost), asked, requests)
    assert noted.sent == [0.0, 3.5, 20.0]
    assert noted.ttft == [1.5, 1.5, 1.5]
    assert noted.tpot == [1.0, 1.0, 1.0]
    assert seconds == 23.5


def test_a_prefill_pool_in_its_own_layout():
    """More GPUs of a prefill unit bring the first token sooner, and no other one."""
    two = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8")
    run = Benchmark(2200, 170, prompts=40, concurrency=4, pools=(1, 1))
    plain, own = foresee(two, run, front=0.02), foresee(two, run, front=0.02, prefill=two.resized(tp=8))
    assert own.table.loc["TTFT", "P50"] < 0.6 * plain.table.loc["TTFT", "P50"]
    assert own.table.loc["TPOT", "P50"] == pytest.approx(plain.table.loc["TPOT", "P50"], rel=0.2)
    for more, wrong in (({}, two.resized(weights="bf16", tp=4)), ({"pools": None}, two.resized(tp=8))):
        with pytest.raises(ValueError, match="prefill must be"):
            foresee(two, replace(run, **more), prefill=wrong)


def test_bad_input_is_named():
    wrong = [
        {"prompts": 0}, {"prompts": 100_001}, {"concurrency": 0}, {"seqs": 0}, {"alpha": 1.5}, {"range_ratio": 1.0},
        {"rate": -1.0}, {"burstiness": 0.0}, {"burstiness": 1e-9}, {"budget": 0},
    ]  # fmt: skip
    refused(partial(Benchmark, 1000, 200), {"prompts": 10}, *wrong)
    for pools, words in ((0, "prefill_units must be a whole number from 1 to 512, not 0"), (1, "link must be one of")):
        with pytest.raises(ValueError, match=words):
            Benchmark(1000, 200, 10, pools=(pools, 1), link="string")
    run = Benchmark(1000, 200, prompts=10)
    refused(foresee, {"unit": UNIT, "run": run}, {"front": -0.1})
    refused(cadences, {"unit": UNIT, "run": run}, {"every": ()}, {"every": (0,)})


def test_cadences_of_one_engine_move_the_median_and_of_ranks_the_mean():
    one = cadences(UNIT, Benchmark(1000, 200, prompts=1500, rate=20.0, range_ratio=0.5)).set_index("every")
    assert one.gap[16] == pytest.approx(one.gap[1], rel=0.1)
    assert one.gap_p90[16] < 0.6 * one.gap_p90[1]
    assert (np.diff(one.ttft) > 0).all()
    ranks = Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8)
    by = cadences(ranks, Benchmark(1000, 200, prompts=600, rate=8.0, range_ratio=0.5)).set_index("every")
    assert by.gap[16] < 0.7 * by.gap[1]
    assert by.ttft[2] < by.ttft[1] < by.ttft[16]  # a step that is planned ahead is a clean one


def test_cadences_that_do_about_as_well_are_named_together():
    rows = [[1, 0.02, 0.02, 0.03, 0.05, 0.5, 9], [2, 0.0199, 0.018, 0.03, 0.06, 0.6, 9]]
    exact = [[], [0.0, 0.01, 99], [0.0, 0.01, 99], [0.0, 0.3, 99], [], [], [0.0, 0.04, 99]]
    assert list(map(render, bench.cadence_said(rows, exact, "")))[:4] == [
        "The mean gap is least with N = 1 (20 ms) or 2 (19.9 ms), about the same.",
        "The median gap is least with N = 2 (18 ms); that it is shorter than with N = 1 is sure (99 of 100 times).",
        "P90 of the gaps is least with N = 1 (30 ms) or 2 (30 ms), about the same.",
        "P99 of the gaps is least with N = 1 (50 ms).",
    ]


def test_what_is_open_of_a_cadence_is_to_be_measured():
    """A doubt of 0.3 on a gain of a ninth leaves it open; of P99 no pair was run, so it is open, whatever is said."""
    rows = [[1, 0.02, 0.02, 0.03, 0.05, 0.5, 9], [2, 0.02, 0.018, 0.03, 0.02, 0.6, 9]]
    wide = [[], [0.0, 0.3, 4], [0.0, 0.3, 4], [0.0, 0.3, 4], [], [], [0.0, 0.3, 4]]
    said = list(map(render, bench.cadence_said(rows, wide, "")))
    assert said[1].endswith("that it is shorter than with N = 1 is open (62 of 100 times).")
    assert said[3].endswith("whether it is shorter than with N = 1 is open (no pair of runs was compared in it).")
    assert said[5] == "Where it is open, measure both: run this benchmark with N = 1 and with the other N."
    none = [[1, 0.02, 0.02, 0.03, 0.05, 0.5, 9]]
    assert not any("open" in one for one in map(render, bench.cadence_said(none, wide, "")))


def test_cadences_say_how_sure_they_are_by_their_own_pairs():
    """The chance of a shorter gap is Student's of the few pairs, by their error and how far the lengths are."""

    def chance(kind, gain):
        pairs = known_comparisons()[kind]
        sd = pairs.sd * (1 + 2 * FARTHER)  # both lengths are twice those of the pairs
        return student.cdf(np.log(gain) / sd, pairs.pairs)

    unit, run = Unit.of("llama-3-8b", "h100-sxm"), Benchmark(1024, 64, 200, 16, range_ratio=0.5)
    first, other = cadences(unit, run, every=(1, 8)).to_dict("records")
    for name, kind in (("gap", "cadence, gap"), ("gap_p50", "cadence, p50"), ("gap_p90", "cadence, p90")):
        assert other[f"{name}_chance"] == pytest.approx(chance(kind, first[name] / other[name]))
    assert other["rate_chance"] == pytest.approx(chance("cadence", other["rate"] / first["rate"]))
    assert np.isnan(first["gap_chance"])
    assert first["gap_sure"] == ""


@pytest.mark.parametrize("engine", engines())
def test_a_cadence_of_one_on_one_rank_is_the_benchmark(engine):
    asked = Unit.of("llama-3-8b", "h100-sxm", engine=engine), Benchmark(900, 150, 120, 12, range_ratio=0.2)
    (row,), told = cadences(*asked, every=(1,)).to_dict("records"), foresee(*asked)
    assert row["gap"] == pytest.approx(told.table.loc["ITL", "mean"])
    assert row["ttft"] == pytest.approx(told.table.loc["TTFT", "mean"])
    assert row["rate"] == pytest.approx(told.rate)


def test_lengths_of_a_benchmark_are_even_between_rounded_ends():
    assert bench_lengths(10, 0.13, [0.0, 0.999]) == [9, 11]
    assert bench_lengths(10, 0.0, [0.0, 0.999]) == [10, 10]
    assert bench_lengths(3, 0.99, [0.0, 0.999]) == [1, 6]
    assert sorted(set(bench_lengths(10, 0.2, [0.1, 0.3, 0.5, 0.7, 0.9]))) == [8, 9, 10, 11, 12]


@pytest.mark.parametrize(
    ("engine", "gpu", "groups", "limits"),
    [
        ("vllm", "a100-80gb", 1, (2048, 256)), ("vllm", "l40s", 1, (2048, 256)), ("vllm", "h100-sxm", 1, (8192, 1024)),
        ("vllm", "mi300x", 1, (8192, 1024)), ("vllm", "h200-sxm", 8, (8192, 1024)), ("sglang", "l40s", 1, (4096, 2048)),
        ("sglang", "a100-80gb", 1, (8192, 2048)), ("sglang", "b200", 1, (16384, 2048)),
        ("sglang", "h200-sxm", 8, (1024, 256)), ("trtllm", "a100-80gb", 1, (8192, 2048)),
    ],
)  # fmt: skip
def test_an_engine_that_is_told_nothing_takes_its_own_limits_of_the_gpu(engine, gpu, groups, limits):
    """vLLM's of A100s are those of small cards; SGLang's are of all groups of attention together."""
    model, precision = ("deepseek-v3", "fp8") if groups > 1 else ("llama-3-8b", None)
    unit = Unit.of(model, gpu, weights=precision, engine=engine, dp=groups, ep=groups)
    asked = {"prompts": 300, "concurrency": 300, "range_ratio": 0.1}
    usual, said = (
        foresee(unit, Benchmark(500, 50, **asked, **more))
        for more in ({}, dict(zip(("budget", "seqs"), limits, strict=True)))
    )
    assert usual.limits == limits
    assert usual.to_dict() == said.to_dict()
    assert f"A step holds at most {limits[0]:,} tokens, the engine {limits[1]:,} requests at once." in str(usual)
    assert usual.to_dict()["max_num_seqs"] == limits[1]


def test_requests_beyond_what_the_engine_lets_in_wait():
    free, bound = (foresee(UNIT, Benchmark(500, 100, 64, 32, range_ratio=0.2, seqs=seqs)) for seqs in (None, 4))
    assert bound.table.loc["TPOT", "mean"] < 0.8 * free.table.loc["TPOT", "mean"]
    assert bound.table.loc["TTFT", "mean"] > 5 * free.table.loc["TTFT", "mean"]
    run = simulated(Benchmark(500, 100, 64, 32, range_ratio=0.2), simulate.Chunked(8192, max_batch=4, policy=AHEAD))
    assert bound.table.loc["TTFT", "mean"] == pytest.approx(run.requests.ttft.mean())


def test_without_chunks_a_prompt_is_computed_in_one_step():
    """Of prompts longer than a step each decode waits for a whole one, or for a part of it."""
    asked = {"prompts": 60, "concurrency": 12, "range_ratio": 0.3, "budget": 2048}
    cut, whole, as_usual = (foresee(UNIT, Benchmark(6000, 100, chunked=one, **asked)) for one in (True, False, None))
    assert whole.limits[0] == 7800
    assert whole.table.loc["ITL", "P99"] > 2 * cut.table.loc["ITL", "P99"]
    assert as_usual.to_dict() == cut.to_dict()
    own = Unit.of("llama-3-8b", "h100-sxm", engine="trtllm")  # which cuts no prompt unless it is told to
    usual, told = (foresee(own, Benchmark(6000, 100, chunked=one, **asked)) for one in (None, True))
    assert usual.table.loc["ITL", "P99"] > 2 * told.table.loc["ITL", "P99"]


def test_what_is_stored_of_prompts_is_not_computed():
    plain, stored = (foresee(UNIT, Benchmark(4000, 50, 80, 16, range_ratio=0.2, alpha=alpha)) for alpha in (0, 0.9))
    assert stored.rate > 2 * plain.rate
    assert stored.table.loc["TTFT", "mean"] < 0.4 * plain.table.loc["TTFT", "mean"]
    assert stored.enough > 0
    assert stored.steady < 0.5 * plain.steady


def test_recorded_lengths_are_those_of_the_requests():
    """All alike they are the benchmark of these lengths; of two kinds each request is one or the other."""
    asked = {"prompts": 120, "concurrency": 8}
    equal = foresee(UNIT, Benchmark.like(Trace([900] * 3, [150] * 3), **asked))
    plain = foresee(UNIT, Benchmark(900, 150, **asked))
    assert equal.table.loc["TTFT"].tolist() == pytest.approx(plain.table.loc["TTFT"].tolist())
    assert equal.enough == inf
    two = Benchmark.like(Trace([100, 3000], [20, 200], alpha=[0, 0.5]), **asked)
    drawn = bench.bench_requests(two.played(0.0))
    assert {(one.n_in, one.n_out, one.cached) for one in drawn} == {(100, 20, 0), (3000, 200, 1500)}
    assert sum(one.n_in > 100 for one in drawn) == pytest.approx(60, abs=6)
    assert bench.bench_cv(two.played(0.0)) == pytest.approx(Trace([100, 3000], [20, 200]).cv)
    assert foresee(UNIT, two).enough % 8 == 0
    assert two.longest == (3000, 3200)


@pytest.mark.parametrize(
    ("run", "needed"),
    [
        (Benchmark(1_000_000, 128, prompts=4), "1,000,128"),
        (Benchmark(300_000, 1000, prompts=4, range_ratio=0.5), "451,500"),  # its longest, not its mean
        (Benchmark.like(Trace([100, 500_000], [10, 10]), prompts=4), "500,010"),
    ],
)
def test_requests_that_no_cache_holds_are_no_benchmark(run, needed):
    for asked in (foresee, cadences):
        with pytest.raises(ValueError, match=f"a request needs {needed} tokens of KV cache, 440,460 fit"):
            asked(UNIT, run)


def test_what_would_take_minutes_to_play_is_refused():
    with pytest.raises(
        ValueError, match="budget must make at most 2,000,000 steps of the prompts, not 14,062,500: more"
    ):
        foresee(UNIT, Benchmark(100_000, 10, prompts=1000, budget=64))
    assert foresee(UNIT, Benchmark(100, 2, prompts=100, budget=1)).rate > 0


def test_more_users_than_prompts_send_as_many_as_there_are():
    every, more = (foresee(UNIT, Benchmark(500, 20, prompts=40, concurrency=many)) for many in (40, 512))
    assert every.to_dict() == more.to_dict()


def test_users_by_the_ten_thousand_are_played_without_their_steady_state():
    """Whose prompts would be a million; so that the largest benchmark takes seconds."""
    told = foresee(UNIT, Benchmark(100, 2, prompts=bench.MOST_PROMPTS // bench.EACH + 1))
    assert told.to_dict()["steady"] is None
    assert told.burst > 0


def test_pools_are_those_of_the_simulator():
    """Two units prefill, one decodes: each prompt's cache over the link of the unit that computed it."""
    asked = Benchmark(2000, 120, 200, 24, range_ratio=0.3, budget=4096, pools=(2, 1), link="tcp")
    sent, most = UNIT.model.kv_token("bf16") / link("tcp").of(UNIT.gpu), UNIT.places(Workload(2000, 120))
    pools = simulate.Disaggregated(2, 1, transfer=sent, max_batch=most, budget=4096, ahead=True)
    told, run = foresee(UNIT, asked), simulated(asked, pools, front=UNIT.front.seconds + handover().seconds)
    for row, name in (("TTFT", "ttft"), ("TPOT", "tpot"), ("latency", "latency")):
        assert told.table.loc[row, "mean"] == pytest.approx(run.summary()[f"{name}_mean"], rel=1e-6), row
    assert told.rate == pytest.approx(run.request_rate)
    assert told.to_dict()["enough"] is None


@pytest.mark.parametrize("more", [{"tp": 16}, {"tp": 1, "dp": 32, "ep": 32}])
def test_no_benchmark_crosses_nodes_unasked(more):
    wide = Unit.of("deepseek-v3", "h100-sxm", **more)
    for asked in (foresee, cadences):
        with pytest.raises(ValueError, match="of which a node joins 8, and links between nodes are not modelled"):
            asked(wide, Benchmark(1000, 100, prompts=8))
    assert foresee(wide.resized(gpu="gb300"), Benchmark(1000, 100, prompts=8)).rate > 0  # a rack is one


def test_pools_have_the_groups_the_links_and_a_step_of_their_own_layouts():
    """Sixteen prefill GPUs in groups of two beside eight: a group has an eighth of a link twice as wide."""
    unit = Unit.of("deepseek-v3", "gb300", 8)
    first = unit.resized(tp=2, dp=8, ep=16)
    whole = system_of(simulate.Chunked(8192), None)
    system = bench.bench_pools(whole, unit.numbers, first.numbers, 1000.0, [3, 2], 80e9)
    assert (system.prefill_units, system.decode_units, system.groups) == (3, 2, 8)
    assert system.budget == 8192
    assert system.transfer == pytest.approx(8 * unit.model.kv_token("bf16") / 160e9)
