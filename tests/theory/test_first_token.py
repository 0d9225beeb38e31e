"""The time to first token as it is measured, against benchmarks and arrivals played step by step."""

from itertools import product

import numpy as np
import pytest
from grids import rest_long
from hypothesis import given, settings, strategies as st

from inference_math import simulate, theory
from inference_math.simulate import Chunked, SchedulerPolicy, StepCost
from inference_math.workload import Requests, Workload

PROMPT = 1000
COSTS = {"t_w": 0.02, "ttft_1": 0.05, "delta_h": 1e-4}
COST = StepCost(t_w=COSTS["t_w"], prompt=COSTS["ttft_1"], delta_h=COSTS["delta_h"])


class Answers:
    """Equal prompts; answers uniform about their mean, by as much as `span` of it."""

    def __init__(self, mean: int, span: float) -> None:
        self.mean, self.span = mean, span

    @property
    def cv(self) -> float:
        return self.span / 3**0.5

    def draw(self, count: int, rng: np.random.Generator) -> Requests:
        low, high = round(self.mean * (1 - self.span)), round(self.mean * (1 + self.span))
        return Requests(np.full(count, PROMPT), rng.integers(low, high + 1, count), np.zeros(count, dtype=np.int64))


def played(source, users, each, together, seed=0, front=0.0):
    chunks = Chunked(together * PROMPT + users, policy=SchedulerPolicy(whole=True))
    return simulate.benchmark(
        source, COST, concurrency=users, requests=users * each, scheduler=chunks, seed=seed, front=front
    ).requests


def closed(users, each, together, n_out, cv):
    burst = theory.ttft_burst(B=users, together=together, **COSTS)
    steady = theory.expected_ttft_full(B=users, n_out=n_out, **COSTS)
    met = theory.prompts_met(B=users, rounds=each, together=together, n_out=n_out, cv=cv)
    return theory.ttft_benchmark(
        burst=burst, steady=steady, rounds=each, met=met, ttft_1=COSTS["ttft_1"], delta_h=COSTS["delta_h"]
    )


