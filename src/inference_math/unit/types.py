"""What a unit's arithmetic passes on: records; in JavaScript plain objects.

Seconds, bytes, tokens, requests; rates are those of all GPUs of a unit together. The printer of the book makes braces
of what is constructed, so these types cost the page nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import TYPE_CHECKING, Any, TypeAlias

from inference_math.evidence.records import Record

if TYPE_CHECKING:
    from inference_math.catalogue.engines import EngineRecord
    from inference_math.evidence.checks import Numbers
    from inference_math.workload.requests import Workload

# The smaller or the larger of two numbers, or, as np.minimum does, of two arrays.
Pick: TypeAlias = Callable[[Any, Any], Any]
# The mean of the fullest group's prompts where chance places them: of so many prompts, ranks and stages.
ByChance: TypeAlias = Callable[[Any, float, float], Any]
# What is said: a template of `evidence.sentences` by its key, or a text of its own, and what stands in its holes.
Message: TypeAlias = dict[str, Any]
# Seconds of a step with so many decodes and prompts, a chunk counting as its share of a prompt.
Step: TypeAlias = Callable[[float, float], float]


class CacheShape(Record):
    """What the layers of one kind keep of a token and do with it, all layers together; see `catalogue.layers.Cache`."""

    values: float
    own_bytes: float  # of what is not kept in the precision of the KV cache
    copies: float  # that the GPUs of a group hold
    pair_flops: float  # of a prompt's token for one that it sees, at least
    prompt_flops: float  # the same as kernels compute it, in those of BF16
    least_flops: float  # of these, on each GPU at least
    decode_flops: float
    reach: float
    evicts: bool
    aligned: bool
    choices: float  # layers whose index, with these keys, chooses what a token sees; 0: keys of no index
    bytes: float = 0.0  # of a token, once: in a unit, whose KV cache has a precision
    slower: float = 0.0  # what a prompt's FLOP takes over one of attention: in a unit, which has kernels
    choosing: float = 0.0  # seconds of a prompt's token that choices take, however many it looks at


class Shape(Record):
    """A model on some GPUs; see `unit.shape_of`. Parameters and values are counts; groups of matrices as in `Layer`."""

    n_layers: float
    d_model: float
    params: dict[str, float]  # that a token uses: attention, ffn, experts
    routed_params: float  # of all routed experts
    padded: float  # by how much experts in MXFP4 are longer in memory
    head_params: float
    vocab_params: float
    experts: float  # routed, of a layer
    idle: float  # share of the routed experts that a token does not choose
    chosen: float  # routed experts that a token chooses, all layers together
    fine: dict[str, dict[str, str]]  # precision of each group where weights are said to be in one
    caches: list[CacheShape]
    state_bytes: float
    layer_bytes: float  # that norms, rotation, activation and products move for a token in a layer, on one GPU
    sum_bytes: float  # that all-reduces add up for a token


class Rates(Record):
    """A GPU's datasheet; see `unit.rates_of`. Rates that it does not have are 0."""

    driver_bytes: float
    workspace: float  # bytes that an engine needs itself
    hbm_bw: float
    link_bw: float
    pcie_bw: float
    names: dict[str, str]  # of the rate at which products with weights in a precision run
    flops: dict[str, float]  # FLOP/s by these names


class Kernel(Record):
    """What a kernel reaches: shares of the datasheet's bandwidth and compute, seconds that any call takes."""

    memory: float
    compute: float
    launch: float
    rate: str  # whose share `compute` is


class Index(Record):
    """What an index that chooses tokens takes in prompts; 1 and 0 where none was measured.

    Its FLOP over one of attention, both at the datasheet's rates, and seconds of a token's choice in a layer.
    """

    slower: float
    choosing: float


class AttentionKernel(Index):
    """The same of attention: memory of decodes, compute of prompts, and what decodes reach of the compute."""

    memory: float
    compute: float
    launch: float
    rate: str
    decode: float


class Kernels(Record):
    """Measured kernels by engine, GPU and what they are for; `like` names the GPU whose kernels a GPU is taken to have.

    See `unit.kernels`.
    """

    like: dict[str, str]
    products: dict[str, dict[str, dict[str, Kernel]]]
    attention: dict[str, dict[str, dict[str, AttentionKernel]]]
    experts: dict[str, dict[str, dict[str, Kernel]]]
    links: dict[str, dict[str, dict[str, Kernel]]]


class Operators(Record):
    """What operators a model's layers have; see `unit.shapes.operators_of`."""

    name: str
    kind: str
    heads: str  # of the attention: "MLA", "sparse" where an index chooses, or the size of its heads
    products: float  # matrix products of a layer, on average
    mixed: float  # share of the layers that have routed experts
    blocks: str  # how FP8 is scaled: "fp8 blocks", or "fp8" where one scale is a tensor's or a row's
    fine: dict[str, dict[str, str]]


