import numpy as np
import pytest
import sympy as sp
from grids import rest_long
from hypothesis import given, strategies as st
from msgspec.structs import replace

from inference_math import Unit, Workload, catalogue
from inference_math.simulate import Steps
from inference_math.unit import rates_of, shape_of, steps
from inference_math.unit.max_load import expected_max_load
from inference_math.unit.mean import expected_max_loads
from inference_math.unit.types import Index, Layout

UNIT = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
MIXTURE = Unit.of("mixtral-8x7b", "h100-sxm", 4)
WORK = Workload(2200, 170, 0.5)
TP8 = Layout(tp=8, ep=1, dp=1, pp=1)


def terms(unit):
    return steps.unit_terms(unit.numbers, unit.found())


@pytest.mark.parametrize("name", list(catalogue.MODELS))
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_a_unit_in_numbers_is_what_the_catalogue_says(name, precision):
    model, gpu = catalogue.model(name), catalogue.gpu("b200")
    numbers = steps.unit_numbers(shape_of(model, 8), rates_of(gpu), TP8, precision, precision, 0.9, steps.NO_INDEX)
    assert sum(cache.bytes for cache in numbers.caches) == pytest.approx(model.kv_token(precision))
    room = 8 * (0.9 * gpu.driver_bytes - 3e9) - model.weight_bytes(precision)
    assert numbers.kv_room == pytest.approx(max(room, 0))
    layers = model.weight_bytes(precision) - 2 * model.vocab_params
    assert numbers.step_bytes + numbers.routed_bytes == pytest.approx(layers + 2 * model.lm_head_params)
    seconds = sum(group.seconds for group in (*numbers.groups, numbers.experts))
    assert seconds == pytest.approx(2 * model.n_params / (8 * gpu.flops(precision)))
    copies = [cache.copies * cache.bytes for cache in numbers.caches]
    assert sum(copies) == pytest.approx(model.kv_copies(8) * model.kv_token(precision), rel=0.02)


@pytest.mark.parametrize("unit", [UNIT, MIXTURE])
@given(
    decodes=st.integers(0, 512), context=st.floats(0, 1e5), fresh=st.floats(0, 1e4), cached=st.floats(0, 1e4),
    prompts=st.floats(0, 4),
)  # fmt: skip
def test_one_number_and_arrays_of_them_agree(unit, decodes, context, fresh, cached, prompts):
    one = steps.step(terms(unit), decodes, context, fresh, cached, prompts)
    many = unit._step(np.array([decodes]), context, fresh, cached, prompts)
    assert one == pytest.approx(many[0], rel=1e-12)


@given(st.floats(1e6, 1e12))
def test_a_slow_store_makes_prefills_wait_and_a_fast_one_hides(read_bw):
    load = UNIT.numbers.caches[0].bytes / read_bw * 0.5 * 2200
    assert steps.kv_loaded(UNIT.numbers, 0.5 * 2200, read_bw) == pytest.approx(load)
    in_hbm, loaded = (steps.costs(UNIT.numbers, terms(UNIT), WORK, one, 1.0, 1.0) for one in (0.0, load))
    for decodes in (0, 8, 200):  # it hides under all that the step does, weight read and decodes with it
        assert loaded.step_seconds(decodes, 1) == pytest.approx(max(load, in_hbm.step_seconds(decodes, 1)))


@given(seconds=st.floats(0.001, 1), load=st.floats(0, 2))
def test_a_chunk_waits_for_its_share_of_the_prompts_that_begin(seconds, load):
    assert steps.loading(seconds, load, 1.0, 1.0) == pytest.approx(max(seconds, load))
    quarter = steps.loading(seconds, load, 0.25, 0.25)
    assert quarter == pytest.approx(0.75 * seconds + 0.25 * max(seconds, load))
    for most in (2.0, 8.0):  # groups load at the same time, each its own
        assert steps.loading(seconds, load, 8.0, most) == pytest.approx(max(seconds, load * most))


