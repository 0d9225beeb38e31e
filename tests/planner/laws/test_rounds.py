"""Rounds of steps: the laws of gaps and first tokens against the simulator, and each other."""

from itertools import product

import numpy as np
import pytest
from grids import rest_long
from refusals import refused
from scipy import stats

from inference_math import Workload, simulate, theory
from inference_math.simulate import Chunked, SchedulerPolicy, StepCost
from inference_math_planner.laws.rounds import ClosedRounds, OpenRounds, most_prompts

PARTS = {"t_w": 0.02, "ttft_1": 0.1, "delta_h": 1e-4}
N_OUT = 100
CORNERS = [(1, 2), (16, 8)]
GRID = [*CORNERS, *(one for one in product((1, 4, 16), (1, 2, 8, 32)) if one not in CORNERS)]
PLENTY = 10**7


def cost(ranks):
    """Of all ranks together, each of which has `PARTS`."""
    return StepCost(t_w=PARTS["t_w"], prompt=PARTS["ttft_1"] / ranks, delta_h=PARTS["delta_h"] / ranks)


def closed(ranks, every, B=16, requests=20_000, n_out=N_OUT, **more):
    return simulate.closed_loop(
        Workload(50, n_out, lengths="geometric"), cost(ranks), concurrency=B * ranks, requests=requests, warmup=1000,
        scheduler=Chunked(PLENTY, policy=SchedulerPolicy(every=every), ranks=ranks), seed=1, **more,
    )  # fmt: skip


def opened(ranks, every, rate, ahead=False):
    return simulate.open_loop(
        Workload(50, N_OUT, lengths="geometric"), cost(ranks), rate=rate, requests=20_000, warmup=2000, seed=1,
        scheduler=Chunked(PLENTY, policy=SchedulerPolicy(every=every, ahead=ahead), ranks=ranks, by_chance=True),
    )  # fmt: skip


