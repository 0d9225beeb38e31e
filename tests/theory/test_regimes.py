import pytest
from hypothesis import given, strategies as st

from inference_math import catalogue, theory


def break_even(model, gpu, weights, kv):
    m, g = catalogue.model(model), catalogue.gpu(gpu)
    return theory.break_even_output(
        n_params=m.n_params, kv_token=m.kv_token(kv), hbm_bw=g.hbm_bw, flops=g.flops(weights)
    )


@pytest.mark.parametrize(
    ("model", "gpu", "weights", "kv", "tokens"),
    [
        ("llama-3-70b", "h100-sxm", "fp8", "fp8", 1415),
        ("llama-3-70b", "h100-sxm", "fp8", "bf16", 707),
        ("llama-3-70b", "h100-sxm", "bf16", "bf16", 1415),
        ("llama-3-8b", "h100-sxm", "bf16", "bf16", 361),
        ("llama-13b", "a6000", "bf16", "bf16", 154),
        ("qwen3-14b", "h100-sxm", "bf16", "bf16", 546),
    ],
)
def test_break_even_outputs_of_known_pairs(model, gpu, weights, kv, tokens):
    assert break_even(model, gpu, weights, kv) == pytest.approx(tokens, abs=0.6)


lengths = st.floats(1, 1e6)


@given(n_in=lengths, n_out=lengths)
def test_the_whole_ratio_has_both_regimes(n_in, n_out):
    model, gpu = catalogue.model("llama-3-8b"), catalogue.gpu("h100-sxm")
    rates = {"kv_token": model.kv_token("bf16"), "hbm_bw": gpu.hbm_bw, "flops": gpu.bf16_flops, "n_out": n_out}
    short = theory.cost_ratio_short(n_params=model.n_params, **rates)
    long = theory.cost_ratio_long(n_layers=model.n_layers, d_att=model.d_att, n_in=n_in, **rates)
    whole = theory.cost_ratio(**model.shape, n_in=n_in, **rates)
    assert whole == pytest.approx(short + long / 2)  # a causal mask halves the attention
    threshold = theory.attention_threshold_causal(**model.shape)
    assert theory.cost_ratio(**model.shape, n_in=threshold, **rates) == pytest.approx(2 * short)


@given(n_in=lengths)
def test_the_long_regime_knows_only_the_group_size(n_in):
    gpu = catalogue.gpu("h100-sxm")
    for name in ("llama-3-8b", "llama-3-70b", "llama-13b"):
        model = catalogue.model(name)
        ratio = theory.cost_ratio_long(
            n_layers=model.n_layers, d_att=model.d_att, kv_token=model.kv_token("bf16"), hbm_bw=gpu.hbm_bw,
            flops=gpu.bf16_flops, n_in=n_in, n_out=100,
        )  # fmt: skip
        assert ratio == pytest.approx(2 * model.group_size * n_in * gpu.ridge("bf16") ** -1 / (2 * 100))


@given(n_in=lengths)
def test_the_answer_s_own_cache_lowers_the_break_even(n_in):
    model, gpu = catalogue.model("llama-3-70b"), catalogue.gpu("h100-sxm")
    rates = {
        "n_params": model.n_params, "kv_token": model.kv_token("fp8"), "hbm_bw": gpu.hbm_bw, "flops": gpu.flops("fp8"),
    }  # fmt: skip
    star = theory.break_even_output(**rates)
    growing = theory.break_even_output_growing(n_in=n_in, **rates)
    assert growing < star
    assert growing * (n_in + growing / 2) == pytest.approx(n_in * star, rel=1e-5)
