"""The simulator against closed forms: interference of B requests."""

from functools import cache

import numpy as np
import pytest
from grids import rest_long
from scipy import stats

from inference_math import Workload, theory
from inference_math.simulate import StepCost, closed_loop

T_W, TTFT_1, DELTA_H = 0.02, 0.2, 4e-4
COST = StepCost(t_w=T_W, prompt=TTFT_1, delta_h=DELTA_H)
SETTINGS = [(2, 12), (8, 40), (16, 20), (32, 170), (64, 100)]


@cache
def steady(B, n_out):
    """Many requests of geometric length from the middle of the steady state, prefill first."""
    users = Workload(500, n_out, lengths="geometric")
    return closed_loop(users, COST, concurrency=B, requests=60_000, start="steady", seed=7, log=True)


@pytest.mark.parametrize(("B", "n_out"), rest_long(SETTINGS, 2))
def test_means_are_those_of_the_interference_model(B, n_out):
    """Gap and TTFT to 1 %, whatever T is where none of the decodes' compute is exposed, and the request rate."""
    run = steady(B, n_out)
    delta_p = theory.delta_p(ttft_1=TTFT_1, n_out=n_out)
    gap = theory.expected_tpot_full(
        B=B, n_out=n_out, tpot_1=T_W + DELTA_H, delta_p=delta_p, delta_h=DELTA_H, T=1e-4, z=0
    )
    ttft = theory.expected_ttft_full(B=B, n_out=n_out, ttft_1=TTFT_1, delta_h=DELTA_H, t_w=T_W)
    rate = theory.request_rate(B=B, n_out=n_out, t_w=T_W, delta_p=delta_p, delta_h=DELTA_H)
    assert run.gaps.mean == pytest.approx(gap, rel=0.01)
    assert run.requests.ttft.mean() == pytest.approx(ttft, rel=0.01)
    assert run.request_rate == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize(("B", "n_out"), rest_long(SETTINGS, 2))
def test_quantiles_of_the_gap_are_those_of_a_binomial_number_of_prefills(B, n_out):
    gaps = steady(B, n_out).gaps
    others = stats.binom(B - 1, 1 / n_out)
    for q in (0.5, 0.9, 0.99):
        k = others.ppf(q)
        # A finite run cannot tell on which side of q a step of the law lies that comes too near.
        assert min(others.cdf(k) - q, q - others.cdf(k - 1)) > 2e-4
        expected = T_W + DELTA_H + (B - 1 - k) * DELTA_H + k * TTFT_1
        assert gaps.quantile(q) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("B", "n_out"), rest_long(SETTINGS, 2))
def test_prefills_in_a_step_are_binomial(B, n_out):
    """Step after step independent, so that a chi-square test holds; beside a decode, they are those of B − 1."""
    log = steady(B, n_out).log
    for slots, weights in ((B, np.ones(len(log))), (B - 1, log.decodes / B)):
        law = stats.binom(slots, 1 / n_out)
        counts = np.bincount(log.prefills.astype(int), weights, minlength=B + 1)
        expected = weights.sum() * law.pmf(np.arange(B + 1))
        kept = expected > 10
        observed = np.append(counts[kept], counts[~kept].sum())
        predicted = np.append(expected[kept], expected[~kept].sum())
        miss = ((observed - predicted) ** 2 / np.maximum(predicted, 1)).sum()
        assert stats.chi2.sf(miss, kept.sum() - 1) > 0.005


@pytest.mark.parametrize(("B", "n_out"), [(1, 5), (8, 20), (20, 8)])
def test_users_with_equal_answers_who_start_together_stay_together(B, n_out):
    """All prompts in one step of every cycle: the phases lock."""
    run = closed_loop(Workload(50, n_out), COST, concurrency=B, requests=10 * B, log=True)
    prefills = run.log.prefills.to_numpy().reshape(10, n_out)
    assert (prefills[:, 0] == B).all()
    assert (prefills[:, 1:] == 0).all()
    assert run.requests.ttft.to_numpy() == pytest.approx(T_W + B * TTFT_1)


@pytest.mark.parametrize("start", ["together", "steady"])
def test_equal_answers_take_equally_long_whatever_their_phases(start):
    """A request of n steps meets each of the B slots in each of its n phases once."""
    B, n_in, n_out = 16, 300, 40
    cost = StepCost(t_w=T_W, T=1e-4, T_decode=2e-5, prompt=0.1, pair=1e-8, delta_h=DELTA_H, kv_read=1e-7)
    run = closed_loop(Workload(n_in, n_out), cost, concurrency=B, requests=20 * B, start=start)
    context = (n_out - 1) * n_in + n_out * (n_out - 1) / 2
    expected = n_out * T_W + B * (cost(n_out - 1, context, 1, n_in, n_in**2 / 2) - T_W)
    assert run.requests.latency.to_numpy() == pytest.approx(expected)
    assert run.requests.ttft.std() > 0 if start == "steady" else run.requests.ttft.std() < 1e-9
