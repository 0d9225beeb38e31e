"""Agents that fan out: the law of their rounds, and a simulator that waits for all answers of a task."""

from collections import deque

import numpy as np
import pytest

from inference_math import simulate
from inference_math_book.figures import fanout

COST = simulate.StepCost(t_w=0.016, T=80e-6, kv_read=7e-8)


@pytest.mark.parametrize(("requests", "tasks"), [(1, 8), (4, 1), (8, 6), (16, 2)])
@pytest.mark.parametrize("equal", [False, True])
def test_a_simulated_engine_keeps_the_law(requests, tasks, equal):
    one = fanout.Fan(requests, 2000, 200, 150, equal)
    said, seen = fanout.law(one, COST, tasks), fanout.play(one, COST, tasks, 3000 if requests == 1 else 1200)
    for name, value in said.items():
        assert seen[name] == pytest.approx(value, rel=0.05), name


def test_a_task_of_one_request_is_a_user():
    """A step by hand: weights, a prompt spread over its answer, reads at prompt and whole answer; seven users."""
    one = fanout.Fan(1, 1000, 0, 100)
    step = 0.016 + 7 * (80e-6 * 1000 / 100 + 7e-8 * 1100)
    assert fanout.law(one, COST, 7) == pytest.approx({"step": step, "round": 100 * step, "alive": 1.0})


def test_the_longest_of_many_answers_is_that_of_draws():
    drawn = np.random.default_rng(1).exponential(100, (40_000, 6)).max(axis=1).mean()
    assert fanout.slowest(fanout.Fan(6, 0, 1, 100)) == pytest.approx(drawn, rel=0.02)


def test_a_prefix_that_each_computes_is_so_much_more_work():
    one = fanout.Fan(5, 3000, 100, 200)
    assert one.work(COST, copies=5) - one.work(COST) == pytest.approx(4 * 3000 * 80e-6)


def test_a_task_sends_all_at_once_and_again_when_the_last_is_answered():
    done: deque[int] = deque()
    users = fanout._Tasks(fanout.Fan(3, 100, 10, 20), 2, done, np.random.default_rng(0))
    sent = [request for _, request in users.first()]
    assert [request.cached for request in sent] == [0, 100, 100, 0, 100, 100]
    for request in sent[:2] + sent[3:5]:
        done.append(request.number)
        assert users.after_finish(1.0) == []
    done.append(sent[5].number)
    again = users.after_finish(2.5)
    assert [(ready, request.cached) for ready, request in again] == [(2.5, 0), (2.5, 100), (2.5, 100)]
    assert users.rounds == [(0.0, 2.5)]
