import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refused

from inference_math import simulate, theory
from inference_math.workload import Trace
from inference_math_planner.laws import latency
from inference_math_planner.laws.laws import Law

times = st.floats(1e-4, 0.5)


def exact_quantile(q, B, n_out, own, prefill, read):
    """All values of the step with their probabilities, sorted by value."""
    k = np.arange(B)
    values = own + (B - 1 - k) * read + k * prefill
    order = np.argsort(values)
    reached = np.cumsum(latency.prefills_beside(B, n_out).pmf(k)[order])
    return values[order][np.argmax(reached >= q * (1 - 1e-12))]


@given(
    q=st.floats(0.01, 0.99), B=st.integers(1, 200), n_out=st.integers(2, 500), tpot_1=times, prefill=times, read=times
)
def test_the_gap_quantile_is_that_of_the_whole_distribution(q, B, n_out, tpot_1, prefill, read):
    found = latency.gap_quantile(q, B, n_out, tpot_1, prefill / n_out, read)
    beside = [exact_quantile(p, B, n_out, tpot_1, prefill, read) for p in (q - 1e-9, q, q + 1e-9)]
    assert min(beside) * (1 - 1e-9) <= found <= max(beside) * (1 + 1e-9)


@given(B=st.integers(1, 200), n_out=st.integers(2, 500), ttft_1=times, read=times, t_w=times)
def test_ttft_is_the_gap_with_one_s_own_prefill(B, n_out, ttft_1, read, t_w):
    gap = latency.gap_quantile(0.9, B, n_out, t_w + read, ttft_1 / n_out, read)
    assert latency.ttft_quantile(0.9, B, n_out, ttft_1, read, t_w) - gap == pytest.approx(ttft_1 - read, abs=1e-9)


def test_the_quantiles_jump_where_the_closed_form_says():
    law = {"n_out": 170, "tpot_1": 0.0165, "delta_p": 0.0008, "delta_h": 0.00008}
    for q in (0.5, 0.9, 0.99):
        B = int(theory.max_batch_undisturbed(q=q, n_out=170))
        assert latency.gap_quantile(q, B, **law) == pytest.approx(0.0165 + (B - 1) * 0.00008)
        assert latency.gap_quantile(q, B + 1, **law) > 0.0165 + 170 * 0.0008


@given(q=st.floats(0.5, 0.99), sla=st.floats(0.02, 0.5), n_out=st.integers(4, 300), prefill=st.floats(0.01, 0.3))
def test_the_largest_batch_meets_the_limit_and_one_more_does_not(q, sla, n_out, prefill):
    law = {"n_out": n_out, "tpot_1": 0.016, "delta_p": prefill / n_out, "delta_h": 1e-4}
    batch = latency.max_batch_quantile(q, sla, **law)
    assert latency.gap_quantile(q, batch, **law) <= sla < latency.gap_quantile(q, batch + 1, **law)


few = st.lists(st.floats(1e-3, 0.5), min_size=1, max_size=4)


def whole_law(B, n_out, fixed, prompts, read):
    """Convolve slot by slot, without a grid: every sum with its probability."""
    law = {fixed: 1.0}
    slot = [(read, 1 - 1 / n_out), *((prompt, 1 / n_out / len(prompts)) for prompt in prompts)]
    for _ in range(B - 1):
        longer = {}
        for time, mass in law.items():
            for more, chance in slot:
                key = round(time + more, 9)
                longer[key] = longer.get(key, 0.0) + mass * chance
        law = longer
    values = np.array(sorted(law))
    return values, np.cumsum([law[value] for value in values])


