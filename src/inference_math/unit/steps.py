"""The seconds of a unit's step: the terms of `theory.step`, named and summed in one place; and the floor below them.

Everything that asks for a step, a mean, a plan or a curve ends here. Plain Python: the book prints it as JavaScript.
"""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from inference_math.theory.plain import allreduce_time, kv_load_time, matrix_time, mean_context, read_time, step_time
from inference_math.unit.max_load import expected_max_load
from inference_math.unit.types import (
    ByChance,
    CacheShape,
    CacheTerms,
    CoefficientValues,
    FloorSpans,
    FloorTerms,
    Group,
    Index,
    Kernels,
    Layout,
    Pick,
    Rates,
    Shape,
    Spans,
    StepCosts,
    Terms,
    UnitNumbers,
)
from inference_math.workload.requests import Workload

if TYPE_CHECKING:
    from inference_math.evidence.checks import Numbers

HALF_BYTES = 2  # of a value in BF16
VALUE_BYTES = {"bf16": 2, "fp8": 1, "nvfp4": 0.5625, "mxfp4": 0.53125, "int4": 0.5625}
GROUPS = ["attention", "ffn"]  # of matrices that every token uses
NO_INDEX = Index(slower=1.0, choosing=0.0)
# The parts of a step, in the order of `parts`: the first two share it in quadrature, all others add.
PARTS = ["weights", "matrices", "KV cache", "attention of the prompt", "activations", "all-reduce", "layers"]


def longest_request(work: Workload) -> float:
    """Return the tokens of the longest request: those of the means, where nothing longer is known."""
    return max(work.longest, work.n_in + work.n_out)


def context_of(work: Workload) -> float:
    """Return the mean tokens that a decode sees."""
    return mean_context(work.n_in * work.pairing, max(work.n_out, 1.001), work.cv)


def stored_tokens(n_in: float, alpha: float) -> float:
    """Return the tokens of a prompt that need no computing: the stored share, but the last token always is."""
    return min(alpha * n_in, n_in - 1)


def best_of(rates: Rates) -> float:
    """Return the FLOP/s of one GPU at its best rate."""
    return max(rates.flops["bf16"], max(rates.flops["fp8"], rates.flops["fp4"]))


def group_of(rates: Rates, precision: str, params: float, gpus: int) -> Group:
    """Return what a token costs in matrices of so many parameters, shared by so many GPUs, at the datasheet's rate."""
    name = rates.names[precision]
    # Who expands four bits may expand them to whatever the GPU multiplies fastest.
    four = precision != "bf16" and precision != "fp8"
    seconds, best = matrix_time(params, 1, gpus * rates.flops[name], 1.0), gpus * best_of(rates)
    return Group(seconds=seconds, least=matrix_time(params, 1, best, 1.0) if four else seconds, rate=name)


def index_of(kernels: Kernels, engine: str, gpu: str, attention: str) -> Index:
    """Return what an index takes beside a kind of attention, a key of `kernels`, under an engine on a GPU."""
    known = kernels.attention[engine][kernels.like[gpu]][attention]
    return Index(slower=known.slower, choosing=known.choosing)


