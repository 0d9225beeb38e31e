"""Waits for a pool of prefill units: against chains and sums that share nothing with the module, and the simulator."""

from fractions import Fraction
from itertools import product
from math import exp, factorial

import numpy as np
import pandas as pd
import pytest
from grids import rest_long
from hypothesis import assume, given, settings, strategies as st
from refusals import refused

from inference_math import simulate, theory
from inference_math.workload import Trace
from inference_math_planner.laws import waiting
from inference_math_planner.laws.laws import Law

loads = st.floats(0.05, 0.95)
PER_TOKEN = 1e-4


def chain(load, units, most=4000):
    """M/M/c by its balance equations: the share of prompts that find all units busy, and how many wait."""
    weights = np.cumsum([0.0, *(np.log(units * load / min(k, units)) for k in range(1, most))])
    shares = np.exp(weights - np.max(weights))
    shares /= shares.sum()
    return shares[units:].sum(), np.maximum(np.arange(most) - units, 0) @ shares


@given(load=loads, units=st.integers(1, 40))
def test_erlang_c_and_the_mean_wait_are_those_of_the_chain(load, units):
    assert (waiting.erlang_c(0, units), waiting.erlang_c(1, units)) == (0, 1)
    waiting_share, queue = chain(load, units)
    p_wait = waiting.erlang_c(load, units)
    assert p_wait == pytest.approx(waiting_share, rel=1e-9)
    # By Little's law the queue is arrivals times mean wait; a prefill takes 1 s.
    mean = theory.pool_wait(p_wait=p_wait, load=load, ttft_alone=1.0, prefill_units=units, cv_in=1, cv_arrivals=1)
    assert units * load * mean == pytest.approx(queue, rel=1e-6)


@given(load=loads, units=st.integers(1, 12))
def test_exponential_prefills_after_random_arrivals_wait_as_erlang_says(load, units):
    """The rule for any arrivals, at arrivals at random; where a term of it is 0/0, too."""
    share, mean = waiting._takacs(load, 1.0, units, 1.0)
    assert share == pytest.approx(waiting.erlang_c(load, units), rel=1e-4)
    assert mean == pytest.approx(1 / units / (1 - load), rel=1e-4)


def erlangs_sum(load, wait):
    """P(wait <= w) for equal prefills of 1 s and arrivals at random, Erlang's alternating sum in exact fractions."""
    total = Fraction(0)
    rate, time = Fraction(load), Fraction(wait)
    for k in range(int(wait) + 1):
        power = (rate * (k - time)) ** k / factorial(k)
        total += power * Fraction(exp(float(-rate * (k - time))))
    return float((1 - rate) * total)


@pytest.mark.parametrize("load", [0.3, 0.77, 0.9])
def test_one_unit_with_equal_prompts_waits_as_erlang_summed(load):
    law = waiting.wait_law(load, Law.equal(1.0))
    for wait in (0.5, 1.25, 3.5, 7.75):
        # Half a cell of the grid more or less.
        beside = [law.share_within(wait * (1 + h)) for h in (-2e-2, 2e-2)]
        assert beside[0] - 1e-3 <= erlangs_sum(load, wait) <= beside[1] + 1e-3


@settings(max_examples=40)
@given(load=st.floats(0.05, 0.99), mean=st.floats(0.01, 3), cv=st.floats(0, 2))
def test_one_unit_after_random_arrivals_waits_as_pollaczek_and_khinchine_say(load, mean, cv):
    prompts = Law.lognormal(mean, cv)
    wait = theory.prefill_wait(load=load, ttft_alone=mean, cv_in=prompts.cv)
    assert waiting.wait_law(load, prompts).mean == pytest.approx(wait, rel=5e-3)


@settings(max_examples=15)
@given(load=st.floats(0.2, 0.95), units=st.integers(1, 12), bursts=st.floats(0, 3), cv=st.floats(0, 2))
def test_more_units_at_the_same_load_wait_less_and_bursts_wait_more(load, units, bursts, cv):
    prompts = Law.lognormal(1.0, cv)
    here = waiting.wait_law(load, prompts, units, bursts).mean
    assert waiting.wait_law(load, prompts, units + 1, bursts).mean <= here * 1.01 + 1e-6
    assert waiting.wait_law(load, prompts, units, bursts + 0.5).mean >= here * 0.99 - 1e-6


@settings(max_examples=25)
@given(load=loads, units=st.integers(1, 8), bursts=st.floats(0, 3), p=st.floats(0, 1), q=st.floats(0, 1))
def test_laws_of_waits_are_laws(load, units, bursts, p, q):
    law = waiting.ttft_law(load, Law.lognormal(0.2, 0.7), units, bursts)
    low, high = sorted((p, q))
    assert law.quantile(low) <= law.quantile(high)
    assert law.probabilities.sum() == pytest.approx(1)
    wait = waiting.wait_law(load, Law.lognormal(0.2, 0.7), units, bursts)
    assert law.mean == pytest.approx(wait.mean + 0.2, rel=1e-3)


def test_who_comes_like_a_clock_does_not_wait():
    law = waiting.wait_law(0.9, Law.equal(0.15), 3, cv_arrivals=0)
    assert law.quantile(1) == 0


def trace(cv):
    """Equal prompts, or a thousand that stand for exponential ones; answers of one token."""
    shares = (np.arange(1000) + 0.5) / 1000
    n_in = np.full(1000, 1000) if not cv else np.rint(-1000 * np.log(1 - shares)).astype(int) + 1
    return Trace(n_in, np.ones(1000, dtype=int))


