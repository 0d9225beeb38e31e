"""Measured operators as numbers to start from: what an engine's kernels reach on a GPU, from table `operators`.

Which curve stands for what, by rules that were written before a served point was predicted with them:

* Curves count whose table is neither host-bound nor unlike its form. Where an engine has none for a precision, its
  next precision does, then another engine's.
* Launches, the time that a kernel takes however little it does, are those of BF16 products, since engines fuse the
  quantisation that tables of other precisions time. Of products and attention they are those of the fastest engine, in
  whose graphs they hide: all call the same library, whatever the tables' loop adds. Of experts they are the engine's
  own. Latent attention whose index chooses tokens is timed with its projections, and launches them all; its prompts
  have a curve of their own, since they attend as decodes do, and so have its decodes: other kernels read what is chosen
  than what is whole. Where these were not timed, those of latent attention stand in. What its index takes in prompts
  hangs on the GPU more than on the engine: SGLang's tables tell it for all.
* Experts are those of tables whose tokens choose all alike, another engine's before its own by a power law: how
  unevenly a model chooses is a coefficient of its own, and would count twice.
* FP8 with one scale for a tensor that reads experts slower than BF16 does is passed over, for blocks: no engine keeps
  such a kernel (vLLM's on Hopper, which was timed without a configuration for it).
* A GPU without tables has those of another one of its generation, and any other those of the H100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from inference_math.catalogue import GPUS, Gpu
from inference_math.evidence import load
from inference_math.unit.rates import rates_of
from inference_math.unit.types import AttentionKernel, Kernel, Kernels

__all__ = ["ENGINES", "PROJECTIONS", "TABLED", "kernels", "like"]

ENGINES = ("vllm", "sglang", "trtllm")
TABLED = ("a100-80gb", "h100-sxm", "h200-sxm", "b200", "b300", "gb200", "gb300", "l40s", "rtx-pro-6000")
_ANY = "h100-sxm"
_NO_LAUNCH = 1e-6  # seconds: the least that a curve may have
PROJECTIONS = 5  # products of latent attention: down, up, two that stand for the heads' keys and values, out
# Keys of products and experts, and the tables' precisions that may stand for each, the nearest first.
_PRODUCTS = {"bf16": ("bf16",), "fp8": ("fp8", "fp8_block"), "fp8 blocks": ("fp8_block", "fp8"), "nvfp4": ("nvfp4",)}
_EXPERTS = _PRODUCTS | {"mxfp4": ("mxfp4 x mxfp8", "mxfp4"), "int4": ("int4",)}
_HEADS = {"head 64": "attention", "head 128": "attention", "MLA": "MLA", "sparse": "MLA"}
_RATES = {"fp8": "fp8", "fp8_block": "fp8", "nvfp4": "fp4", "mxfp4 x mxfp8": "fp8"}  # all others run at BF16's
_ASKED = {"fp8": "fp8", "fp8 blocks": "fp8", "nvfp4": "fp4", "mxfp4": "fp4"}  # that the law asks for

AnyKernel = TypeVar("AnyKernel", Kernel, AttentionKernel)


class Curve(NamedTuple):
    """A row of `operators` that counts: seconds of a launch, shares of the datasheet's rates."""

    precision: str
    launch: float
    memory: float
    compute: float
    looked: float  # through an index, of the FP8 rate
    choosing: float


@lru_cache(maxsize=1)
def kernels() -> Kernels:
    """Return by engine and GPU what kernels reach, as `unit.mixing.kernel_values` takes it.

    Products by precision, attention by heads and the precision of the cache, experts by precision, all-reduces by GPUs.

    Examples
    --------
    >>> from inference_math.unit.kernels import kernels
    >>> f"{kernels().products['vllm']['h100-sxm']['bf16'].memory:.2f}"
    '0.93'
    """

    def each(measured: Callable[[str, str], dict[str, AnyKernel]]) -> dict[str, dict[str, dict[str, AnyKernel]]]:
        return {engine: {gpu: measured(engine, gpu) for gpu in TABLED} for engine in ENGINES}

    return Kernels(
        like={name: like(gpu) for name, gpu in GPUS.items()},
        products=each(_products),
        attention=each(_attention),
        experts=each(_experts),
        links=each(_links),
    )


