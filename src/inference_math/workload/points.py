"""What is timed: the kinds of work, their sizes, and which of them fit."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

from inference_math.evidence.checks import as_one_of, as_whole

__all__ = ["KINDS", "REUSED", "SIZES", "Point", "parts_of_load", "parts_of_mixed", "points", "shuffled"]

KINDS = {
    "decode": "A step of decodes alone",
    "prefill": "Prompts alone, none or part of them in the KV cache already",
    "mixed": "A step of decodes and a chunk of a prompt: products of both together, attention one after the other",
    "mixed-attention": "The same, the attention of the decodes beside that of the chunk, on a second stream",
    "mixed-steps": "A step of the decodes beside a step of the chunk, each on a stream of its own",
    "matrices": "A step without attention and KV cache: weights, matrix products, norms, rotation",
    "attention": "The attention of a step alone, in all layers, with writing the KV cache",
    "load": "KV cache of a prefix from pinned host memory, nothing computed",
    "load-first": "A prompt whose prefix is loaded from host memory before the rest is computed",
    "load-layerwise": "The same, each layer loaded while the one before it computes",
    "copy": "A copy within device memory",
    "product-bf16": "A large square matrix product in BF16",
    "product-fp8": "A large square matrix product in FP8",
}
SIZES = ("decodes", "context", "prompts", "tokens", "cached")
REUSED = (0.5, 0.75, 0.85, 0.9, 0.93, 0.96, 0.99)  # shares of a prompt that are loaded
_CONTEXTS, _DECODES = (512, 2048, 8192, 32768), (1, 8, 16, 32, 64, 128, 256)
_PROMPTS = ((128, 1), (256, 1), (512, 1), (1024, 1), (2048, 1), (4096, 1), (8192, 1), (512, 4), (512, 16), (2048, 4))
_BESIDE = ((16, 8192), (32, 2048), (128, 1024))  # decodes and their context, beside each chunk
# Tokens of a mixed step, its decodes counted in as engines do (kernels work in blocks of tokens, and one more than a
# block costs a block), and the tokens of the chunk's prompt before it.
_BUDGETS = ((256, 0), (512, 0), (512, 2048), (1024, 0), (1024, 8192), (2048, 0))


@dataclass(frozen=True, order=True)
class Point:
    """One thing to time: its kind, one of `KINDS`, and its size in requests and tokens.

    Attributes
    ----------
    what
        Kind of work.
    decodes, context
        Requests that decode one token each, and the tokens that each of them attends to, its own included.
    prompts, tokens, cached
        Prompts, the tokens computed of each, and those before them: in the KV cache already, or loaded.

    Raises
    ------
    ValueError
        For an unknown kind, negative or broken numbers, decodes without context, prompts without tokens.
    """

    what: str
    decodes: int = 0
    context: int = 0
    prompts: int = 0
    tokens: int = 0
    cached: int = 0

    def __post_init__(self) -> None:
        as_one_of("what", self.what, KINDS)
        for name in SIZES:
            as_whole(name, getattr(self, name), 0)
        if (self.decodes > 0) != (self.context > 0) and self.what != "matrices":
            raise ValueError(f"context must be at least 1 with decodes and 0 without, not {self.context}")
        if (self.prompts > 0) != (self.tokens > 0) and self.what != "load":
            raise ValueError(f"tokens must be at least 1 with prompts and 0 without, not {self.tokens}")

    @property
    def fresh(self) -> int:
        """Tokens that go through the layers."""
        return self.decodes + self.prompts * self.tokens

    @property
    def kept(self) -> int:
        """Tokens whose KV cache it needs on the device."""
        return self.decodes * self.context + self.prompts * (self.cached + self.tokens)


def points(kept: int, fresh: int, *, fp8: bool, shrink: int = 1) -> tuple[Point, ...]:
    """Return what to time where `kept` tokens of KV cache fit and `fresh` go through the layers at once.

    Decodes by batch and context, prefills by length and batch, mixed steps with each of their parts alone, prompts
    with a loaded prefix and each of their parts alone, and the device's own rates. Lengths are divided by `shrink`.
    """
    candidates = {Point("copy"), Point("product-bf16")} | ({Point("product-fp8")} if fp8 else set())
    candidates |= {Point("decode", b, context // shrink) for b in _DECODES for context in _CONTEXTS}
    candidates |= {Point("prefill", prompts=p, tokens=n // shrink) for n, p in _PROMPTS}
    candidates |= {Point("attention", prompts=1, tokens=n // shrink) for n, p in _PROMPTS if p == 1}
    candidates |= {Point("matrices", decodes=b) for b in _DECODES}
    for b, context in _BESIDE:
        for budget, cached in _BUDGETS:
            chunk = max((budget - b) // shrink, 1)
            candidates |= _together(Point("mixed", b, context // shrink, 1, chunk, cached // shrink))
    candidates |= set(_reused(min(kept, fresh), shrink))
    return tuple(sorted(point for point in candidates if point.kept <= kept and point.fresh <= fresh))


def parts_of_mixed(step: Point) -> dict[str, Point]:
    """Return what of a mixed step is timed alone: its decodes, its chunk, the attention and the products of each."""
    decodes, chunk = replace(step, what="decode", prompts=0, tokens=0, cached=0), replace(step, decodes=0, context=0)
    return {
        "decodes": decodes,
        "chunk": replace(chunk, what="prefill"),
        "reads": replace(decodes, what="attention"),
        "attention": replace(chunk, what="attention"),
        "products_of_decodes": Point("matrices", step.decodes),
        "products": Point("matrices", step.decodes, 0, 1, step.tokens),
    }


def parts_of_load(first: Point) -> dict[str, Point]:
    """Return what of a prompt with a loaded prefix is timed alone: the load, and the rest."""
    return {"load": Point("load", prompts=1, cached=first.cached), "rest": replace(first, what="prefill")}


def _together(point: Point) -> set[Point]:
    """Return a point with its other schedules and its parts: those of a mixed step, or of a load."""
    schedules, parts = {
        "mixed": (("mixed", "mixed-attention", "mixed-steps"), parts_of_mixed),
        "load-first": (("load-first", "load-layerwise"), parts_of_load),
    }.get(point.what, ((point.what,), lambda _: {}))
    return {replace(point, what=what) for what in schedules} | set(parts(point).values())


def _reused(most: int, shrink: int) -> Iterable[Point]:
    """Yield prompts of one length, the longest of 8,192 and its halves that fits, with each share loaded."""
    length = next((n // shrink for n in (8192, 4096, 2048, 1024, 512) if n // shrink <= most), None)
    if length is None:
        return
    yield Point("prefill", prompts=1, tokens=length)
    for share in REUSED:
        cached = round(share * length)
        yield from _together(Point("load-first", prompts=1, tokens=length - cached, cached=cached))


def shuffled(chosen: Iterable[Point], round_: int, seed: int) -> list[Point]:
    """Return the points of one round in random order, so that a GPU that warms up does not bend a curve.

    What belongs to one mixed step or load alone stays together, so that its schedules are measured within seconds;
    parts that several share are measured once.
    """
    random_ = random.Random(1000 * seed + round_)
    left, blocks = dict.fromkeys(sorted(chosen)), []
    for point in sorted(left, key=lambda p: (p.what not in ("mixed", "load-first"), p)):
        block = [p for p in sorted(_together(point)) if p in left]
        for p in block:
            del left[p]
        blocks.append(block)
    random_.shuffle(blocks)
    for block in blocks:
        random_.shuffle(block)
    return [point for block in blocks for point in block]
