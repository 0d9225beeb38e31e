"""Routers: what is drawn against a simulated one."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import simulate, theory
from inference_math_book.figures import routing
from inference_math_planner.laws.routing import spread_of


def played(users, units, t_w, added, router, answers):
    """Return what a simulated router does: the mean step, and the share of idle units.

    Users in a closed loop, answers of exponential length whose mean is the unit of time, a step at each unit as long as
    its requests make it. Routers are the first two of `routing.ROUTERS`.
    """
    rng, drawn = np.random.default_rng(0), router == routing.ROUTERS[0]
    even = np.array([users // units + (k < users % units) for k in range(units)])
    at = np.bincount(rng.integers(units, size=users), minlength=units) if drawn else even
    clock, idle = 0.0, 0.0
    gaps = rng.exponential(size=2 * answers)
    chances = rng.random(size=(2 * answers, 2))
    for k in range(2 * answers):
        rate = np.where(at > 0, at / (t_w + added * at), 0.0)
        whole = rate.sum()
        if k >= answers:  # what came before is to forget the start
            clock += gaps[k] / whole
            idle += gaps[k] / whole * (at == 0).mean()
        at[np.searchsorted(np.cumsum(rate) / whole, chances[k, 0])] -= 1
        at[int(chances[k, 1] * units) if drawn else np.argmin(at + chances[k, 1] / 2)] += 1
    return users * clock / answers, idle / clock


@pytest.mark.parametrize(("users", "units", "added"), [(16, 16, 0.001), (40, 8, 0.004), (12, 4, 0.1)])
def test_a_simulated_router_does_what_the_law_says(users, units, added):
    step, idle = played(users, units, 0.01, added, "at random", 12_000)
    said = theory.routed_step(t_w=0.01, delta_p=0.0, delta_h=added, B=users, units=units)
    assert step == pytest.approx(said, rel=0.04)
    assert idle == pytest.approx(spread_of(users, units, 0.01, added).pmf(0), abs=0.02)
    fewest, _ = played(users, units, 0.01, added, "fewest requests", 12_000)
    assert fewest == pytest.approx(0.01 + added * users / units, rel=0.06)


def test_a_home_keeps_hits_and_an_even_one_is_never_worse():
    found = routing.rates(64, 8, 0.013, 0.01, 0.001, 60).set_index("router")
    assert found.found["home, drawn"] == pytest.approx(theory.reuse_conversation(turns=60))
    assert found.found["at random"] == pytest.approx(theory.reuse_local(turns=60, units=8))
    assert found.rate["home, filled evenly"] > found.rate["home, drawn"] > found.rate["fewest requests"]
    assert found.rate["fewest requests"] > found.rate["at random"]
    one = routing.rates(8, 1, 0.013, 0.01, 0.001, 60)
    assert one.rate.to_numpy() == pytest.approx(one.rate[0])


def test_what_a_second_class_costs_is_its_load_whatever_the_engine():
    cost, users = simulate.StepCost(t_w=0.02, T=50e-6, kv_read=2e-8), (2.0, 1000, 200)
    frame = pd.DataFrame(
        {"rate": rate, "engine": engine} | routing.two_classes(users, (rate, 4000, 200), cost, budget)
        for rate in (0.0, 0.6)
        for engine, budget in (("whole prompts", None), ("chunks", 1024))
    )
    axes = Figure().subplots(1, 2)
    routing.classes(axes, frame)
    assert axes[0].lines[1].get_ydata() == pytest.approx(1e3 * frame.tpot[frame.engine == "chunks"])
    assert (frame.tpot / frame.law - 1).abs().max() < 0.05
    assert (frame.each > frame.tpot).all()
    own, alone = routing.load_of(users, cost), routing.alone_of(users, cost)
    asked = {"alone_step": alone, "filled": own, "ttft_1": 0.2, "n_out": 200, "delta_h": 2e-8 * 4200}
    rate = theory.second_class_rate(sla_tpot=0.03, **asked)
    both = own + routing.load_of((rate, 4000, 200), cost)
    assert theory.seen_step(filled=both, alone_step=alone) == pytest.approx(0.03)
    assert theory.second_class_rate(sla_tpot=alone, **asked) == 0


def test_what_requests_see_of_an_engine_that_they_share_is_exact_for_one_class():
    """Decodes alone, each of which adds much: the mean step would be a fifth shorter."""
    cost = simulate.StepCost(t_w=0.016, delta_h=0.004)
    sent = routing._sent([(1.25, 10, 100)])
    seen = routing._served(sent, cost, simulate.Chunked(10**6))
    filled = routing._work(sent, cost) / routing._SECONDS
    assert seen["tpot"] == pytest.approx(theory.seen_step(filled=filled, alone_step=0.02), rel=0.02)
    assert theory.open_step(filled=filled, t_w=0.016) < 0.85 * seen["tpot"]