@pytest.mark.parametrize("layout", [{"dp": 8, "ep": 8}, {"dp": 4, "ep": 4, "pp": 2}, {"tp": 4, "pp": 2}], ids=str)
def test_all_wait_for_what_the_fullest_group_loads_whose_stages_load_together(layout):
    """Without decodes prompts are dealt out, beside them chance has them; in chunks apiece each group has as many."""
    unit = Unit.of("deepseek-v3", "h200-sxm", **layout)
    found = steps.costs(unit.numbers, unit.terms, Workload(8000, 200, 0.9), 100.0, 1.0, 1.0)
    for prompts in (1.0, 3.0, 24.0):
        dealt = 100 * max(prompts / unit.dp, 1)
        assert found.step_seconds(0.0, prompts) == pytest.approx(dealt)
        assert found.step_seconds(64.0, prompts) == pytest.approx(100 * expected_max_load(prompts, unit.dp, 1))
        assert found.step_with_chunk_each(64.0, prompts) == pytest.approx(100 * prompts)


@pytest.mark.parametrize(
    ("layout", "copies", "at_once"), [({"tp": 1, "dp": 8, "ep": 8}, 1, 8), ({"tp": 8}, 8, 1)], ids=["groups", "one"]
)
def test_every_gpu_loads_its_own_copy_and_every_group_over_its_own_links(layout, copies, at_once):
    deep, work = Unit.of("deepseek-v3", "h200-sxm", weights="fp8", kv="fp8", **layout), Workload(2200, 170, 0.9)
    loaded = steps.kv_loaded(deep.numbers, 0.9 * 2200, 8 * 1e8)
    slow = steps.costs(deep.numbers, terms(deep), work, loaded, 1.0, 1.0)
    alone = copies * deep.model.kv_token("fp8") * 0.9 * 2200 / (8 / at_once * 1e8)
    assert slow.load == slow.step_seconds(0, 1) == pytest.approx(alone)
    assert slow.step_seconds(0, 16) == pytest.approx(16 / at_once * alone)


def test_a_request_keeps_the_links_of_its_store_for_what_it_loads_and_writes():
    """Of the prompt's other half and of the answer one copy is written; without links, or anything stored, nothing."""
    each, work = UNIT.numbers.caches[0].bytes, replace(WORK, n_in=2000.0, n_out=300.0, alpha=0.5)
    assert steps.kv_written(UNIT.numbers, work) == pytest.approx(1300 * each)
    assert steps.kv_moved(UNIT.numbers, work, 1e9) == pytest.approx((1000 + 1300) * each / 1e9)
    assert steps.kv_moved(UNIT.numbers, work, 0.0) == 0
    assert steps.kv_moved(UNIT.numbers, replace(work, alpha=0.0), 1e9) == 0


@pytest.mark.parametrize("unit", [UNIT, MIXTURE, Unit.of("deepseek-v3", "b200", 8, "fp8", "fp8")])
@given(factor=st.floats(0.1, 3), prompt=st.floats(0.1, 3), decodes=st.integers(0, 300), prompts=st.sampled_from([0, 2]))
def test_a_step_s_factor_and_a_prompt_s_are_two_and_neither_beats_the_floor(unit, factor, prompt, decodes, prompts):
    if not decodes + prompts:
        return
    drawn = steps.costs(unit.numbers, terms(unit), WORK, 0.0, factor, prompt)
    context, cached = 2200 + 85, 0.5 * 2200
    least = steps.floor_step(steps.floor_terms(unit.numbers), decodes, context, 2200 - cached, cached, prompts)
    bare, whole = (steps.step(terms(unit), decodes, context, 2200 - cached, cached, n) for n in (0, prompts))
    seconds = drawn.step_seconds(decodes, prompts)
    # The mean context is half a token shorter than that of whole numbers.
    assert seconds == pytest.approx(max(least, factor * bare + prompt * (whole - bare)), rel=1e-3)
    assert seconds >= least


def test_what_is_read_off_a_step_has_its_factor_and_waiting_is_a_prompt_s():
    plain, slow = (steps.costs(UNIT.numbers, terms(UNIT), WORK, 0.0, factor, 1.0) for factor in (1.0, 2.0))
    for name in ("cache_read", "own", "t_w"):
        assert getattr(slow, name) == pytest.approx(2 * getattr(plain, name))
    # t_w, the read and what a decode adds besides make a step of one decode.
    assert plain.t_w + plain.cache_read + plain.own == pytest.approx(plain.step_seconds(1, 0))
    assert steps.costs(UNIT.numbers, terms(UNIT), WORK, 0.0, 0.1, 1.0).t_w > 0.1 * plain.t_w  # the floor
    once, twice = (steps.costs(UNIT.numbers, terms(UNIT), WORK, 1e9, 1.0, prompt) for prompt in (1.0, 2.0))
    assert twice.step_seconds(0, 1) == pytest.approx(2 * once.step_seconds(0, 1))


