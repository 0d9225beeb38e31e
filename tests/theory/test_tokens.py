import pytest

from inference_math import theory

# Llama-3-70B, layers' matrices
LLAMA = {"n_params": 68_451_041_280, "n_layers": 80, "d_att": 8192}


def test_published_thresholds_of_llama_3_70b():
    assert theory.attention_threshold(**LLAMA) == pytest.approx(52.2e3, rel=1e-3)
    assert theory.attention_threshold(**LLAMA) / 8192 == pytest.approx(6.38, abs=0.01)
    assert theory.attention_threshold_causal(**LLAMA) / 8192 == pytest.approx(12.75, abs=0.01)


def test_classical_layer_has_6d_and_12d():
    d, layers = 4096.0, 32.0
    classical = {"n_params": 12 * layers * d**2, "n_layers": layers, "d_att": d}
    assert theory.attention_threshold(**classical) == 6 * d
    assert theory.attention_threshold_causal(**classical) == 12 * d


def test_at_the_threshold_attention_doubles_the_time():
    n = theory.attention_threshold_causal(**LLAMA)
    linear_time = 2 * LLAMA["n_params"] / 1e15
    assert theory.token_time_causal(**LLAMA, n_in=n, flops=1e15) == pytest.approx(2 * linear_time)
    assert theory.attention_share_causal(**LLAMA, n_in=n) == pytest.approx(0.5)


def test_load_time_and_acceleration():
    r = theory.kv_load_time(kv_token=163_840, io_bw=64e9)
    assert r == pytest.approx(2.56e-6)
    assert theory.token_acceleration(T=9 * r, R=r) == pytest.approx(9)
    assert theory.write_bandwidth(kv_token=163_840, T=r) == pytest.approx(64e9)