def unit_numbers(
    shape: Shape, rates: Rates, layout: Layout, weights: str, kv: str, memory: float, index: Index
) -> UnitNumbers:
    """Return what a step needs to know of a unit: bytes, FLOPs, and the rates of the GPUs that share its matrices.

    `memory` is the share of the GPUs' memory that the engine takes for weights and KV caches; for `index` see
    `index_of`.
    """
    tp, dp, pp, fine = layout.tp, layout.dp, layout.pp, shape.fine[weights]
    gpus = tp * dp * pp
    common, groups = 0.0, []
    for name in GROUPS:
        common += shape.params[name] * VALUE_BYTES[fine[name]]
        groups.append(group_of(rates, fine[name], shape.params[name], tp))
    routed = shape.routed_params * VALUE_BYTES[fine["experts"]]
    head = shape.head_params * HALF_BYTES
    padded = shape.padded if fine["experts"] == "mxfp4" else 1.0  # in memory; of what is read no fit knows
    held = dp * (common + shape.vocab_params * HALF_BYTES) + padded * routed
    caches: list[CacheShape] = []
    for cache in shape.caches:
        size, reach = cache.values * VALUE_BYTES[kv] + cache.own_bytes, cache.reach if cache.reach > 0 else inf
        slower, choosing = index.slower if cache.choices > 0 else 1.0, cache.choices * index.choosing
        caches.append(replace(cache, bytes=size, reach=reach, slower=slower, choosing=choosing))
    # Attention's groups send each token to its experts (FP8) and take their results back (BF16).
    away = min(shape.chosen, shape.n_layers * dp) if dp > 1 else 0.0
    return UnitNumbers(
        layout=layout, gpus=gpus, groups=groups,
        experts=group_of(rates, fine["experts"], shape.params["experts"], tp * dp),
        head_seconds=matrix_time(shape.head_params, 1, tp * rates.flops["bf16"], 1.0), head_bytes=head,
        least_head_bytes=shape.head_params * VALUE_BYTES[weights],
        least_head_seconds=group_of(rates, weights, shape.head_params, tp).least,
        step_bytes=common + head, routed_bytes=routed, idle=shape.idle,
        busiest=busiest(layout.ep, shape.experts), caches=caches,
        state_bytes=shape.state_bytes, memory=memory,
        kv_room=max(0.0, gpus * (memory * rates.driver_bytes - rates.workspace) - held),
        workspace=rates.workspace, vocab=shape.head_params / shape.d_model,
        n_layers=shape.n_layers, layer_bytes=shape.layer_bytes, sum_bytes=shape.sum_bytes,
        spread_bytes=away * shape.d_model * (1 + HALF_BYTES), half_flops=tp * rates.flops["bf16"],
        best_flops=gpus * best_of(rates),
        hbm_bw=tp * rates.hbm_bw, all_bw=gpus * rates.hbm_bw, link_bw=rates.link_bw,
        pcie_bw=gpus * rates.pcie_bw, drafts=0, accepted=0.0, accepted_per_step=1, synchronized_arrivals=False,
    )  # fmt: skip


def busiest(groups: float, experts: float) -> float:
    """Return how many standard deviations of an expert's load the busiest of some groups has above the mean.

    A group has experts/groups experts, so its load varies by the root of that less; the largest of n normal numbers is
    the root of 2 ln n, less 0.6, above their mean, within 0.06 for 2 to 64. Groups of few experts are not normal, and
    have more.
    """
    if groups <= 1 or experts <= 0:
        return 0.0
    above: float = ((2 * log(groups)) ** 0.5 - 0.6) * (groups / experts) ** 0.5
    return above


def most_uneven(idle: float) -> float:
    """Return the most that the loads of routed experts can vary: the same k of E chosen by all, the root of E/k - 1.

    `idle` is the share 1 - k/E that a token does not choose.
    """
    most: float = (idle / (1 - idle)) ** 0.5
    return most


def unread(terms: Terms, tokens: Numbers) -> Any:
    """Return the share of the routed experts that none of so many tokens, at least one, has chosen.

    One token leaves 1 - k/E. The others leave as much of that each, where all experts are chosen alike; how often they
    are is taken for gamma distributed over the experts, and a power of the tokens stands for that.
    """
    if terms.uneven > 1e-9:  # below, the power has no digits left
        return terms.idle * (1 + terms.uneven * terms.chosen * (tokens - 1)) ** (-1 / terms.uneven)
    return terms.idle**tokens


def read_by_busiest(terms: Terms, tokens: Numbers, smaller: Pick) -> Any:
    """Return the share of its routed experts that the GPU reads which reads most of its own, for so many tokens.

    Of n experts each is read with a probability p, so the count varies by the root of n p (1 - p); see `busiest`.
    """
    chosen = 1 - unread(terms, tokens)
    if terms.busiest > 0:
        chosen = smaller(chosen + terms.busiest * (chosen * (1 - chosen)) ** 0.5, 1)
    return chosen


def kv_held(unit: UnitNumbers, tokens: float) -> float:
    """Return the bytes of memory that a request of so many tokens takes, on all GPUs that hold a copy."""
    held = unit.state_bytes
    for cache in unit.caches:
        held += cache.bytes * cache.copies * (min(tokens, cache.reach) if cache.evicts else tokens)
    return held


def kv_loaded(unit: UnitNumbers, tokens: float, read_bw: float) -> float:
    """Return the seconds in which stored tokens of a request come, over links that bring a unit `read_bw` bytes/s.

    A group of GPUs loads over its own links, every GPU its own copy. Without links (0) all lies in HBM, and none come.
    """
    if not (read_bw > 0 and tokens > 0):
        return 0.0
    return kv_load_time(kv_held(unit, tokens), read_bw / unit.layout.dp)


