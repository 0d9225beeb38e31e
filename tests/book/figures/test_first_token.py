"""What the figures of the first token draw, in numbers."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import theory
from inference_math_book.figures import first_token as plots

COSTS = {"t_w": 0.02, "ttft_1": 0.05, "delta_h": 1e-4}


def axes(count=1):
    return Figure().subplots(1, count)


def test_a_benchmark_nears_the_closed_loop_and_is_what_the_simulator_plays():
    answers = plots.Answers(1000, 200, 1 / 9)
    assert answers.cv == pytest.approx(0.0642, abs=1e-4)
    rounds = (1, 5, 50)
    law = [plots.benchmark_law(COSTS, 16, each, 4, answers.n_out, answers.cv) for each in rounds]
    runs = [plots.played(COSTS, answers, 16, each, 4).ttft.mean() for each in rounds]
    assert np.allclose(law, runs, rtol=0.12)
    assert law[-1] == pytest.approx(theory.expected_ttft_full(B=16, n_out=answers.n_out, **COSTS), rel=0.15)
    assert law[0] == pytest.approx(theory.ttft_burst(B=16, together=4, **COSTS))


def test_errors_are_drawn_over_users_for_both_predictions():
    ends = {"model": "m", "gpu": "g", "weights": "w", "n_in": 1.0, "n_out": 1.0}
    table = pd.DataFrame(
        {"engine": ["vllm", "trtllm"], "users": [4, 64], "ttft": [1.0, 2.0], "ttft_s": [2.0, 2.0], "law": 0.5}
    )
    drawn = plots.by_users(axes(2), table.assign(**ends))
    assert drawn.law.tolist() == [0.25, 0.25]
    assert drawn.played.tolist() == [0.5, 1.0]
