import pytest
from matplotlib.figure import Figure

from inference_math import catalogue, theory
from inference_math_book.figures import regimes


def test_every_pair_has_a_break_even_output():
    frame = regimes.break_even_outputs()
    with_fp8 = sum(gpu.fp8_flops is not None for gpu in catalogue.GPUS.values())
    assert len(frame) == len(catalogue.MODELS) * (len(catalogue.GPUS) + with_fp8)
    assert (frame.tokens > 0).all()


def test_the_map_shows_the_formula_s_numbers():
    grid = regimes.break_even_map(Figure().subplots(), "bf16").set_index("model")
    model, gpu = catalogue.model("llama-3-8b"), catalogue.gpu("h100-sxm")
    expected = theory.break_even_output(
        n_params=model.n_params, kv_token=model.kv_token("bf16"), hbm_bw=gpu.hbm_bw, flops=gpu.bf16_flops
    )
    assert grid.loc["llama-3-8b", "h100-sxm"] == pytest.approx(expected)
