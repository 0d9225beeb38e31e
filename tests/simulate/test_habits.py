"""What schedulers do besides filling a step, step by step."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refused

from inference_math.simulate import Chunked, SchedulerPolicy, StepCost, Steps, benchmark, replay
from inference_math.unit import Unit
from inference_math.workload import Trace, Workload

COST = StepCost(t_w=0.01, T=1e-4, delta_h=1e-4)


def arriving(*times, n_in=100, n_out=50):
    count = len(times)
    return Trace(np.full(count, n_in), np.full(count, n_out), arrival=np.array(times))


def log_of(policy, trace, budget=1000):
    return replay(trace, COST, scheduler=Chunked(budget, policy=policy), log=True)


def test_whole_prompts_are_not_cut_and_a_longer_one_than_a_step_has_one_of_its_own():
    trace = Trace(np.array([600, 600, 1500]), np.full(3, 5), arrival=np.zeros(3))
    cut, whole = (log_of(SchedulerPolicy(whole=each), trace).log for each in (False, True))
    assert cut.tokens.tolist()[:3] == [1000, 999, 701]  # one less beside one decode
    assert whole.tokens[whole.tokens > 0].tolist() == [600, 600, 1500]


def test_prompts_wait_for_company_beside_decodes_only():
    waiting = SchedulerPolicy(wait_steps=20, wait_tokens=150)
    alone = log_of(waiting, arriving(0.0)).requests.ttft[0]
    assert alone == pytest.approx(0.02)  # nobody decodes: at once
    run = log_of(waiting, arriving(0.0, 0.2)).requests
    bare = 0.01 + 1e-4
    assert run.ttft[1] == pytest.approx(20 * bare + 0.02, abs=bare)
    # A second prompt in time makes enough tokens, and both go.
    both = log_of(waiting, arriving(0.0, 0.2, 0.25)).requests
    assert both.ttft[1] == pytest.approx(0.05 + 0.03, abs=2 * bare)
    assert both.ttft[2] < 0.05


def test_a_prompt_that_was_begun_goes_on():
    trace = Trace(np.array([100, 900]), np.full(2, 400), arrival=np.array([0.0, 0.2]))
    cut = replay(trace, COST, scheduler=Chunked(300, policy=SchedulerPolicy(wait_steps=20)), log=True).log
    chunks = cut[cut.tokens > 0].index.to_numpy()[1:]
    assert len(chunks) == 4
    assert (np.diff(chunks) == 1).all()  # the first waits, the rest of it does not


def test_looks_begin_anew_after_a_step_with_prompts():
    """Two prompts, room for one in a step: the second goes into the very next one."""
    trace = arriving(0.0, 0.2, 0.2)
    log = log_of(SchedulerPolicy(looks=10), trace, budget=103).log
    steps = log[log.tokens > 0].index.to_numpy()
    assert steps[2] - steps[1] == 1
    # Before it, the engine looked at every tenth step after the one with the first prompt.
    assert (steps[1] - 1) % 10 == 0
    assert 0.2 <= log.start[steps[1]] < 0.2 + 10 * (0.01 + 1e-4)


@given(
    policy=st.builds(
        SchedulerPolicy, st.booleans(), st.booleans(), st.integers(0, 12), st.sampled_from([50.0, 300.0, np.inf]),
        looks=st.integers(1, 7), every=st.just(1) | st.integers(2, 9), guard=st.booleans(), since=st.booleans(),
        ahead=st.booleans(), balanced=st.booleans(),
    ),
    ranks=st.just(1) | st.integers(2, 6), users=st.integers(1, 12), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=60)
def test_habits_delay_and_lose_nothing(policy, ranks, users, seed):
    run = benchmark(
        Workload(90, 20, lengths="geometric"), COST, concurrency=users, requests=8 * users, seed=seed, every_gap=True,
        log=True, scheduler=Chunked(250 * ranks, policy=policy, ranks=ranks, by_chance=ranks > 3),
    )  # fmt: skip
    assert len(run.requests) == 8 * users
    assert run.gaps.count == (run.requests.n_out - 1).sum()
    assert run.gaps.total == pytest.approx((run.requests.finished - run.requests.first_token).sum())
    assert run.every_gap.sum() == pytest.approx(run.gaps.total)
    alone_takes = 0.01 + 90e-4
    assert (run.requests.ttft >= alone_takes * (1 - 1e-9)).all()
    if ranks == 1:
        assert run.log.tokens.sum() == run.requests.n_in.sum()
        held = max(policy.looks + policy.wait_steps, 2 * policy.every)
        longest = (held + 3) * (0.01 + 1e-4 * users) + 3 * users * alone_takes
        assert (run.requests.ttft <= longest).all()


def test_bad_habits_are_named():
    wrong = {"whole": 1}, {"alone": "no"}, {"wait_steps": -1}, {"wait_tokens": -1.0}, {"looks": 0}, {"balanced": 1}
    refused(SchedulerPolicy, {}, *wrong)
    refused(partial(Chunked, 10), {}, {"policy": 3})


def prompts_at(policy, trace, **more):
    """Return the steps that have prompts, and all steps."""
    log = replay(trace, COST, scheduler=Chunked(1000, policy=policy, **more), log=True).log
    return np.flatnonzero(log.tokens > 0), log


def test_a_cadence_since_the_last_prompts_lets_a_late_one_in_at_once():
    """vLLM counts steps from the engine's first, SGLang those since the last prompt."""
    trace = arriving(0.0, 0.3)  # the second comes long after the first
    vllm, log = prompts_at(SchedulerPolicy(every=16), trace)
    sglang, _ = prompts_at(SchedulerPolicy(every=16, since=True), trace)
    steps = int(np.searchsorted(log.start, 0.3))
    assert vllm[1] % 16 == 0
    assert sglang[1] == pytest.approx(steps, abs=1)
    near, _ = prompts_at(SchedulerPolicy(every=16, since=True), arriving(0.0, 0.021))
    assert near.tolist() == [0, 16]


