"""Users in a closed loop over two pools: limits, laws, mean-value analysis by its recursion, and the simulator."""

import numpy as np
import pytest
from grids import rest_long
from hypothesis import given, settings, strategies as st
from refusals import refused

from inference_math import Workload, simulate, theory
from inference_math_planner.laws.closed import pools_in_loop

costs = st.fixed_dictionaries(
    {
        "prefill": st.floats(1e-3, 3),
        "n_out": st.floats(2, 2000),
        "t_w": st.floats(1e-3, 0.05),
        "delta_h": st.floats(0, 1e-3),
    }
)
units = st.integers(1, 9)


def answer(cost):
    """Seconds of a decode that shares its unit with nobody."""
    return (cost["n_out"] - 1) * (cost["t_w"] + cost["delta_h"])


@given(cost=costs, n_p=units, n_d=units)
def test_as_long_as_each_user_has_a_unit_nobody_waits(cost, n_p, n_d):
    for users in range(1, min(n_p, n_d) + 1):
        seen = pools_in_loop(users, n_p, n_d, **cost)
        assert seen.rate == pytest.approx(users / (cost["prefill"] + answer(cost)))
        assert (seen.ttft, seen.tpot) == pytest.approx((cost["prefill"], cost["t_w"] + cost["delta_h"]))


@given(cost=costs, n_p=units, n_d=units, users=st.integers(1, 300))
def test_the_rate_grows_with_users_up_to_what_the_slower_pool_can(cost, n_p, n_d, users):
    fewer, more = (pools_in_loop(count, n_p, n_d, **cost) for count in (users, users + 1))
    decode = n_d / ((cost["n_out"] - 1) * cost["delta_h"]) if cost["delta_h"] > 1e-12 else np.inf
    assert fewer.rate * (1 - 1e-9) <= more.rate <= min(n_p / cost["prefill"], decode) * (1 + 1e-9)
    assert fewer.tpot <= more.tpot * (1 + 1e-9)
    assert more.rate <= (users + 1) / (cost["prefill"] + answer(cost)) * (1 + 1e-9)


@given(cost=costs, n_p=units, n_d=units)
@settings(max_examples=20)
def test_endless_users_fill_the_slower_pool(cost, n_p, n_d):
    steps = cost["n_out"] - 1
    least = n_d / steps / (cost["delta_h"] + cost["t_w"] / (4000 / n_d))  # of a decode pool that has them all
    seen = pools_in_loop(4000, n_p, n_d, **cost)
    assert seen.rate >= 0.97 * min(n_p / cost["prefill"], least)


@given(cost=costs, n_p=units, n_d=units, users=st.integers(1, 60))
def test_littles_law_holds_in_both_pools(cost, n_p, n_d, users):
    seen = pools_in_loop(users, n_p, n_d, **cost)
    stay = seen.ttft + (cost["n_out"] - 1) * seen.tpot
    assert theory.littles_law(rate=seen.rate, latency=stay) == pytest.approx(users)
    assert theory.littles_law(rate=seen.rate, latency=stay - seen.ttft) == pytest.approx(seen.decoding)


def mean_value_analysis(users, n_p, n_d, prefill, n_out, t_w, delta_h):
    """The rate by the recursion in the number of users, with the chances of each station's numbers (Reiser 1980)."""

    def decode(n):
        held = [n // n_d + (unit < n % n_d) for unit in range(n_d)]
        return sum(k / (t_w + delta_h * k) for k in held) / (n_out - 1)

    speeds = [lambda n: min(n, n_p) / prefill, decode]
    shares = [[1.0], [1.0]]  # of 0, 1, … requests, with so many users
    for count in range(1, users + 1):
        stays = [
            sum(n / speed(n) * share[n - 1] for n in range(1, count + 1))
            for speed, share in zip(speeds, shares, strict=True)
        ]
        rate = count / sum(stays)
        for station, speed in enumerate(speeds):
            some = [rate / speed(n) * shares[station][n - 1] for n in range(1, count + 1)]
            shares[station] = [1 - sum(some), *some]
    return rate


@given(cost=costs, n_p=units, n_d=units, users=st.integers(1, 25))
def test_it_is_what_mean_value_analysis_finds(cost, n_p, n_d, users):
    assert pools_in_loop(users, n_p, n_d, **cost).rate == pytest.approx(
        mean_value_analysis(users, n_p, n_d, **cost), rel=1e-5
    )


CASE = {"prefill": 0.198, "n_out": 170, "t_w": 0.0167, "delta_h": 0.000166}
SIMULATED = [(7, 2, 8), (7, 2, 100), (7, 2, 300), (1, 1, 16), (3, 1, 40), (1, 3, 4), (2, 6, 64)]


@pytest.mark.parametrize("lengths", ["geometric", "fixed"])
@pytest.mark.parametrize(("n_p", "n_d", "users"), rest_long(SIMULATED, 4))
def test_the_simulator_finds_the_same(n_p, n_d, users, lengths):
    """Rate and TPOT: equal prompts wait less than exponential ones, most where the prefill pool is just full."""
    cost = simulate.StepCost(t_w=CASE["t_w"], prompt=CASE["prefill"] - CASE["t_w"], delta_h=CASE["delta_h"])
    run = simulate.closed_loop(
        Workload(2200, 170, lengths=lengths),
        cost,
        concurrency=users,
        requests=3000 + 8 * users,
        warmup=400 + 6 * users,
        scheduler=simulate.Disaggregated(n_p, n_d),
        seed=1,
    )
    seen = pools_in_loop(users, n_p, n_d, **CASE)
    knee = abs(users / (CASE["prefill"] + answer(CASE)) * CASE["prefill"] / n_p - 1) < 0.15
    assert seen.rate == pytest.approx(run.request_rate, rel=0.12 if knee and lengths == "fixed" else 0.05)
    assert seen.tpot == pytest.approx(run.gaps.mean, rel=0.03)


def test_what_is_refused():
    good = CASE | {"users": 4, "prefill_units": 1, "decode_units": 1}
    wrong = [
        {"users": 0}, {"users": 2.5}, {"prefill_units": 0}, {"decode_units": True}, {"n_out": 1}, {"t_w": 0},
        {"prefill": -1}, {"delta_h": np.nan},
    ]  # fmt: skip
    refused(pools_in_loop, good, *wrong)
