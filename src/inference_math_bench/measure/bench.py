"""From a point to something that can be timed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import torch
from torch import Tensor

from inference_math.catalogue import Model
from inference_math.workload.points import Point
from inference_math_bench.measure.decoder import FP8, Decoder, Kernels, Matrix, beside
from inference_math_bench.measure.timing import Clock, sample

__all__ = ["Bench", "Device", "Work", "fastest"]

_CANDIDATES = {
    "decode": ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"),
    "prompt": ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"),
    "chunk": ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"),  # cuDNN's would take a mask of all pairs
}
_LAST_RESORT = "MATH"  # writes all scores to memory
_SIDE, _COPY = {"cuda": 8192, "cpu": 64}, {"cuda": 2**28, "cpu": 2**16}


class Device(Clock, Protocol):
    """A clock that also captures graphs."""

    type: str

    def graph(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """Return a replay of `run`."""

    def settle(self) -> None:
        """Recover after a failure, or raise RuntimeError."""


@dataclass(frozen=True)
class Work:
    """Something to time, with the bytes that it moves or the FLOPs that it computes where it is that alone."""

    run: Callable[[], Any]
    bytes: float = 0.0
    flop: float = 0.0


class Bench:
    """What `points` ask for, of a decoder on a device."""

    def __init__(self, decoder: Decoder, device: Device) -> None:
        self._decoder, self._device = decoder, device
        self._host: Tensor | None = None
        self._copies = torch.cuda.Stream() if device.type == "cuda" else None

    def work(self, point: Point) -> Work:
        """Return a point as something to run, with fresh random inputs.

        Raises
        ------
        MemoryError
            Where its tensors do not fit the device.
        """
        try:
            with torch.inference_mode():
                found = self._work(point)
        except torch.OutOfMemoryError as error:
            raise MemoryError(str(error).splitlines()[0]) from None
        return replace(found, run=_inferring(found.run))

    def _work(self, point: Point) -> Work:
        decoder, what = self._decoder, point.what
        if what == "copy":
            return self._copy()
        if what.startswith("product-"):
            return self._product(fp8=what == "product-fp8")
        if what.startswith("load"):
            return self._load(point)
        if what == "attention":
            return Work(self._device.graph(self._attention(point)))
        if what == "mixed-steps":
            return Work(self._device.graph(self._two_steps(point)))
        ids, attention, two_streams = decoder.tokens(point.fresh), what != "matrices", what == "mixed-attention"
        turn = decoder.rotation(point)

        def run() -> None:
            decoder.step(ids, point, turn=turn, attention=attention, two_streams=two_streams)

        return Work(self._device.graph(run))

    def _two_steps(self, point: Point) -> Callable[[], Any]:
        """A step of the decodes on a second stream beside one of the chunk; they share weights, and nothing else."""
        decoder = self._decoder
        decodes, chunk = replace(point, prompts=0, tokens=0, cached=0), replace(point, decodes=0, context=0)
        first, second = decoder.tokens(decodes.fresh), decoder.tokens(chunk.fresh)
        turns = decoder.rotation(decodes), decoder.rotation(chunk)

        def run() -> None:
            with beside(decoder.side) as aside:
                with aside:
                    decoder.step(first, decodes, turn=turns[0])
                decoder.step(second, chunk, turn=turns[1], start=decodes.kept)

        return run

    def _attention(self, point: Point) -> Callable[[], Any]:
        decoder, model = self._decoder, self._decoder.model
        qkv = decoder.normal(point.fresh, (model.n_heads + 2 * model.n_kv_heads) * model.head_size)
        heads = decoder.turned(qkv, decoder.rotation(point))

        def run() -> None:
            for layer in range(decoder.layers):
                decoder.attend(layer, heads, point)

        return run

    def _load(self, point: Point) -> Work:
        """Copies from pinned memory, before the step or, on a stream of their own, each before its layer."""
        decoder, cached = self._decoder, point.cached
        host = self._pinned(cached)
        moved = float(decoder.layers * host[0].numel() * host.element_size())

        def copy(layer: int) -> None:
            # A request alone starts the pool, so its prefix is one piece.
            decoder.cache[layer][0, :cached].copy_(host[layer, 0], non_blocking=True)
            decoder.cache[layer][1, :cached].copy_(host[layer, 1], non_blocking=True)

        def every() -> None:
            for layer in range(decoder.layers):
                copy(layer)

        if point.what == "load":
            return Work(self._device.graph(every), bytes=moved)
        ids, turn = decoder.tokens(point.fresh), decoder.rotation(point)

        def first() -> None:
            every()
            decoder.step(ids, point, turn=turn)

        def layerwise() -> None:
            decoder.step(ids, point, turn=turn, before_layer=self._arrivals(copy))

        return Work(self._device.graph(first if point.what == "load-first" else layerwise), bytes=moved)

    def _arrivals(self, copy: Callable[[int], None]) -> Callable[[int], Any]:
        """Start copying all layers on a second stream; return what waits for a layer's copy."""
        if self._copies is None:
            return copy
        main, there = torch.cuda.current_stream(), []
        self._copies.wait_stream(main)
        with torch.cuda.stream(self._copies):
            for layer in range(self._decoder.layers):
                copy(layer)
                there.append(self._copies.record_event())
        return lambda layer: main.wait_event(there[layer])

    def _pinned(self, tokens: int) -> Tensor:
        """Return (layers, 2, tokens, heads, size) of random keys and values in pinned host memory."""
        decoder = self._decoder
        if self._host is None or self._host.shape[2] < tokens:
            size = (decoder.layers, 2, tokens, decoder.model.n_kv_heads, decoder.model.head_size)
            try:
                self._host = torch.empty(size, dtype=decoder.dtype, pin_memory=self._device.type == "cuda")
            except RuntimeError as error:
                raise MemoryError(f"no pinned host memory for {tokens} tokens: {error}") from None
            for layer, cache in enumerate(decoder.cache):
                self._host[layer].copy_(cache[:, :tokens])
        return self._host[:, :, :tokens]

    def _copy(self) -> Work:
        count = _COPY[self._device.type]
        source = torch.empty(count, dtype=torch.int8, device=self._device.type).random_()
        target = torch.empty_like(source)
        return Work(lambda: target.copy_(source), bytes=2.0 * count)

    def _product(self, fp8: bool) -> Work:
        side, dtype = _SIDE[self._device.type], self._decoder.dtype
        random = torch.Generator(self._device.type).manual_seed(0)
        scratch = torch.empty(side * side, dtype=dtype, device=self._device.type) if fp8 else None
        matrix, x = Matrix((side, side), random, dtype, scratch), self._decoder.normal(side, side)
        if fp8:
            converted = x.to(FP8)
            return Work(self._device.graph(lambda: matrix.product(converted, dtype)), flop=2.0 * side**3)
        return Work(self._device.graph(lambda: matrix(x)), flop=2.0 * side**3)


