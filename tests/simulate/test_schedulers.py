"""Schedulers and stores that make no sense are refused; a store gives what the theory of reuse says."""

from functools import partial
from math import inf

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math import Workload, theory
from inference_math.simulate import Aggregated, Chunked, Disaggregated, Reuse, StepCost, closed_loop

T, N_IN = 1e-4, 1000
PROMPT_ONLY = StepCost(t_w=0, T=T)  # of answers of one token, so that no step is without a prompt
SYSTEMS = [Aggregated(), Disaggregated(prefill_units=2)]


def alone(alpha, reuse, scheduler, cost=PROMPT_ONLY):
    users = Workload(N_IN, 1, alpha=alpha)
    return closed_loop(users, cost, concurrency=1, requests=1, scheduler=scheduler, reuse=reuse).requests.ttft[0]


@pytest.mark.parametrize("scheduler", SYSTEMS, ids=repr)
@given(stored=st.integers(0, N_IN - 1), e=st.floats(0.1, 100))
def test_a_blocking_store_speeds_a_request_up_as_the_layerwise_form_says(scheduler, stored, e):
    alpha = stored / N_IN
    vanilla = theory.ttft_vanilla(n_in=N_IN, T=T)
    speedup = vanilla / alone(alpha, Reuse(R=T / e), scheduler)
    assert speedup == pytest.approx(theory.speedup_layerwise(alpha=alpha, e=e), rel=1e-9)


@pytest.mark.parametrize("scheduler", SYSTEMS, ids=repr)
@given(stored=st.integers(0, N_IN - 1), e=st.floats(0.1, 100), t_w=st.floats(0, 0.1))
def test_a_whole_step_is_faster_by_what_its_form_says(scheduler, stored, e, t_w):
    alpha, cost = stored / N_IN, StepCost(t_w=t_w, T=T)
    speedup = (t_w + N_IN * T) / alone(alpha, Reuse(R=T / e), scheduler, cost)
    beside = t_w / (N_IN * T)
    assert speedup == pytest.approx(theory.speedup_step(alpha=alpha, e=e, beside=beside), rel=1e-9)


@pytest.mark.parametrize("scheduler", SYSTEMS, ids=repr)
def test_at_the_crossover_the_speedup_is_1_plus_e(scheduler):
    assert theory.crossover(e=9) == 0.9
    assert alone(0.9, Reuse(R=T / 9), scheduler) == pytest.approx(N_IN * T / 10)


LIMITS = [
    ({"max_batch": 0}, ValueError, "max_batch must be a whole number >= 1, not 0"),
    ({"max_batch": None}, TypeError, "max_batch must be a whole number"),
    ({"kv_capacity": 0}, ValueError, "kv_capacity must be a finite number >= 1"),
    ({"kv_capacity": [1e5, 1e6]}, TypeError, "kv_capacity must be one number"),
]


@pytest.mark.parametrize(
    ("make", "arguments", "error", "words"),
    [
        *((make, *row) for row in LIMITS for make in (Aggregated, partial(Chunked, 512), Disaggregated)),
        (Chunked, {"budget": 0}, ValueError, "budget must be a whole number >= 1, not 0"),
        (Chunked, {"budget": inf}, ValueError, "budget must be a whole number"),
        (Disaggregated, {"prefill_units": 0}, ValueError, "prefill_units must be a whole number >= 1, not 0"),
        (Disaggregated, {"decode_units": 1.5}, ValueError, "decode_units must be a whole number"),
        (Disaggregated, {"transfer": -1e-6}, ValueError, "transfer must be a finite number >= 0"),
        (Disaggregated, {"transfer": np.array([1e-6])}, TypeError, "transfer must be one number"),
        (Reuse, {"R": -1e-6}, ValueError, "R must be a finite number >= 0"),
        (Reuse, {"R": [1e-6]}, TypeError, "R must be one number"),
        (Reuse, {"R": 1e-6, "blocking": "no"}, TypeError, "blocking must be True or False, not 'no'"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(make, arguments, error, words):
    with pytest.raises(error, match=words):
        make(**arguments)


def test_limits_may_be_any_infinity_and_any_whole_number():
    assert Aggregated(max_batch=np.inf, kv_capacity=float("inf")) == Aggregated()
    assert Aggregated(max_batch=np.int64(4)).max_batch == 4
