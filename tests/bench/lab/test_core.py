"""The simulated engine against vLLM's own scheduler, step for step, on one clock. `make test-lab` runs it."""

import importlib.util

import numpy as np
import pytest

from inference_math.simulate import Chunked, SchedulerPolicy, StepCost
from inference_math.simulate.cost import timed
from inference_math.simulate.engine import Request
from inference_math.simulate.record import Record
from inference_math.simulate.schedulers import system_of
from inference_math.simulate.systems import engine_of, run_engine
from inference_math_bench.lab.core import Setting, ran

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="no vLLM here: make test-lab"),
    pytest.mark.filterwarnings("default"),  # vLLM's own
]

COST = StepCost(t_w=0.01, T=1e-4, delta_h=1e-4)


class Sent:
    """Users in a closed loop whose requests need a time of their own to arrive."""

    def __init__(self, sizes, users, delays):
        requests = [Request(number, 0.0, *size, 0) for number, size in enumerate(sizes)]
        self._left = list(zip(requests, delays, strict=True))[::-1]
        self._users = users

    def first(self):
        return [pair for _ in range(self._users) for pair in self.after_finish(0.0)]

    def after_arrival(self):
        return []

    def after_finish(self, now):
        if not self._left:
            return []
        request, delay = self._left.pop()
        request.arrival = now
        return [(now + delay, request)]


def simulated(sizes, users, setting, delays):
    scheduler = Chunked(setting.budget, max_batch=setting.seqs, policy=SchedulerPolicy(ahead=setting.ahead))
    record = Record(0, False, True)
    engine = engine_of(system_of(scheduler, None), timed(COST), record)
    return record.result(run_engine(engine, Sent(sizes, users, delays), record, len(sizes)))


def drawn(seed):
    """Return a crowd: lengths, users, a setting and delays, from none to many steps."""
    rng = np.random.default_rng(seed)
    users = int(rng.integers(1, 20))
    count = users * int(rng.integers(1, 8))
    budget = int(rng.choice([16, 64, 500]))
    longest = int(rng.choice([2, 40]))
    sizes = list(zip(rng.integers(1, 200, count).tolist(), rng.integers(1, longest, count).tolist(), strict=True))
    setting = Setting(budget, min(budget, int(rng.choice([3, 8, 1000]))), bool(rng.integers(2)))
    return sizes, users, setting, rng.exponential(rng.choice([0.0, 0.0035, 0.02, 0.2]), count).tolist()


@pytest.mark.parametrize("seed", range(60))
def test_the_simulated_engine_takes_the_steps_of_vllm(seed):
    crowd = drawn(seed)
    sizes, users, setting, delays = crowd
    seen, told = ran(COST, sizes, users, setting, delays), simulated(*crowd)
    np.testing.assert_allclose(seen.log.to_numpy(), told.log[list(seen.log)].to_numpy(), rtol=1e-9, atol=1e-9)
    ttft = told.requests.sort_values("arrival", kind="stable").ttft
    assert sorted(seen.ttft) == pytest.approx(sorted(ttft), abs=1e-9)


@pytest.mark.parametrize("ahead", [False, True])
def test_equal_answers_keep_a_wave_together_whatever_the_way_takes(ahead):
    """Scatter in time parts nobody; scatter of the answers in tokens does."""
    rng, count = np.random.default_rng(0), 40 * 16
    late = rng.uniform(0.0, 0.03, count).tolist()
    equal = [(100, 170)] * count
    spread = [(100, int(n_out)) for n_out in rng.integers(136, 205, count)]
    means = [np.mean(ran(COST, sizes, 16, Setting(370, 370, ahead), late).ttft) for sizes in (equal, spread)]
    assert means[0] > 1.3 * means[1]