@settings(max_examples=80)
@given(q=st.floats(0.01, 0.999), B=st.integers(1, 9), n_out=st.integers(2, 60), prompts=few, read=times)
def test_the_compound_law_is_the_convolution_of_its_slots(q, B, n_out, prompts, read):
    """Prompts may cost less than a read, too."""
    values, reached = whole_law(B, n_out, 0.02, prompts, read)
    found = latency.gap_law(B, n_out, 0.02, Law.of(prompts), read).quantile(q)
    beside = [values[min(np.searchsorted(reached, p), len(values) - 1)] for p in (q - 1e-7, q + 1e-7)]
    assert beside[0] - 2e-4 <= found <= beside[1] + 2e-4


@settings(max_examples=50)
@given(
    q=st.floats(0.01, 0.99), B=st.integers(1, 200), n_out=st.integers(2, 500), tpot_1=times, prefill=times, read=times
)
def test_with_equal_prompts_the_compound_law_is_the_binomial_one(q, B, n_out, tpot_1, prefill, read):
    found = latency.gap_law(B, n_out, tpot_1, Law.equal(prefill), read).quantile(q)
    beside = [latency.gap_quantile(p, B, n_out, tpot_1, prefill / n_out, read) for p in (q - 1e-9, q + 1e-9)]
    assert min(beside) * (1 - 1e-9) <= found <= max(beside) * (1 + 1e-9)


@settings(max_examples=20)
@given(B=st.integers(1, 300), n_out=st.floats(1, 500), mean=times, cv=st.floats(0, 2), read=st.floats(0, 0.01))
def test_mean_and_scatter_of_the_compound_law_are_the_closed_ones(B, n_out, mean, cv, read):
    prompts = Law.lognormal(mean, cv)
    gaps = latency.gap_law(B, n_out, 0.02, prompts, read)
    law = {"B": B, "n_out": n_out, "delta_h": read}
    expected = theory.expected_tpot_full(**law, tpot_1=0.02, delta_p=mean / n_out, T=1, z=0)
    assert gaps.mean == pytest.approx(expected, rel=1e-3)
    scatter = theory.gap_deviation(**law, ttft_1=mean, cv_in=prompts.cv)
    assert gaps.deviation == pytest.approx(scatter, rel=2e-3, abs=1e-4 * gaps.mean)
    first = latency.ttft_law(B, n_out, prompts, read, 0.02)
    own = theory.expected_ttft_full(**law, ttft_1=mean, t_w=0.02)
    assert first.mean == pytest.approx(own, rel=1e-3, abs=1e-6 * B)  # each prompt lies on a grid


def test_the_scatter_is_that_of_drawn_gaps():
    """Drawn at random, without any formula: a heavy-tailed prompt, KV reads, 40 others."""
    rng = np.random.default_rng(3)
    draws, others, mean, read, n_out = 200_000, 40, 0.08, 0.002, 50
    prompts = Law.lognormal(mean, 1.2)
    prefilling = rng.random((draws, others)) < 1 / n_out
    gaps = (np.where(prefilling, rng.choice(prompts.values, (draws, others)), read)).sum(axis=1)
    scatter = theory.gap_deviation(B=others + 1, n_out=n_out, ttft_1=mean, delta_h=read, cv_in=prompts.cv)
    assert np.std(gaps) == pytest.approx(scatter, rel=0.02)
    law = latency.gap_law(others + 1, n_out, 1e-9, prompts, read)
    for q in (0.5, 0.9, 0.99):
        assert law.quantile(q) == pytest.approx(np.quantile(gaps, q), rel=0.02)