@pytest.mark.parametrize("every", rest_long([3, 1, 16]))
def test_prompts_that_a_step_lets_in_are_binomial_and_independent(every):
    log = closed(1, every, log=True).log
    first = int(np.flatnonzero(log.prefills)[0])
    rounds = log.prefills.to_numpy()[first % every :: every]
    others = np.delete(log.prefills.to_numpy(), np.arange(first % every, len(log), every))
    assert not others.any()
    law = stats.binom(16, theory.let_in_share(every=every, n_out=N_OUT))
    counts = np.bincount(rounds.astype(int), minlength=17)
    expected = len(rounds) * law.pmf(np.arange(17))
    kept = expected > 10
    miss = ((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    assert stats.chi2.sf(miss, kept.sum() - 1) > 0.003
    assert abs(np.corrcoef(rounds[1:], rounds[:-1])[0, 1]) < 4 / len(rounds) ** 0.5


@pytest.mark.parametrize(("ranks", "every"), rest_long(GRID, 2))
def test_gaps_of_the_law_are_those_of_the_simulator(ranks, every):
    law, run = ClosedRounds(16, N_OUT, **PARTS, every=every, ranks=ranks), closed(ranks, every)
    assert run.gaps.mean == pytest.approx(law.mean_gap, rel=0.03)
    assert run.request_rate == pytest.approx(law.rate, rel=0.03)
    for level in np.linspace(0.02, 0.99, 60):  # the distributions differ by no more than 0.02 anywhere
        seen = run.gaps.quantile(level)
        assert law.share_within(1.01 * seen) >= level - 0.02
        assert law.share_within(0.99 * seen) <= level + 0.02
    clean = law.share_within(PARTS["t_w"] + 16 * PARTS["delta_h"] + 1e-9)
    for level in (0.5, 0.9, 0.99):
        if abs(level - clean) > 0.02 and level < clean:
            assert run.gaps.quantile(level) == pytest.approx(law.quantile(level), rel=0.03)
    let_in = theory.let_in_share(every=every, n_out=N_OUT)
    assert clean == pytest.approx(theory.clean_gaps(B=16, ranks=ranks, n_out=N_OUT, let_in=let_in), abs=1e-6)


def test_a_cadence_about_as_long_as_an_answer_halves_the_mean_gap():
    """With answers of ten tokens and N = 8 a gap meets half as many prompts (E01)."""
    often, seldom = (closed(1, every, n_out=10).gaps.mean for every in (1, 8))
    met = [15 * (1 - 1 / 10) ** every / (10 - 1) for every in (1, 8)]  # a place lasts a round with (1 - 1/N_out)^N
    assert met[1] / met[0] == pytest.approx(0.48, abs=0.005)
    for gap, every, prompts in zip((often, seldom), (1, 8), met, strict=True):
        said = theory.prompts_beside_gap(B=16, n_out=10, let_in=theory.let_in_share(every=every, n_out=10))
        assert said == pytest.approx(prompts)
        assert gap == pytest.approx(PARTS["t_w"] + PARTS["ttft_1"] * prompts, rel=0.04)
    assert seldom / often == pytest.approx(0.5, abs=0.06)


def test_decodes_that_make_room_for_prompts_shorten_the_step_that_lets_them_in():
    """Where a decode costs as much as the weights, against the sum over all that may happen."""
    law = ClosedRounds(3, 5.0, t_w=1.0, ttft_1=0.5, delta_h=1.0)
    beside = stats.binom(2, 1 / 5)
    expected = sum(beside.pmf(k) * (1 + (3 - k) + 0.5 * k) for k in range(3))
    assert law.mean_gap == pytest.approx(expected)
    assert law.quantile(0.999) == pytest.approx(4)


@pytest.mark.parametrize(("n_out", "every"), rest_long([(2, 1030), (1.1, 300), (5, 4000)]))
def test_rounds_much_longer_than_answers_have_laws(n_out, every):
    law = ClosedRounds(8, n_out, **PARTS, every=every)
    assert law.rate == pytest.approx(8 / law.round, rel=1e-6)
    assert PARTS["t_w"] < law.mean_gap < PARTS["t_w"] + 9 * PARTS["ttft_1"]


@pytest.mark.parametrize(("ranks", "every"), rest_long(GRID, 2))
@pytest.mark.parametrize("ahead", [False, True])
def test_first_tokens_of_the_law_are_those_of_the_simulator(ranks, every, ahead):
    law, run = (
        OpenRounds(2.0 * ranks, N_OUT, **PARTS, every=every, ranks=ranks),
        opened(ranks, every, 2.0 * ranks, ahead),
    )
    assert run.requests.ttft.mean() == pytest.approx(law.ttft_ahead if ahead else law.ttft, rel=0.03)
    # More decodes meet long rounds than short ones: gaps are a little longer than in a mean round.
    assert run.gaps.mean == pytest.approx(law.mean_gap, rel=0.04)


@pytest.mark.parametrize("every", [1, 2, 5, 30])
@pytest.mark.parametrize("load", [0.1, 0.5, 0.8])
def test_one_rank_is_the_closed_form(every, load):
    rate = load / (PARTS["ttft_1"] + (N_OUT - 1) * PARTS["delta_h"])
    law = OpenRounds(rate, N_OUT, **PARTS, every=every)
    own = PARTS["ttft_1"]
    told = theory.ttft_cadence(every=every, clean=law.clean, on_prompts=rate * own, ttft_1=own)
    assert law.ttft == pytest.approx(told, rel=1e-5)
    assert law.round == pytest.approx(every * law.clean / (1 - rate * PARTS["ttft_1"]), rel=1e-5)
    bare = PARTS | {"delta_h": 0.0}
    laws = [OpenRounds(rate, N_OUT, **bare, every=n).round / n for n in (1, every)]
    assert laws[0] == pytest.approx(laws[1], rel=1e-6)  # the mean step does not hang on N


def test_ranks_gain_from_a_cadence_and_one_rank_does_not():
    def gain(ranks):
        one, eight = (OpenRounds(2.0 * ranks, N_OUT, **PARTS, every=n, ranks=ranks).round / n for n in (1, 8))
        return one / eight

    assert gain(1) == pytest.approx(1, rel=0.02)
    assert 1.05 < gain(2) < gain(4) < gain(8) < gain(16) < 16


def test_a_cadence_gains_nothing_while_prompts_are_rare_in_a_round():
    """Eight ranks, prompts of 150 ms: how much shorter N steps for each admission make the prompts' part of a step."""

    def part(load, every):
        law = OpenRounds(load * 8 / 0.15, 200, t_w=0.02, ttft_1=0.15, delta_h=0, every=every, ranks=8)
        return law.round / every - 0.02

    def gain(load, every):
        return part(load, 1) / part(load, every)

    assert all(1 <= gain(0.01, every) < 1.05 for every in (2, 4, 8))
    assert gain(0.01, 256) == pytest.approx(2.2, abs=0.1)
    assert gain(0.35, 8) == pytest.approx(4.9, abs=0.1)


def test_the_most_of_some_prompts():
    numbers, chances = most_prompts(stats.poisson(0.01), 8)
    assert chances.sum() == pytest.approx(1, abs=1e-8)
    assert numbers @ chances == pytest.approx(8 * 0.01, rel=0.05)  # rare ones do not meet
    many, shares = most_prompts(stats.poisson(400), 8)
    assert many @ shares == pytest.approx(400, rel=0.1)


def test_bad_input_is_named():
    some = {"n_out": N_OUT} | PARTS
    refused(ClosedRounds, {"B": 4} | some, {"B": 0}, {"n_out": 1}, {"every": 0.5}, {"t_w": 0})
    refused(OpenRounds, {"rate": 1.0} | some, {"rate": 0}, {"ranks": 0}, {"rate": 1e3})