def kv_sent(unit: UnitNumbers, tokens: float) -> float:
    """Return the bytes that go from one unit to another with a request of so many tokens: one copy."""
    sent = unit.state_bytes
    for cache in unit.caches:
        sent += cache.bytes * (min(tokens, cache.reach) if cache.evicts else tokens)
    return sent


def kv_moved(unit: UnitNumbers, work: Workload, read_bw: float) -> float:
    """Return the seconds for which a request keeps the links to its store: what it loads, and what it writes.

    Links carry `read_bw` bytes/s of a unit. What is loaded and what is written share them, as on a drive, whichever
    way it goes.
    """
    loaded = kv_loaded(unit, stored_tokens(work.n_in, work.alpha), read_bw)
    return loaded + kv_load_time(kv_written(unit, work), read_bw / unit.layout.dp) if loaded > 0 else 0.0


def kv_written(unit: UnitNumbers, work: Workload) -> float:
    """Return the bytes that go to a store with a request: one copy of what it had not, new prompt tokens and answer."""
    cached = kv_sent(unit, stored_tokens(work.n_in, work.alpha))
    return kv_sent(unit, work.n_in + work.n_out) - cached


def kv_tokens(unit: UnitNumbers, tokens: float) -> float:
    """Return the tokens whose KV caches fit, in requests of `tokens` each: [C15], where all layers see everything."""
    held: float = kv_held(unit, tokens)
    return unit.kv_room / held * tokens if held > 0 else inf


def kv_pooled(unit: UnitNumbers, tokens: float, windows: float) -> float:
    """Return the same where layers with windows have a pool of their own, of the share `windows` of all tokens."""
    if not windows > 0:
        return kv_tokens(unit, tokens)
    held = unit.state_bytes
    for cache in unit.caches:
        seen = max(min(tokens, cache.reach), windows * tokens) if cache.evicts else tokens
        held += cache.bytes * cache.copies * seen
    return unit.kv_room / held * tokens if held > 0 else inf


def unit_terms(unit: UnitNumbers, coefficients: CoefficientValues) -> Terms:
    """Return what one of each costs under some `coefficients`: a token, a cached token, a pair, a step."""
    layout, half, share, drafts = unit.layout, unit.half_flops, coefficients["bf16"], unit.drafts
    look = coefficients["attention"]
    tp, dp, pp = layout.tp, layout.dp, layout.pp
    moved = unit.n_layers * unit.layer_bytes * tp
    imbalance = 1 + coefficients["expert_imbalance"] * unit.busiest
    routed = read_time(unit.routed_bytes, dp * unit.hbm_bw, coefficients["memory"] * coefficients["experts"])
    matrices = 0.0
    for group in unit.groups:
        matrices += group.seconds / coefficients[group.rate]
    caches: list[CacheTerms] = []
    for cache in unit.caches:
        load = read_time(cache.copies * cache.bytes, unit.hbm_bw, coefficients["kv"])
        seen = max(cache.prompt_flops, tp * cache.least_flops)
        # Kernels that fill up heads compute a decode as they do a prompt's token.
        computed = seen if cache.least_flops > 0 else cache.decode_flops
        multiplied = (1 + drafts) * computed / (coefficients["decode_attention"] * half)
        caches.append(
            CacheTerms(
                # A decode reads each cached token and multiplies it with its queries, joined as in every kernel.
                read=step_time(load, multiplied, 0.0),
                load=load,
                pair=cache.slower * seen / (look * half),
                choosing=cache.choosing,
                reach=cache.reach,
                aligned=cache.aligned,
            )
        )
    together = 1.0 if tp * dp > 1 else 0.0
    return Terms(
        # A request that drafts brings so many tokens into a step. Each draft passes a layer of its own, one after the
        # other, and the LM head; a prompt passes that layer once.
        tokens=1 + drafts,
        longer=1 + drafts / unit.n_layers,
        once=1 + min(drafts, 1) / unit.n_layers,
        drafted=drafts * read_time(unit.head_bytes, unit.hbm_bw, coefficients["memory"]),
        ranks=dp * pp,
        stages=pp,
        synchronized_arrivals=unit.synchronized_arrivals,
        t_w=read_time(unit.step_bytes, unit.hbm_bw, coefficients["memory"]) + routed,
        routed=routed,
        idle=unit.idle,
        chosen=-log(unit.idle) if unit.idle > 0 else 0.0,
        uneven=coefficients["expert_imbalance"] ** 2,
        busiest=unit.busiest,
        matrices=matrices,
        experts=imbalance * unit.experts.seconds / (coefficients[unit.experts.rate] * coefficients["grouped"]),
        head=unit.head_seconds / share,
        caches=caches,
        state=2 * read_time(unit.state_bytes, unit.hbm_bw, coefficients["kv"]),
        move=read_time(moved, unit.hbm_bw, coefficients["memory"]),
        links=(allreduce_time(unit.sum_bytes, tp, unit.link_bw) + unit.spread_bytes / unit.link_bw)
        / coefficients["interconnect_efficiency"],
        fixed=unit.n_layers * (coefficients["layer"] + together * coefficients["collective_latency"])
        + coefficients["anchor"],
        request=unit.n_layers * coefficients["per_sequence_overhead"],
    )


