"""No schedule serves more than the bound, and some come as near to it as one likes [E12]."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math import Workload, simulate, theory

times = st.floats(1e-4, 1.0)
JUST_ABOVE = 1 + 1e-9  # rounding
SCHEDULES, REQUESTS, UNITS = 2000, 12, 3  # requests and units of a schedule: at most


def played(step, *, seed):
    """Play schedules that choose at random who is computed in each step of which unit; a row of arrays for each.

    Prompts are cut anywhere, any unit makes a request's next token, decodes may be left standing. Some schedules keep
    prompts on a unit of their own, or let them wait until no answer is under way. Only time in which a unit works
    counts.
    """
    rng, rows, column = np.random.default_rng(seed), np.arange(SCHEDULES), (SCHEDULES, 1)
    t_w, h, prompt = 10 ** rng.uniform((-2, -4, -3), (0, -1, 0), (SCHEDULES, 3)).T
    n_out, units = rng.integers(2, 7, column), rng.integers(1, UNITS + 1, column)
    asked, cut = rng.uniform(0.5, 1, column), rng.uniform(0, 0.6, column)
    apart = (units > 1) & (rng.random(column) < 0.5)
    patient = ~apart & (rng.random(column) < 0.5)
    there = np.arange(REQUESTS) < rng.integers(1, REQUESTS + 1, column)
    left, tokens, last = 1.0 * there, np.where(there, 0, n_out), np.zeros(there.shape)
    clocks = np.where(np.arange(UNITS) < units, 0.0, np.inf)
    worked, gaps, longest, fullest = np.zeros((4, SCHEDULES))
    some = t_w + h * rng.uniform(1, REQUESTS, SCHEDULES) + prompt * rng.choice([0, 1], SCHEDULES)
    within = np.zeros(SCHEDULES)
    while (tokens < n_out).any():
        first = clocks == clocks.min(axis=1, keepdims=True)
        unit = np.where(first, rng.random(clocks.shape), -1).argmax(axis=1)
        now = clocks[rows, unit][:, None]
        free = (tokens < n_out) & (last <= now)  # in no other unit's step
        prefills, decodes = free & (left > 0), free & (left == 0)
        prefills &= ~(apart & (unit[:, None] > 0)) & ~(patient & decodes.any(axis=1, keepdims=True))
        decodes &= ~(apart & (unit[:, None] == 0))
        chosen = rng.random(there.shape) < asked
        parts = prefills * chosen * left * np.where(rng.random(there.shape) < cut, rng.random(there.shape), 1)
        decodes &= chosen
        computed = decodes | (parts > 0)
        batch = decodes.sum(axis=1)
        seconds = np.where(computed.any(axis=1), step(t_w, batch * h, parts.sum(axis=1) * prompt), 0)
        end = now + seconds[:, None]
        gap = np.where(decodes, end - last, 0)
        worked += seconds
        gaps += gap.sum(axis=1)
        within += (decodes & (gap <= some[:, None])).sum(axis=1)
        longest, fullest = np.maximum(longest, gap.max(axis=1)), np.maximum(fullest, batch)
        left -= parts
        tokens += decodes | ((parts > 0) & (left == 0))
        last = np.where(computed, end, last)
        both = np.hstack([last, clocks])
        later = np.where(both > now, both, np.inf).min(axis=1)  # when an idle unit looks again
        clocks[rows, unit] = np.where(seconds > 0, end[:, 0], np.where(later < np.inf, later, now[:, 0]))
    requests, n_out = there.sum(axis=1), n_out[:, 0]
    decoded = requests * (n_out - 1)
    law = {"n_out": n_out, "delta_h": h, "t_w": t_w}
    return SimpleNamespace(
        law=law, prompt=prompt, rate=requests / worked, limit=gaps / decoded * JUST_ABOVE, longest=longest * JUST_ABOVE,
        fullest=fullest, some=some, share=within / decoded,
    )  # fmt: skip


def test_no_random_schedule_serves_more_than_the_bound():
    """With the mean gap as the limit; and with a share of the gaps, with each of them, with memory as the limit."""
    runs = played(lambda t_w, reads, prompts: t_w + reads + prompts, seed=0)
    n_out, h, t_w = runs.law.values()

    def most(reads):  # requests/s, where a decode needs so many weight reads at least
        return 1 / (runs.prompt + (n_out - 1) * (h + t_w * reads))

    law = runs.law | {"delta_p": runs.prompt / n_out}
    held = np.minimum(runs.limit, (t_w + h * runs.fullest) * JUST_ABOVE)
    bounds = [
        theory.rate_bound(**law, sla_tpot=runs.limit), theory.rate_bound(**law, sla_tpot=held),
        most(runs.share * h / (runs.some - t_w)), most(1 / np.floor((runs.longest - t_w) / h)),
    ]  # fmt: skip
    for bound in bounds:
        assert (runs.rate / bound).max() <= JUST_ABOVE
        assert (runs.rate / bound).max() > 0.98


def test_no_random_schedule_that_hides_its_weight_reads_serves_more_than_their_bound():
    runs = played(lambda t_w, reads, prompts: np.maximum(t_w, prompts) + reads, seed=1)
    law, delta_p = runs.law | {"sla_tpot": runs.limit}, runs.prompt / runs.law["n_out"]
    of_bound = runs.rate / theory.rate_bound_serial(**law, delta_p_gross=delta_p)
    assert 0.98 < of_bound.max() <= JUST_ABOVE


@given(t_w=times, prompt=times, delta_h=times, users=st.integers(1, 40), n_out=st.integers(2, 40))
def test_one_unit_that_goes_through_its_requests_together_lacks_one_weight_read(t_w, prompt, delta_h, users, n_out):
    """Users with equal answers who start together: all prompts in one step, then all decodes."""
    cost = simulate.StepCost(t_w=t_w, prompt=prompt, delta_h=delta_h)
    run = simulate.closed_loop(Workload(50, n_out), cost, concurrency=users, requests=3 * users)
    law = {"delta_p": prompt / n_out, "n_out": n_out, "delta_h": delta_h, "t_w": t_w}
    bound = theory.rate_bound(**law, sla_tpot=t_w + users * delta_h)
    assert 1 / run.request_rate == pytest.approx(1 / bound + t_w / users)


T_W, DELTA_H, N_OUT = 0.02, 0.0005, 41
EQUAL, GEOMETRIC = Workload(1000, N_OUT), Workload(1000, N_OUT, lengths="geometric")


def over_bound(prompt, scheduler, users, work=EQUAL, overlap="none"):
    """Return the simulated rate of a unit, over the bound for the mean gap that was simulated; and that gap."""
    cost = simulate.StepCost(t_w=T_W, delta_h=DELTA_H, overlap=overlap, T=prompt / work.n_in)
    run = simulate.closed_loop(work, cost, concurrency=users, requests=3000, warmup=500, scheduler=scheduler, seed=3)
    pools = isinstance(scheduler, simulate.Disaggregated)
    units = scheduler.prefill_units + scheduler.decode_units if pools else 1
    law = {"n_out": N_OUT, "delta_h": DELTA_H, "t_w": T_W, "sla_tpot": run.gaps.mean * JUST_ABOVE}
    name, argument = ("rate_bound", "delta_p") if overlap == "none" else ("rate_bound_serial", "delta_p_gross")
    return run.request_rate / units / theory.CATALOGUE[name](**law, **{argument: prompt / N_OUT}), run.gaps.mean


@pytest.mark.parametrize(
    "scheduler",
    [
        simulate.Aggregated(), simulate.Chunked(200), simulate.Chunked(2000, policy=simulate.SchedulerPolicy(every=30)),
        simulate.Disaggregated(3, 2, max_batch=40), simulate.Disaggregated(1, 3),
    ],
)  # fmt: skip
@pytest.mark.parametrize("work", [EQUAL, GEOMETRIC], ids=["equal answers", "geometric answers"])
def test_no_simulated_scheduler_serves_more_than_the_bound(scheduler, work):
    for users in (10, 90):
        assert 0.4 < over_bound(0.0375, scheduler, users, work)[0] < 1.01, users


def test_pools_that_put_many_prompts_into_a_step_come_near_the_bound_and_others_do_not():
    """A decode unit that is full at 40 ms takes 25 requests per second, eight prompts in 0.32 s."""
    prompt, S = 0.0375, 0.040
    law = {"delta_p": prompt / N_OUT, "delta_h": DELTA_H, "t_w": T_W, "sla_tpot": S}
    together, together_gap = over_bound(prompt, simulate.Disaggregated(1, 1, budget=8000), 60, GEOMETRIC)
    single, single_gap = over_bound(prompt, simulate.Disaggregated(3, 2), 88, GEOMETRIC)
    aggregated, aggregated_gap = over_bound(prompt, simulate.Aggregated(), 15, GEOMETRIC)
    assert (together_gap, single_gap, aggregated_gap) == pytest.approx((S, S, S), rel=0.02)
    assert 0.95 < together < 1
    assert 0.75 < single < 0.8
    assert aggregated == pytest.approx(1 / theory.pdd_gain(**law), rel=0.02)  # its distance from the best


@pytest.mark.parametrize(("prompt", "decodes"), [(0.01, 40), (0.02, 40), (0.03, 40), (0.06, 20)])
def test_balanced_chunks_reach_the_bound_where_the_weight_read_hides_and_whole_prompts_do_not(prompt, decodes):
    chunk = decodes * EQUAL.n_in // (N_OUT - 1)
    balanced, _ = over_bound(prompt, simulate.Chunked(chunk + decodes), decodes + 1, overlap="serial-kv")
    whole, _ = over_bound(prompt, simulate.Aggregated(), decodes + 1, GEOMETRIC, overlap="serial-kv")
    assert 0.99 < balanced <= JUST_ABOVE
    assert whole < 0.98


@given(st.floats(1, 20), st.floats(0.02, 0.2))
def test_decodes_that_differ_share_weight_reads_better_if_batches_are_sorted(times, sla_tpot):
    """Half the tokens have contexts that take so many times as long: steps of equal contexts, each as large as is best.

    The bound of equal decodes is exceeded, by the part of the weight read that chapter 9 names and no more.
    """
    t_w, n_out, delta_p = 0.0167, 170, 1.064e-3
    reads = np.array([1.0, times]) * 2 * 0.166e-3 / (1 + times)
    batches = (sla_tpot - t_w) / np.sqrt(reads).mean() / np.sqrt(reads)
    steps = t_w + batches * reads
    assert steps.mean() == pytest.approx(sla_tpot)  # of the gaps, half of which are of each kind
    served = 1 / (n_out * delta_p + (n_out - 1) * (steps / batches).mean())
    equal = theory.rate_bound(delta_p=delta_p, n_out=n_out, delta_h=reads.mean(), t_w=t_w, sla_tpot=sla_tpot)
    part = np.sqrt(reads).mean() ** 2 / reads.mean()
    least = reads.mean() + part * t_w * reads.mean() / (sla_tpot - t_w)
    assert served >= equal * (1 - 1e-12)
    assert served == pytest.approx(1 / (n_out * delta_p + (n_out - 1) * least))


@pytest.mark.parametrize(("name", "prompt"), [("rate_bound", "delta_p"), ("rate_bound_serial", "delta_p_gross")])
def test_a_bound_asks_for_a_limit_that_a_request_alone_keeps(name, prompt):
    law = {prompt: 0.001, "n_out": 1, "delta_h": 0.5, "t_w": 0.02}
    assert theory.CATALOGUE[name](**law, sla_tpot=0.52) > 0
    with pytest.raises(ValueError, match=r"needs .*sla_tpot >= delta_h \+ t_w"):
        theory.CATALOGUE[name](**law, sla_tpot=0.519)