@lru_cache(maxsize=1)
def _curves() -> dict[tuple[str, str, str, str, str], Curve]:
    """Return the curves that count by kind, GPU, engine, precision and variant."""
    frame = load("operators").frame.query("counts == 'yes'").fillna({"compute": 1.0, "index": 1.0, "choosing_ns": 0.0})
    return {
        (row["kind"], row["gpu"], row["engine"], row["precision"], row["variant"]): Curve(
            row["precision"],
            1e-6 * row["a0_us"],
            row["memory"],
            row["compute"],
            row["index"],
            1e-9 * row["choosing_ns"],
        )
        for row in frame.to_dict("records")
    }


def like(gpu: Gpu) -> str:
    """Return the name of the GPU whose tables stand for a GPU's, of the catalogue or of one's own."""
    if gpu.name in TABLED:
        return gpu.name
    return next((name for name in TABLED if GPUS[name].generation == gpu.generation), _ANY)


def _first(kind: str, gpu: str, engine: str, precisions: Iterable[str], variants: Iterable[str]) -> Curve | None:
    """Return the nearest curve there is: the engine's own before another's, the first precision before the next."""
    for own in (engine, *(other for other in ENGINES if other != engine)):
        if (curve := _own(kind, gpu, own, precisions, variants)) is not None:
            return curve
    return None


def _own(kind: str, gpu: str, engine: str, precisions: Iterable[str], variants: Iterable[str]) -> Curve | None:
    """Return an engine's own nearest curve: the first precision before the next."""
    for precision in precisions:
        for variant in variants:
            if (curve := _curves().get((kind, gpu, engine, precision, variant))) is not None:
                return curve
    return None


def _all(kind: str, gpu: str, variant: str) -> list[Curve]:
    """Return the curves of all engines and precisions."""
    return [curve for key, curve in _curves().items() if key[:2] == (kind, gpu) and key[4] == variant]


def _products(engine: str, gpu: str) -> dict[str, Kernel]:
    curves = {name: _first("matrix product", gpu, engine, all_of, ("all",)) for name, all_of in _PRODUCTS.items()}
    return {
        name: Kernel(memory=curve.memory, compute=curve.compute, launch=_launch(gpu), rate=_ASKED.get(name, "bf16"))
        for name, curve in curves.items()
        if curve is not None
    }


def _launch(gpu: str) -> float:
    """Return the launch of a product in BF16, of the fastest engine whose points tell one."""
    curves = (_own("matrix product", gpu, engine, ("bf16",), ("all",)) for engine in ENGINES)
    return min(curve.launch for curve in curves if curve is not None and curve.launch > _NO_LAUNCH)


def _attention(engine: str, gpu: str) -> dict[str, AttentionKernel]:
    """Return attention by heads and cache: the share of the bandwidth of decodes, of the compute of both."""
    shares: dict[str, AttentionKernel] = {}
    for heads, kind in _HEADS.items():
        variants = ("all",) if kind == "MLA" else (heads, "head 128")
        for kv in ("bf16", "fp8"):
            precisions = (kv, "bf16") if kind == "MLA" else ("bf16",)
            timed = heads == "sparse" and _all("sparse attention, decode", gpu, "all")
            decode, on = _decode("sparse attention" if timed else kind, gpu, engine, kv, variants)
            if heads == "sparse":
                prefill = _sparse(engine, on, kv)
            else:
                prefill = _first(f"{kind}, prefill", on, engine, precisions, variants)
            shown = variants[0]
            same = _all(f"{kind}, decode", on, shown) or [decode]
            if prefill is not None:
                least = min(curve.launch for curve in same)
                shares[f"{heads}, {kv}"] = AttentionKernel(
                    memory=decode.memory,
                    compute=prefill.compute,
                    # Decodes of grouped queries read, whatever was measured: their curves tell no share of the compute.
                    decode=decode.compute if kind == "MLA" else prefill.compute,
                    launch=_block(engine, on, least) if heads == "sparse" else least,
                    rate="bf16",
                    slower=round(prefill.compute / prefill.looked, 4) if heads == "sparse" else 1.0,
                    choosing=prefill.choosing,
                )
    return shares


