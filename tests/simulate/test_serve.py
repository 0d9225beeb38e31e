"""The ways to simulate: users in a closed loop, a benchmark, random arrivals, a trace."""

import numpy as np
import pytest

from inference_math.simulate import Aggregated, Chunked, Disaggregated, Reuse, StepCost
from inference_math.simulate.serve import benchmark, closed_loop, open_loop, replay
from inference_math.workload import Requests, Trace, Workload

COST = StepCost(t_w=0.02, T=1e-4, delta_h=1e-4, kv_read=1e-7, pair=1e-8)
USERS = Workload(200, 30, lengths="geometric")
SCHEDULERS = [Aggregated(), Chunked(128), Disaggregated()]


class InTurn:
    """A source whose requests become longer and longer."""

    def draw(self, count, rng):
        return Requests(np.arange(100, 160), np.arange(60) % 7 + 1, np.arange(60) % 3 * 20)


@pytest.mark.parametrize("scheduler", [*SCHEDULERS, Aggregated(max_batch=2)], ids=repr)
@pytest.mark.parametrize("reuse", [None, Reuse(2e-3, blocking=False)], ids=repr)
def test_each_user_sends_when_the_last_answer_has_come(scheduler, reuse):
    """In a benchmark every request is served: it is the replay of its own arrivals, which a plain loop knows."""
    setting = {"concurrency": 5, "requests": 57, "scheduler": scheduler, "reuse": reuse}
    run, loop = benchmark(InTurn(), COST, **setting).requests, closed_loop(InTurn(), COST, **setting).requests
    assert len(run) == 57 <= len(loop)
    assert sorted(run.arrival)[5:] == sorted(run.finished)[:52]
    assert set(loop.arrival) <= {0.0, *loop.finished}
    sent = run.sort_values(["arrival", "n_in"], ignore_index=True)
    trace = Trace(sent.n_in, sent.n_out, arrival=sent.arrival, alpha=sent.cached / sent.n_in)
    again = replay(trace, COST, scheduler=scheduler, reuse=reuse).requests
    np.testing.assert_allclose(again.sort_values(["arrival", "n_in"]), sent)


def test_what_a_request_takes_on_its_way_counts_in_its_first_token_alone():
    alone = benchmark(Workload(200, 30), COST, concurrency=1, requests=5)
    late = benchmark(Workload(200, 30), COST, concurrency=1, requests=5, front=0.25)
    np.testing.assert_allclose(late.requests.ttft, alone.requests.ttft + 0.25)
    np.testing.assert_allclose(late.requests.tpot, alone.requests.tpot)
    # Of several users those on their way leave places empty: each step is shorter.
    many = benchmark(USERS, COST, concurrency=16, requests=400, seed=1)
    away = benchmark(USERS, COST, concurrency=16, requests=400, front=1.0, seed=1)
    assert away.requests.tpot.mean() < many.requests.tpot.mean()
    with pytest.raises(ValueError, match="front"):
        benchmark(USERS, COST, concurrency=1, requests=1, front=-1.0)


def test_who_comes_does_not_depend_on_the_system_nor_on_bursts_that_change_when():
    runs = [open_loop(USERS, COST, rate=3.0, requests=500, seed=5, scheduler=scheduler) for scheduler in SCHEDULERS]
    arrivals = [np.sort(run.requests.arrival)[:400] for run in runs]
    assert (arrivals[0] == arrivals[1:]).all()
    runs = [
        open_loop(USERS, COST, rate=3.0, requests=400, seed=5, **how)
        for how in ({}, *({"cv_arrivals": cv} for cv in (1, 2, 0)))
    ]
    default, poisson, bursts, clock = (run.requests.sort_values("arrival").head(300) for run in runs)
    assert default.equals(poisson)
    for other in (bursts, clock):
        assert (other.n_out.to_numpy() == default.n_out.to_numpy()).all()
    gaps = [np.diff(requests.arrival) for requests in (default, bursts, clock)]
    assert np.std(gaps[1]) > 1.4 * np.std(gaps[0])
    assert gaps[2] == pytest.approx(np.full(299, 1 / 3))


@pytest.mark.parametrize("how", [{"concurrency": 8}, {"rate": 4.0}, {"concurrency": 8, "start": "steady"}], ids=str)
@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=repr)
def test_the_same_seed_gives_the_same_run_whatever_is_kept_and_another_another(scheduler, how):
    if "start" in how and isinstance(scheduler, Disaggregated):
        return  # has no steady start
    simulate = open_loop if "rate" in how else closed_loop
    setting, kept = {"requests": 100, "scheduler": scheduler, **how}, {"every_gap": True, "log": True}
    one, same = (simulate(USERS, COST, seed=1, **setting, **kept) for _ in range(2))
    assert one.requests.equals(same.requests)
    assert one.log.equals(same.log)
    assert (one.every_gap == same.every_gap).all()
    plain, other = (simulate(USERS, COST, seed=seed, **setting) for seed in (1, 2))
    assert plain.requests.equals(one.requests)
    assert plain.gaps.frame().equals(one.gaps.frame())
    assert (plain.every_gap, plain.log) == (None, None)
    assert not other.requests.equals(one.requests)