@pytest.mark.parametrize(("alone", "since"), [(False, False), (True, False), (True, True)])
def test_a_cadence_computes_prompts_at_every_nth_step_also_where_decodes_stand_still(alone, since):
    """SGLang computes prompts by themselves: between two such steps there are N - 1 of decodes, not more, not none."""
    at, log = prompts_at(
        SchedulerPolicy(every=8, alone=alone, guard=False, since=since), arriving(*np.linspace(0, 0.9, 30))
    )
    assert log.tokens.sum() == 3000
    assert (log.decodes[log.tokens > 0] == 0).all() or not alone
    busy = at[at > 0]
    assert len(busy) > 4
    assert (np.diff(busy) >= 8).all() if since else (busy % 8 == 0).all()


def test_a_guarded_cadence_counts_from_its_first_step_with_prompts():
    """A burst that takes three steps; the next prompt waits for the round that the first of them began."""
    trace = arriving(*[0.0] * 6, 0.29, n_in=400, n_out=200)
    at, _ = prompts_at(SchedulerPolicy(every=6, since=True), trace)
    assert at.tolist() == [0, 1, 2, 6]


def test_of_ranks_with_as_many_tokens_the_one_with_the_longer_attention_is_waited_for():
    cost = StepCost(t_w=0.01, pair=1e-6)
    trace = Trace(np.array([800, 400]), np.full(2, 2), arrival=np.zeros(2))
    log = replay(trace, cost, scheduler=Chunked(800, ranks=2), log=True).log
    # Each rank computes 400 tokens a step: the second half of the long prompt sees the first.
    both = replay(
        Trace(np.array([800, 800]), np.full(2, 2), arrival=np.zeros(2)), cost, scheduler=Chunked(800, ranks=2), log=True
    ).log
    assert log.seconds[1] == pytest.approx(both.seconds[1], rel=0.01)


@pytest.mark.parametrize(("prompts", "shares"), [([1600] * 2, [2.0] * 4), ([100] * 4, [4.0])])
def test_a_chunk_of_a_rank_is_a_prompt_of_its_own(prompts, shares):
    """Two ranks with a chunk of 400 each are two prompts that see little, not one of 800 tokens on one of them."""
    trace = Trace(np.array(prompts), np.full(len(prompts), 2), arrival=np.zeros(len(prompts)))
    log = replay(trace, COST, scheduler=Chunked(800, ranks=2), log=True).log
    assert log.prefills[log.tokens > 0].tolist() == shares


