"""Two engines: what each role does with the requests of the other, and what the law says of both ways."""

import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe

import pytest

from inference_math.simulate import StepCost
from inference_math_bench.lab import pools
from inference_math_bench.lab.engines import ALL_AT_ONCE, Played, Step

COST = StepCost(t_w=0.0005, T=0.000002)


class Sleeping(Played):
    """An engine that plays a cost on the machine's clock."""

    def now(self) -> float:
        """Return the machine's clock."""
        return time.perf_counter()

    def step(self) -> Step | None:
        """Run one step, and let it last."""
        self._clock = self.now()
        step = super().step()
        while self.now() < self._clock:
            pass
        return step


@pytest.fixture(scope="module")
def seen():
    here, there = Pipe()
    begin = time.perf_counter() + 0.1
    asked = {"users": 6, "n_out": 8, "begin": begin, "until": begin + 0.4}
    prefill, decode = Sleeping(COST), Sleeping(COST)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(pools.prefill_role, prefill, here, seed=1, **asked)
        second = threads.submit(pools.decode_role, decode, there, seed=2, **asked)
        found = prefill, first.result(30), second.result(30)
    assert [end.poll() for end in (here, there)] == [False, False], "the next trial would read what this one left"
    return found


def test_prompts_are_computed_one_at_a_time_and_answers_elsewhere(seen) -> None:
    engine, prefill, decode = seen
    assert {step.prefills for step in prefill.steps} == {1.0}
    assert {step.tokens for step in prefill.steps} == {pools.N_IN}
    assert all(step.decodes == 0 for step in prefill.steps)
    # Whoever comes with a KV cache has one token computed in the step in which it joins.
    assert all(step.tokens == round(step.prefills) for step in decode.steps)
    assert any(step.decodes for step in decode.steps)
    assert engine.budget == ALL_AT_ONCE


def test_a_user_has_one_request_at_a_time_and_requests_go_round(seen) -> None:
    _, prefill, decode = seen
    assert max(step.decodes + round(step.prefills) for step in decode.steps) <= 6
    assert max(step.queue + 1 for step in prefill.steps) <= 6
    came, went = sum(round(step.prefills) for step in decode.steps), len(prefill.steps)
    assert came > 6
    assert abs(came - went) <= 0.3 * went + 6  # answers of one token end in the prefill engine


def test_the_law_plays_both_ways() -> None:
    cost = StepCost(t_w=0.007, T=0.00015, T_decode=0.0003, kv_read=1e-6)
    together, apart = (pools.predict({"pools": way, "users": 16, "n_out": 24}, cost, 0.0, 0.0) for way in (False, True))
    for said in (together, apart):  # Little's law, over both engines
        assert said["rate"] * (said["ttft"] + 23 * said["tpot"]) == pytest.approx(16, rel=0.03)
    assert apart["tpot"] < together["tpot"]
    assert apart["rate"] <= 1 / (cost.t_w + cost.T * pools.N_IN)
    assert 0 < apart["in_prefill"] < 1
    slower = pools.predict({"pools": True, "users": 16, "n_out": 24}, cost, 0.003, 0.004)
    assert slower["tpot"] > apart["tpot"]
    assert slower["rate"] <= 1 / (cost.t_w + cost.T * pools.N_IN + 0.004)
    for name in ("tpot", "rate", "ttft"):
        assert slower[f"{name}@free"] == pytest.approx(apart[name])