class CoefficientKey(Record):
    """Where a unit stands: the level of each factor, the keys of its kernels; see `unit.mixing.coefficient_key_of`."""

    levels: dict[str, str]
    kernels: str  # the engine whose measured kernels it has
    gpu: str
    common: str  # precision of the products that every token passes
    blocks: str  # how FP8 is scaled
    routed: str  # precision of the experts
    attention: str
    links: str
    products: float
    mixed: float


class MixedEffects(Record):
    """What served points say; see `unit.mixing.composed`."""

    intercept: dict[str, CoefficientValues]
    effects: dict[str, dict[str, CoefficientValues]]
    sd_seen: CoefficientValues
    sd_unseen: dict[str, CoefficientValues]
    interactions: list[list[str]]
    spread: CoefficientValues


class Fit(Record):
    """Coefficients from served points, the standard deviations of their logarithms, and where they hold."""

    found: CoefficientValues
    widths: CoefficientValues
    spread: float
    scope: Scope


class Layout(Record):
    """GPUs of a unit: `tp` share each matrix, `dp` groups of them the attention's requests, `pp` the layers.

    Experts are shared by all GPUs of a stage: whole ones where `ep` is above 1, else parts of each.
    """

    tp: int
    ep: int
    dp: int
    pp: int


class Group(Record):
    """Matrices of one precision: FLOPs of a token over the rate of the GPUs that share them, and that rate's name."""

    seconds: float
    least: float  # at the best rate that weights of so many bits allow
    rate: str


class UnitNumbers(Record):
    """A unit: model, GPUs, precisions. Bytes of one copy; `flops` and bandwidths of the GPUs that share matrices."""

    layout: Layout
    gpus: int
    groups: list[Group]  # of matrices that every token uses
    experts: Group
    head_seconds: float
    head_bytes: float
    least_head_bytes: float  # of an LM head in the weights' precision
    least_head_seconds: float
    step_bytes: float  # of what every step reads: matrices that every token uses, and the LM head
    routed_bytes: float
    idle: float
    busiest: float  # group of GPUs with whole experts: its load above the mean, for an expert's that varies by 1
    caches: list[CacheShape]
    state_bytes: float
    memory: float  # share of a GPU's for weights and KV caches
    kv_room: float  # bytes that are left for KV caches, all GPUs together
    workspace: float  # of a GPU, that were taken off for what an engine needs itself
    vocab: float  # tokens that it knows
    n_layers: float
    layer_bytes: float
    sum_bytes: float
    spread_bytes: float  # that a token's experts on other GPUs take in and give back
    half_flops: float
    best_flops: float
    hbm_bw: float
    all_bw: float
    link_bw: float
    pcie_bw: float
    drafts: float  # tokens that a request drafts in a step
    accepted: float  # chance that one is whose predecessors were
    accepted_per_step: float  # tokens that a step gives a request: one, and the drafts that are accepted
    synchronized_arrivals: bool  # whether users send together, as in a closed loop


class CacheTerms(Record):
    """Seconds of one token in a cache: read by a decode, loaded by a prompt, seen by a prompt's token.

    `choosing` are seconds of a prompt's token, whatever it sees.
    """

    read: float
    load: float
    pair: float
    choosing: float
    reach: float
    aligned: bool


class Terms(Record):
    """Seconds of one of each: a step's weights, a token, a cached token, a pair, a decode; and how tokens divide."""

    tokens: float  # that a decode brings into a step
    synchronized_arrivals: bool
    longer: float  # how many layers more decodes pass for what they draft, as a factor
    once: float  # the same of prompts, which a drafter reads once
    drafted: float  # LM heads that are read for drafts
    ranks: float  # groups of GPUs among which requests divide
    stages: float
    t_w: float
    routed: float
    idle: float
    chosen: float  # rate at which a token chooses one expert: -ln of `idle`
    uneven: float  # squared coefficient of variation of experts' loads
    busiest: float  # group of GPUs with whole experts, as of a unit's numbers
    matrices: float
    experts: float
    head: float
    caches: list[CacheTerms]
    state: float
    move: float
    links: float
    fixed: float
    request: float


class Spans(Record):
    """Seconds that a step's lengths come to in its KV caches: of each decode, and of each prompt's load and pairs."""

    fresh: Numbers  # tokens of a prompt that are computed
    read: Numbers
    load: Numbers
    pairs: Numbers


class FloorSpans(Record):
    """The same at least; what decodes multiply, and of both what others have read already."""

    fresh: Numbers
    read: Numbers
    load: Numbers
    again: Numbers
    multiplied: Numbers
    multiplied_again: Numbers
    pairs: Numbers


class FloorTerms(Record):
    """The same of what no engine on this hardware can do without."""

    weights: float
    head_read: float
    caches: list[CacheTerms]  # load: FLOPs of a decode for a token
    state: float
    matrices: float
    head: float