def simulated(prompts, load, units, bursts):
    """TTFT of two long runs."""
    return pd.concat([one_run(prompts, load, units, bursts, seed) for seed in (0, 1)])


def one_run(prompts, load, units, bursts, seed):
    run = simulate.open_loop(
        prompts,
        simulate.StepCost(t_w=1e-9, T=PER_TOKEN, overlap="serial-kv"),
        rate=units * load / float(PER_TOKEN * np.mean(prompts.n_in)),
        cv_arrivals=bursts,
        requests=120_000,
        warmup=2000,
        seed=seed,
        scheduler=simulate.Disaggregated(units, 1),
    )
    return run.requests.ttft


CORNERS = [(6, 1, 2), *(corner for corner in product((1, 2, 6), (0, 1), (1, 2)) if corner != (6, 1, 2))]


@pytest.mark.parametrize(("units", "cv", "bursts"), rest_long(CORNERS))
def test_the_simulated_pool_waits_as_the_law_says(units, cv, bursts):
    """Single runs scatter by 2 % of the mean, 3 % of P90 and 8 % of P99 when arrivals come in bursts."""
    prompts = trace(cv)
    ttft = simulated(prompts, 0.75, units, bursts)
    law = waiting.ttft_law(0.75, Law.of(PER_TOKEN * prompts.n_in), units, bursts)
    assert law.mean == pytest.approx(ttft.mean(), rel=0.04)
    assert law.quantile(0.9) == pytest.approx(ttft.quantile(0.9), rel=0.05)
    assert law.quantile(0.99) == pytest.approx(ttft.quantile(0.99), rel=0.12)


@pytest.mark.parametrize(("units", "cv", "off"), rest_long([(6, 1, 0.04), (1, 0, 0.03), (6, 0, 0.08), (2, 1, 0.04)]))
def test_the_closed_mean_is_near_the_simulator_s_for_arrivals_at_random(units, cv, off):
    prompts = trace(cv)
    mean = float(PER_TOKEN * np.mean(prompts.n_in))
    scatter = Law.of(PER_TOKEN * prompts.n_in).cv
    p_wait = waiting.erlang_c(0.85, units)
    numbers = {"ttft_alone": mean, "prefill_units": units, "cv_in": scatter, "cv_arrivals": 1}
    wait = theory.pool_wait(p_wait=p_wait, load=0.85, **numbers)
    assert wait == pytest.approx(simulated(prompts, 0.85, units, 1).mean() - mean, rel=off + 0.04)


def test_queues_of_one_and_six_prefill_units():
    """Six prefill units and a prompt of 150.8 ms: simulated apart from this package."""
    prompt = Law.equal(0.1508)
    assert waiting.ttft_law(0.95, prompt, 6).mean == pytest.approx(0.372, abs=0.003)
    assert waiting.ttft_law(0.77, prompt, 6).mean == pytest.approx(0.178, abs=0.001)
    alone = waiting.ttft_law(theory.prefill_utilisation(sla_ttft=0.4, ttft_alone=0.1508, cv_in=0), prompt)
    assert alone.mean == pytest.approx(0.4, abs=0.001)
    assert alone.quantile(0.9) == pytest.approx(0.785, abs=0.005)
    assert alone.quantile(0.99) == pytest.approx(1.466, abs=0.01)


@settings(max_examples=5)
@given(limit=st.floats(0.2, 2), units=st.integers(1, 8), q=st.sampled_from([None, 0.9]))
def test_the_busiest_load_meets_the_limit_and_more_does_not(limit, units, q):
    prompts = Law.equal(0.15)
    load = waiting.busiest(limit, prompts, units, q=q)

    def value(load):
        law = waiting.ttft_law(load, prompts, units)
        return law.mean if q is None else law.quantile(q)

    assume(0 < load < waiting.MOST_LOAD - 0.002)
    assert value(load) <= limit * (1 + 1e-9)
    assert value(load + 1e-3) > limit


def test_one_unit_may_be_as_busy_as_the_closed_form_says():
    for cv in (0, 0.5, 1):
        prompts = Law.lognormal(0.15, cv)
        closed = theory.prefill_utilisation(sla_ttft=0.4, ttft_alone=0.15, cv_in=prompts.cv)
        assert waiting.busiest(0.4, prompts) == pytest.approx(closed, abs=1e-3)


def test_limits_that_none_or_all_meet():
    assert waiting.busiest(0.1, Law.equal(0.15), 4) == 0
    assert waiting.busiest(100, Law.equal(0.15), 4) == waiting.MOST_LOAD


def test_bad_input_is_named():
    refused(waiting.erlang_c, {"load": 0.5, "prefill_units": 2}, {"load": 1.2}, {"prefill_units": 2.5})
    pool = {"load": 0.5, "prefills": Law.equal(1)}
    refused(waiting.wait_law, pool, {"load": 1}, {"prefills": 0.15}, {"prefill_units": 0}, {"cv_arrivals": -1})
    refused(waiting.wait_law, {"load": 0.99}, {"prefills": Law.of([1, 1e6], [1e5, 1])})
    refused(waiting.busiest, {"sla_ttft": 1, "prefills": Law.equal(1)}, {"sla_ttft": 0}, {"q": 1})