@pytest.mark.parametrize(
    "scheduler", [Aggregated(), Aggregated(max_batch=3), Aggregated(kv_capacity=1200), Chunked(64, 5, 1500)], ids=repr
)
def test_a_steady_start_keeps_to_users_and_limits(scheduler):
    """As many as there are users, minus those who are met in their prefill or for whom there is no room."""
    run = closed_loop(USERS, COST, concurrency=12, requests=300, scheduler=scheduler, start="steady", log=True)
    inside = run.log.decodes + np.ceil(run.log.prefills)
    assert run.log.decodes[0] > 0
    assert inside.max() <= min(12, scheduler.max_batch)
    assert (run.log.context <= scheduler.kv_capacity).all()
    if scheduler == Aggregated():
        assert (inside == 12).all()


def test_a_steady_start_is_steady():
    """Short answers end sooner and long ones are met more often: from the first step on, prompts come as ever."""
    users, B, steps = Trace([10, 10], [2, 100]), 3000, 60
    run = closed_loop(users, COST, concurrency=B, requests=1000, start="steady", log=True)
    expected = B * steps / np.mean(users.n_out)
    assert len(run.log) > steps
    assert run.log.prefills[:steps].sum() == pytest.approx(expected, abs=4 * np.sqrt(expected))
    assert run.log.prefills[: steps // 2].sum() == pytest.approx(expected / 2, abs=4 * np.sqrt(expected / 2))


def test_who_was_under_way_at_the_start_has_no_times_before_it():
    """A long answer outlasts the warm-up: it finishes, but nobody saw when it was sent."""
    run = closed_loop(USERS, COST, concurrency=60, requests=300, start="steady")
    unseen = run.requests[run.requests.arrival.isna()]
    seen = run.requests.drop(unseen.index)
    assert len(unseen)
    assert unseen[["admitted", "first_token", "ttft", "tpot", "latency"]].isna().all(axis=None)
    assert seen[["admitted", "first_token", "ttft", "latency"]].notna().all(axis=None)
    assert run.request_rate == len(run.requests) / run.seconds
    assert np.isfinite(run.summary()).all()


EVERYWHERE = [
    ({"cost": 0.02}, TypeError, "cost must be a StepCost or a function"),
    ({"scheduler": "chunked"}, TypeError, "scheduler must be .* or a Disaggregated, not 'chunked'"),
    ({"scheduler": Chunked}, TypeError, "scheduler must be .* or a Disaggregated, not <class"),
    ({"reuse": 1e-6}, TypeError, "reuse must be a Reuse or None, not 1e-06"),
    ({"scheduler": Aggregated(kv_capacity=100)}, ValueError, "kv_capacity must hold the longest request"),
    ({"scheduler": Disaggregated(kv_capacity=100)}, ValueError, "kv_capacity must hold the longest request"),
    ({"warmup": -1}, ValueError, "warmup must be a whole number >= 0, not -1"),
]
DRAWN = [
    ({"source": 5}, TypeError, "source must be a Workload, a Trace, or anything with their draw, not 5"),
    ({"requests": 0}, ValueError, "requests must be a whole number >= 1, not 0"),
    ({"seed": -1}, ValueError, "seed must be a whole number >= 0, not -1"),
    ({"source": Workload(10.5, 5)}, ValueError, "n_in must be a whole number"),
]
LOOP = [
    ({"concurrency": 0}, ValueError, "concurrency must be a whole number >= 1, not 0"),
    ({"start": "x"}, ValueError, "start must be one of together, steady, not 'x'"),
    ({"start": "steady", "scheduler": Disaggregated()}, ValueError, "start must be 'together' for a Disaggregated"),
]
ARRIVALS = [
    ({"rate": 0}, ValueError, "rate must be a finite number > 0, not 0"),
    ({"rate": [1.0, 2.0]}, TypeError, "rate must be one number"),
    ({"cv_arrivals": -1}, ValueError, "cv_arrivals must be a number from 0 to 100, not -1"),
]
PLAYED = [
    ({"trace": USERS}, TypeError, "trace must be a Trace, not Workload"),
    ({"trace": Trace([200], [30])}, ValueError, "trace must have arrival times"),
    ({"warmup": 3}, ValueError, "warmup must be less than the 3 requests of the trace, not 3"),
]
GOOD = {
    closed_loop: {"source": USERS, "concurrency": 2, "requests": 5},
    open_loop: {"source": USERS, "rate": 2.0, "requests": 5},
    replay: {"trace": Trace([200, 300, 200], [30, 20, 10], arrival=[0.0, 1.0, 2.0])},
}


@pytest.mark.parametrize(
    ("simulate", "rows"),
    [(closed_loop, [*EVERYWHERE, *DRAWN, *LOOP]), (open_loop, [*EVERYWHERE, *DRAWN, *ARRIVALS]),
     (replay, [*EVERYWHERE, *PLAYED])],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_name(simulate, rows):
    for arguments, error, words in rows:
        with pytest.raises(error, match=words):
            simulate(**{"cost": COST, **GOOD[simulate], **arguments})


def test_a_replay_of_which_nothing_is_left_after_the_warm_up_has_no_rate():
    trace = Trace([100] * 3, [5] * 3, arrival=[0.0] * 3)
    run = replay(trace, COST, warmup=1)
    assert run.requests.empty
    assert np.isnan(run.request_rate)
