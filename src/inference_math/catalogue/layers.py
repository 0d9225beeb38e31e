"""What a layer of a model is made of: what mixes tokens, and what works on each of them alone.

A model is a sequence of such layers; see `Model.layers`. Sizes are counts: parameters, and values in a cache. Matrices
only: biases, norms, and convolutions of a few taps are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

__all__ = [
    "Attention",
    "Cache",
    "Compressed",
    "Ffn",
    "Heads",
    "Index",
    "Latent",
    "Layer",
    "chosen",
    "compressed",
    "delta_net",
    "grouped",
    "latent",
    "mamba",
    "mixture",
    "parallel",
    "plain_ffn",
    "short_conv",
]

FILLED = 64  # heads: FlashMLA's sparse kernels take 64 or 128


@dataclass(frozen=True)
class Cache:
    """What one layer keeps of each token, and what it costs to look at it.

    Attributes
    ----------
    kept
        Cached values of a token.
    heads
        Heads among which tensor parallelism divides them; GPUs beyond that number hold copies.
    width
        A prompt's token costs 4·`width` FLOP for each token that it sees.
    decode_flops
        FLOP of a decode for each token that it sees.
    reach
        Tokens that one token sees at most; 0: all before it.
    evicts
        Whether what lies out of reach is freed.
    aligned
        Whether reach begins anew at each multiple of `reach` (chunked attention), so that some tokens see few others.
    own_bytes
        Bytes of a token that do not depend on the precision of the KV cache.
    prompt
        FLOP of a prompt's token for each token that it sees as kernels compute it, in those of BF16; 0: 4·`width`.
    least
        Of these what each GPU computes at least, however many share the heads.
    """

    kept: int
    heads: int
    width: float
    decode_flops: float
    reach: int = 0
    evicts: bool = False
    aligned: bool = False
    own_bytes: float = 0.0
    prompt: float = 0.0
    least: float = 0.0

    def size(self, value_bytes: float) -> float:
        """Return the bytes of a token, of which the values `kept` are in the precision of the KV cache."""
        return self.kept * value_bytes + self.own_bytes


@dataclass(frozen=True)
class Attention:
    """What mixes the tokens of a request: parameters, caches, and the values of a `state` that does not grow.

    `width` is that of its queries and `kv_width` that of its keys and values together: what goes through memory.
    """

    kind: str
    params: int = 0
    caches: tuple[Cache, ...] = ()
    state: int = 0
    width: float = 0.0
    kv_width: float = 0.0


@dataclass(frozen=True)
class Ffn:
    """What works on each token alone: `shared` parameters that every token uses, and routed `experts`.

    A token uses `active` of the experts, each of `expert` parameters. `width` is what a token's activation is wide.
    """

    shared: int = 0
    experts: int = 0
    active: int = 0
    expert: int = 0
    width: int = 0
    gated: bool = True

    @property
    def matrices(self) -> int:
        """Matrices of one FFN."""
        return _matrices(self.gated)


@dataclass(frozen=True)
class Layer:
    """So many layers of one kind."""

    count: int
    attention: Attention
    ffn: Ffn


class Heads(NamedTuple):
    """Heads of queries, and of keys and values; the size of one, and that of a value's, 0 for the same."""

    queries: int
    kvs: int
    size: int
    values: int = 0


class Latent(NamedTuple):
    """Sizes of latent attention: of the queries' latent (0: none), of that of keys and values, of parts of a head."""

    q_lora: int
    kv_lora: int
    nope: int
    rope: int
    v_head: int


class Index(NamedTuple):
    """What chooses the `top_k` tokens that a token sees: heads with one small key for each token, and its size."""

    top_k: int
    heads: int
    head: int


class Compressed(NamedTuple):
    """Sizes of compressed attention: of the latents of queries and outputs, of a head, of outputs' groups, a window."""

    q_lora: int
    o_lora: int
    head: int
    groups: int
    window: int


