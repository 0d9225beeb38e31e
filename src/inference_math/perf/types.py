"""What the arithmetic passes on: plain dictionaries with known keys, in Python and in JavaScript.

Seconds, bytes, tokens, requests; rates are those of all GPUs of a unit together. The printer of the book drops
annotations, so these types cost the page nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

__all__ = [
    "Asked",
    "Costs",
    "Floor",
    "Found",
    "Rates",
    "Row",
    "Shape",
    "Solved",
    "Step",
    "Terms",
    "UnitNumbers",
    "Work",
]

# Seconds of a step with so many decodes and prompts, a chunk counting as its share of a prompt.
Step = Callable[[float, float], float]


class Shape(TypedDict):
    """A model on some GPUs; see `unit.shape_of`. Parameters and values are counts."""

    n_params: float
    n_layers: float
    d_att: float
    n_params_total: float
    head_params: float
    vocab_params: float
    routed_params: float
    idle: float  # share of the routed experts that a token does not choose
    kv_values: float  # cached values of a token, all layers
    kv_copies: float
    decode_flops: float  # of one decoding token for one cached token, in one layer
    layer_bytes: float  # that norms, rotation, activation and products move for a token in a layer, on one GPU
    sum_bytes: float  # that all-reduces add up for a token


class Rates(TypedDict):
    """A GPU's datasheet; see `unit.rates_of`."""

    hbm_bytes: float
    hbm_bw: float
    link_bw: float
    bf16_flops: float
    fp8_flops: float | None


class UnitNumbers(TypedDict):
    """A unit: model, GPUs, precisions."""

    tp: float
    precision: str
    n_layers: float
    d_att: float
    decode_flops: float
    n_params: float
    head_params: float
    step_bytes: float
    head_bytes: float
    routed_bytes: float
    idle: float
    kv_token: float
    kv_copies: float
    layer_bytes: float
    sum_bytes: float
    kv_capacity: float
    flops: float
    half_flops: float
    best_flops: float
    hbm_bw: float
    link_bw: float


class Terms(TypedDict):
    """Seconds of one of each: a step's weights, a token, a cached token, a pair, a decode."""

    t_w: float
    routed: float
    idle: float
    matrices: float
    head: float
    read: float
    load: float
    pair: float
    move: float
    links: float
    fixed: float
    request: float


class Floor(TypedDict):
    """The same of what no engine on this hardware can do without."""

    weights: float
    head_read: float
    read: float
    matrices: float
    head: float
    pair: float
    decode_pair: float


class Work(TypedDict):
    """A workload's means; `cv` of the output lengths."""

    n_in: float
    n_out: float
    alpha: float
    cv: float


class Asked(TypedDict):
    """A question: who serves what under which promise. `quantile` 0: means; `read_bw` 0: HBM; `price` 0: none."""

    unit: UnitNumbers
    work: Work
    ttft: float
    tpot: float
    quantile: float
    units: int
    read_bw: float
    price: float
    engine: str


class Costs(TypedDict):
    """The talks' numbers of a workload, and the step that they come from; see `steps.costs`."""

    t_w: float
    ttft_1: float
    delta_h: float
    own: float
    mixed: Step


class Row(TypedDict, total=False):
    """What an architecture does at its best; see `search` and `answers.compared`. Rate 0, NaN where it cannot."""

    rate: float
    batch: float
    chunk: float
    prefill_units: float
    ttft: float
    step: float
    tpot: float
    computed: float


# Coefficients by name, with the anchor's seconds; numbers by name.
Found = dict[str, float]
Solved = dict[str, Any]