FLOORS = [UNIT, MIXTURE, Unit.of("deepseek-v3", "h20", 16, "fp8", "fp8"), Unit.of("gpt-oss-120b", "h200-sxm")]


@pytest.mark.parametrize("unit", FLOORS, ids=lambda unit: unit.model.name)
@given(
    decodes=st.integers(0, 300), context=st.floats(1, 1e5), fresh=st.floats(1, 1e4), prompts=st.sampled_from([0, 1, 3])
)
def test_the_floor_is_bytes_over_bandwidth_or_flops_over_the_peak(unit, decodes, context, fresh, prompts):
    """By hand from the catalogue: active weights, one copy of each cache, absorbed products of MLA, FP8 attention."""
    if not decodes + prompts:
        return
    model, gpu, tokens = unit.model, unit.gpu, decodes + prompts * fresh
    best = max(gpu.bf16_flops, gpu.fp8_flops or 0)
    moved = model.lm_head_params * catalogue.bytes_per_value(unit.weights) * (decodes > 0 or prompts >= 1)
    work = 2 * model.lm_head_params * decodes / (best if unit.weights == "mxfp4" else gpu.flops(unit.weights))
    for group, used in model.precisions(unit.weights).items():
        moved += model.group_params[group] * catalogue.bytes_per_value(used)
        work += 2 * model.group_params[group] * tokens / (best if used == "mxfp4" else gpu.flops(used))
    for layer in model.layers:
        for cache in layer.attention.caches:
            seen, first = min(context, cache.reach or context), min(fresh, cache.reach or fresh)
            moved += decodes * seen * layer.count * cache.size(catalogue.bytes_per_value(unit.kv))
            pairs = decodes * seen + prompts * first * (fresh - first / 2)
            work += 4 * layer.count * cache.width * pairs / best
    found = steps.floor_step(steps.floor_terms(unit.numbers), decodes, context, fresh, 0, prompts)
    assert found == pytest.approx(max(moved / gpu.hbm_bw, work) / unit.tp, rel=1e-6)


def test_a_mixture_reads_the_experts_that_its_tokens_choose():
    model, reached = MIXTURE.model, MIXTURE.coefficients
    bandwidth = MIXTURE.numbers.hbm_bw * reached.memory
    routed = 2 * model.routed_params / reached.experts
    rest = 2 * (model.n_params_total - model.routed_params + model.lm_head_params)
    one = MIXTURE.parts(1, 1)["weights"]
    assert one == pytest.approx((rest + routed * model.n_active_experts / model.n_experts) / bandwidth)
    eight = MIXTURE.parts(8, 1)["weights"]
    chosen = 1 - steps.unread(MIXTURE.terms, 8)
    assert eight == pytest.approx((rest + chosen * routed) / bandwidth)


@given(tokens=st.integers(1, 4096), cv=st.floats(0.05, 3), idle=st.floats(0.5, 0.999))
def test_experts_that_are_chosen_unevenly_are_left_unread_longer(tokens, cv, idle):
    """By the integral over a gamma distribution, which SymPy knows; one token reads its own, however uneven."""
    told = replace(MIXTURE.terms, idle=idle, chosen=-np.log(idle), uneven=cv**2)
    even, uneven = steps.unread(replace(told, uneven=0.0), tokens), steps.unread(told, tokens)
    assert even == pytest.approx(idle**tokens)
    assert even * (1 - 1e-9) <= uneven <= idle
    assert steps.unread(told, 1) == pytest.approx(idle)
    more = steps.unread(told, tokens + 1)
    assert more < uneven or max(more, uneven) < np.finfo(float).tiny  # below it floats have no more digits
    assert steps.unread(replace(told, uneven=1e-9), tokens) == pytest.approx(even, rel=1e-4, abs=1e-12)


