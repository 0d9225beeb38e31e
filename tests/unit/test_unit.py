import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refused
from setups import SETUPS

from inference_math import Unit, Workload, catalogue, evidence, simulate, theory
from inference_math.unit.coefficients import imbalance
from inference_math.unit.operators import Operators

TALK = Unit.of("llama-3-70b", "h100-sxm", tp=2, weights="fp8", kv="fp8")


def test_no_prediction_beats_the_floor():
    """Which `test_steps` adds up by hand; for every model, on GPUs of four kinds, in every layout."""
    grid = [each.ravel() for each in np.meshgrid([0, 1, 7, 500], [1, 2000, 100_000], [0, 1, 128, 30_000])]
    decodes, context, prefill = (each[grid[0] + grid[2] > 0] for each in grid)
    units = {id(unit): unit for unit, *_ in SETUPS if not unit.drafts}.values()
    assert {unit.model.name for unit in units} == set(catalogue.MODELS)
    for unit in units:
        least = unit.floor.step_time(decodes, context, prefill)
        assert (unit.step_time(decodes, context, prefill) >= least * (1 - 1e-12)).all(), unit.name


@given(decodes=st.floats(0, 500), context=st.floats(1, 50_000), tokens=st.integers(0, 8192))
def test_more_work_never_takes_less_time(decodes, context, tokens):
    one = TALK.step_time(decodes, context, tokens)
    assert TALK.step_time(decodes + 1, context, tokens) >= one
    assert TALK.step_time(decodes, context + 1, tokens) >= one
    assert TALK.step_time(decodes, context, tokens + 1) >= one
    assert TALK.step_time(decodes, context, tokens, cached=100) >= one


@given(n_in=st.integers(2, 20_000), share=st.floats(0, 0.99))
def test_a_cached_prefix_saves_its_tokens_not_the_attention_to_them(n_in, share):
    cached = int(min(share * n_in, n_in - 1))
    whole, rest = TALK.prefill_time(n_in), TALK.prefill_time(n_in, cached=cached)
    assert rest <= whole * (1 + 1e-12)
    assert rest >= TALK.prefill_time(n_in - cached) * (1 - 1e-12)
    # Two prompts at once share the weight read.
    assert TALK.prefill_time(n_in, batch=2) <= 2 * whole


@pytest.mark.parametrize(("model", "tp", "precision"), [("llama-3-8b", 1, "bf16"), ("llama-3-70b", 2, "fp8")])
def test_a_step_is_near_its_measured_operators(model, tp, precision):
    """Within a fifth of the sum of operators at each point of the table that is no cache effect."""
    unit = Unit.of(model, "h100-sxm", tp=tp, weights=precision, kv=precision)
    # What an engine adds for a request is in no kernel.
    kernels = dataclasses.replace(unit.coefficients, per_sequence_overhead=0.0)
    unit = unit.calibrated(dataclasses.replace(unit.calibration, coefficients=kernels))
    steps = Operators(unit.model, tp=tp, weights=precision, kv=precision).steps().query("not in_l2")
    ratio = unit.step_time(steps.batch.to_numpy(), steps.context.to_numpy()) / steps.total
    assert ratio.between(0.8, 1.35).all()
    assert ratio.mean() == pytest.approx(1.05, abs=0.08)  # activations are in the unit, in no operator


def test_silybench_is_predicted_zero_shot():
    """The bar: 6.5 % of the end-to-end latency on points that nothing was fitted to [Qwen3-8B, vLLM 0.30]."""
    rows = evidence.load("silybench").frame.query("used")
    errors = []
    for row in rows.itertuples():
        unit = Unit.of("qwen3-8b", "h100-sxm", weights=row.precision, kv="bf16")
        work = Workload(row.prompt_tokens, row.output_tokens)
        errors.append(unit.e2e(work, row.concurrency) / row.e2e_s - 1)
        assert unit.floor.e2e(work, row.concurrency) < row.e2e_s
    assert len(errors) == 67
    assert np.mean(np.abs(errors)) <= 0.065


