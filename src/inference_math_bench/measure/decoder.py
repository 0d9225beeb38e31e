"""A decoder of a catalogue model's shapes with random weights, and its steps: what an engine's GPU does, no more.

Dense models with grouped-query attention: norm, fused QKV product, rotation, attention over a contiguous KV cache,
output product, norm, gated or plain FFN. RMSNorm, SiLU and rotary positions throughout, also where a model has
LayerNorm, ReLU or learned positions: the same bytes and FLOPs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

from inference_math.catalogue import Model
from inference_math.evidence.checks import as_one_of
from inference_math.workload.points import Point

__all__ = ["FP8", "Decoder", "Kernels", "Matrix", "beside"]

FP8 = torch.float8_e4m3fn
_ROTATION_BASE = 10_000.0


class Matrix:
    """A weight matrix (n, k) of random numbers with variance 1/k, in BF16 (or the given type) or FP8.

    FP8 has one scale for the matrix and none for what it is multiplied with: activations of this decoder are of
    order one, far inside the format's range. They are converted on the fly, as engines do. `scratch` is where the
    numbers are drawn before they become FP8: one place for all matrices, since freed pieces between them are lost.
    """

    def __init__(
        self, shape: tuple[int, int], random: torch.Generator, dtype: torch.dtype, scratch: Tensor | None = None
    ) -> None:
        n, k = shape
        self.scale = k**-0.5
        device = random.device
        if scratch is None:
            self._weight = torch.empty(n, k, dtype=dtype, device=device).normal_(generator=random).mul_(self.scale)
        else:
            drawn = scratch[: n * k].view(n, k).normal_(generator=random)
            self._weight = torch.empty(n, k, dtype=FP8, device=device).copy_(drawn)
        self._scales = {
            "scale_a": torch.ones((), dtype=torch.float32, device=device),
            "scale_b": torch.full((), self.scale, dtype=torch.float32, device=device),
        }

    def __call__(self, x: Tensor) -> Tensor:
        """Return x (m, k) times the transposed matrix, (m, n), in the type of x."""
        return self.product(x.to(FP8), x.dtype) if self.fp8 else functional.linear(x, self._weight)

    def product(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the product of an x that is FP8 already, in `dtype`."""
        return torch._scaled_mm(x, self._weight.t(), **self._scales, out_dtype=dtype, use_fast_accum=True)

    @property
    def fp8(self) -> bool:
        """Whether the matrix is FP8."""
        return bool(self._weight.dtype == FP8)

    @property
    def dense(self) -> Tensor:
        """The matrix in float64, for a reference."""
        return self._weight.double() * (self.scale if self.fp8 else 1.0)


@dataclass(frozen=True)
class Kernels:
    """Which of PyTorch's attention kernels each use takes: names of `SDPBackend`, or "" for PyTorch's own choice."""

    decode: str = ""
    prompt: str = ""
    chunk: str = ""

    def of(self, use: str) -> AbstractContextManager[Any]:
        """Return the context in which attention takes the kernel for "decode", "prompt" or "chunk"."""
        name = getattr(self, as_one_of("use", use, ("decode", "prompt", "chunk")))
        return sdpa_kernel(getattr(SDPBackend, name)) if name else nullcontext()


