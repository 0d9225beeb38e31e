"""Users and bare steps on an engine that plays a known cost."""

import numpy as np
import pytest
from grids import rest_long
from hypothesis import given, settings, strategies as st
from laboratory import COST

from inference_math import Workload, simulate, theory
from inference_math_bench.lab.drive import Watched, bare_steps, benchmark, closed_loop, open_loop
from inference_math_bench.lab.engines import ALL_AT_ONCE, Played, Prompt, Stored
from inference_math_bench.lab.experiments import Cadence, ColdStart, Host, experiments
from inference_math_bench.lab.experiments.bench import Bench, calibration
from inference_math_bench.lab.experiments.cold import Spread

SOURCE = Workload(128, 32, lengths="geometric")


def test_a_closed_loop_is_the_simulator_s() -> None:
    seen = closed_loop(Played(COST), SOURCE, 16, watched=Watched(600), rng=np.random.default_rng(1))
    run = simulate.closed_loop(SOURCE, COST, concurrency=16, requests=20_000, start="steady", seed=1, log=True)
    for found, simulated in (
        (seen.gaps.mean(), run.gaps.mean),
        (seen.ttfts.mean(), run.requests.ttft.mean()),
        (np.quantile(seen.gaps, 0.99), run.gaps.quantile(0.99)),
    ):
        assert found == pytest.approx(simulated, rel=0.02)
    again = seen.run()
    assert list(again.requests.columns) == list(run.requests.columns)
    assert set(run.log.columns) <= set(again.log.columns)
    assert set(again.summary().index) == set(run.summary().index)
    assert again.requests.n_out.mean() == pytest.approx(32, rel=0.05)


def test_users_begin_in_the_middle_of_answers() -> None:
    """From the first step on the share of steps without a prompt is the law's, not that of a common start."""
    rng, engine = np.random.default_rng(3), Played(COST)
    alone = [
        step.prefills == 0
        for _ in range(400)
        for step in closed_loop(engine, Workload(128, 32), 8, watched=Watched(steps=4), rng=rng).steps
    ]
    assert np.mean(alone) == pytest.approx((1 - 1 / 32) ** 8, abs=0.05)


def test_together_equal_answers_never_meet_a_prompt() -> None:
    rng = np.random.default_rng(0)
    seen = closed_loop(Played(COST), Workload(128, 32), 8, watched=Watched(60), rng=rng, together=True)
    assert all(step.decodes == 0 or step.prefills == 0 for step in seen.steps)


@pytest.mark.parametrize("lengths", ["fixed", "geometric"])
def test_a_benchmark_is_the_simulator_s(lengths: str) -> None:
    """All begin together, each sends so many requests, and all of them count."""
    source, chunks = Workload(128, 32, lengths=lengths), simulate.Chunked(4 * 128 + 8)
    times, simulated = [], []
    for seed in range(12):
        engine = Played(COST)
        seen, waves = benchmark(engine, source, 8, 6, rng=np.random.default_rng(seed), budget=4 * 128 + 8)
        assert engine.budget == ALL_AT_ONCE
        assert np.bincount(waves).tolist() == [8] * 6
        assert len(seen.ttfts) == len(waves)
        times.append(seen.ttfts.mean())
        run = simulate.benchmark(source, COST, concurrency=8, requests=48, scheduler=chunks, seed=seed)
        simulated.append(run.requests.ttft.mean())
    assert np.mean(times) == pytest.approx(np.mean(simulated), rel=1e-9 if lengths == "fixed" else 0.05)


def test_a_cold_start_is_predicted_before_it_is_run() -> None:
    """The laws of the burst and of what follows, on an engine with a known cost; no phase is drawn from them."""
    cold = ColdStart()
    for arm in cold.arms():
        rng = np.random.default_rng(4)
        bench = Bench(Played(COST), rng)
        said = cold.predict(arm, COST, bench)
        found = [cold.run(arm, said, bench).values for _ in range(6)]
        means = {name: np.mean([one[name] for one in found]) for name in found[0]}
        # A step has room for a part of a prompt more.
        assert means["burst"] == pytest.approx(said["burst"], rel=0.04), arm
        assert means["ttft"] == pytest.approx(said["ttft"], rel=0.12), arm
        assert means["ttft"] > 1.2 * said["ttft@steady"], arm


@pytest.mark.parametrize("arm", rest_long(Cadence().arms()[::-1]))
def test_a_cadence_is_predicted_before_it_is_run(arm) -> None:
    """An engine with a known cost: which gaps are clean, how long they are, what is served."""
    cadence = Cadence()
    bench = Bench(Played(COST), np.random.default_rng(5), seconds=400)
    said, found = cadence.predict(arm, COST, bench), cadence.run(arm, {}, bench).values
    assert bench.engine.cadence == 1  # given back
    assert found["clean"] == pytest.approx(said["clean"], abs=0.02)
    for name in ("gap", "p50", "p90", "rate"):
        assert found[name] == pytest.approx(said[name], rel=0.03), name


def test_answers_that_are_spread_scatter_as_they_say() -> None:
    drawn = Spread(64, 32, 6).draw(20_000, np.random.default_rng(0))
    assert drawn.n_out.std() / 32 == pytest.approx(Spread(64, 32, 6).cv, rel=0.02)
    assert (drawn.n_out.min(), drawn.n_out.max()) == (26, 38)
    assert Spread(64, 32, 0).cv == 0


def test_a_budget_cuts_prompts_and_is_given_back() -> None:
    engine, watched = Played(COST), Watched(20, warmup=5, budget=64)
    seen = closed_loop(engine, Workload(256, 16), 4, watched=watched, rng=np.random.default_rng(0))
    assert max(step.tokens + step.decodes for step in seen.steps) <= 64
    assert engine.budget == ALL_AT_ONCE
    assert sum(step.tokens for step in seen.steps) > 0


