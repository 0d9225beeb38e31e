"""The same decoder again, slow and plain, in float64: what a step must compute before it is worth timing."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from inference_math.catalogue import Model
from inference_math.workload.points import Point
from inference_math_bench.measure.bench import Device
from inference_math_bench.measure.decoder import FP8, Decoder, Kernels, Matrix

__all__ = ["LIMITS", "errors", "logits"]

# Largest relative error, ‖out − reference‖ / ‖reference‖: twice to three times what rounding alone makes of it.
LIMITS = {"bf16": 0.02, "fp8": 0.1}
# Tokens of the prompts, of a cached prefix, and of the chunk behind it: so few that one token more or less would show,
# and across several of a kernel's tiles.
_LENGTHS = ((12, 8, 5), (300, 290, 150))


def logits(decoder: Decoder, ids: Tensor) -> Tensor:
    """Return the logits after the last of `ids`, one request computed whole, in float64 on the CPU."""
    model, count = decoder.model, len(ids)
    x = decoder.embedding.double().cpu()[ids.cpu()]
    half = model.head_size // 2
    speeds = 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    spin = torch.polar(torch.ones(count, half, dtype=torch.float64), torch.arange(count)[:, None] * speeds)
    future = torch.ones(count, count, dtype=torch.bool).triu(1)
    for weights in decoder.weights:
        heads = _times(_normed(x), weights["qkv"]).view(count, -1, model.head_size)
        out = []
        for head in range(model.n_heads):
            kv_head = head * model.n_kv_heads // model.n_heads
            query, key = _turned(heads[:, head], spin), _turned(heads[:, model.n_heads + kv_head], spin)
            scores = (query @ key.T / model.head_size**0.5).masked_fill(future, -torch.inf)
            out.append(scores.softmax(-1) @ heads[:, model.n_heads + model.n_kv_heads + kv_head])
        x = x + _times(torch.cat(out, -1), weights["attention_out"])
        wide = _times(_normed(x), weights[decoder.ffn_in])
        gate = wide[:, : model.d_ff]
        x = x + _times(gate * gate.sigmoid() * (wide[:, model.d_ff :] if model.gated else 1), weights["down"])
    return _times(_normed(x[-1:]), decoder.head)[0]


def errors(model: Model, device: Device, *, fp8: bool, kernels: Kernels | None = None) -> dict[str, float]:
    """Return the relative error of each kind of step on `device` against `logits`.

    Of two narrow layers with the model's heads: two prompts at once; a chunk that sees a cached prefix; a step of two
    decodes and such a chunk, with the attention of one after the other's and beside it. Each as it is timed, replayed
    from a graph.
    """
    small = replace(model, n_layers=2, d_model=256, d_ff=384, vocab=512)
    found: dict[str, float] = {}
    for lengths in _LENGTHS:
        for name, off in _errors(small, device, lengths, fp8, kernels).items():
            found[name] = max(found.get(name, 0.0), off)
    return found


def _errors(
    model: Model, device: Device, lengths: tuple[int, int, int], fp8: bool, kernels: Kernels | None
) -> dict[str, float]:
    length, cached, new = lengths
    random = torch.Generator(device.type).manual_seed(0)
    decoder = Decoder(model, 2, 4 * sum(lengths), fp8=fp8, random=random, kernels=kernels)
    asked = [decoder.tokens(length + 1) for _ in range(2)]
    other = decoder.tokens(cached + new)
    true = torch.stack([logits(decoder, ids) for ids in (*asked, other)])
    found = {}
    with torch.inference_mode():
        prompts = torch.cat([ids[:length] for ids in asked])
        first = torch.stack([logits(decoder, ids[:length]) for ids in asked])
        found["prompts"] = _off(_replayed(decoder, device, prompts, Point("prefill", prompts=2, tokens=length)), first)
        _move(decoder, (2, length), (0, 2, length + 1))
        behind = 2 * (length + 1)
        kept = [decoder.region(layer, 0, 2, length + 1).clone() for layer in range(decoder.layers)]
        decoder.step(other[:cached], Point("prefill", prompts=1, tokens=cached))
        chunk = Point("prefill", prompts=1, tokens=new, cached=cached)
        found["chunk"] = _off(_replayed(decoder, device, other[cached:], chunk), true[2:])
        _move(decoder, (1, cached + new), (behind, 1, cached + new))
        for layer, there in enumerate(kept):
            decoder.region(layer, 0, 2, length + 1).copy_(there)
        ids = torch.cat([*(one[length:] for one in asked), other[cached:]])
        mixed = Point("mixed", 2, length + 1, 1, new, cached)
        for name, two_streams in (("mixed", False), ("mixed, two streams", True)):
            found[name] = _off(_replayed(decoder, device, ids, mixed, two_streams), true)
    return found


def _replayed(decoder: Decoder, device: Device, ids: Tensor, shape: Point, two_streams: bool = False) -> Tensor:
    """Return the logits of a step as they are after a second replay, with other memory taken in between."""
    out: list[Tensor] = []
    run = device.graph(lambda: out.append(decoder.step(ids, shape, two_streams=two_streams)))
    run()
    taken = [torch.full_like(ids, -1) for _ in range(8)]
    run()
    del taken
    return out[-1].clone()


def _move(decoder: Decoder, there: tuple[int, int], to: tuple[int, int, int]) -> None:
    """Copy the cache of the pool's first requests (count, length) to a region (start, count, length), in each layer."""
    count, length = there
    for layer in range(decoder.layers):
        kept = decoder.region(layer, 0, count, length).clone()
        decoder.region(layer, *to)[:, :, :length] = kept


def _normed(x: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def _times(x: Tensor, matrix: Matrix) -> Tensor:
    """Multiply; FP8 rounds what goes in, which is the format's error and not a kernel's."""
    rounded = x.to(FP8).double() if matrix.fp8 else x
    return rounded @ matrix.dense.cpu().T


def _turned(x: Tensor, spin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    turned = torch.complex(x[:, :half], x[:, half:]) * spin
    return torch.cat([turned.real, turned.imag], -1)


def _off(found: Tensor, true: Tensor) -> float:
    """Return the largest relative error of a row; infinite where a number is none."""
    ours = found.double().cpu()
    off = ((ours - true).norm(dim=-1) / true.norm(dim=-1)).max()
    return float(off) if torch.isfinite(ours).all() else float("inf")
