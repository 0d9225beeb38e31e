"""Recorded traffic by name, against the tables of the traces themselves."""

import numpy as np
import pytest

from inference_math.evidence import load
from inference_math.workload import Workload
from inference_math_planner.fleets.mixes import MIXES, mix


@pytest.mark.parametrize("name", MIXES)
def test_a_mix_has_the_means_of_its_trace_and_most_of_its_scatter(name):
    lengths = load("traces_lengths").frame.set_index(["trace", "quantity"]).loc[name]
    found = mix(name)
    for column in ("n_in", "n_out"):
        values = getattr(found, column)
        assert values.mean() == pytest.approx(lengths.loc[column, "mean"], rel=0.005)
        assert 0.7 * lengths.loc[column, "std"] < values.std() <= lengths.loc[column, "std"] * 1.001
        for quantile in (25, 50, 75, 90):
            near = 0.15 * max(lengths.loc[column, f"p{quantile}"], lengths.loc[column, "mean"])
            assert np.percentile(values, quantile) == pytest.approx(lengths.loc[column, f"p{quantile}"], abs=near)


def test_the_stored_share_is_that_of_each_prompt():
    rows = mix("azure-code", alpha=0.25).rows()
    assert rows.cached.sum() == pytest.approx(0.25 * rows.n_in.sum(), rel=0.001)
    assert Workload.from_trace(mix("azure-code", alpha=0.25)).alpha == pytest.approx(0.25, rel=0.001)


def test_an_unknown_mix_is_refused():
    with pytest.raises(ValueError, match=r"name must be one of azure-code, .* did you mean 'azure-code'"):
        mix("azure-codes")
