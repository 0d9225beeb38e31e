"""When prompts are let in: the formulas, at their limits and against the simulator."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math import simulate, theory
from inference_math.simulate import Chunked, SchedulerPolicy, StepCost
from inference_math.workload import Trace, Workload

answers, cadences = st.floats(2, 5000), st.integers(1, 200)


@given(answers, cadences)
def test_a_cadence_of_one_is_the_binomial_law_of_full_slots(n_out, every):
    one = theory.let_in_share(every=1, n_out=n_out)
    assert one == pytest.approx(1 / n_out)
    assert theory.gap_admits(n_out=n_out, let_in=one) == pytest.approx(1)
    assert theory.prompts_beside_gap(B=17, n_out=n_out, let_in=one) == pytest.approx(16 / n_out)
    more = theory.let_in_share(every=every, n_out=n_out)
    assert one * (1 - 1e-12) <= more <= min(1, every / n_out) * (1 + 1e-9)
    assert theory.gap_admits(n_out=n_out, let_in=more) <= 1 / every + 1e-9
    assert theory.prompts_beside_gap(B=17, n_out=n_out, let_in=more) <= 16 / n_out * (1 + 1e-12)


@given(answers, st.integers(1, 64), st.integers(1, 16), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_quantile_is_clean_from_its_own_cadence_on(n_out, B, ranks, level):
    """With nobody spared, N = 1/(1 - q) is enough whatever the load: the median needs two."""
    every = theory.every_for(q=level, free=0.0)
    assert every == {0.5: 2, 0.9: 10, 0.95: 20, 0.99: 100}[level]
    let_in = theory.let_in_share(every=every, n_out=n_out)
    if let_in < 1:
        assert theory.clean_gaps(B=B, ranks=ranks, n_out=n_out, let_in=let_in) >= level - 1e-9
    assert theory.every_for(q=0.5, free=0.0) == 2
    assert theory.every_for(q=0.9, free=1.0) == 1


def test_a_quantile_asks_for_the_chance_that_nobody_waits_at_its_own_cadence():
    """With that of N = 1 it is too little: P90 of 24 places would be said to be clean from N = 2 on."""
    for every in range(1, 12):
        let_in = theory.let_in_share(every=every, n_out=170)
        free = theory.no_prompt_waits(B=24, ranks=1, let_in=let_in)
        if theory.every_for(q=0.9, free=free) <= every:
            break
    assert theory.clean_gaps(B=24, ranks=1, n_out=170, let_in=let_in) >= 0.9
    assert 2 < every < 10


def test_gaps_need_answers_of_more_than_a_token_and_groups_prompts_that_take_time():
    with pytest.raises(ValueError, match="n_out"):
        theory.clean_gaps(B=8, ranks=1, n_out=1, let_in=0.5)
    with pytest.raises(ValueError, match="ttft_1"):
        theory.burst_groups(B=8, every=1, t_w=0.1, ttft_1=0, clean=0.1)


@pytest.mark.parametrize("every", [1, 4])
def test_a_first_token_waits_as_much_longer_with_each_step_of_a_round(every):
    asked = {"clean": 0.02, "on_prompts": 0.3, "ttft_1": 0.1}
    here, there = (theory.ttft_cadence(every=n, **asked) for n in (every, every + 1))
    assert there - here == pytest.approx(0.02 * (0.5 + 0.3) / (1 - 0.3))


@pytest.mark.parametrize(("guard", "late"), [(False, True), (True, False)])
def test_without_a_guard_the_queue_grows_beyond_the_largest_cadence(guard, late):
    cost = StepCost(t_w=0.02, prompt=0.05)
    most = theory.every_most(together=2, rate=10.0, ttft_1=0.05, clean=0.02)
    assert most == pytest.approx(5)
    for every, grows in ((4, False), (8, late)):
        run = simulate.open_loop(
            Workload(100, 30, lengths="geometric"), cost, rate=10.0, requests=3000, warmup=200,
            scheduler=Chunked(260, policy=SchedulerPolicy(every=every, guard=guard, whole=True)),
        )  # fmt: skip
        waits = run.requests.sort_values("arrival").ttft.to_numpy()
        assert (waits[-500:].mean() > 5 * waits[:500].mean()) == grows


@pytest.mark.parametrize(("every", "together"), [(1, 1), (1, 4), (8, 2), (3, 8)])
def test_a_burst_in_equal_groups_is_the_simulator_s(every, together):
    """One long answer first, so that decodes go on from the first group on and rounds are counted."""
    cost = StepCost(t_w=0.2, prompt=1.0)
    trace = Trace(np.full(8, 100), np.full(8, 500), arrival=np.zeros(8))
    room = 100 * together + 8
    run = simulate.replay(
        trace, cost, scheduler=Chunked(room, policy=SchedulerPolicy(every=every, guard=False, whole=True))
    )
    said = theory.ttft_burst_cadence(B=8, together=together, every=every, t_w=0.2, ttft_1=1.0, clean=0.2)
    assert run.requests.ttft.mean() == pytest.approx(said)


@given(st.integers(2, 9), st.floats(0.05, 5))
def test_the_best_groups_of_a_burst_go_down(count, fixed):
    def ways(n):
        return [()] if n == 0 else [(k, *rest) for k in range(1, n + 1) for rest in ways(n - k)]

    def total(sizes):
        return np.dot(sizes, np.cumsum([fixed + size for size in sizes]))

    best = min(ways(count), key=total)
    assert total(sorted(best, reverse=True)) == pytest.approx(total(best))
    equal = [k for k in range(1, count + 1) if count % k == 0]
    found = min(equal, key=lambda k: total((k,) * (count // k)))
    asked = {"B": count, "every": 1, "t_w": fixed, "ttft_1": 1.0, "clean": 0.0}
    assert theory.ttft_burst_cadence(together=found, **asked) == pytest.approx(
        total((found,) * (count // found)) / count
    )
    group = theory.burst_groups(**asked)
    assert theory.ttft_burst_cadence(together=group, **asked) <= total((found,) * (count // found)) / count + 1e-9