def test_what_is_left_unread_is_the_mean_over_gamma_distributed_loads():
    x, shape, rate = sp.symbols("x k r", positive=True)
    density = shape**shape * x ** (shape - 1) * sp.exp(-shape * x) / sp.gamma(shape)
    mean = sp.simplify(sp.integrate(sp.exp(-rate * x) * density, (x, 0, sp.oo), conds="none"))
    told = replace(MIXTURE.terms, idle=0.9, chosen=-np.log(0.9), uneven=0.49)
    number = mean.subs({shape: 1 / 0.49, rate: 63 * told.chosen}).evalf()
    assert steps.unread(told, 64) == pytest.approx(0.9 * float(number))


@pytest.mark.parametrize(("groups", "largest"), [(2, 0.564), (4, 1.029), (8, 1.424), (16, 1.766), (64, 2.344)])
def test_the_busiest_group_is_the_largest_of_normal_numbers(groups, largest):
    """Order statistics of the normal distribution (Harter 1961), within 0.05; a group's load varies by the root."""
    assert steps.busiest(groups, 256) == pytest.approx(
        largest * (groups / 256) ** 0.5, abs=0.06 * (groups / 256) ** 0.5
    )
    assert steps.busiest(1, 256) == steps.busiest(groups, 0) == 0


@pytest.mark.parametrize(("experts", "chosen", "groups"), rest_long([(128, 8, 4), (256, 8, 8), (384, 8, 8)]))
@pytest.mark.parametrize("tokens", [1, 4, 16, 64, 256])
def test_the_gpu_that_reads_most_experts_reads_so_many_more(experts, chosen, groups, tokens):
    """Experts drawn at random, many times: nothing of the law in it."""
    rng = np.random.default_rng(0)
    drawn = rng.random((400, tokens, experts)).argpartition(chosen, axis=2)[:, :, :chosen]
    read = np.zeros((400, experts), bool)
    read[np.arange(400)[:, None], drawn.reshape(400, -1)] = True
    most = read.reshape(400, groups, -1).mean(axis=2).max(axis=1).mean()
    told = replace(MIXTURE.terms, idle=1 - chosen / experts, uneven=0.0, busiest=steps.busiest(groups, experts))
    assert steps.read_by_busiest(told, tokens, min) == pytest.approx(most, rel=0.08 if tokens == 1 else 0.03)


@given(tokens=st.integers(1, 4096), cv=st.floats(0, 3), idle=st.floats(0.5, 0.999), busiest=st.floats(0, 0.6))
def test_the_busiest_gpu_reads_no_less_than_the_mean_nor_more_than_it_has(tokens, cv, idle, busiest):
    told = replace(MIXTURE.terms, idle=idle, chosen=-np.log(idle), uneven=cv**2, busiest=busiest)
    mean, most = 1 - steps.unread(told, tokens), steps.read_by_busiest(told, tokens, min)
    assert mean * (1 - 1e-12) <= most <= 1
    assert steps.read_by_busiest(told, tokens + 1, min) >= most * (1 - 1e-12)


def test_a_prompt_s_cached_tokens_are_read_with_their_copies_and_no_products():
    spread_out = Unit.of("llama-3-8b", "h200-sxm", 16)  # eight KV heads: each is held twice
    bytes_held = 2 * spread_out.model.kv_token("bf16")
    assert terms(spread_out).caches[0].load == pytest.approx(
        bytes_held / (spread_out.numbers.hbm_bw * spread_out.coefficients.kv)
    )
    shape, rates = shape_of(catalogue.model("deepseek-v3"), 1), rates_of(catalogue.gpu("h20"))
    alone = replace(TP8, tp=1)
    numbers = steps.unit_numbers(shape, rates, alone, "fp8", "fp8", 0.9, steps.NO_INDEX)
    deep = steps.unit_terms(numbers, UNIT.found()).caches[0]
    assert deep.load < deep.read  # a decode's products in the latent space take longer than one copy's read