def draft_yield(drafts: float, accepted: float) -> float:
    """Return the tokens that a step gives a request which drafts some more, each accepted with the same probability.

    A draft counts only if all before it were accepted; the step itself gives one more.
    """
    if accepted >= 1:
        return drafts + 1
    tokens: float = (1 - accepted ** (drafts + 1)) / (1 - accepted)
    return tokens


def drafting(unit: UnitNumbers, drafts: float, accepted: float) -> UnitNumbers:
    """Return a unit whose requests draft so many tokens in each step; see `draft_yield`."""
    return replace(unit, drafts=drafts, accepted=accepted, accepted_per_step=draft_yield(drafts, accepted))


def answer_steps(unit: UnitNumbers, n_out: float) -> float:
    """Return the steps of an answer: its prompt's gives one token, each other one as many as the unit's steps give."""
    return 1 + (n_out - 1) / unit.accepted_per_step


def seen_of(tokens: Numbers, reach: float, aligned: bool, smaller: Pick) -> Any:
    """Return the cached tokens that a token reads after so many: all, a window of `reach`, or what its chunk has.

    A chunk begins anew after `reach` tokens, so beyond the first one half of it is there on average.
    """
    seen = smaller(tokens, reach)
    return seen - (tokens >= reach) * reach / 2 if aligned else seen


def pairs_of(tokens: Numbers, reach: float, aligned: bool, smaller: Pick) -> Any:
    """Return the (token, earlier token) pairs of the first so many tokens, of which each sees `reach` others.

    In chunks each sees those of its own: exact for whole chunks.
    """
    seen = smaller(tokens, reach)
    pairs = seen * (tokens - seen / 2)
    return pairs - (tokens - seen) * reach / 2 if aligned else pairs


def spans_of(terms: Terms, context: Numbers, fresh: Numbers, cached: Numbers, smaller: Pick) -> Spans:
    """Return what these lengths come to in the KV caches, which does not hang on how many requests there are."""
    read, load, pairs = terms.state, 0.0, 0.0
    for cache in terms.caches:
        reach, aligned = cache.reach, cache.aligned
        read = read + seen_of(context, reach, aligned, smaller) * cache.read
        load = load + seen_of(cached, reach, aligned, smaller) * cache.load
        ahead = pairs_of(cached, reach, aligned, smaller)
        pairs = pairs + (pairs_of(cached + fresh, reach, aligned, smaller) - ahead) * cache.pair
        pairs = pairs + fresh * cache.choosing
    return Spans(fresh=fresh, read=read, load=load, pairs=pairs)


def parts(
    terms: Terms, spans: Spans, decodes: Numbers, prompts: Numbers, larger: Pick, smaller: Pick, by_chance: ByChance
) -> list[Numbers]:
    """Return the seconds of each of `PARTS`: of so many decodes beside `prompts`, whose lengths come to `spans`.

    `larger` and `smaller` compare numbers, or arrays; for `by_chance` see `busiest_prompts`. Requests divide evenly
    among the groups of GPUs.
    """
    busy = busiest_prompts(terms, decodes, prompts, larger, smaller, by_chance)
    return parts_of(terms, spans, decodes, prompts, busy, larger, smaller)