def grouped(
    d_model: int, of: Heads, *, reach: int = 0, aligned: bool = False, gated: bool = False, shared_kv: bool = False
) -> Attention:
    """Return attention whose query heads share KV heads in groups (MHA: as many; MQA: one).

    `reach` limits it to a sliding window, or with `aligned` to chunks. `gated` adds an output gate as wide as the
    queries. With `shared_kv` keys and values are one projection.
    """
    heads, kv_heads, head, value = of.queries, of.kvs, of.size, of.values or of.size
    projections = head * (heads + kv_heads) + (0 if shared_kv else value * kv_heads) + value * heads
    params = d_model * (projections + (head * heads if gated else 0))
    width = heads * (head + value) / 2
    kind = ("chunk" if aligned else "window") if reach else "full"
    values = kv_heads * (head + value)
    cache = Cache(values, kv_heads, width, 4 * width, reach, bool(reach), aligned)
    return Attention(kind, params, (cache,), 0, float(width), float(values))


def chosen(d_model: int, of: Heads, index: Index) -> Attention:
    """Return grouped queries that see only what an index chooses, in blocks, each for the heads of its group (MSA).

    The index has one key for all groups, in BF16, and one head of queries for each, which GPUs share like the groups.
    """
    attention = grouped(d_model, of)
    looks = index.heads * index.head
    keys = Cache(0, 1, looks / 2, 2.0 * looks, own_bytes=2.0 * index.head, least=2.0 * index.head)
    caches = (replace(attention.caches[0], reach=index.top_k), keys)
    return replace(attention, params=attention.params + d_model * (looks + index.head), caches=caches)