def test_gpus_that_share_sparse_attention_compute_as_long_as_one():
    """GLM-5 has 64 heads, as many as a kernel takes at least, and each GPU looks through its index. MLA divides."""
    for name, faster in (("glm-5", 1), ("deepseek-v3", 8)):
        one, eight = (
            steps.unit_terms(
                steps.unit_numbers(
                    shape_of(catalogue.model(name), tp), rates_of(catalogue.gpu("b200")),
                    replace(TP8, tp=tp), "fp8", "fp8", 0.9, steps.NO_INDEX,
                ),
                UNIT.found(),
            )
            for tp in (1, 8)
        )  # fmt: skip
        alone, shared = (steps.spans_of(told, 0, 8192, 0, min).pairs for told in (one, eight))
        assert alone == pytest.approx(faster * shared)


def test_sparse_attention_multiplies_in_the_latent_space_and_the_floor_does_not():
    model = catalogue.model("glm-5")
    shape, rates = shape_of(model, 1), rates_of(catalogue.gpu("b200"))
    numbers = steps.unit_numbers(shape, rates, TP8, "fp8", "fp8", 0.9, steps.NO_INDEX)
    for cache, least in zip(numbers.caches, steps.floor_terms(numbers).caches, strict=True):
        if cache.reach == 2048:
            assert cache.prompt_flops == cache.least_flops == cache.decode_flops > 2 * cache.pair_flops
        else:  # the index, in FP8 at twice the rate
            assert cache.prompt_flops == cache.least_flops == cache.decode_flops / 2
        assert least.pair == pytest.approx(cache.pair_flops / numbers.best_flops)


def test_what_groups_wait_for_is_the_fullest_one_s_and_what_experts_have_is_everyone_s():
    """Eight groups, and the parts that a prompt more adds: to all of them, or to the fullest only."""
    own, fresh = terms(Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8)), 5
    spans = steps.spans_of(own, 3000, fresh, 2000, min)
    base, more, fuller = (
        np.array(steps.parts_of(own, spans, 16, prompts, busy, max, min)) for prompts, busy in ((4, 3), (5, 3), (4, 4))
    )
    read = [steps.read_by_busiest(own, 16 + prompts * fresh, min) for prompts in (4, 5)]
    weights = (read[1] - read[0]) * own.routed
    assert weights > 0
    assert more - base == pytest.approx([weights, fresh * own.experts, 0, 0, 0, 0, 0], abs=1e-12)
    matrices = fresh * own.matrices + own.head
    waits = [0, matrices, spans.load, spans.pairs, fresh * own.move, fresh * own.links, 0]
    assert fuller - base == pytest.approx(waits, abs=1e-12)


def test_who_sends_together_keeps_all_groups_busy_beside_decodes_and_one_without():
    own = terms(Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8))
    for together, beside in ((True, 1 / 8), (False, 1.0)):
        told = replace(own, synchronized_arrivals=together)
        assert [steps.busiest_prompts(told, decodes, 1.0, max, min, expected_max_load) for decodes in (0, 9)] == [
            1.0,
            beside,
        ]
        assert steps.busiest_prompts(told, 0, 24.0, max, min, expected_max_load) == 3


def test_two_prompts_are_dealt_out_without_decodes_and_fall_on_groups_by_chance_beside_them():
    """Of eight groups the second is on the first one's with a chance of an eighth; half a decode is half of each."""
    own = terms(Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8))
    decodes = [0, 0.5, 1, 100]
    expected = pytest.approx([1, 1 + 1 / 16, 1 + 1 / 8, 1 + 1 / 8])
    assert [steps.busiest_prompts(own, beside, 2.0, max, min, expected_max_load) for beside in decodes] == expected
    both = np.full(4, 2.0), np.maximum, np.minimum, expected_max_loads
    assert steps.busiest_prompts(own, np.array(decodes), *both) == expected
    alone = terms(UNIT)
    assert steps.busiest_prompts(alone, 100, 2.5, max, min, expected_max_load) == 2.5


