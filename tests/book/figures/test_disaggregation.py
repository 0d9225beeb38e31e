import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import Workload, catalogue, theory
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


def test_the_tail_admits_less_than_the_mean():
    numbers = costs.measured(UNIT, 2048, 170)
    frame = plots.rates_by_limit(Figure().subplots(), numbers, [0.03, 0.06, 0.25], sla_ttft=1.0, quantile=0.99)
    assert (frame["aggregated, P99"] < frame["aggregated, mean"]).all()
    expected = architectures.compare(numbers, 0.06, 1.0).set_index("architecture").rate["chunked"]
    assert frame.chunked[1] == pytest.approx(expected)


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


LAYOUTS = {
    "small": plots.PoolLayout(2, 0.0167, 0.181, 0.000166, 170, held=100, sent=0.019),
    "large": plots.PoolLayout(8, 0.0090, 0.094, 0.0000568, 170, held=691, sent=0.005),
}


@pytest.mark.parametrize("limit", [0.04, 0.0125])
def test_the_factors_multiply_to_the_gain(limit):
    found = plots.pool_factors(LAYOUTS, limit, 16)
    names = ("interference", "prefill's layout", "decode's layout", "whole units", "hand-over")
    parts = [found[name] for name in names]
    assert found["gain"] == pytest.approx(np.prod(parts))
    assert min(parts[1:3]) >= 1 >= max(parts[3:])
    assert found["over mixed"] < found["gain"]


def test_one_layout_with_endless_memory_interferes_as_the_formula_says():
    one = plots.PoolLayout(2, 0.0167, 0.181, 0.000166, 170)
    found = plots.pool_factors({"one": one}, 0.040, 16)
    law = {"delta_p": 0.181 / 170, "delta_h": 0.000166, "t_w": 0.0167, "sla_tpot": 0.040}
    assert found["interference"] == pytest.approx(theory.pdd_gain_same(**law, n_out=170))
    assert found["prefill's layout"] == found["decode's layout"] == 1
