from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import catalogue, simulate, theory
from inference_math.optimiser import architectures
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math_book.figures import disaggregation as plots

UNIT = Operators(catalogue.model("llama-3-70b"), tp=2, weights="fp8", kv="fp8")


def test_the_map_holds_the_formula():
    frame = plots.gain_map(Figure().subplots(), {"here": (3.0, 0.6)}, 170)
    row = frame.sample(1, random_state=1).iloc[0]
    expected = theory.pdd_gain_same(delta_p=row.rho / 400, delta_h=1 / 400, t_w=1 - row.u, sla_tpot=1, n_out=170)
    assert row.gain == pytest.approx(expected)
    assert frame.gain.min() < 1 < frame.gain.max()  # short prompts lose, long ones gain


def test_the_tail_admits_less_than_the_mean():
    numbers = costs.measured(UNIT, 2048, 170)
    frame = plots.rates_by_limit(Figure().subplots(), numbers, [0.03, 0.06, 0.25], sla_ttft=1.0, quantile=0.99)
    assert (frame["aggregated, P99"] < frame["aggregated, mean"]).all()
    expected = architectures.compare(numbers, 0.06, 1.0).set_index("architecture").rate["chunked"]
    assert frame.chunked[1] == pytest.approx(expected)


@pytest.fixture(scope="module")
def simulated():
    cost = simulate.StepCost(t_w=0.0167, T=1.1e-4, kv_read=5e-7, overlap="serial-kv")
    return plots.goodput(cost, [1, 3, 6, 9], 512, 64, 60_000, requests=600)


def test_a_gpu_with_one_phase_is_faster_at_it(simulated):
    at = simulated.set_index(["serves", "rate"])
    for rate in (1, 3, 6, 9):
        assert at.ttft_p90["prefill only", rate] <= at.ttft_p90["colocated", rate]
        assert at.tpot_p90["decode only", rate] <= at.tpot_p90["colocated", rate]
    assert at.tpot_p90["prefill only"].isna().all()


def test_limits_are_read_between_the_simulated_rates():
    frame = pd.DataFrame(
        {"serves": "x", "rate": [1, 2, 3], "ttft_p90": [0.1, 0.2, 0.4], "tpot_p90": [0.01, 0.02, 0.02]}
    )
    assert plots.limit_reached(frame, "x", ttft_p90=0.3) == pytest.approx(2.5)
    assert plots.limit_reached(frame, "x", ttft_p90=0.3, tpot_p90=0.015) == pytest.approx(1.5)
    assert plots.limit_reached(frame, "x", ttft_p90=0.05) == 0
    assert np.isnan(plots.limit_reached(frame, "x", ttft_p90=9))


def test_a_prompt_lengthens_a_step_by_what_it_takes_alone():
    frame = plots.mixed_steps(Figure().subplots(), UNIT, 2048, (512,))
    prompt = UNIT.prefills().set_index("n_in").total[512]
    assert (frame["with 512 tokens"] > frame.alone).all()
    assert (frame["with 512 tokens"] > prompt).all()


def test_decode_is_slower_at_longer_contexts():
    frame = plots.phase_rates(Figure().subplots(), UNIT, (512, 8192))
    short, long = (
        frame[frame.phase == f"decode at {context}"].set_index("at once").rate for context in ("512", "8,192")
    )
    common = short.index.intersection(long.index)
    assert (long[common] <= short[common] * 1.02).all()
    prefill = frame[frame.phase == "prefill"]
    assert np.ptp(prefill[prefill["at once"] >= 512].rate) < 0.3 * prefill.rate.max()