def busiest_prompts(
    terms: Terms, decodes: Numbers, prompts: Numbers, larger: Pick, smaller: Pick, by_chance: ByChance
) -> Any:
    """Return the prompts of the group of GPUs that has the most of them, in the mean: the one that all wait for.

    A prompt goes to the group with the fewest requests. Without decodes all have equally many, so prompts are dealt
    out, and one by itself keeps its group busy. Beside decodes it is the group in which an answer has ended, which is
    any: `by_chance` is `expected_max_load` of numbers, or of arrays. But users who send together send prompts in
    bunches, of which each group gets its part.
    """
    ranks, stages = terms.ranks, terms.stages
    if ranks <= 1:
        return prompts
    even = prompts / ranks
    dealt = larger(even, smaller(prompts, 1))
    beside = even if terms.synchronized_arrivals else by_chance(prompts, ranks, stages)
    return dealt + smaller(decodes, 1) * (beside - dealt)


def parts_of(
    terms: Terms, spans: Spans, decodes: Numbers, prompts: Numbers, busy: Numbers, larger: Pick, smaller: Pick
) -> list[Numbers]:
    """Return the same where the group that all wait for has `busy` of the prompts.

    Experts lie on all GPUs, and compute what all groups have: no engine fills the shorter ones up beside prompts
    (SGLang: `DpPaddingMode.SUM_LEN`; vLLM: only where a CUDA graph is replayed).
    """
    ranks, fresh = terms.ranks, spans.fresh
    own = decodes / ranks
    longer, once, active = terms.longer, terms.once, smaller(decodes, 1)
    passes = once + (longer - once) * active  # of a step that only computes prompts, or decodes too
    tokens = longer * terms.tokens * own + once * busy * fresh
    everywhere = (terms.tokens * decodes + prompts * fresh) / terms.stages
    routed = (longer * terms.tokens * decodes + once * prompts * fresh) / terms.stages
    sampled = larger(terms.tokens * own + busy * smaller(fresh, 1), 1)
    weights = terms.t_w
    if terms.routed > 0:  # those experts are read that some token has chosen
        weights = weights - (1 - read_by_busiest(terms, larger(everywhere, 1), smaller)) * terms.routed
    return [
        passes * weights + active * terms.drafted,
        terms.matrices * tokens + terms.experts * routed + passes * terms.head * sampled,
        longer * own * spans.read + once * busy * spans.load,
        once * busy * spans.pairs,
        terms.move * tokens,
        terms.links * tokens,
        passes * terms.fixed + terms.request * own,
    ]


def kv_read(terms: Terms, context: float) -> float:
    """Return the seconds in which one decode reads its KV cache, and what a state needs."""
    return float(terms.longer * spans_of(terms, context, 0.0, 0.0, min).read / terms.ranks)


def step(terms: Terms, decodes: float, context: float, fresh: float, cached: float, prompts: float) -> float:
    """Return the seconds of a step of `decodes` at a mean `context` beside `prompts`.

    Each prompt has `fresh` tokens that also see `cached` ones before them.
    """
    return step_of(terms, spans_of(terms, context, fresh, cached, min), decodes, prompts)


def step_of(terms: Terms, spans: Spans, decodes: float, prompts: float) -> float:
    """Return the seconds of a step; see `parts` for the arguments."""
    return step_beside(
        terms, spans, decodes, prompts, busiest_prompts(terms, decodes, prompts, max, min, expected_max_load)
    )


def step_beside(terms: Terms, spans: Spans, decodes: float, prompts: float, busy: float) -> float:
    """Return the seconds of a step; see `parts_of` for the arguments."""
    each = parts_of(terms, spans, decodes, prompts, busy, max, min)
    # All are numbers, as their `max` and `min` are.
    return step_time(each[0], each[1], each[2] + each[3] + each[4] + each[5] + each[6])  # type: ignore[arg-type]


