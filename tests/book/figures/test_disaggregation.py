import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import Workload, catalogue, simulate, theory
from inference_math.optimiser import architectures
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math_book.figures import disaggregation as plots

UNIT = Operators(catalogue.model("llama-3-70b"), tp=2, weights="fp8", kv="fp8")


@pytest.mark.parametrize("users", [60, 20])
def test_simulated_pools_gain_nearly_what_the_formula_says_within_the_limit(users):
    t_w, read, n_out, limit = 0.0167, 0.000166, 170, 0.040
    # An aggregated unit fits as many users.
    prompt = n_out * (limit - t_w - read) / (users - 1) - (n_out - 1) * read
    gain, gap = plots.gain_of_pools(t_w, prompt, read, limit, Workload(2200, n_out, lengths="geometric"))
    law = {"delta_p": prompt / n_out, "delta_h": read, "t_w": t_w, "sla_tpot": limit}
    assert gain == pytest.approx(theory.pdd_gain_same(**law, n_out=n_out), rel=0.02)
    assert gap <= 1.02 * limit


def test_distserve_s_gpu_with_both_phases_is_slower_where_prompts_have_steps_of_their_own():
    frame = plots.distserve([1, 4], requests=600).set_index(["serves", "rate"])
    for rate in (1, 4):
        own, joined = frame.loc[("colocated", rate)], frame.loc[("colocated, one step", rate)]
        assert own.tpot_p90 > joined.tpot_p90 > frame.tpot_p90["decode only", rate]


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


LAYOUTS = {
    "small": plots.PoolLayout(2, 0.0167, 0.181, 0.000166, 170, held=100, sent=0.019),
    "large": plots.PoolLayout(8, 0.0090, 0.094, 0.0000568, 170, held=691, sent=0.005),
}


@pytest.mark.parametrize("limit", [0.04, 0.0125])
def test_the_factors_multiply_to_the_gain(limit):
    found = plots.pool_factors(LAYOUTS, limit, 16)
    parts = [
        found[name] for name in ("interference", "prefill's layout", "decode's layout", "whole units", "hand-over")
    ]
    assert found["gain"] == pytest.approx(np.prod(parts))
    assert parts[1] >= 1
    assert parts[2] >= 1
    assert parts[3] <= 1
    assert parts[4] <= 1
    assert found["over mixed"] < found["gain"]


def test_one_layout_with_endless_memory_interferes_as_the_formula_says():
    one = plots.PoolLayout(2, 0.0167, 0.181, 0.000166, 170)
    found = plots.pool_factors({"one": one}, 0.040, 16)
    law = {"delta_p": 0.181 / 170, "delta_h": 0.000166, "t_w": 0.0167, "sla_tpot": 0.040}
    assert found["interference"] == pytest.approx(theory.pdd_gain_same(**law, n_out=170))
    assert found["prefill's layout"] == found["decode's layout"] == 1


def test_given_splits_lose_where_users_are_fastest_and_full_pools_gain_most_before():
    frame = plots.splits_by_speed(Figure().subplots(), LAYOUTS["small"], [(7, 2), (1, 1)])
    for _, rows in frame.groupby("split"):
        assert rows.gain[rows.per_user.idxmin()] > 1.5
        assert rows.gain[rows.users == 1].item() < 0.6
    line = Figure().subplots()
    plots.splits_by_speed(line, LAYOUTS["small"], [(7, 2)])
    full = next(drawn for drawn in line.lines if drawn.get_label() == "full pools")
    speeds, gains = full.get_xdata(), full.get_ydata()
    assert gains[np.argmax(speeds)] < 1.1
    assert gains.max() > 2.5
    assert gains[np.argmin(speeds)] < 2