def test_the_parts_are_the_formulas_by_name_and_make_the_step():
    """32 decodes of Llama-3-70B beside 512 tokens of a prompt, added up by hand; and the decodes alone."""
    c, gpu, llama = TALK.coefficients, catalogue.gpu("h100-sxm"), catalogue.model("llama-3-70b")
    memory = {"hbm_bw": 2 * gpu.hbm_bw, "eff_memory": c.memory}
    read = theory.read_time(step_bytes=32 * 2048 * llama.kv_token("fp8"), hbm_bw=2 * gpu.hbm_bw, eff_memory=c.kv)
    # Each cached token is multiplied with the queries of a decode: 4 FLOPs a value and layer.
    looked = 32 * 2048 * 4 * 80 * 8192 / (2 * gpu.bf16_flops * c.decode_attention)
    # Per layer, token and GPU, in values: matrices in and out, then norms, rotation, activation.
    h, q, kv, f = 8192, 4096, 1024, 14336
    values = (h + q + kv) + (q + h) + (h + 2 * f) + (f + h) + 8 * h + 2 * (q + kv / 2) + 3 * f
    for tokens, sampled, prompt in ((544, 33, 512), (32, 32, 0)):
        parts = TALK.parts(32, 2048, prompt)
        sums = theory.allreduce_time(sum_bytes=tokens * 2 * 80 * 8192 * 2, tp=2, link_bw=gpu.link_bw)
        matrices = theory.matrix_time(
            n_params=llama.n_params, tokens=tokens, flops=2 * gpu.fp8_flops, eff_compute=c.fp8
        ) + theory.matrix_time(
            n_params=llama.lm_head_params, tokens=sampled, flops=2 * gpu.bf16_flops, eff_compute=c.bf16
        )
        assert parts == pytest.approx(
            {
                "weights": theory.read_time(step_bytes=llama.n_params + 2 * llama.lm_head_params, **memory),
                "matrices": matrices,
                "KV cache": np.hypot(read, looked),
                "attention of the prompt": 4 * 80 * 8192 * prompt**2 / 2 / (2 * gpu.bf16_flops * c.attention),
                "activations": theory.read_time(
                    step_bytes=tokens * 80 * 2 * values, hbm_bw=gpu.hbm_bw, eff_memory=c.memory
                ),
                "all-reduce": sums / c.interconnect_efficiency,
                "layers": 80 * (c.layer + c.collective_latency + 32 * c.per_sequence_overhead),
            },
            rel=1e-12,
        )
        step = theory.step_time(t_w=parts.pop("weights"), t_c=parts.pop("matrices"), t_rest=sum(parts.values()))
        assert TALK.step_time(32, 2048, prompt) == pytest.approx(step, rel=1e-12)


def test_counted_experts_take_the_place_of_fitted_ones_and_stay():
    """The more unevenly they are chosen, the fewer are read, and the longer the busiest GPU computes."""
    even, uneven = (Unit.of("gpt-oss-120b", "h100-sxm", 2, expert_imbalance=c) for c in (0.0, 2.5))
    assert (even.coefficients.expert_imbalance, uneven.coefficients.expert_imbalance) == (0.0, 2.5)
    assert even.calibration.sd("expert_imbalance") == 0
    assert uneven.step_time(32, 1000) < even.step_time(32, 1000)
    spread_out = [Unit.of("gpt-oss-120b", "h100-sxm", 4, ep=4, expert_imbalance=c) for c in (0.0, 2.5)]
    assert spread_out[1].prefill_time(30_000) > spread_out[0].prefill_time(30_000)
    assert uneven.resized(tp=4).coefficients.expert_imbalance == 2.5
    # 4 of 128 experts: at most the root of 31.
    assert Unit.of("gpt-oss-120b", "h100-sxm", 2, expert_imbalance=5.56).coefficients.expert_imbalance == 5.56