def test_the_simulator_s_gaps_and_first_tokens_are_the_compound_law_s():
    """32 users of two kinds of prompts and a few long ones, answers of 100 tokens, geometric."""
    rng = np.random.default_rng(5)
    n_in = rng.choice([200, 800, 6000], 4000, p=[0.6, 0.35, 0.05])
    users = Trace(n_in, rng.geometric(1 / 100, n_in.size))
    n_out = float(np.mean(users.n_out))
    cost = simulate.StepCost(t_w=0.02, T=1e-4, delta_h=2e-4)
    run = simulate.closed_loop(users, cost, concurrency=32, requests=12_000, warmup=500, start="steady", seed=1)
    prompts = Law.of(1e-4 * n_in)
    gaps = latency.gap_law(32, n_out, 0.0202, prompts, 2e-4)
    first = latency.ttft_law(32, n_out, prompts, 2e-4, 0.02)
    assert run.gaps.mean == pytest.approx(gaps.mean, rel=0.02)
    assert run.requests.ttft.mean() == pytest.approx(first.mean, rel=0.03)
    for q in (0.3, 0.5, 0.75, 0.9, 0.98):
        for law, found in ((gaps, run.gaps.quantile(q)), (first, run.requests.ttft.quantile(q))):
            # Both have atoms, and flat stretches between them.
            assert law.quantile(q - 0.01) * 0.995 <= found <= law.quantile(q + 0.01) * 1.005


@given(q=st.floats(0.5, 0.99), sla=st.floats(0.03, 0.5), cv=st.floats(0, 2))
@settings(max_examples=5)
def test_the_largest_batch_by_the_compound_law_meets_the_limit_and_one_more_does_not(q, sla, cv):
    law = {"n_out": 64, "tpot_1": 0.016, "prefills": Law.lognormal(0.05, cv), "delta_h": 1e-4}
    batch = latency.max_batch_law(q, sla, **law)
    assert latency.gap_law(batch, **law).quantile(q) <= sla < latency.gap_law(batch + 1, **law).quantile(q)


def test_the_shortest_gap_is_that_beside_decodes_alone():
    """What a transform leaves of its grid below it is noise."""
    gaps = latency.gap_law(33, 64, 0.02, Law.lognormal(0.05, 1.5), 1e-4)
    assert gaps.quantile(0) == pytest.approx(0.02 + 32 * 1e-4)


def test_no_batch_meets_a_limit_below_a_request_alone():
    assert latency.max_batch_quantile(0.9, 0.01, 64, 0.016, 0.001, 1e-4) == 0
    assert latency.max_batch_ttft_quantile(0.9, 0.1, 64, 0.2, 1e-4, 0.016) == 0
    assert latency.max_batch_ttft_quantile(0.9, 0.3, 64, 0.2, 1e-4, 0.016) >= 1


def test_quantiles_broadcast():
    gaps = latency.gap_quantile(0.9, np.array([[1], [32], [64]]), np.array([16, 64]), 0.016, 0.001, 1e-4)
    assert gaps.shape == (3, 2)
    assert (np.diff(gaps, axis=0) > 0).all()
    assert isinstance(latency.gap_quantile(0.9, 32, 64, 0.016, 0.001, 1e-4), float)


def test_bad_input_is_named():
    some = {"n_out": 64, "tpot_1": 0.01, "delta_h": 0}
    few, many = {"B": 4, "delta_p": 0.001} | some, {"sla_tpot": 1, "delta_p": 0.001, "q": 0.5} | some
    law = {"B": 4, "prefills": Law.equal(1)} | some
    refused(latency.prefills_beside, {"B": 4, "n_out": 64}, {"B": 2.5}, {"n_out": 0.5})
    refused(latency.gap_quantile, few | {"q": 0.5}, {"q": 1.5}, {"tpot_1": -1})
    refused(latency.max_batch_quantile, many, {"sla_tpot": 0})
    with pytest.raises(ValueError, match="must limit the batch"):
        latency.max_batch_quantile(**many | {"delta_p": 0})
    refused(latency.gap_law, law, {"B": 1.5}, {"tpot_1": 0}, {"prefills": 0.05}, {"delta_h": -1})
    refused(latency.ttft_law, {"B": 4, "n_out": 64, "prefills": Law.equal(1), "delta_h": 0, "t_w": 1}, {"t_w": -1})
    refused(latency.max_batch_law, {"q": 0.5, "sla_tpot": 1, "prefills": Law.equal(1)} | some, {"q": 2})
