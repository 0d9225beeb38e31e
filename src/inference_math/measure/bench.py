"""From a point to something that can be timed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from inference_math.catalogue import Model
from inference_math.measure.decoder import Decoder, Kernels, Matrix
from inference_math.measure.points import Point
from inference_math.measure.timing import Clock, sample

__all__ = ["Bench", "Device", "Work", "fastest"]

_CANDIDATES = ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH")
_LAST_RESORT = "MATH"  # writes all scores to memory
_SIDE, _COPY = {"cuda": 8192, "cpu": 64}, {"cuda": 2**30, "cpu": 2**16}


class Device(Clock, Protocol):
    """A clock that also captures graphs."""

    type: str

    def graph(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """Return a replay of `run`."""
        ...


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
        ids = decoder.tokens(point.fresh)
        attention, two_streams = what != "matrices", what == "mixed-attention"
        return Work(self._device.graph(lambda: decoder.step(ids, point, attention=attention, two_streams=two_streams)))

    def _two_steps(self, point: Point) -> Callable[[], Any]:
        """A step of the decodes on a second stream beside one of the chunk; they share weights, and nothing else."""
        decoder = self._decoder
        decodes, chunk = replace(point, prompts=0, tokens=0, cached=0), replace(point, decodes=0, context=0)
        first, second = decoder.tokens(decodes.fresh), decoder.tokens(chunk.fresh)

        def run() -> None:
            side = decoder.side
            if side is not None:
                side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                decoder.step(first, decodes)
            decoder.step(second, chunk, start=decodes.kept)
            if side is not None:
                torch.cuda.current_stream().wait_stream(side)

        return run

    def _attention(self, point: Point) -> Callable[[], Any]:
        decoder, model = self._decoder, self._decoder.model
        qkv = decoder.normal(point.fresh, (model.n_heads + 2 * model.n_kv_heads) * model.head_size)
        turn = decoder.rotation(point)

        def run() -> None:
            for layer in range(decoder.layers):
                decoder.attend(layer, qkv, point, turn)

        return run

    def _load(self, point: Point) -> Work:
        """Copies from pinned memory, before the step or, on a stream of their own, each before its layer.

        Without a graph: a load takes longer than the host needs to launch a step, so the device never waits for it.
        """
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
            return Work(every, bytes=moved)
        ids = decoder.tokens(point.fresh)

        def first() -> None:
            every()
            decoder.step(ids, point)

        def layerwise() -> None:
            decoder.step(ids, point, before_layer=self._arrivals(copy))

        return Work(first if point.what == "load-first" else layerwise, bytes=moved)

    def _arrivals(self, copy: Callable[[int], None]) -> Callable[[int], Any]:
        """Start copying all layers on a second stream; return what waits for a layer's copy."""
        if self._device.type != "cuda":
            return copy
        main, aside = torch.cuda.current_stream(), torch.cuda.Stream()
        aside.wait_stream(main)
        there = []
        with torch.cuda.stream(aside):
            for layer in range(self._decoder.layers):
                copy(layer)
                there.append(aside.record_event())
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
        side = _SIDE[self._device.type]
        random = torch.Generator(self._device.type).manual_seed(0)
        matrix = Matrix((side, side), random, self._decoder.dtype, fp8)
        x = self._decoder.normal(side, side)
        return Work(self._device.graph(lambda: matrix(x)), flop=2.0 * side**3)


def _inferring(run: Callable[[], Any]) -> Callable[[], None]:
    def inferring() -> None:
        with torch.inference_mode():
            run()

    return inferring


def fastest(model: Model, device: Device, typical: Mapping[str, Point]) -> Kernels:
    """Return the attention kernel of PyTorch that is fastest at each use: "decode", "prompt", "chunk".

    Each is timed at its `typical` point on one layer of the model; a kernel that refuses it is passed over.
    """
    one = replace(model, n_layers=1, d_ff=16, vocab=16)  # its attention is all that matters
    kept = max(point.kept for point in typical.values())
    found = Kernels()
    for use, point in typical.items():
        times: dict[Kernels, float] = {}
        for name in _CANDIDATES:
            if name == _LAST_RESORT and times:
                continue
            asked = replace(found, **{use: name})
            decoder = Decoder(one, 1, kept, fp8=False, device=device.type, kernels=asked)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # PyTorch says at length why a kernel refuses
                    times[asked] = sample(device, Bench(decoder, device).work(point).run).median
            except (RuntimeError, MemoryError):
                continue
        found = min(times, key=lambda kernels: times[kernels])
    return found
