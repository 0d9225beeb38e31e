"""How much of a model fits a device: layers, KV cache, and the tokens of a step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from inference_math.catalogue import Model, bytes_per_value
from inference_math.evidence.checks import as_whole

__all__ = ["KEPT_LEAST", "Room", "room", "toy"]

_FRESH = 8192  # tokens through the layers at once
KEPT_LEAST, _KEPT_MOST = 2**17, 2**18  # tokens of KV cache: fewer layers before fewer than the first
_SPARE = 3e9  # bytes for libraries' workspaces and modules, graphs, buffers that defeat caches
_FEWEST_LAYERS = 4
_TOY_SHRINK = 64


@dataclass(frozen=True)
class Room:
    """What fits: `layers` of the model, `kept` tokens of KV cache, `fresh` tokens through the layers at once.

    `shrink` divides all lengths: 1 but for a toy.
    """

    layers: int
    kept: int
    fresh: int
    shrink: int = 1


def room(model: Model, free: float, weights: str, layers: int | None = None, kept: int | None = None) -> Room:
    """Return what fits `free` bytes of device memory, in the model's own shapes.

    All layers if there is room for `KEPT_LEAST` tokens of KV cache beside them, else as many as leave that room.
    `layers` and `kept` ask for numbers of one's own. Embedding, LM head and KV cache are in BF16.

    Raises
    ------
    ValueError
        Where four layers, or as many as are asked for, do not fit; and for MoE and MLA models.
    """
    shapes = model.gemm_shapes()
    half = bytes_per_value("bf16")
    wide = sum(shapes[name][0] for name in shapes if name != "lm_head")
    activations = half * _FRESH * (8 * model.d_model + 2 * wide)
    left = free - _SPARE - activations - half * 2 * model.lm_head_params
    layer = model.n_params_total / model.n_layers * bytes_per_value(weights)
    token = model.kv_token("bf16") / model.n_layers
    if layers is None:
        fit = int(left // (layer + token * KEPT_LEAST))
        chosen, least, cache = min(model.n_layers, fit), min(_FEWEST_LAYERS, model.n_layers), KEPT_LEAST
    else:
        chosen = least = as_whole("layers", layers)
        cache = kept or _FRESH
        if chosen > model.n_layers:
            raise ValueError(f"layers must be at most the {model.n_layers} of {model.name}, not {layers}")
    if chosen < least or left < chosen * (layer + token * cache):
        needed = free - left + least * (layer + token * cache)
        raise ValueError(
            f"the device must have {needed / 1e9:.1f} GB free for {least} layers of {model.name} in {weights} with "
            f"{cache:,} tokens of KV cache, it has {free / 1e9:.1f} GB"
        )
    return Room(chosen, kept or min(int((left / chosen - layer) // token), _KEPT_MOST), _FRESH)


def toy(model: Model) -> tuple[Model, Room]:
    """Return a model so small that a CPU steps through it at once, and its room: lengths are 64 times shorter."""
    small = replace(
        model,
        name=f"{model.name} as a toy",
        n_layers=2,
        d_model=64,
        n_heads=4,
        n_kv_heads=2,
        head_size=16,
        d_ff=96,
        vocab=80,
    )
    return small, Room(small.n_layers, KEPT_LEAST // _TOY_SHRINK, _FRESH // _TOY_SHRINK, _TOY_SHRINK)