@given(decodes=st.integers(0, 8), context=st.integers(2, 500), n_in=st.integers(1, 300), count=st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_bare_steps_cost_what_the_engine_plays(decodes: int, context: int, n_in: int, count: int) -> None:
    pairs = bare_steps(Played(COST), decodes=decodes, context=context, prompts=[Prompt(n_in)] * count, repeats=3)
    for alone, beside in pairs:
        assert (alone.decodes, beside.decodes, beside.prefills) == (decodes, decodes, count)
        asked = (decodes, beside.context, count, count * n_in, count * n_in**2 / 2)
        assert beside.seconds == pytest.approx(COST(*asked))
        if decodes:
            assert beside.seconds - alone.seconds == pytest.approx(COST.T * count * n_in + COST.kv_read * decodes)


def test_bare_steps_that_cannot_be_had_say_so() -> None:
    class Deaf(Played):
        def submit(self, prompt: Prompt, n_out: int) -> int:
            return 0

    with pytest.raises(RuntimeError, match="did not run the step that was asked for"):
        bare_steps(Deaf(COST), decodes=2, context=64, prompts=[], repeats=1)


def test_an_open_loop_serves_who_came_and_waits_for_nobody() -> None:
    times, rng = iter([0.5, 1.5, 1.5, 9.0, float("inf")]), np.random.default_rng(0)
    seen = open_loop(Played(COST), Workload(64, 4), times, seconds=2, warmup=1, rng=rng)
    whole = [request for request in seen.requests if not request.under_way]
    assert [round(request.arrival, 6) for request in whole] == [1.5, 1.5]
    assert all(request.finished > request.first_token for request in whole)
    assert seen.start == pytest.approx(1.5)


def test_the_cache_finds_a_family_and_the_store_holds_a_prompt_back() -> None:
    engine = Played(COST, layers=4, kv_bytes=1000, block=32)

    def alone(prompt: Prompt) -> float:
        engine.submit(prompt, 1)
        step = engine.step()
        assert step is not None
        return step.seconds

    whole = alone(Prompt(256, family=1, shared=200))
    assert whole == COST(0, 0, 1, 256, 256**2 / 2)
    assert alone(Prompt(256, family=1, shared=200)) == pytest.approx(whole - 192 * COST.T)
    load = 128 * 1000 / 1e6
    rest = COST(0, 0, 1, 128, 0)
    assert alone(Prompt(256, stored=Stored(128, 1e6, layerwise=False))) == pytest.approx(load + rest)
    pipelined = float(theory.ttft_vanilla(n_in=1, T=1)) * (max(load, rest) + min(load, rest) / 4)
    assert alone(Prompt(256, stored=Stored(128, 1e6))) == pytest.approx(pipelined)


def test_without_requests_there_is_no_step() -> None:
    engine = Played(COST)
    assert engine.step() is None
    engine.submit(Prompt(8), 2)
    engine.clear()
    assert engine.step() is None


def test_bare_steps_have_longer_contexts_and_prompts_by_a_scale() -> None:
    for scale in (1, 8):
        steps = calibration(Bench(Played(COST), np.random.default_rng(0), scale=scale, repeats=1))
        assert {step.tokens for step in steps if not step.decodes} == {scale * 2**i for i in range(4, 11)}
        contexts = sorted({round(step.context / step.decodes / scale / 64) for step in steps if step.decodes})
        assert contexts == [1, 8, 16]
        assert {step.tokens for step in steps if step.decodes} == {0, 128 * scale}


def test_longer_prompts_are_longer_in_every_setting_of_an_experiment() -> None:
    """A scale multiplies prompts, contexts, cached tokens and budgets for them; users, answers and limits stay."""
    plain = {x.name: x.arms() for x in experiments()}
    for experiment in experiments(8):
        for arm, one in zip(experiment.arms(), plain[experiment.name], strict=True):
            for name, value in arm.items():
                if name in ("n_in", "context", "cached", "stored"):
                    assert value == 8 * one[name], (experiment.name, arm)
                elif name == "budget":
                    users = 16 if value < ALL_AT_ONCE else 0
                    assert value - users == 8 * (one[name] - users), arm
                else:
                    assert value == one[name], (experiment.name, arm)


def test_a_prefix_from_host_memory_is_predicted_before_it_comes() -> None:
    """On an engine with a known cost and link, everything first; what the GPU forgets is all that is loaded."""
    host = Host()
    for arm in host.arms():
        engine = Played(COST, kv_bytes=2000.0, link=4e7)
        bench = Bench(engine, np.random.default_rng(1), kv_bytes=2000.0)
        said, found = host.predict(arm, COST, bench), host.run(arm, {}, bench)
        assert found.values["seconds"] == pytest.approx(said["seconds"], rel=0.02), arm
        assert found.values["speedup"] == pytest.approx(said["speedup"], rel=0.02), arm
        e = (COST.T * arm["n_in"]) / arm["n_in"] * 4e7 / 2000  # no prompt constant, no pairs
        alpha = arm["stored"] / arm["n_in"]
        assert said["speedup@printed"] == pytest.approx(1 / (1 - alpha + alpha / e))
        assert said["speedup@printed"] > said["speedup"]
        assert len(found.observed[0].steps) > 6  # a load takes steps of its own
        assert {step.cached for step in found.observed[0].steps} == {0, arm["stored"]}


def test_an_engine_that_keeps_nothing_in_host_memory_is_found_out() -> None:
    engine = Played(COST)
    engine.forget = lambda: engine._families.clear()  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="128 tokens must come from host memory, and 0 did"):
        Host().run({"n_in": 512, "stored": 128}, {}, Bench(engine, np.random.default_rng(1)))
