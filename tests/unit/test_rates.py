"""GPUs and tiers as plain numbers."""

import numpy as np
import pytest

from inference_math import catalogue
from inference_math.catalogue.tiers import tier
from inference_math.unit.rates import acceleration


def test_acceleration_is_compute_time_over_load_time():
    llama = catalogue.model("llama-3-70b")
    e = acceleration(tier("dram"), T=7e-5, kv_token=llama.kv_token("fp8"), gpus=2)
    assert e == pytest.approx(7e-5 * 2 * 64e9 / 163_840)
    assert acceleration(tier("dram"), T=1e-5, kv_token=np.array([1e5, 2e5])).shape == (2,)