@pytest.mark.parametrize(("name", "indexed"), [("glm-5", 78), ("glm-5.2", 21), ("deepseek-v3", 0)])
def test_an_index_that_is_slower_and_chooses_takes_so_much_longer_for_a_suffix(name, indexed):
    """By hand: 6,400 tokens behind 57,600 look at 60,800 on average: 8,192 FLOP each of FP8's two thousand TFLOP."""
    model, rates = catalogue.model(name), rates_of(catalogue.gpu("h200-sxm"))
    pairs = []
    for index in (steps.NO_INDEX, Index(slower=2.0, choosing=1e-7)):
        numbers = steps.unit_numbers(shape_of(model, 8), rates, TP8, "fp8", "fp8", 0.9, index)
        told = steps.unit_terms(numbers, UNIT.found() | {"attention": 0.5})
        pairs.append(steps.spans_of(told, 0, 6400, 57600, min).pairs)
    looked = 6400 * 60800 * 2 * 32 * 128 / (0.5 * 2 * rates.flops["bf16"])
    assert pairs[1] - pairs[0] == pytest.approx(indexed * (looked + 6400 * 1e-7), rel=1e-3, abs=1e-12)


def test_kernels_that_fill_up_heads_compute_a_decode_as_a_prompt_s_token():
    """GLM-5 has 64 heads: eight GPUs compute as many each, so a decode's share of them does not fall."""
    model, reached = catalogue.model("glm-5"), UNIT.found() | {"kv": 1.0}
    reads = []
    for tp, layout in ((1, replace(TP8, tp=1)), (8, TP8)):
        shape, rates = shape_of(model, tp), rates_of(catalogue.gpu("b200"))
        numbers = steps.unit_numbers(shape, rates, layout, "fp8", "fp8", 0.9, steps.NO_INDEX)
        numbers = replace(numbers, caches=[replace(cache, bytes=0.0) for cache in numbers.caches])  # multiplied alone
        reads.append([cache.read for cache in steps.unit_terms(numbers, reached).caches])
    assert reads[0] == pytest.approx(reads[1])


def test_a_chunk_sees_its_own_tokens_and_no_window_before_it():
    """Eight chunks of 8,192: an eighth of what full attention computes, half of what a window would."""
    assert steps.pairs_of(65_536, 8192, True, min) == 8 * 8192**2 / 2
    assert steps.pairs_of(65_536, 8192, True, min) == pytest.approx(steps.pairs_of(65_536, 1e15, False, min) / 8)
    assert steps.pairs_of(65_536, 8192, False, min) == pytest.approx(5.03e8, rel=0.001)
    assert steps.pairs_of(5000, 8192, True, min) == steps.pairs_of(5000, 8192, False, min) == 5000**2 / 2
    grid = np.array([100.0, 8191.0, 8192.0, 30_000.0])
    assert steps.seen_of(grid, 8192, True, np.minimum).tolist() == [100.0, 8191.0, 4096.0, 4096.0]
    assert steps.seen_of(30_000, 8192, False, min) == 8192


def test_a_unit_with_chunks_pays_for_what_they_see():
    unit = Unit.of("llama-4-scout", "h200-sxm", 8)
    chunks, cost = terms(unit), Steps(unit)
    windows = replace(chunks, caches=[replace(cache, aligned=False) for cache in chunks.caches])
    for decodes, context, fresh, prompts in ((32, 40_000, 0, 0), (0, 0, 65_536, 1)):
        pair = [steps.step(one, decodes, context, fresh, 0, prompts) for one in (chunks, windows)]
        assert pair[0] < pair[1]
    assert steps.step(chunks, 8, 4000, 4000, 0, 1) == steps.step(windows, 8, 4000, 4000, 0, 1)
    for context in (1000, 32 * 8191, 32 * 8192, 32 * 40_000):  # the simulator's line is the step
        fixed, per_token, low, high = cost.line(32, context)
        assert fixed + per_token * context == pytest.approx(cost(32, context))
        assert low <= context <= high


def test_the_lm_head_and_the_least_of_four_bits_by_hand():
    """Who expands four bits may expand them to what the GPU multiplies fastest: FP8 on Hopper, FP4 on Blackwell."""
    model = catalogue.model("gpt-oss-120b")
    for name in ("h100-sxm", "b200", "a100-80gb"):
        gpu = catalogue.gpu(name)
        numbers = steps.unit_numbers(shape_of(model, 8), rates_of(gpu), TP8, "mxfp4", "bf16", 0.9, steps.NO_INDEX)
        fastest = max(gpu.bf16_flops, gpu.fp8_flops or 0, gpu.fp4_flops or 0)
        assert numbers.head_seconds == pytest.approx(2 * model.lm_head_params / (8 * gpu.bf16_flops))
        assert numbers.least_head_seconds == pytest.approx(2 * model.lm_head_params / (8 * fastest))
        params = model.group_params["experts"]
        assert numbers.experts.least == pytest.approx(2 * params / (8 * fastest))
        assert numbers.experts.seconds == pytest.approx(2 * params / (8 * (gpu.fp4_flops or gpu.bf16_flops)))