def test_arguments_broadcast():
    assert TALK.step_time(np.ones((3, 1)), np.ones(4)).shape == (3, 4)
    assert isinstance(TALK.step_time(32, 2048), float)
    decodes = np.linspace(1, 256, 5)
    assert TALK.step_time(decodes, 2048).tolist() == [TALK.step_time(d, 2048) for d in decodes]


def test_token_time_and_decode_share():
    assert TALK.token_time(2048) == pytest.approx(TALK.prefill_time(2048) / 2048)
    share = TALK.decode_share(np.array([0, 1, 64, 4096]))
    assert (np.diff(share) > 0).all()
    assert share[0] == 0
    # z is the slope of the step beside what adds in any case: activations and all-reduce.
    step = TALK.step_time(np.array([64 - 0.5, 64 + 0.5]), 0)
    terms = TALK.terms
    slope = np.diff(step)[0] - terms.move - terms.links - terms.request
    assert slope / (terms.matrices + terms.head) == pytest.approx(share[2], rel=1e-3)


WORK = Workload(2048, 170)


@pytest.mark.parametrize("quantity", ["ttft", "tpot", "e2e"])
def test_intervals_hold_the_value_and_keep_the_floor(quantity):
    users = np.array([1, 8, 64])
    found = TALK.predict(quantity, WORK, users)
    assert found.value == pytest.approx(getattr(TALK, quantity)(WORK, users))
    assert (found.low < found.value).all()
    assert (found.value < found.high).all()
    assert (found.low >= getattr(TALK.floor, quantity)(WORK, users)).all()
    sure, narrow = TALK.at_datasheet.predict(quantity, WORK, 8), TALK.predict(quantity, WORK, users, level=0.5)
    assert sure.low == sure.value == sure.high
    assert (narrow.high - narrow.low < found.high - found.low).all()
    assert found.mode == "zero-shot"
    assert not found.outside


def test_a_prediction_says_what_was_never_calibrated():
    found = Unit.of("deepseek-v3", "mi325x", tp=8, kv="fp8").predict("tpot", Workload(20_000, 100), 4)
    assert [line.split()[0] for line in found.outside] == ["GPU", "prompt"]
    assert "mi325x" in str(found)
    old = Unit.of("opt-13b", "h100-sxm").predict("tpot", Workload(8000, 100), 4)
    assert "longer than the 2,048 that opt-13b was made for" in str(old)
    long = Unit.of("opt-13b", "a100-80gb").outside(Workload(100, 10, longest=3000), 1)
    assert any("a request of 3,000 tokens is longer" in line for line in long)
    (line,) = TALK.predict("tpot", WORK, 500).outside
    assert "that the KV cache holds" in line
    assert Unit.of("mixtral-8x7b", "h100-sxm", tp=4).kind == "mixture of experts"


OWN = dataclasses.replace(catalogue.gpu("mi355x"), name="mine", generation="gfx950")


def test_bad_units():
    good = {"model": "llama-3-70b", "gpu": "h100-sxm", "tp": 2, "weights": "fp8"}
    wrong = [
        {"model": "llama-9"}, {"model": 3}, {"gpu": None}, {"gpu": "h1000"}, {"weights": "int3"}, {"tp": 3}, {"tp": 0},
        {"engine": "mine"}, {"async_scheduling": 1}, {"expert_imbalance": 1.0}, {"ep": 2}, {"dp": 0}, {"pp": 81},
        {"memory": 1.2}, {"kv": "nvfp4"},
    ]  # fmt: skip
    refused(Unit.of, good, *wrong)
    refused(Unit.of, good | {"gpu": "mi300x"}, {"engine": "trtllm"})
    refused(Unit.of, good | {"gpu": OWN}, {"engine": "trtllm"})
    refused(Unit.of, good | {"engine": "sglang"}, {"async_scheduling": True})
    mixture = good | {"model": "gpt-oss-120b", "weights": "mxfp4"}
    refused(Unit.of, mixture, {"expert_imbalance": -1.0}, {"expert_imbalance": 5.6})
    refused(Unit.of, good | {"gpu": "a100-80gb"}, {"weights": "fp8"})
    refused(Unit.of, good | {"weights": "bf16"}, {"tp": 1})
    with pytest.raises(ValueError, match=r"ep must divide the 8 experts of mixtral-8x7b, of .*, not 16: 1, 2, 4, 8 do"):
        Unit.of("mixtral-8x7b", "h100-sxm", 2, ep=16, dp=8)


