"""How much of a model fits."""

import contextlib

import pytest
from hypothesis import assume, given, strategies as st

from inference_math import catalogue
from inference_math.catalogue import bytes_per_value
from inference_math.workload.points import points
from inference_math_bench.measure.room import room

GIB = 2**30
LLAMA = catalogue.model("llama-3-70b")


def test_the_talks_model_in_fp8_fits_an_h200_whole_and_an_h100_in_part():
    whole, part = room(LLAMA, 139 * GIB, "fp8"), room(LLAMA, 78 * GIB, "fp8")
    assert whole.layers == LLAMA.n_layers
    assert LLAMA.n_layers / 2 < part.layers < LLAMA.n_layers
    assert room(catalogue.model("llama-3-8b"), 78 * GIB, "bf16").layers == 32


@given(
    name=st.sampled_from([n for n, m in catalogue.MODELS.items() if m.attention == "gqa" and not m.n_experts]),
    free=st.floats(8e9, 300e9),
    weights=st.sampled_from(["bf16", "fp8"]),
)
def test_what_fits_does_fit(name, free, weights):
    model = catalogue.model(name)
    with contextlib.suppress(ValueError):
        found = room(model, free, weights)
    assume("found" in locals())
    share = found.layers / model.n_layers
    held = share * (model.n_params_total * bytes_per_value(weights) + found.kept * model.kv_token("bf16"))
    assert held + 2 * model.vocab_params < free
    assert found.kept >= 2**17
    assert points(found.kept, found.fresh, fp8=weights == "fp8")


@pytest.mark.parametrize(
    ("model", "free", "layers", "words"),
    [
        ("llama-3-405b", 24e9, None, "the device must have .* GB free for 4 layers of llama-3-405b in bf16"),
        ("llama-3-70b", 80e9, 80, "free for 80 layers of llama-3-70b"),
        ("llama-3-8b", 80e9, 33, "layers must be at most the 32 of llama-3-8b, not 33"),
        ("llama-3-8b", 80e9, 0, "layers must be a whole number >= 1"),
        ("mixtral-8x7b", 80e9, None, "not for 'mixtral-8x7b'"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_missing(model, free, layers, words):
    with pytest.raises(ValueError, match=words):
        room(catalogue.model(model), free, "bf16", layers)


def test_a_run_goes_on_with_the_room_that_it_had():
    first = room(LLAMA, 78 * GIB, "fp8")
    assert room(LLAMA, 82 * GIB, "fp8", first.layers, first.kept) == first
    with pytest.raises(ValueError, match=f"free for {first.layers} layers of llama-3-70b in fp8 with {first.kept:,}"):
        room(LLAMA, 70 * GIB, "fp8", first.layers, first.kept)