class Pools(Record):
    """Units of a prefill and of a decode pool, each with its own layout; see `problem.of_architecture`.

    `moves` of each: see `Problem`. `units` are those of both pools, each as large as one of the decode pool.
    """

    prefill: UnitNumbers
    decode: UnitNumbers
    units: int
    prefill_moves: CoefficientValues
    decode_moves: CoefficientValues


class Problem(Record):
    """A question: who serves what under which promise. `quantile` 0: means; `read_bw` 0: HBM; others 0: not known."""

    unit: UnitNumbers
    pools: list[Pools]  # those of disaggregated serving, where their layouts are not that of `unit`; else none
    moves: CoefficientValues  # of `unit`: its coefficients over those that are drawn, where they differ
    work: Workload
    ttft: float
    tpot: float
    front: float  # seconds of each TTFT that no step takes
    front_sd: float  # of its logarithm
    handover: float  # seconds that a TTFT of pools has beside
    quantile: float
    units: int
    gain_errors: dict[str, list[float]]  # of architectures, of a store; see `optimiser.gain_error`
    read_bw: float
    pool_bw: float  # bytes/s that a unit sends to, or takes from, the units of another pool
    price: float  # of a GPU and hour
    watts: float  # of a GPU, rated
    engine: EngineRecord
    ahead: bool  # whether an engine of this age plans a step while the one before it runs
    planning: str  # the option by which it is told so; "": it is not told
    page: int  # tokens of which a chunk is a multiple
    context: int  # tokens that the model was made for; 0: not stated
    sessions: float  # whose stored part a unit keeps; 0: not known


class SearchConstants(Record):
    """What of a question settings are searched for: its constants, computed once; see `problem.search_constants`."""

    n_in: float
    steps: float  # of an answer, fewer than its tokens where requests draft: what stands for n_out in the laws
    step: float  # seconds that a decode's step may take: the limit on TPOT for each token that shares it
    ttft: float
    quantile: float
    kv_seqs: int  # requests that the unit's KV cache holds
    room: float  # decodes of a step at most
    together: float  # prompts that a unit computes at once at most
    units: int  # of both pools together, at most
    sent: float  # seconds for which a prompt's KV cache keeps the link of a unit busy
    sharing: float = 1.0  # tokens that share a step's time
    fresh: float = 1.0  # share of a prompt's tokens that is computed
    groups: float = 1.0  # of attention, each with chunks of its own
    prefill_gpus: float = 1.0  # of a unit that only prefills, over those of a unit that decodes
    share: float = 1.0  # GPUs of a unit that rates are told of, over those of a unit of this architecture
    handover: float = 0.0  # seconds that a TTFT of pools has beside its front and its steps
    mixes: bool = True  # whether chunks are computed beside decodes


class StepCosts(Record):
    """The talks' numbers of a workload, and the step that they come from; see `steps.costs` and `answers.under`."""

    t_w: float
    ttft_1: float
    cache_read: float
    own: float
    step_seconds: Step
    step_with_chunk_each: Step  # the same where each group of attention has so many prompts, or such a chunk
    prefill: Step  # of a unit that only prefills, whose layout may be its own
    load: float = 0.0
    front: float = 0.0


class OperatingPoint(Record):
    """What an architecture does with its settings; see `load.at_full_load`. Rate 0, NaN where it cannot."""

    rate: float = 0.0
    batch: float = 0.0  # the most at once
    decodes: float = 0.0  # in flight at that rate
    chunk: float = nan
    prefill_units: float = nan
    decode_units: float = nan
    ttft: float = nan
    step: float = nan
    tpot: float = nan
    computed: float = nan


# Coefficients by name, with the anchor's seconds.
CoefficientValues: TypeAlias = dict[str, float]
# What a calibration allows: coefficients, and the factors of a step, of its prompts' part, and of the front.
DrawnCoefficients: TypeAlias = tuple[CoefficientValues, list[float]]
# By the names of what a calibration was fitted to: names, or the ends of a range.
Scope: TypeAlias = dict[str, Any]


class ErrorRow(Record):
    """How far predictions were off on some served points; a row of `served_error`."""

    model: str
    gpu: str
    kind: str
    engine: str
    maker: str
    generation: str
    weights: str
    source: str
    drafts: str
    points: float
    error: float
    ttft: float  # -1 where it was not scored, as for `inside`
    inside: float
    lacked: float  # standard deviation of the logarithm that nine in ten inside would have needed besides


class ComparisonError(Record):
    """How far predicted gains of a kind were off, and what the pairs were of; a row of `comparison_error`."""

    bias: float
    sd: float
    pairs: int
    setups: int  # that they are of
    n_in: list[float]  # both ends
    n_out: list[float]
    kinds: list[str]
    generations: list[str]


class ScoreKey(Record):
    """What of a unit says which rows of `served_error` are its own; see `unit.scope.own_rows`."""

    model: str
    gpu: str
    generation: str
    maker: str
    engine: str
    weights: str
