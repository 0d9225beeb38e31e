import numpy as np
import pytest
from matplotlib.figure import Figure

from inference_math import catalogue
from inference_math.evidence import load
from inference_math_book.figures import kernels


@pytest.mark.parametrize("gpu", ["h100-sxm", "b200"])
@pytest.mark.parametrize("kinds", [kernels.KINDS, kernels.BLOCKS])
def test_no_measured_kernel_beats_the_datasheet_and_curves_lie_near(kinds, gpu):
    found = kernels.times(dict(zip(kinds, Figure().subplots(2, 3).flat, strict=True)), gpu)
    assert set(found.kind) == set(kinds)
    # A switch that adds moves less than a ring; what beats the datasheet is said to, and does not count.
    rest = found[(found.kind != "all-reduce") & (found.counts != "beats the datasheet")]
    assert (rest.time > rest.least).all()
    off = np.abs(found.fitted / found.time - 1)
    assert off.groupby(found.kind).median().max() < 0.25


def test_a_curve_is_a_launch_and_two_times_together():
    row = {"a0_us": 5.0, "memory": 0.5, "compute": 0.25}
    assert kernels.curve(row, "experts", 3e-6, 2e-6) == pytest.approx(5e-6 + np.hypot(6e-6, 8e-6))
    assert kernels.curve(row, "attention, prefill", 3e-6, 2e-6) == pytest.approx(5e-6 + 14e-6)
    assert kernels.curve(row | {"compute": np.nan}, "all-reduce", 3e-6, 0.0) == pytest.approx(11e-6)


def test_the_table_has_every_gpu_and_engine_and_only_what_counts():
    found = kernels.reached()
    assert set(found.gpu) <= set(catalogue.GPUS)
    own = load("operators").frame.query("counts == 'yes' and engine != 'nccl'")
    assert len(found) == len(own[["gpu", "engine"]].drop_duplicates())
    shares = found.drop(columns=["gpu", "engine", "a launch (µs)"])
    assert ((shares > 0) & (shares <= 100) | shares.isna()).all().all()
    assert found.set_index(["gpu", "engine"]).loc[("a100-80gb", "vllm")].isna()["compute, FP8"]
