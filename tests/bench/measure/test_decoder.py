"""The decoder: its shapes, its KV cache, and its logits against a plain one in float64."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-measure runs this")

from inference_math import catalogue  # noqa: E402
from inference_math.workload.points import Point  # noqa: E402
from inference_math_bench.measure import decoder as module, reference  # noqa: E402
from inference_math_bench.measure.decoder import Decoder, Kernels, Matrix  # noqa: E402
from inference_math_bench.measure.device import Host  # noqa: E402


@pytest.fixture(params=[False, True], ids=["bf16", "fp8"])
def fp8(request):
    return request.param


def build(model, *, fp8=False, dtype=torch.float32, kept=400):
    return Decoder(model, model.n_layers, kept, fp8=fp8, random=torch.Generator().manual_seed(0), dtype=dtype)


def test_its_matrices_are_the_model_s(small):
    found = build(small)
    shapes = small.gemm_shapes()
    for layer in found.weights:
        assert {name: tuple(matrix.dense.shape) for name, matrix in layer.items()} == {
            name: shape for name, shape in shapes.items() if name != "lm_head"
        }
    assert tuple(found.head.dense.shape) == shapes["lm_head"]
    layers = sum(matrix.dense.numel() for layer in found.weights for matrix in layer.values())
    assert layers == small.n_params_total
    cached = sum(cache.numel() for cache in found.cache) * 2  # bytes in BF16
    assert cached == 400 * small.kv_token("bf16")


def test_models_that_it_is_not_are_refused():
    for name in ("mixtral-8x7b", "deepseek-v3"):
        with pytest.raises(ValueError, match="MoE, MLA, or layers that differ"):
            build(catalogue.model(name))


def test_logits_are_those_of_the_plain_decoder(small, fp8):
    found = build(small, fp8=fp8)
    ids = found.tokens(33)
    with torch.inference_mode():
        ours = found.step(ids, Point("prefill", prompts=1, tokens=33))[0]
    true = reference.logits(found, ids)
    limit = 0.03 if fp8 else 1e-5  # FP8 rounds what is near a boundary either way
    assert (ours.double() - true).norm() / true.norm() < limit


@pytest.mark.parametrize("pieces", [(20, 9, 1), (1, 29), (29, 1), (10, 10, 10), (1, 1, 28)])
def test_a_prompt_in_chunks_and_decodes_equals_one_long_prefill(small, pieces, fp8):
    found = build(small, fp8=fp8)
    ids = found.tokens(30)
    with torch.inference_mode():
        whole = found.step(ids, Point("prefill", prompts=1, tokens=30))
        start = 0
        for count in pieces:
            end = start + count
            chunk = Point("prefill", prompts=1, tokens=count, cached=start)
            decode = Point("decode", 1, end)
            logits = found.step(ids[start:end], decode if count == 1 and start else chunk)
            start = end
    torch.testing.assert_close(logits, whole, rtol=1e-4, atol=1e-4)


def test_a_mixed_step_is_its_parts_side_by_side(small):
    """Requests do not see each other, and the places in the cache do not overlap."""
    found = build(small)
    ids, shape = found.tokens(3 + 2 * 5), Point("mixed", 3, 20, 2, 5, 7)
    with torch.inference_mode():
        before = [cache.clone() for cache in found.cache]
        together = found.step(ids, shape)
        for cache, old in zip(found.cache, before, strict=True):
            cache.copy_(old)
        decodes = found.step(ids[:3], Point("decode", 3, 20))
        for layer in range(found.layers):  # the prompts' places begin behind the decodes'
            behind = before[layer][:, 60 : 60 + 24]
            found.cache[layer][:, :24] = behind
        prompts = found.step(ids[3:], Point("prefill", prompts=2, tokens=5, cached=7))
    torch.testing.assert_close(together, torch.cat([decodes, prompts]), rtol=1e-5, atol=1e-5)


def test_without_attention_the_cache_is_left_alone(small):
    found = build(small)
    before = [cache.clone() for cache in found.cache]
    with torch.inference_mode():
        out = found.step(found.tokens(9), Point("matrices", 4, 0, 1, 5), attention=False)
    assert out.shape == (5, small.vocab)
    assert all(torch.equal(*pair) for pair in zip(found.cache, before, strict=True))


def test_a_plain_ffn_has_no_gate(small):
    plain = replace(small, gated=False)
    found = build(plain)
    assert found.weights[0]["up"].dense.shape == (96, 64)
    ids = found.tokens(12)
    with torch.inference_mode():
        ours = found.step(ids, Point("prefill", prompts=1, tokens=12))[0]
    true = reference.logits(found, ids)
    assert (ours.double() - true).norm() / true.norm() < 1e-5


def test_fp8_products_are_scaled_back():
    random = torch.Generator().manual_seed(0)
    matrix = Matrix((48, 64), random, torch.bfloat16, torch.empty(5000, dtype=torch.bfloat16))
    x = torch.randn(5, 64, dtype=torch.bfloat16)
    assert matrix.fp8
    exact = x.to(module.FP8).double() @ matrix.dense.T
    assert ((matrix(x).double() - exact).norm() / exact.norm()) < 0.01
    assert 0.5 < exact.std() < 2  # of order one again, so that the next conversion does not overflow


def test_an_unknown_use_of_attention_is_refused():
    with pytest.raises(ValueError, match="use must be one of decode, prompt, chunk"):
        Kernels().of("verify")


def test_the_check_on_the_device_finds_nothing_wrong(small, fp8):
    found = reference.errors(small, Host(), fp8=fp8)
    assert set(found) == {"prompts", "chunk", "mixed", "mixed, two streams"}
    limit = reference.LIMITS["fp8" if fp8 else "bf16"]
    assert 0 < max(found.values()) < 0.6 * limit


def _upper_left(count, length):
    return torch.ones(count, length, dtype=torch.bool).tril()


def _one_too_few(count, length):
    return torch.ones(count, length, dtype=torch.bool).tril(length - count - 1)


@pytest.mark.parametrize("mask", [_upper_left, _one_too_few])
def test_the_check_finds_a_wrong_mask(small, monkeypatch, mask):
    monkeypatch.setattr(module, "causal_lower_right", mask)
    assert reference.errors(small, Host(), fp8=False)["chunk"] > reference.LIMITS["bf16"]


def test_the_check_finds_a_wrong_group_and_a_wrong_rotation(small, monkeypatch):
    decodes = Decoder._decodes
    monkeypatch.setattr(Decoder, "_decodes", lambda self, layer, q, *rest: decodes(self, layer, q.flip(1), *rest))
    found = reference.errors(small, Host(), fp8=False)
    assert found["mixed"] > reference.LIMITS["bf16"] > found["chunk"]
    monkeypatch.setattr(Decoder, "_decodes", decodes)
    rotation = Decoder.rotation
    monkeypatch.setattr(Decoder, "rotation", lambda self, shape: tuple(-part for part in rotation(self, shape))[::-1])
    assert reference.errors(small, Host(), fp8=False)["prompts"] > reference.LIMITS["bf16"]


def test_numbers_that_are_none_are_infinitely_wrong(small, monkeypatch):
    step = Decoder.step
    monkeypatch.setattr(Decoder, "step", lambda self, *args, **kwargs: step(self, *args, **kwargs) * float("nan"))
    assert set(reference.errors(small, Host(), fp8=False).values()) == {float("inf")}