def _inferring(run: Callable[[], Any]) -> Callable[[], None]:
    def inferring() -> None:
        with torch.inference_mode():
            run()

    return inferring


def fastest(model: Model, device: Device, typical: Mapping[str, Sequence[Point]]) -> Kernels:
    """Return the attention kernel of PyTorch that is fastest at each use: "decode", "prompt", "chunk".

    Each is timed at all `typical` points of the use on one layer of the model; the smallest product of times wins, and
    a kernel that refuses a point is passed over.

    Raises
    ------
    RuntimeError
        Where no kernel works.
    """
    one = replace(model, n_layers=1, d_ff=16, vocab=16)  # its attention is all that matters
    kept = max(point.kept for points in typical.values() for point in points)
    found = Kernels()
    for use, points in typical.items():
        times: dict[Kernels, float] = {}
        for name in _CANDIDATES[use]:
            if name == _LAST_RESORT and times:
                continue
            asked, random = replace(found, **{use: name}), torch.Generator(device.type).manual_seed(0)
            bench = Bench(Decoder(one, 1, kept, fp8=False, random=random, kernels=asked), device)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # PyTorch says at length why a kernel refuses
                    times[asked] = prod(sample(device, bench.work(point).run).median for point in points)
            except (RuntimeError, MemoryError):
                device.settle()
        if not times:
            raise RuntimeError(f"none of PyTorch's attention kernels works for {use}: {', '.join(_CANDIDATES[use])}")
        found = min(times, key=lambda kernels: times[kernels])
    return found