def test_a_step_of_ranks_without_prompt_tokens_has_no_prompt():
    crowd = Trace(np.full(40, 2), np.full(40, 30), arrival=0.001 * np.arange(40))
    log = replay(crowd, COST, scheduler=Chunked(8, ranks=4, by_chance=True), log=True).log
    assert (log.tokens[log.prefills > 0] > 0).all()


def test_a_guard_goes_on_until_nobody_waits():
    trace = arriving(*[0.0] * 6, n_in=400)
    for guard, expected in ((True, [0, 1, 2]), (False, [0, 5, 10])):
        at, _ = prompts_at(SchedulerPolicy(every=5, guard=guard), trace)
        assert at.tolist() == expected


def test_a_step_that_is_planned_ahead_has_nobody_who_came_since_the_one_before_began():
    run = [log_of(SchedulerPolicy(ahead=each), arriving(0.0, 0.105)).requests.ttft for each in (False, True)]
    assert run[0][0] == run[1][0]  # an idle engine has nothing planned
    assert run[1][1] - run[0][1] == pytest.approx(0.01 + 1e-4, rel=0.05)  # one step more


# What vLLM 0.32.0's own scheduler did (`inference_math_bench.lab.core`): 20 prompts of 40 tokens and answers of 12 by
# five users, 100 tokens a step, `COST`. By places, whether it plans ahead, and seconds of a request's way: all steps,
# the mean TTFT, and of the first steps with prompts number, decodes and prompt tokens.
SEEN = {
    (100, False, 0.005): (53, 0.0341, [(0, 0, 100), (1, 2, 98), (2, 4, 2), (13, 1, 80), (14, 2, 80), (15, 4, 40)]),
    (100, False, 0.015): (56, 0.0458, [(0, 0, 100), (1, 2, 98), (2, 4, 2), (14, 0, 80), (15, 2, 98), (16, 4, 22)]),
    (100, True, 0.005): (56, 0.0428, [(0, 0, 100), (1, 2, 98), (2, 4, 2), (14, 0, 80), (15, 2, 80), (16, 4, 40)]),
    (100, True, 0.015): (59, 0.0525, [(0, 0, 100), (1, 2, 98), (2, 4, 2), (14, 0, 80), (16, 2, 98), (17, 4, 22)]),
    (3, False, 0.005): (84, 0.1004, [(0, 0, 100), (1, 2, 20), (12, 1, 80), (13, 2, 40), (24, 1, 80), (25, 2, 40)]),
    (3, True, 0.005): (90, 0.1159, [(0, 0, 100), (1, 2, 20), (13, 0, 80), (14, 2, 40), (26, 0, 80), (27, 2, 40)]),
    (3, True, 0.015): (90, 0.1174, [(0, 0, 100), (1, 2, 20), (13, 0, 80), (15, 2, 40), (26, 1, 80), (28, 2, 40)]),
}


@pytest.mark.parametrize("asked", SEEN, ids=str)
def test_a_wave_of_equal_answers_takes_the_steps_of_vllm(asked):
    """Planned ahead, a place that is left is for the step after the next, and an engine run dry keeps its plan."""
    places, ahead, way = asked
    scheduler = Chunked(100, max_batch=places, policy=SchedulerPolicy(ahead=ahead))
    run = benchmark(Workload(40, 12), COST, concurrency=5, requests=20, scheduler=scheduler, front=way, log=True)
    steps, ttft, begun = SEEN[asked]
    with_prompts = run.log[run.log.tokens > 0].reset_index()[["index", "decodes", "tokens"]]
    assert [tuple(row) for row in with_prompts.to_numpy().tolist()[:6]] == begun
    assert len(run.log) == steps
    assert run.requests.ttft.mean() == pytest.approx(ttft, abs=1e-4)