def test_bad_questions():
    refused(TALK.step_time, {"decodes": 1, "context": 10}, {"decodes": -1}, {"context": np.inf})
    refused(TALK.prefill_time, {"n_in": 100}, {"cached": 100})
    refused(TALK.tpot, {"work": Workload(10, 10)}, {"concurrency": 0})
    asked = {"quantity": "tpot", "work": WORK, "concurrency": 1}
    refused(TALK.predict, asked, {"quantity": "itl"}, {"level": 1.2})
    refused(TALK.resized, {"drafts": 2, "accepted": 0.5}, {"accepted": 1.5}, {"drafts": 17})
    refused(imbalance, {}, {"chosen": [0, 0]})
    with pytest.raises(ValueError, match=r"drafts must be 0 for the talks' numbers, .* not 2"):
        TALK.resized(drafts=2, accepted=0.5).costs(WORK)


def test_between_two_batches_the_mean_is_between_theirs():
    low, high = TALK.tpot(WORK, 3), TALK.tpot(WORK, 4)
    assert TALK.tpot(WORK, 3.25) == pytest.approx(0.75 * low + 0.25 * high, rel=1e-12)


def test_importing_takes_no_tables():
    """Not one file of the data is opened before a table is asked for."""
    code = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import inference_math.unit
from inference_math import evidence
tables = lambda: [name for name in opened if name.startswith(str(evidence.data_dir()))]
assert not tables(), tables()
evidence.load("mlenergy")
assert tables(), "the hook sees nothing"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_cached_prefix_is_read():
    """The last token of a long prompt costs what a decode at that context costs."""
    unit = Unit.of("qwen3-8b", "h100-sxm")
    assert unit.prefill_time(300_000, cached=299_999) == pytest.approx(unit.step_time(1, 300_000), rel=0.02)
    chunk = simulate.Steps(unit)(8, 8 * 2048, 0.25, 512, 512 * (1536 + 256))
    assert chunk == pytest.approx(unit._step(8, 2048, 512, 1536, 1.0), rel=1e-3)


def test_caches_are_held_more_than_once_where_gpus_outnumber_kv_heads():
    room = {tp: Unit.of("llama-3-8b", "h200-sxm", tp).kv_capacity for tp in (8, 16)}
    assert room[16] < 1.1 * room[8]  # eight KV heads: the second half of the GPUs holds copies
    deep = Unit.of("deepseek-v3", "h200-sxm", 8, "fp8", "fp8")
    free = 8 * (0.9 * deep.gpu.driver_bytes - 3e9) - deep.model.weight_bytes("fp8")
    assert deep.kv_capacity == pytest.approx(free / 8 / deep.model.kv_token("fp8"))


def test_what_is_left_for_caches_is_left_by_the_weights_as_they_lie_in_memory():
    oss = Unit.of("gpt-oss-120b", "h100-sxm")
    assert oss.numbers.kv_room == pytest.approx(oss.gpu.room(0.9) - oss.model.loaded_bytes("mxfp4"))
    assert oss.numbers.kv_room < 5e9
    assert oss.places(Workload(2000, 200)) < 65


def test_experts_all_of_which_are_active_are_a_dense_model():
    mixtral = catalogue.model("mixtral-8x7b")
    dense = dataclasses.replace(mixtral, n_active_experts=8)
    assert np.isfinite(Unit.of(dense, "h200-sxm", 4).step_time(1, 100))


