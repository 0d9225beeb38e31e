from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference_math.unit import Unit
from inference_math_book.figures import field as plots


def test_a_request_holds_what_the_catalogue_says(ax):
    frame = plots.kv_of_a_request(ax, ["llama-3-70b", "gpt-oss-120b"])
    dense = frame[frame.model == "llama-3-70b"]
    assert dense.gigabytes.to_numpy() == pytest.approx(327_680e-9 * dense.tokens.to_numpy())


def test_a_dense_model_reads_everything_and_a_mixture_what_was_chosen(ax):
    units = {"dense": Unit.of("llama-3-8b", "h100-sxm"), "mixture": Unit.of("gpt-oss-120b", "h100-sxm")}
    frame = plots.chosen_weights(ax, units)
    assert (frame[frame.model == "dense"].share == 1).all()
    shares = frame[frame.model == "mixture"].share.to_numpy()
    assert (np.diff(shares) > 0).all()
    assert shares[0] < 0.1 < 0.99 < shares[-1]


def test_errors_are_ratios(ax):
    table = pd.DataFrame({"model": ["a", "b"], "weights": "fp8", "engine": "vllm", "gpu": "b200", "users": [1, 2]})
    frame = plots.errors_by_family(ax, table.assign(e2e=[1.0, 3.0], e2e_s=[2.0, 2.0]))
    assert frame.ratio.tolist() == [0.5, 1.5]