@pytest.mark.parametrize(
    ("later", "steps"),
    [
        # The first step takes 0.11 s, all others 0.0102.
        ((0.05,), [0, 20]),  # one rank has none: at the end of a round
        ((0.35,), [0, 40]),  # of the next one
        ((0.15, 0.2), [0, 10]),  # the next step, as soon as both ranks have one
        ((0.15, 0.16, 0.17), [0, 6, 26]),  # a round begins with them; the third waits for it to end
    ],
)
def test_balanced_ranks_wait_until_each_has_a_prompt_or_a_round_ends(later, steps):
    policy = SchedulerPolicy(whole=True, wait_steps=20, balanced=True)
    trace = arriving(0.0, 0.0, *later, n_in=500, n_out=90)
    log = replay(trace, COST, scheduler=Chunked(1010, policy=policy, ranks=2), log=True).log
    assert np.flatnonzero(log.tokens > 0).tolist() == steps
    # Alone, or with ranks of which one does not decode, nobody waits.
    alone = replay(trace, COST, scheduler=Chunked(1010, policy=policy), log=True).log
    one = replay(arriving(0.0, 0.05, n_out=90), COST, scheduler=Chunked(1010, policy=policy, ranks=2), log=True).log
    assert alone.start[alone.tokens > 0].iloc[-1] < later[-1] + 0.12  # one step
    assert np.flatnonzero(one.tokens > 0)[1] < 7


def test_a_rank_that_nobody_is_left_on_decodes_a_dummy_and_lets_nobody_in():
    """One answer of two ends while the other's rank has a prompt: that waits for the end of the round all the same."""
    trace = Trace(np.full(3, 500), np.array([90, 12, 90]), arrival=np.array([0.0, 0.0, 0.15]))
    policy = SchedulerPolicy(whole=True, wait_steps=20, balanced=True)
    log = replay(trace, COST, scheduler=Chunked(1010, policy=policy, ranks=2), log=True).log
    assert np.flatnonzero(log.tokens > 0).tolist() == [0, 20]
    assert log.decodes[12] == 1  # of what was full before


@pytest.mark.parametrize(
    ("lengths", "most", "share"),
    [
        ([1000], 1000, 1 / 4),  # on one rank of four
        ([1000, 400], 1000, 0.35),
        ([1000, 1000, 1000, 1000], 1000, 1.0),
    ],
)
def test_a_step_of_ranks_has_the_prompts_of_the_fullest_and_of_experts_what_all_have(lengths, most, share):
    """By hand, asked of the unit: four times the fullest rank's tokens and pairs, of which a share is there."""
    steps = Steps(Unit.of("deepseek-v3", "h200-sxm", tp=2, dp=4, ep=8))
    trace = Trace(np.array(lengths), np.full(len(lengths), 2), arrival=np.zeros(len(lengths)))
    log = replay(trace, steps, scheduler=Chunked(40_000, policy=SchedulerPolicy(whole=True), ranks=4), log=True).log
    asked = steps.uneven(0, 0.0, 4.0, 4 * most, 4 * most**2 / 2, share)
    assert log.seconds[0] == pytest.approx(asked)


def test_a_second_chunk_on_one_rank_sees_the_first_on_that_rank():
    steps = Steps(Unit.of("deepseek-v3", "h200-sxm", tp=2, dp=4, ep=8))
    log = replay(arriving(0.0, n_in=2000), steps, scheduler=Chunked(4000, ranks=4), log=True).log
    asked = [steps.uneven(0, 0.0, 4.0, 4000, 4 * pairs, 1 / 4) for pairs in (5e5, 15e5)]
    assert log.seconds[:2].tolist() == pytest.approx(asked)


def test_ranks_step_together_as_long_as_the_one_with_the_most_prompts_takes():
    """Two prompts on two ranks take as long as one on each; two on one of them as long as two."""
    trace = arriving(0.0, 0.0, 0.0)
    at, log = prompts_at(SchedulerPolicy(), trace, ranks=2)
    assert at.tolist() == [0]
    assert log.tokens[0] == 2 * 200  # the fuller rank has two prompts, and the other waits for it
    _, plain = prompts_at(SchedulerPolicy(), trace)
    assert plain.tokens[0] == 300
    _, both = prompts_at(SchedulerPolicy(), arriving(0.0, 0.0), ranks=2)
    assert both.tokens[0] == 2 * 100
