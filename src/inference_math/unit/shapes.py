"""Models as the plain numbers of `types`."""

from __future__ import annotations

from inference_math.catalogue.decoder import Model
from inference_math.catalogue.engines import engine
from inference_math.catalogue.layers import Ffn
from inference_math.catalogue.precisions import PRECISIONS, STATE_BYTES
from inference_math.unit.types import CacheShape, Operators, Shape

__all__ = ["MEMORY", "activation_bytes", "kind_of", "matrix_bytes", "operators_of", "shape_of"]

MEMORY = engine("vllm").memory.takes  # of the bytes that the driver reports
_ACTIVATION = 2  # bytes of an activation, whatever the precision of the weights


def matrix_bytes(model: Model, tp: int) -> float:
    """Return the bytes that the matrix products of one layer take in and put out for one token, on one GPU, on average.

    Layers that differ count by their number.
    """
    hidden, total = model.d_model, 0.0
    for count, mixes, query, cache, works, ffn, wide in _widths(model, tp):
        total += count * mixes * ((hidden + query + cache) + (query + hidden))
        total += count * works * ((hidden + wide) + (ffn + hidden))
    return _ACTIVATION * total / model.n_layers


def activation_bytes(model: Model, tp: int) -> float:
    """Return the bytes that norms, rotation and activation of one layer read and write for one token, on one GPU.

    A norm before each block reads the residual and a branch and writes both again; the rotation reads and writes
    queries and keys; the activation reads what the first FFN matrices put out and writes what the last one takes in.
    On average.
    """
    hidden, total = model.d_model, 0.0
    for count, mixes, query, cache, works, ffn, wide in _widths(model, tp):
        total += count * mixes * (4 * hidden + 2 * (query + cache / 2)) + count * works * (4 * hidden + wide + ffn)
    return _ACTIVATION * total / model.n_layers


def _widths(model: Model, tp: int) -> list[tuple[int, bool, float, float, bool, float, float]]:
    """Return what each kind of layer has on one GPU.

    (layers, whether they mix tokens, widths of queries, of keys and values together; whether they have an FFN, its
    width, that of what its first matrices put out)
    """
    widths = []
    for layer in model.layers:
        mixing, ffn = layer.attention, layer.ffn
        heads = max((cache.heads for cache in mixing.caches), default=model.n_kv_heads)
        kv_width = max(mixing.kv_width / tp, mixing.kv_width / max(heads, 1))
        width, wide = ffn.width / tp, (ffn.matrices - 1) * ffn.width / tp
        widths.append((layer.count, mixing.params > 0, mixing.width / tp, kv_width, ffn != Ffn(), width, wide))
    return widths


def shape_of(model: Model, tp: int) -> Shape:
    """Return what a step on `tp` GPUs needs to know of a model, as plain numbers for `unit.steps`."""
    ffn = model.expert_ffn
    routed = sum(layer.count for layer in model.layers if layer.ffn.experts)
    return Shape(
        n_layers=model.n_layers, d_model=model.d_model, params=dict(model.group_params),
        routed_params=model.routed_params, padded=model.expert_padding,
        head_params=model.lm_head_params, vocab_params=model.vocab_params,
        experts=ffn.experts if ffn else 0,
        idle=1 - ffn.active / ffn.experts if ffn else 0.0, chosen=routed * ffn.active if ffn else 0,
        fine={name: model.precisions(name) for name in PRECISIONS},
        caches=[
            CacheShape(
                values=layers * cache.kept, own_bytes=layers * cache.own_bytes,
                copies=max(1.0, tp / cache.heads), pair_flops=4 * layers * cache.width,
                prompt_flops=layers * (cache.prompt or 4 * cache.width),
                least_flops=layers * cache.least, decode_flops=layers * cache.decode_flops,
                reach=cache.reach, evicts=cache.evicts, aligned=cache.aligned,
                choices=0 if cache.kept else layers,
            )
            for cache, layers in model.caches.items()
        ],
        state_bytes=STATE_BYTES * model.state_values,
        layer_bytes=matrix_bytes(model, tp) + activation_bytes(model, tp),
        sum_bytes=_blocks(model) * model.d_model * _ACTIVATION,
    )  # fmt: skip


def _blocks(model: Model) -> int:
    """Return what ends in a sum over the GPUs that share matrices: each attention, each FFN."""
    return sum(layer.count * ((layer.attention.params > 0) + (layer.ffn != Ffn())) for layer in model.layers)


def kind_of(model: Model) -> str:
    """Return what a model is to a calibration: "dense", "mixture of experts", "MLA", or "hybrid" if it has states."""
    if model.state_values:
        return "hybrid"
    if model.attention != "gqa":
        return model.attention.upper()
    return "mixture of experts" if model.is_mixture else "dense"


def operators_of(model: Model) -> Operators:
    """Return which kernels a layer of a model launches, on average, for `unit.mixing.coefficient_key_of`.

    Products: two of attention, five where it is latent (down, up, two that stand for the heads' keys and values, out),
    none where an index chooses its tokens, since that is launched as a whole; two of an FFN that every token passes;
    the router.
    """
    latent = model.attention == "mla"
    sparse = latent and any(cache.reach for cache in model.caches)
    projections = 0 if sparse else 5 if latent else 2
    products, mixed = 0, 0
    for layer in model.layers:
        ffn = layer.ffn
        router = model.d_model * ffn.experts
        works = (2 if ffn.shared > router else 0) + (1 if router else 0)
        products += layer.count * (projections + works)
        mixed += layer.count if ffn.experts else 0
    return Operators(
        name=model.name,
        kind=kind_of(model),
        heads="sparse" if sparse else "MLA" if latent else "head 64" if model.head_size == 64 else "head 128",
        products=products / model.n_layers,
        mixed=mixed / model.n_layers,
        # Of dense models vLLM's kernels for blocks were timed with their host: those for tensors stand for both.
        blocks="fp8 blocks" if model.blocks and kind_of(model) != "dense" else "fp8",
        fine={name: model.precisions(name) for name in PRECISIONS},
    )