def floor_terms(unit: UnitNumbers) -> FloorTerms:
    """Return what no engine on this hardware can do without, at datasheet rates of all GPUs together.

    Weights once: of a mixture the experts of one token, the LM head in the weights' precision. KV caches once, without
    copies, states in BF16. Attention and four bits at the best rate of the GPU. What tp GPUs share all could share.
    """
    layout, bw, best = unit.layout, unit.all_bw, unit.best_flops
    alone = layout.tp / unit.gpus
    matrices = unit.experts.least * layout.dp * alone
    for group in unit.groups:
        matrices += group.least * alone
    caches: list[CacheTerms] = []
    for cache in unit.caches:
        caches.append(
            CacheTerms(
                read=read_time(cache.bytes, bw, 1.0),
                load=min(cache.decode_flops, cache.pair_flops) / best,
                pair=cache.pair_flops / best,
                choosing=0.0,
                reach=cache.reach,
                aligned=cache.aligned,
            )
        )
    least = unit.step_bytes - unit.head_bytes + (1 - unit.idle) * unit.routed_bytes
    return FloorTerms(
        weights=read_time(least, bw, 1.0),
        head_read=read_time(unit.least_head_bytes, bw, 1.0),
        caches=caches,
        state=read_time(unit.state_bytes, bw, 1.0),
        matrices=matrices,
        head=unit.least_head_seconds * alone,
    )


def floor_spans(
    floor: FloorTerms, context: Numbers, shortest: Numbers, fresh: Numbers, cached: Numbers, smaller: Pick
) -> FloorSpans:
    """Return what lengths come to in the KV caches at least; see `floor_read`.

    Contexts are `shortest` at least: what does not see everything reads less than the mean of them says. Of chunks that
    begin anew only the first is counted.
    """
    read, load, again, multiplied, multiplied_again, pairs = floor.state, 0.0, 0.0, 0.0, 0.0, 0.0
    for cache in floor.caches:
        reach, aligned = cache.reach, cache.aligned
        seen, known = smaller(context if reach >= inf else shortest, reach), smaller(cached, reach)
        if aligned:
            seen, known = seen * (context <= smaller(shortest, reach)), known * (cached <= reach)
        shared = smaller(known, seen)
        read, load, again = read + cache.read * seen, load + cache.read * known, again + cache.read * shared
        multiplied = multiplied + cache.load * seen
        multiplied_again = multiplied_again + cache.load * shared
        fresh_pairs = pairs_of(cached + fresh, reach, False, smaller) - pairs_of(cached, reach, False, smaller)
        if aligned:
            fresh_pairs = fresh_pairs * (cached + fresh <= reach)
        pairs = pairs + cache.pair * fresh_pairs
    return FloorSpans(
        fresh=fresh, read=read, load=load, again=again, multiplied=multiplied,
        multiplied_again=multiplied_again, pairs=pairs,
    )  # fmt: skip


def floor_read(
    floor: FloorTerms,
    spans: FloorSpans,
    passes: Numbers,
    sampling: Numbers,
    decodes: Numbers,
    loads: Numbers,
    common: Numbers,
) -> Any:
    """Return the seconds in which so many passes over the weights read what they need, at the full bandwidth.

    `sampling` of them give tokens, and read the LM head. In all passes together there are `decodes`, and stored tokens
    of prompts are read `loads` times; `common` decodes find these read for another.
    """
    moved = floor.weights * passes + floor.head_read * sampling
    return moved + spans.read * decodes - spans.again * common + spans.load * loads


def floor_computed(
    floor: FloorTerms,
    spans: FloorSpans,
    tokens: Numbers,
    sampled: Numbers,
    decodes: Numbers,
    prompts: Numbers,
    common: Numbers,
) -> Any:
    """Return the seconds in which `tokens` are computed, of which some are `sampled`, at the full rate.

    They are those of `decodes` and `prompts`; what `common` decodes find they share with another.
    """
    computed = floor.matrices * tokens + floor.head * sampled + spans.multiplied * decodes
    return computed - spans.multiplied_again * common + spans.pairs * prompts


def floor_step(floor: FloorTerms, decodes: float, context: float, fresh: float, cached: float, prompts: float) -> float:
    """Return the seconds below which no step is whose requests share no cache; see `step` for the arguments."""
    return floor_step_of(floor, floor_spans(floor, context, context, fresh, cached, min), decodes, prompts)


def floor_step_of(floor: FloorTerms, spans: FloorSpans, decodes: float, prompts: float) -> float:
    """Return the seconds below which no step is; lengths come to `floor_spans`."""
    passes = 1.0 if decodes + prompts > 0 else 0.0
    sampling = 1.0 if decodes > 0 or prompts >= 1 else 0.0
    read = floor_read(floor, spans, passes, sampling, decodes, prompts, 0.0)
    tokens = decodes + prompts * spans.fresh
    least: float = max(read, floor_computed(floor, spans, tokens, decodes, decodes, prompts, 0.0))
    return least