# --- drafted tokens ---------------------------------------------------------------------------------


def test_drafts_that_are_never_accepted_only_cost_and_a_name_says_how_many_there_are():
    drafting = TALK.resized(drafts=3, accepted=0.0)
    assert drafting.tokens_a_step == 1
    assert drafting.tpot(WORK, 8) > TALK.tpot(WORK, 8)
    assert TALK.resized(drafts=2, accepted=0.5).name.endswith("vllm, 2 drafts, 1.75 tokens a step")


def test_drafts_that_are_all_accepted_share_one_step():
    drafting = TALK.resized(drafts=3, accepted=1.0)
    assert drafting.tokens_a_step == 4
    alone = drafting.step_time(1, 2048 + 85)
    assert drafting.tpot(Workload(2048, 170), 1) == pytest.approx(alone / 4)
    # Verifying takes little more than a step where the weight read decides, and each draft a layer of its own.
    bare = TALK.step_time(1, 2048 + 85)
    assert bare * (1 + 3 / 80) * 0.99 < alone < 1.1 * bare


# --- GPUs that divide the work ----------------------------------------------------------------------


def test_stages_and_groups_divide_requests():
    whole = Unit.of("llama-3-70b", "h100-sxm", 4, "fp8")
    staged = Unit.of("llama-3-70b", "h100-sxm", 4, "fp8", pp=2)
    assert staged.gpus == 8
    # A round of all stages is a step of half the requests on the GPUs of one.
    assert staged.step_time(64, 2000) == pytest.approx(whole.step_time(32, 2000))
    assert staged.prefill_time(2048) == pytest.approx(whole.prefill_time(2048))
    assert staged.kv_capacity > 2 * whole.kv_capacity


def test_weights_that_fit_beside_nothing_else_are_refused():
    """70.6 GB of each of two GPUs: nine tenths of 85.5 leave room beside what an engine needs, 0.85 do not."""
    assert Unit.of("llama-3-70b", "h100-sxm", 2, "bf16", memory=0.9).numbers.kv_room > 0
    with pytest.raises(ValueError, match="tp must be at least 4 for llama-3-70b in bf16 on h100-sxm at 85% of its"):
        Unit.of("llama-3-70b", "h100-sxm", 2, "bf16", memory=0.85)


def test_groups_hold_no_copies_of_latents():
    shared, apart = (Unit.of("deepseek-v3", "h200-sxm", **layout) for layout in ({"tp": 8}, {"dp": 8, "ep": 8}))
    copies = [{cache.copies for cache in unit.numbers.caches} for unit in (apart, shared)]
    assert copies == [{1}, {8}]
    assert apart.kv_capacity > 5 * shared.kv_capacity
    assert apart.name == "deepseek-v3 (fp8, KV bf16) on 8 x h200-sxm (ep 8, dp 8), vllm"


def test_a_cache_nobody_names_is_the_checkpoint_s_or_what_the_engine_takes_by_itself():
    """SGLang keeps latents that an index chooses in FP8 on Blackwell, and nothing else."""
    mine = dataclasses.replace(catalogue.model("llama-3-8b"), stored_kv="fp8")
    assert Unit.of(mine, "h100-sxm").name == "llama-3-8b (bf16, KV fp8, as its checkpoint has it) on 1 x h100-sxm, vllm"
    assert Unit.of(mine, "h100-sxm", kv="bf16").kv == "bf16"
    found = {(m, g, e): Unit.of(m, g, 8, engine=e).name for m in ("glm-5", "deepseek-v3") for g in ("h200-sxm", "b200")
             for e in ("vllm", "sglang")}  # fmt: skip
    (only,) = [key for key, name in found.items() if "KV fp8" in name]
    assert only == ("glm-5", "b200", "sglang")
    assert found[only] == "glm-5 (fp8, KV fp8, as sglang has it untold) on 8 x b200, sglang"