def _sparse(engine: str, gpu: str, kv: str) -> Curve | None:
    """Return what prompts reach whose index chooses tokens; where a GPU has no such curve, on the H100."""
    curves = (_first("sparse attention, prefill", on, engine, (kv, "bf16"), ("all",)) for on in (gpu, _ANY))
    return next((curve for curve in curves if curve is not None), None)


def _block(engine: str, gpu: str, attention: float) -> float:
    """Return the launches of sparse attention and its projections: as measured together, else those of its parts."""
    if blocks := _all("sparse block, decode", gpu, "all"):
        return min(block.launch for block in blocks)
    return attention + PROJECTIONS * _launch(gpu)


def _decode(kind: str, gpu: str, engine: str, kv: str, variants: tuple[str, ...]) -> tuple[Curve, str]:
    """Return decode attention and the GPU it is from: where a GPU has none that counts, the H100.

    An FP8 cache that another engine reads slower than one in BF16 is passed over: that is its kernel, not the GPU.
    """
    for on in (gpu, _ANY):
        for own in (engine, *(other for other in ENGINES if other != engine)):
            curve = _own(f"{kind}, decode", on, own, (kv, "bf16"), variants)
            plain = _own(f"{kind}, decode", on, own, ("bf16",), variants)
            slow = curve is not None and plain is not None and 2 * curve.memory < plain.memory
            if curve is not None and (own == engine or curve.precision == "bf16" or not slow):
                return curve, on
    raise ValueError(f"operators must have {kind} in decode on {_ANY}")


def _experts(engine: str, gpu: str) -> dict[str, Kernel]:
    """Return experts by precision, shares of the rates that the law of a step takes for them."""
    flops = rates_of(GPUS[gpu]).flops
    shares: dict[str, Kernel] = {}

    def even(precisions: tuple[str, ...]) -> Curve | None:
        curves = (_first("experts", gpu, engine, precisions, (chosen,)) for chosen in ("balanced", "power_law_1.2"))
        return next((curve for curve in curves if curve is not None), None)

    plain = even(("bf16",))
    for name, precisions in _EXPERTS.items():
        curve = even(precisions)
        if name == "fp8" and curve and plain and 2 * curve.memory < plain.memory:  # see _decode
            curve = even(precisions[1:])
        if curve is None:  # a launch is never nothing: who has no such kernel expands the weights to BF16
            curve = plain
        asked = _ASKED.get(name, "bf16")
        if flops[asked] == 0:
            asked = "bf16"
        if curve is not None:
            compute = round(curve.compute * flops[_RATES.get(curve.precision, "bf16")] / flops[asked], 4)
            shares[name] = Kernel(memory=curve.memory, compute=compute, launch=curve.launch, rate=asked)
    return shares


def _links(engine: str, gpu: str) -> dict[str, Kernel]:
    """Return all-reduces by GPUs, two in each layer; where a number was not measured, of the next smaller one."""
    shares: dict[str, Kernel] = {}
    for size in ("2", "4", "8"):
        smaller = [f"{other} GPUs" for other in ("8", "4", "2") if int(other) <= int(size)]
        if (curve := _first("all-reduce", gpu, engine, ("bf16",), smaller)) is not None:
            shares[size] = Kernel(memory=curve.memory, compute=1.0, launch=2 * curve.launch, rate="")
    return shares
