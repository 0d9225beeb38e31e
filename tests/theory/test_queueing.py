import numpy as np
import pytest

from inference_math import simulate, theory
from inference_math.theory.notation import QUANTITIES
from inference_math.workload import Trace, Workload


def test_the_restaurant():
    assert theory.littles_law(rate=10, latency=2.3) == 23


@pytest.mark.parametrize("source", ["fixed", "mixed"])
def test_the_simulated_wait_is_pollaczek_and_khinchines(source):
    """Prompts that arrive at random for one prefill unit; equal ones, and a mixture of short and long."""
    n_in = np.full(1000, 1000) if source == "fixed" else np.repeat([200, 3000], [700, 300])
    per_token = 1e-4
    times = per_token * n_in
    mean, cv = float(np.mean(times)), float(np.std(times) / np.mean(times))
    load = 0.7
    run = simulate.open_loop(
        Trace(n_in, np.full(n_in.size, 2)),
        simulate.StepCost(t_w=1e-9, T=per_token, overlap="serial-kv"),
        rate=load / mean,
        requests=60_000,
        warmup=500,
        seed=7,
        scheduler=simulate.Disaggregated(1, 1),
    )
    wait = float(run.requests.ttft.mean()) - mean
    assert theory.prefill_wait(load=load, ttft_alone=mean, cv_in=cv) == pytest.approx(wait, rel=0.05)


def test_the_utilisation_is_the_waits_inverse():
    limit, mean, cv = 0.4, 0.14, 0.8
    load = theory.prefill_utilisation(sla_ttft=limit, ttft_alone=mean, cv_in=cv)
    assert mean + theory.prefill_wait(load=load, ttft_alone=mean, cv_in=cv) == pytest.approx(limit)
    assert theory.prefill_utilisation(sla_ttft=0.1, ttft_alone=mean, cv_in=cv) == 0


@pytest.mark.parametrize("concurrency", [4, 23])
def test_littles_law_in_the_simulator(concurrency):
    cost = simulate.StepCost(t_w=0.01, prompt=0.1, delta_h=0.0002)
    run = simulate.closed_loop(
        Workload(500, 100, lengths="geometric"), cost,
        concurrency=concurrency, requests=4000, warmup=200, start="steady",
    )  # fmt: skip
    stay = float(run.requests.latency.mean())
    assert theory.littles_law(rate=run.request_rate, latency=stay) == pytest.approx(concurrency, rel=0.03)


def test_a_pool_of_one_unit_is_pollaczek_and_khinchine():
    """With one unit and arrivals at random, who waits is who finds it busy: the share is its load."""
    load = QUANTITIES["load"].symbol
    one = {"p_wait": load, "prefill_units": 1, "cv_arrivals": 1}
    pool = theory.pool_wait.expr.subs({QUANTITIES[name].symbol: value for name, value in one.items()})
    assert theory.prefill_wait.equals(pool)


def test_the_quantile_of_the_wait_leaves_that_share_beyond_it():
    """Who waits, waits exponentially: the chance to wait longer than w is P·exp(−w·P/mean)."""
    for p_wait, mean in ((0.9, 0.2), (0.3, 1.7)):
        for q in (0.8, 0.95, 0.999):
            wait = theory.wait_quantile(q=q, p_wait=p_wait, mean_wait=mean)
            assert p_wait * np.exp(-wait * p_wait / mean) == pytest.approx(1 - q)
    assert theory.wait_quantile(q=0.5, p_wait=0.3, mean_wait=1.0) == 0