def loading(seconds: float, load: float, prompts: float, most: float) -> float:
    """Return the seconds of a step whose prompts need `load` each from a store, layer by layer: the longer of both.

    Each group of GPUs loads its own prompts, and one has the `most` of them. Of chunks it is the mean step: a prompt
    loads with the first of its own [C05].
    """
    begun: float = min(prompts, 1.0)
    return seconds + begun * max(0.0, load * max(most, 1.0) - seconds)


def costs(
    unit: UnitNumbers, terms: Terms, work: Workload, moved: float, factor: float, prompt_factor: float
) -> StepCosts:
    """Return the talks' numbers of a workload (n_in, n_out, alpha, cv): t_w, ttft_1, cache_read, own, and the step.

    `step_seconds` is of so many decodes and prompts, a chunk counting as its share of one, `step_with_chunk_each` where
    each group of attention has as many, and the others are read off the first: `t_w` what a step takes however
    little it does; `ttft_1` what a prompt adds to it, net of t_w; `cache_read` the KV read of one more decode, `own`
    what else it adds, on average up to 64: ΔH is both.
    The share alpha of the prompts lies in HBM, or in a store whose links a prompt keeps for `moved` seconds, layer by
    layer: a step waits for it where it is shorter; see `loading`. A step is `factor` times as long, what prompts add to
    it and what they move, `load`, `prompt_factor` times; neither is below the floor.
    A chunk counts as its share of the prompt's cached read; an engine reads all before it in each chunk, which the
    simulator counts.
    """
    n_in = work.n_in
    context = context_of(work)
    cached = stored_tokens(n_in, work.alpha)
    fresh = n_in - cached
    load = prompt_factor * moved
    groups = unit.layout.dp
    floor = floor_terms(unit)
    spans, least = (
        spans_of(terms, context, fresh, cached, min),
        floor_spans(floor, context, context, fresh, cached, min),
    )
    bare_spans, bare_least = spans_of(terms, 0.0, fresh, cached, min), floor_spans(floor, 0.0, 0.0, fresh, cached, min)

    last: dict[str, float] = {"decodes": -1.0, "bare": 0.0}  # searches ask for many chunks beside the same decodes

    of_groups = replace(terms, ranks=groups, stages=1)  # whose stages load a prompt together

    def step_of_prompts(decodes: float, prompts: float, busy: float, most: float) -> float:
        if last["decodes"] != decodes:
            last["bare"] = step_beside(terms, spans, decodes, 0.0, 0.0)
            last["decodes"] = decodes
        bare = last["bare"]
        seconds = factor * bare
        if prompts > 0:
            added = step_beside(terms, spans, decodes, prompts, busy) - bare
            seconds += prompt_factor * added
            if load > 0:
                seconds = loading(seconds, load, prompts, most)
        return max(seconds, floor_step_of(floor, least, decodes, prompts))

    def step_seconds(decodes: float, prompts: float) -> float:
        busy = busiest_prompts(terms, decodes, prompts, max, min, expected_max_load)
        most = busiest_prompts(of_groups, decodes, prompts, max, min, expected_max_load) if load > 0 else busy
        return step_of_prompts(decodes, prompts, busy, most)

    def step_with_chunk_each(decodes: float, prompts: float) -> float:
        # Of a group's own the stages have their part, and one of them the whole of what is less than a prompt.
        own = max(prompts / terms.stages, min(prompts, 1.0))
        return (
            step_of_prompts(decodes, groups * prompts, own, prompts) if groups > 1 else step_seconds(decodes, prompts)
        )

    def empty(decodes: float) -> float:
        seconds: float = factor * step_beside(terms, bare_spans, decodes, 0.0, 0.0)
        return max(seconds, floor_step_of(floor, bare_least, decodes, 0.0))

    own = (empty(64.0) - empty(1.0)) / 63
    t_w = empty(1.0) - own
    return StepCosts(
        t_w=t_w,
        ttft_1=step_seconds(0.0, 1.0) - t_w,
        cache_read=factor * kv_read(terms, context),
        own=own,
        load=load,
        step_seconds=step_seconds,
        step_with_chunk_each=step_with_chunk_each,
        prefill=step_seconds,
    )