def compressed(d_model: int, heads: int, sizes: Compressed, ratio: int, index: Index | None = None) -> Attention:
    """Return attention to a window, and beside it to all before in entries of `ratio` tokens (CSA, HCA); 0: none.

    Keys and values are one vector for all heads. With an `index` a token sees only the entries that it chooses. A cache
    counts by tokens here, of which each is one of `ratio` of an entry. What waits to be compressed is left out.
    """
    q_lora, o_lora, head, groups, window = sizes
    query, pair = heads * head, 4.0 * head  # FLOP of a head for each entry: its score, its share of the sum
    params = d_model * (q_lora + head) + q_lora * query + query * o_lora + groups * o_lora * d_model
    near = Cache(head, 1, float(query), query * 4.0, window, evicts=True, least=FILLED * pair)
    if not ratio:
        return Attention("window", params, (near,), 0, float(query), float(head))
    wide = 2 if index else 1  # entries that are chosen overlap, each of two parts
    params += 2 * d_model * wide * head
    far = Cache(head // ratio, 1, query / ratio, heads * pair / ratio, least=FILLED * pair / ratio)
    if not index:
        return Attention("compressed", params, (near, far), 0, float(query), float(head))
    looks = index.heads * index.head
    params += 2 * d_model * wide * index.head + q_lora * looks + d_model * index.heads
    # As in `latent`, keys in FP8 with a scale, multiplied at twice the rate.
    keys = Cache(
        0, 1, looks / 2 / ratio, 2 * looks / ratio, own_bytes=(index.head + 4) / ratio, prompt=looks / ratio,
        least=looks / ratio,
    )  # fmt: skip
    far = replace(far, reach=index.top_k * ratio)
    return Attention("compressed", params, (near, far, keys), 0, float(query), float(head))


def latent(
    d_model: int, heads: int, sizes: Latent, index: Index | None = None, *, indexed: bool = True, gated: bool = False
) -> Attention:
    """Return latent attention (MLA): one latent and one rotated key for all heads.

    With an `index` a token sees only those others that it chooses (sparse attention): prompts, too, attend to latents
    then, by kernels that fill up the heads of a GPU to `FILLED`, and each GPU looks through the whole index, in FP8. A
    layer that is not `indexed` takes the choice of another. `gated` adds an output gate as wide as the values.
    """
    q_lora, kv_lora, nope, rope, v_head = sizes
    query = heads * (nope + rope)
    params = d_model * (q_lora + kv_lora + rope) + (q_lora or d_model) * query + kv_lora * heads * (nope + v_head)
    params += heads * v_head * d_model * (2 if gated else 1)
    each = 2.0 * (2 * kv_lora + rope)  # of a head in the latent space
    width, decode = heads * (nope + rope + v_head) / 2, heads * each
    cache = Cache(kv_lora + rope, 1, width, decode)
    if index:
        cache = replace(cache, reach=index.top_k, prompt=decode, least=FILLED * each)
    caches: tuple[Cache, ...] = (cache,)
    if index and indexed:
        looks = index.heads * index.head
        params += looks * (q_lora or d_model) + d_model * (index.head + index.heads)
        # Its keys are in FP8, with a scale of four bytes, and multiplied at twice the rate of BF16.
        caches += (Cache(0, 1, looks / 2, 2.0 * looks, own_bytes=index.head + 4.0, prompt=looks, least=looks),)
    return Attention("latent", params, caches, 0, float(width), float(kv_lora + rope))


def delta_net(
    d_model: int,
    *,
    key_heads: int,
    key: int,
    value_heads: int,
    value: int,
    kernel: int,
    ranks: tuple[int, int] = (0, 0),
) -> Attention:
    """Return a gated delta rule (linear attention): a matrix of key times value for each value head, nothing else.

    Its gates are one of the decay for each head, and one of the output, as wide as the values. With `ranks` each goes
    through so few values, and that of the decay is as wide as the keys (Kimi Delta Attention); 0: it does not.
    """
    keys, values = key_heads * key, value_heads * value
    decay, output = ranks
    gates = decay * (d_model + keys) if decay else d_model * value_heads
    gates += output * (d_model + values) if output else d_model * values
    params = d_model * (2 * keys + values + value_heads) + gates + values * d_model
    state = value_heads * key * value + (kernel - 1) * (2 * keys + values)
    return Attention("state", params, (), state, float(keys + values), float(keys))


def mamba(d_model: int, *, heads: int, head: int, groups: int, state: int, kernel: int) -> Attention:
    """Return a state space layer (Mamba 2): a matrix of head size times state for each head, nothing else."""
    inner = heads * head
    mixed = inner + 2 * groups * state
    params = d_model * (inner + mixed + heads) + inner * d_model
    return Attention("state", params, (), inner * state + (kernel - 1) * mixed, float(2 * inner), float(mixed))


def short_conv(d_model: int, kernel: int) -> Attention:
    """Return a gated convolution over so few tokens (LFM2): its inputs and two gates in, one projection out."""
    return Attention("state", 4 * d_model**2, (), (kernel - 1) * d_model, 2.0 * d_model, 1.0 * d_model)


def parallel(one: Attention, other: Attention) -> Attention:
    """Return two kinds of attention side by side in one layer."""
    return Attention(
        f"{one.kind} and {other.kind}",
        one.params + other.params,
        one.caches + other.caches,
        one.state + other.state,
        one.width + other.width,
        one.kv_width + other.kv_width,
    )


def plain_ffn(d_model: int, width: int, *, gated: bool = True) -> Ffn:
    """Return an FFN of three matrices (SwiGLU), or of two."""
    return Ffn(shared=_matrices(gated) * d_model * width, width=width, gated=gated)


def mixture(
    d_model: int, experts: int, active: int, width: int, *, shared_width: int = 0, gated: bool = True, inner: int = 0
) -> Ffn:
    """Return routed experts of `width`, a router, and a shared expert of `shared_width` that every token uses.

    With `inner` the routed experts work on a projection of that width instead of on `d_model`.
    """
    matrices = _matrices(gated)
    common = d_model * experts + matrices * d_model * shared_width + 2 * d_model * inner
    expert = matrices * (inner or d_model) * width
    return Ffn(common, experts, active, expert, active * width + shared_width, gated)


def _matrices(gated: bool) -> int:
    """Return the matrices of an FFN: SwiGLU has a third one, its gate."""
    return 3 if gated else 2