@given(groups=st.integers(1, 20), together=st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_a_burst_is_exact_where_steps_are_full(groups, together):
    users = groups * together
    run = played(Workload(PROMPT, 10_000), users, 1, together)
    assert run.ttft.mean() == pytest.approx(theory.ttft_burst(B=users, together=together, **COSTS), rel=1e-9)


@pytest.mark.parametrize("cv_of", rest_long(["half", "equal", "a ninth", "geometric"]))
def test_a_benchmark_is_right_to_twelve_per_cent_on_a_grid(cv_of):
    """Bursts of up to 64 users, 2 to 50 requests of each, up to four fifths of what the budget of a step can take."""
    spans, off = {"equal": 0.0, "a ninth": 1 / 9, "half": 0.5}, []
    for users, each, n_out, together in product((4, 16, 64), (2, 10, 50), (64, 256), (1, 8)):
        if users / n_out >= 0.8 * together:
            continue
        source = Workload(PROMPT, n_out, lengths="geometric") if cv_of == "geometric" else Answers(n_out, spans[cv_of])
        seen = np.mean([played(source, users, each, together, seed).ttft.mean() for seed in range(3)])
        off.append(closed(users, each, together, n_out, source.cv) / seen - 1)
    assert np.abs(off).max() < 0.12
    assert np.abs(off).mean() < 0.035


def test_more_requests_of_each_user_bring_the_mean_down_as_the_formula_says():
    """The same load, another TTFT: only the number of requests differs."""
    few, many = (played(Answers(256, 1 / 9), 64, each, 8).ttft.mean() for each in (5, 100))
    assert few > 2 * many
    assert closed(64, 5, 8, 256, (1 / 9) / 3**0.5) / closed(64, 100, 8, 256, (1 / 9) / 3**0.5) == pytest.approx(
        few / many, rel=0.1
    )
    burst = theory.ttft_burst(B=64, together=8, **COSTS)
    steady = theory.expected_ttft_full(B=64, n_out=256, **COSTS)
    parts = {"ttft_1": COSTS["ttft_1"], "delta_h": COSTS["delta_h"]}
    met = theory.prompts_met(B=64, rounds=1e9, together=8, n_out=256, cv=(1 / 9) / 3**0.5)
    waves = np.arange(1, theory.mixing_waves(cv=(1 / 9) / 3**0.5))
    beside = [theory.prompts_beside_wave(B=64, n_out=256, cv=(1 / 9) / 3**0.5, wave=wave) for wave in waves]
    assert met == pytest.approx(sum(beside) - len(waves) * 63 / 256, rel=0.002)
    needed = theory.rounds_needed(burst=burst, steady=steady, met=met, **parts, share_off=0.05)
    assert closed(64, needed, 8, 256, (1 / 9) / 3**0.5) == pytest.approx(steady * 1.05, rel=1e-6)
    assert theory.rounds_needed(burst=steady, steady=steady, met=0, **parts, share_off=0.05) == 1
    equal_met = theory.prompts_met(B=64, rounds=5, together=8, n_out=256, cv=0)
    told = theory.ttft_benchmark(burst=burst, steady=steady, rounds=5, met=equal_met, **parts)
    assert told == pytest.approx((burst + 4 * steady + 4 * (7 - 63 / 256) * (0.05 - 1e-4)) / 5)


@given(cv=st.floats(0.03, 0.19), rounds=st.integers(2, 400))
def test_prompts_met_are_the_sum_of_their_waves(cv, rounds):
    """In the root of the waves, without the limit of what a step has room for: an integral is half as much again."""
    waves = range(1, min(rounds - 1, int(theory.mixing_waves(cv=cv))) + 1)
    beside = [theory.prompts_beside_wave(B=64, n_out=256, cv=cv, wave=wave) - 63 / 256 for wave in waves]
    met = theory.prompts_met(B=64, rounds=rounds, together=64, n_out=256, cv=cv)
    assert met == pytest.approx(sum(beside), rel=0.08, abs=0.03)  # one wave alone is 4 % off


def test_users_who_began_together_meet_less_and_less():
    """Wave by wave, others' prompts in the step of one's own fall with the root of the waves."""
    users, n_out, span = 64, 512, 0.1
    seen = []
    for seed in range(40):
        run = played(Answers(n_out, span), users, 12, users, seed).sort_values("arrival")
        waves = np.arange(len(run)) // users
        seen.append(run.ttft.groupby(waves).mean().to_numpy())
    means = np.mean(seen, axis=0)
    beside = (means - COSTS["t_w"] - COSTS["ttft_1"] - COSTS["delta_h"] * (users - 1)) / COSTS["ttft_1"]
    for wave in (2, 4, 8):
        told = theory.prompts_beside_wave(B=users, n_out=n_out, cv=span / 3**0.5, wave=wave)
        assert beside[wave] == pytest.approx(told, rel=0.15)
    assert theory.mixing_waves(cv=span / 3**0.5) == pytest.approx(24, abs=0.5)
    assert theory.mixing_waves(cv=1) < 0.1  # geometric answers: at once
    assert theory.prompts_beside_wave(B=32, n_out=170, cv=0.5, wave=1000) == pytest.approx(31 / 170)
    assert theory.prompts_beside_wave(B=32, n_out=170, cv=0.001, wave=1) == 31  # all of them, and no more


@given(users=st.integers(2, 24), wait=st.floats(1.0, 3.0))
@settings(max_examples=15, deadline=None)
def test_a_front_longer_than_a_wave_takes_to_end_makes_every_wave_a_burst(users, wait):
    """Equal answers, all prompts fit a step: who began together stays together, and no decode meets a prompt."""
    run = played(Workload(PROMPT, 50), users, 6, users, front=wait * users * (COSTS["t_w"] + 0.01))
    front = wait * users * (COSTS["t_w"] + 0.01)
    burst = theory.ttft_burst(B=users, together=users, **COSTS)
    assert np.allclose(run.ttft, front + burst)
    decodes = COSTS["t_w"] + COSTS["delta_h"] * users
    assert np.allclose(run.tpot, decodes)


@pytest.mark.parametrize("users", [4, 16])
def test_a_front_gathers_users_who_are_computed_one_by_one_again(users):
    """Each ends a bare step after the one before, and comes back so: prompts take longer and queue again."""
    equal = Workload(PROMPT, 200)
    spread, gathered = (played(equal, users, 20, 1, front=front) for front in (0.0, 1.5 * users * COSTS["t_w"]))
    front = 1.5 * users * COSTS["t_w"]
    assert gathered.ttft.mean() - front > 1.5 * spread.ttft.mean()
    # In each wave as in the opening one, less the bare steps that they come apart by.
    bare = COSTS["t_w"] + COSTS["delta_h"] * users / 2
    expected = theory.ttft_burst(B=users, together=1, **COSTS) - (users - 1) / 2 * bare
    assert gathered.ttft.iloc[users:].mean() - front == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("lengths", ["fixed", "geometric"])
@pytest.mark.parametrize(("share", "off"), [(0.2, 0.02), (0.5, 0.03), (0.8, 0.07)])
def test_random_arrivals_wait_one_and_a_half_steps(lengths, share, off):
    n_out = 256
    each = COSTS["ttft_1"] + (n_out - 1) * COSTS["delta_h"]
    rate = share / each
    run = simulate.open_loop(
        Workload(PROMPT, n_out, lengths=lengths), COST, rate=rate, requests=12_000, warmup=1500, seed=3
    ).requests
    filled = theory.engine_load(rate=rate, n_out=n_out, ttft_1=COSTS["ttft_1"], delta_h=COSTS["delta_h"])
    assert filled == pytest.approx(share)
    on_prompts = rate * COSTS["ttft_1"]
    told = theory.ttft_open(filled=filled, on_prompts=on_prompts, t_w=COSTS["t_w"], ttft_1=COSTS["ttft_1"])
    assert told == pytest.approx(run.ttft.mean(), rel=off)
    assert theory.open_step(filled=filled, t_w=COSTS["t_w"]) == pytest.approx(run.tpot.mean(), rel=off + 0.03)


def test_an_engine_that_is_idle_has_no_step_to_wait_for():
    """The theorem needs an engine that is never idle: with no step under way a first token waits half of one less."""
    run = simulate.open_loop(Workload(PROMPT, 16), COST, rate=0.05, requests=2000, warmup=100, seed=1).requests
    alone = COSTS["t_w"] + COSTS["ttft_1"]
    assert run.ttft.mean() == pytest.approx(alone, rel=0.02)
    quiet = theory.ttft_open(filled=0, on_prompts=0, t_w=COSTS["t_w"], ttft_1=COSTS["ttft_1"])
    assert quiet - alone == pytest.approx(COSTS["t_w"] / 2)


def test_a_delay_between_answer_and_prompt_empties_places():
    run = played(Workload(PROMPT, 200, lengths="geometric"), 16, 200, 4, front=1.0)
    engine = run.latency.mean() - 1.0
    inside = theory.users_inside(B=16, latency=engine, front=1.0)
    busy = (run.latency - 1.0).sum() / run.finished.max()
    assert inside == pytest.approx(busy, rel=0.02)