class Decoder:
    """The first `layers` layers of a model, its embedding and LM head, and a KV cache of `kept` tokens.

    Parameters
    ----------
    model
        Dense, with GQA.
    layers, kept
        Layers, and the tokens whose KV cache has room.
    fp8
        Whether the layers' matrices are FP8; embedding, LM head and cache are of type `dtype`.
    random, dtype
        Random numbers, on whose device it lies, and their type.
    kernels
        Attention kernels.

    Raises
    ------
    ValueError
        For MoE and MLA models.
    """

    def __init__(
        self,
        model: Model,
        layers: int,
        kept: int,
        *,
        fp8: bool,
        random: torch.Generator,
        dtype: torch.dtype = torch.bfloat16,
        kernels: Kernels | None = None,
    ) -> None:
        self.model, self.layers, self.kept, self.kernels = model, layers, kept, kernels or Kernels()
        shapes = model.gemm_shapes()
        self._random, device = random, random.device
        self.ffn_in = "gate_up" if model.gated else "up"
        names = ("qkv", "attention_out", self.ffn_in, "down")
        largest = max(n * k for n, k in (shapes[name] for name in names))
        scratch = torch.empty(largest, dtype=dtype, device=device) if fp8 else None
        self.weights = [
            {name: Matrix(shapes[name], self._random, dtype, scratch) for name in names} for _ in range(layers)
        ]
        self.head = Matrix(shapes["lm_head"], self._random, dtype)
        self.embedding = self.normal(model.vocab, model.d_model, dtype=dtype)
        self.cache = [self.normal(2, kept, model.n_kv_heads, model.head_size, dtype=dtype) for _ in range(layers)]
        self.dtype, self.device = dtype, self._random.device
        self._norm = torch.ones(model.d_model, dtype=dtype, device=self.device)
        # First in line: decodes' small kernels would else wait for a chunk's large ones to end.
        self.side = torch.cuda.Stream(priority=-1) if self.device.type == "cuda" else None

    def normal(self, *size: int, dtype: torch.dtype | None = None) -> Tensor:
        """Return random numbers of variance 1 on the device."""
        return torch.empty(*size, dtype=dtype or self.dtype, device=self._random.device).normal_(generator=self._random)

    def tokens(self, count: int) -> Tensor:
        """Return random token ids."""
        return torch.randint(self.model.vocab, (count,), generator=self._random, device=self.device)

    def region(self, layer: int, start: int, requests: int, length: int) -> Tensor:
        """Return the cache of some requests from token `start` of the pool on: (2, requests, length, heads, size)."""
        pool = self.cache[layer][:, start : start + requests * length]
        return pool.view(2, requests, length, self.model.n_kv_heads, self.model.head_size)

    def step(
        self,
        ids: Tensor,
        shape: Point,
        *,
        turn: tuple[Tensor, Tensor] | None = None,
        start: int = 0,
        attention: bool = True,
        two_streams: bool = False,
        before_layer: Callable[[int], Any] | None = None,
    ) -> Tensor:
        """Return the logits of each request's last token after one step.

        Parameters
        ----------
        ids
            Tokens, (decodes + prompts·tokens,): those of the decodes first.
        shape
            The step. Decodes take the first decodes·context places of the cache from `start` on, prompts the next; a
            request's new tokens are its last ones, those before them are in the cache already.
        turn
            What `rotation` returns for the step; computed where it is None.
        attention
            Without, attention and the writing of the cache are left out.
        two_streams
            Whether the attention of the decodes runs beside that of the prompts, on a second stream of a GPU.
        before_layer
            Called with the number of each layer before it starts.
        """
        x = functional.embedding(ids, self.embedding)
        turn = turn or self.rotation(shape)
        for layer, weights in enumerate(self.weights):
            if before_layer is not None:
                before_layer(layer)
            qkv = weights["qkv"](self._normed(x))
            heads = self.turned(qkv, turn)
            mixed = self.attend(layer, heads, shape, start, two_streams) if attention else heads[0].flatten(1)
            x = x + weights["attention_out"](mixed)
            x = x + weights["down"](self._activated(weights[self.ffn_in](self._normed(x))))
        return self.head(self._normed(self._sampled(x, shape)))

    def turned(self, qkv: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values (tokens, heads, size), the first two turned to their places."""
        model = self.model
        heads = qkv.view(len(qkv), -1, model.head_size)
        turned = _rotate(heads[:, : -model.n_kv_heads], turn)
        return turned[:, : model.n_heads], turned[:, model.n_heads :], heads[:, -model.n_kv_heads :]

    def attend(
        self, layer: int, heads: tuple[Tensor, Tensor, Tensor], shape: Point, start: int = 0, two_streams: bool = False
    ) -> Tensor:
        """Write keys and values of one layer to the cache and return its attention, (tokens, heads·size).

        `heads` are what `turned` returns.
        """
        (q, k, v), decodes = heads, shape.decodes
        parts = []
        with beside(self.side if two_streams else None) as aside:
            if decodes:
                with aside:
                    parts.append(self._decodes(layer, q[:decodes], k[:decodes], v[:decodes], shape, start))
            if shape.prompts:
                behind = start + decodes * shape.context
                parts.append(self._prompts(layer, q[decodes:], k[decodes:], v[decodes:], shape, behind))
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def rotation(self, shape: Point) -> tuple[Tensor, Tensor]:
        """Return cosines and signed sines by which `turned` turns queries and keys, (tokens, 1, size) each."""
        new = torch.arange(shape.cached, shape.cached + shape.tokens, device=self.device).repeat(shape.prompts)
        places = torch.cat([torch.full((shape.decodes,), shape.context - 1, device=self.device), new])
        half = self.model.head_size // 2
        speeds = _ROTATION_BASE ** (-torch.arange(half, dtype=torch.float32, device=self.device) / half)
        angles = places[:, None, None] * speeds
        cosines, sines = angles.cos(), angles.sin()
        return torch.cat([cosines, cosines], -1).to(self.dtype), torch.cat([-sines, sines], -1).to(self.dtype)

    def _decodes(self, layer: int, q: Tensor, k: Tensor, v: Tensor, shape: Point, start: int) -> Tensor:
        """Attend to whole contexts. The queries of a KV head's group read it once: they stand where a length would."""
        keys, values = self.region(layer, start, shape.decodes, shape.context)
        keys[:, -1], values[:, -1] = k, v
        grouped = q.reshape(shape.decodes, self.model.n_kv_heads, -1, self.model.head_size)
        with self.kernels.of("decode"):
            out = functional.scaled_dot_product_attention(grouped, keys.transpose(1, 2), values.transpose(1, 2))
        return out.reshape(shape.decodes, -1)

    def _prompts(self, layer: int, q: Tensor, k: Tensor, v: Tensor, shape: Point, start: int) -> Tensor:
        """Attend causally, each new token to all before it and to itself."""
        prompts, tokens, cached = shape.prompts, shape.tokens, shape.cached
        keys, values = self.region(layer, start, prompts, cached + tokens)
        keys[:, cached:] = k.reshape(prompts, tokens, *k.shape[1:])
        values[:, cached:] = v.reshape(prompts, tokens, *v.shape[1:])
        with self.kernels.of("chunk" if cached else "prompt"):
            out = functional.scaled_dot_product_attention(
                q.reshape(prompts, tokens, *q.shape[1:]).transpose(1, 2),
                keys.transpose(1, 2),
                values.transpose(1, 2),
                attn_mask=causal_lower_right(tokens, cached + tokens) if cached else None,
                is_causal=not cached,
                enable_gqa=True,
            )
        return out.transpose(1, 2).reshape(prompts * tokens, -1)

    def _normed(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self._norm.shape, self._norm, 1e-5)

    def _activated(self, wide: Tensor) -> Tensor:
        if not self.model.gated:
            return functional.silu(wide)
        gate, up = wide.chunk(2, dim=-1)
        return functional.silu(gate) * up

    def _sampled(self, x: Tensor, shape: Point) -> Tensor:
        """Return the rows of each request's last token."""
        prompts = x[shape.decodes + shape.tokens - 1 :: shape.tokens] if shape.prompts else x[:0]
        return torch.cat([x[: shape.decodes], prompts])


@contextmanager
def beside(side: Any) -> Iterator[AbstractContextManager[Any]]:
    """Fork to a stream and join it again; yields the context of what runs there. None: no fork.

    The join comes in any case: a capture that ends unjoined is broken for good.
    """
    if side is None:
        yield nullcontext()
        return
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    try:
        yield torch.cuda.stream(side)
    finally:
        main.wait_stream(side)


def _rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Return x (tokens, heads, size) turned: halves of a head are the two coordinates."""
    cosines, sines = turn
    return torch.addcmul(x * cosines, x.unflatten(-1, (2, -1)).flip(-2).flatten(-2), sines)
