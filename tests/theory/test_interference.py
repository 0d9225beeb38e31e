from __future__ import annotations

import pytest

from inference_math import theory


def test_delta_p_and_delta_h():
    assert theory.delta_p(ttft_1=0.2, n_out=100) == pytest.approx(2e-3)
    assert theory.expected_tpot(B=1, tpot_1=0.02, delta_p=1e-3, delta_h=1e-4) == 0.02
    assert theory.expected_tpot(B=11, tpot_1=0.02, delta_p=1e-3, delta_h=1e-4) == pytest.approx(0.031)
    assert theory.delta_h(n_in=2048, kv_token=163_840, hbm_bw=3.35e12) == pytest.approx(1.0016e-4, rel=1e-4)