@pytest.mark.parametrize("unit", [UNIT, Unit.of("deepseek-v3", "h200-sxm", 8, engine="sglang")])
def test_a_decode_s_products_and_its_reads_are_joined_as_in_a_kernel(unit):
    reached, layers = unit.coefficients, unit.model.n_layers
    held = sum(cache.copies * cache.bytes for cache in unit.numbers.caches)
    read = held / (unit.numbers.hbm_bw * reached.kv)
    looked = layers * unit.model.decode_flops / (unit.numbers.half_flops * reached.decode_attention)
    assert steps.kv_read(terms(unit), 2048) == pytest.approx(2048 * np.hypot(read, looked))
    drafting = steps.unit_terms(steps.drafting(unit.numbers, 3, 0.8), unit.found())
    assert steps.kv_read(drafting, 2048) == pytest.approx((1 + 3 / layers) * 2048 * np.hypot(read, 4 * looked))


def test_a_decode_that_drafts_brings_its_drafts_into_the_products():
    drafting = steps.unit_terms(steps.drafting(UNIT.numbers, 3, 0.8), UNIT.found())
    spans = [(one, steps.spans_of(one, 1000, 0, 0, min)) for one in (terms(UNIT), drafting)]
    plain, four = (steps.parts(one, of, 8, 0, max, min, expected_max_load)[1] for one, of in spans)
    head = drafting.head
    longer = 1 + 3 / 80
    assert four == pytest.approx(longer * 4 * (plain - 8 * head) + longer * 32 * head)


def test_a_floor_counts_chunks_that_begin_anew_by_their_first_only():
    scout = Unit.of("llama-4-scout", "h200-sxm", 8)
    floor = steps.floor_terms(scout.numbers)
    chunks = [cache for cache in floor.caches if cache.aligned]
    assert chunks
    whole = replace(floor, caches=[cache for cache in floor.caches if not cache.aligned])
    for cached, fresh, counted in ((0, 8000, True), (4000, 4000, True), (4000, 5000, False), (0, 20_000, False)):
        pair = [steps.floor_step(one, 0, 0, fresh, cached, 1) for one in (floor, whole)]
        assert (pair[0] > pair[1]) is counted, (cached, fresh)


def test_the_state_of_linear_attention_is_read_and_written():
    """45 of 60 layers keep 1,085,440 values in FP32; each decode takes all of them from HBM and puts them back."""
    unit = Unit.of("qwen3.5-397b-a17b", "b200", 8)
    held = 45 * 1_085_440 * 4
    assert unit.numbers.state_bytes == held
    bandwidth = 8 * unit.gpu.hbm_bw * unit.coefficients.kv
    assert terms(unit).state == pytest.approx(2 * held / bandwidth)


def test_a_token_goes_to_its_experts_in_one_byte_a_value_and_comes_back_in_two():
    """DeepSeek-V3: 58 layers with 8 experts of 256 for each token, 7,168 values, in eight groups of attention."""
    numbers = Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8).numbers
    assert numbers.spread_bytes == pytest.approx(58 * 8 * 7168 * (1 + 2))


def test_what_is_written_is_one_copy_over_a_group_s_own_links():
    numbers = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8").numbers
    each, work = numbers.caches[0].bytes, replace(Workload(2000, 300), alpha=0.5)
    two = replace(numbers, layout=replace(numbers.layout, dp=2))
    assert steps.kv_moved(two, work, 1e9) == pytest.approx(2 * steps.kv_moved(numbers, work, 1e9))
    assert steps.kv_written(numbers, replace(work, alpha=1.0)) == pytest.approx(301 * each)
    twice = replace(numbers, caches=[replace(one, copies=2) for one in numbers.caches])
    assert steps.kv_written(twice, work) == pytest.approx(1300 * each)
