"""What measured operators say of a unit before a served point is asked."""

from dataclasses import replace

import pytest
from msgspec.structs import asdict

from inference_math import Unit, Workload, catalogue
from inference_math.catalogue.engines import engine as engine_record, engines
from inference_math.evidence import load
from inference_math.unit.coefficients import SHARES
from inference_math.unit.kernels import ENGINES, PROJECTIONS, TABLED, kernels
from inference_math.unit.mixing import MOST, kernel_values
from inference_math.unit.nearest import coefficient_key, levels
from inference_math.unit.steps import NO_INDEX, index_of

KERNELS = kernels()
TABLE = load("operators").frame


def found(model, gpu, weights, engine="vllm", **more):
    at = coefficient_key(catalogue.model(model), catalogue.gpu(gpu), weights, engine, **more)
    return kernel_values(KERNELS, levels().intercept[at.levels["engine"]], at)


def row(**key):
    rows = TABLE[(TABLE[list(key)] == list(key.values())).all(axis=1)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_the_gpus_and_engines_are_those_of_the_table():
    assert set(TABLED) == set(TABLE.gpu)
    assert {*ENGINES, "nccl"} == set(TABLE.engine)  # whose collectives are in no unit
    assert set(KERNELS.like) == set(catalogue.GPUS)
    assert {engine_record(name).like or name for name in engines()} <= set(ENGINES)


def test_a_gpu_without_tables_has_those_of_its_generation_or_of_the_h100():
    table = KERNELS.like
    assert (table["h200-sxm"], table["h20"], table["a6000"], table["mi300x"]) == (
        "h200-sxm", "h100-sxm", "a100-80gb", "h100-sxm",
    )  # fmt: skip
    assert found("llama-3-8b", "h20", "fp8") == found("llama-3-8b", "h100-sxm", "fp8")


def test_a_dense_unit_has_the_curves_of_its_engine_on_its_gpu():
    told = found("llama-3-70b", "b200", "fp8", "trtllm", kv="fp8", together=4)
    product = row(kind="matrix product", gpu="b200", engine="trtllm", precision="fp8")
    plain = row(kind="matrix product", gpu="b200", engine="trtllm", precision="bf16")
    assert (told["memory"], told["fp8"], told["bf16"]) == (product.memory, product.compute, plain.compute)
    reads = row(kind="attention, decode", gpu="b200", engine="trtllm", precision="fp8", variant="head 128")
    looks = row(kind="attention, prefill", gpu="b200", engine="trtllm", precision="bf16", variant="head 128")
    assert told["kv"] == reads.memory
    assert told["attention"] == told["decode_attention"] == looks.compute  # a decode's reads tell no compute
    links = row(kind="all-reduce", gpu="b200", engine="trtllm", variant="4 GPUs")
    assert told["interconnect_efficiency"] == links.memory
    assert told["collective_latency"] == pytest.approx(2e-6 * links.a0_us)
    # Four products at the launch of BF16 (FP8's holds a kernel that the engine fuses), both of the fastest engine.
    same = TABLE[(TABLE.kind == "attention, decode") & (TABLE.gpu == "b200") & (TABLE.variant == "head 128")]
    launch = launch_of("b200")
    assert launch < plain.a0_us < product.a0_us / 2
    assert told["launch"] == pytest.approx(1e-6 * (4 * launch + same[same.counts == "yes"].a0_us.min()))


def launch_of(gpu):
    rows = TABLE[(TABLE.kind == "matrix product") & (TABLE.gpu == gpu) & (TABLE.precision == "bf16")]
    return rows[rows.a0_us > 1].a0_us.min()


def test_a_curve_whose_points_tell_no_launch_lends_none():
    """TensorRT-LLM's products on the L40S: the fit ends at the least that a curve may have."""
    assert row(kind="matrix product", gpu="l40s", engine="trtllm", precision="bf16").a0_us == 1
    assert KERNELS.products["trtllm"]["l40s"]["bf16"].launch == pytest.approx(1e-6 * launch_of("l40s"))
    assert launch_of("l40s") > 2


def test_experts_that_all_are_chosen_alike_come_before_those_by_a_power_law():
    """TensorRT-LLM's even ones in NVFP4 are unlike their form on the B200: vLLM's stand in, not its uneven ones."""
    key = {"kind": "experts", "gpu": "b200", "precision": "nvfp4"}
    own = row(engine="trtllm", variant="balanced", **key)
    uneven, other = row(engine="trtllm", variant="power_law_1.2", **key), row(engine="vllm", variant="balanced", **key)
    assert (own.counts, uneven.counts, other.counts) == ("unlike its form", "yes", "yes")
    assert KERNELS.experts["trtllm"]["b200"]["nvfp4"].compute == other.compute > uneven.compute


def test_fp8_experts_that_read_slower_than_bf16_are_passed_over_for_blocks():
    """vLLM's with one scale on the H100 count, but were timed without a configuration."""
    key = {"kind": "experts", "gpu": "h100-sxm", "engine": "vllm", "variant": "balanced"}
    one, blocks, plain = (row(precision=name, **key) for name in ("fp8", "fp8_block", "bf16"))
    assert one.counts == "yes"
    assert 2 * one.memory < plain.memory
    assert KERNELS.experts["vllm"]["h100-sxm"]["fp8"].memory == blocks.memory


def test_a_host_bound_table_does_not_count():
    """vLLM's products in FP8 with scales of blocks take a launch of 140 µs on the B200: another precision stands in."""
    slow = row(kind="matrix product", gpu="b200", engine="vllm", precision="fp8_block")
    assert slow.counts == "host-bound"
    told = found("deepseek-v3", "b200", "fp8", "vllm")
    assert told["fp8"] == row(kind="matrix product", gpu="b200", engine="vllm", precision="fp8").compute
    other = found("deepseek-v3", "b200", "fp8", "sglang")
    assert other["fp8"] == row(kind="matrix product", gpu="b200", engine="sglang", precision="fp8_block").compute


def test_experts_reach_shares_of_what_the_law_asks_for():
    """Experts in MXFP4 run at the rate of FP8 there, and the law of a step divides by that of four bits."""
    told = found("gpt-oss-120b", "b200", "mxfp4", "trtllm")
    key = {"kind": "experts", "gpu": "b200", "engine": "trtllm", "precision": "mxfp4 x mxfp8", "variant": "balanced"}
    gpu, experts = catalogue.gpu("b200"), row(**key)
    assert told["grouped"] * told["fp4"] * gpu.fp4_flops == pytest.approx(experts.compute * gpu.fp8_flops, rel=1e-3)
    assert told["experts"] * told["memory"] == pytest.approx(experts.memory)


def test_decodes_in_latent_attention_have_a_share_of_their_own():
    """SGLang's prompts reach a fifth of the compute on Hopper there, and its decodes most of it."""
    told = found("deepseek-v3", "h200-sxm", "fp8", "sglang")
    key = {"gpu": "h200-sxm", "engine": "sglang", "precision": "bf16"}
    prompts, decodes = (row(kind=f"MLA, {phase}", **key).compute for phase in ("prefill", "decode"))
    assert (told["attention"], told["decode_attention"]) == (prompts, decodes)
    assert decodes > 3 * prompts


def test_latent_attention_has_five_products_and_its_own_kernels():
    experts = KERNELS.experts["sglang"]["h200-sxm"]["fp8 blocks"].launch
    told = found("deepseek-v3", "h200-sxm", "fp8", "sglang")
    model = catalogue.model("deepseek-v3")
    mixed = sum(layer.count for layer in model.layers if layer.ffn.experts) / model.n_layers
    mla = KERNELS.attention["sglang"]["h200-sxm"]["MLA, bf16"].launch
    # Shared experts everywhere, a router where experts are: 5 + 2 + mixed products.
    products = (7 + mixed) * launch_of("h200-sxm") * 1e-6
    assert told["launch"] == pytest.approx(products + mla + mixed * experts)


def test_attention_with_an_index_launches_its_block_and_no_projection_besides():
    """GLM-5 has one; where no block was timed it has the launches of its parts."""
    blocks = TABLE[(TABLE.kind == "sparse block, decode") & (TABLE.gpu == "h200-sxm") & (TABLE.counts == "yes")]
    told, model = found("glm-5", "h200-sxm", "fp8", "sglang"), catalogue.model("glm-5")
    mixed = sum(layer.count for layer in model.layers if layer.ffn.experts) / model.n_layers
    experts = KERNELS.experts["sglang"]["h200-sxm"]["fp8 blocks"].launch
    others = (2 + mixed) * launch_of("h200-sxm") * 1e-6 + mixed * experts
    assert told["launch"] == pytest.approx(others + 1e-6 * blocks.a0_us.min())
    for engine in ENGINES:  # where no block was timed, the launches of its parts, and prompts of the H100
        own, product = KERNELS.attention[engine]["l40s"], KERNELS.products[engine]["l40s"]["bf16"].launch
        for kv in ("bf16", "fp8"):
            dense, other = own[f"MLA, {kv}"], KERNELS.attention[engine]["h100-sxm"][f"sparse, {kv}"]
            parts = {name: getattr(other, name) for name in ("compute", "slower", "choosing")}
            parts["launch"] = dense.launch + PROJECTIONS * product
            assert asdict(own[f"sparse, {kv}"]) == pytest.approx(asdict(dense) | parts)


@pytest.mark.parametrize(("engine", "kv", "theirs"), [("sglang", "fp8", "fp8"), ("trtllm", "fp8", "bf16")])
def test_prompts_that_see_what_an_index_chooses_have_their_own_curve(engine, kv, theirs):
    """By the precision of the cache, where it was timed."""
    curve = row(kind="sparse attention, prefill", gpu="h200-sxm", engine=engine, precision=theirs)
    assert found("glm-5", "h200-sxm", "fp8", engine, kv=kv)["attention"] == curve.compute
    told = index_of(KERNELS, engine, "h200-sxm", f"sparse, {kv}")
    assert told.slower * curve["index"] == pytest.approx(curve.compute, rel=1e-3)
    assert told.choosing == pytest.approx(1e-9 * curve.choosing_ns)
    assert index_of(KERNELS, engine, "h200-sxm", f"MLA, {kv}") == NO_INDEX


@pytest.mark.parametrize(("engine", "kv", "whose", "theirs"), [
    ("sglang", "fp8", "sglang", "fp8"), ("vllm", "fp8", "vllm", "fp8"), ("trtllm", "fp8", "trtllm", "bf16"),
])  # fmt: skip
def test_decodes_that_read_what_an_index_chooses_have_their_own_curve(engine, kv, whose, theirs):
    """SGLang's kernel for whole latents in FP8 reads at 6 % of the bandwidth on Hopper: sparse decodes run another."""
    curve = row(kind="sparse attention, decode", gpu="h200-sxm", engine=whose, precision=theirs)
    told = found("glm-5", "h200-sxm", "fp8", engine, kv=kv)
    assert (told["kv"], told["decode_attention"]) == (curve.memory, curve.compute)
    assert told["kv"] > 0.5


@pytest.mark.parametrize("engine", list(engines()))
@pytest.mark.parametrize("gpu", list(catalogue.GPUS))
def test_whatever_is_asked_shares_are_shares(engine, gpu):
    for model in catalogue.MODELS.values():
        for weights in ("bf16", "fp8", "nvfp4", "mxfp4", "int4"):
            told = found(model.name, gpu, weights, engine, kv="fp8", together=8)
            assert all(0 < told[name] <= 1 for name in SHARES), (model.name, weights)
            assert told["experts"] <= MOST
            assert 2e-6 < told["launch"] < 3e-4


def test_a_gpu_of_one_s_own_has_the_kernels_of_its_generation_and_is_said_to_be_another():
    own = replace(catalogue.gpu("b200"), name="mine")
    unit, twin = Unit.of("gpt-oss-120b", own, engine="trtllm"), Unit.of("gpt-oss-120b", "b200", engine="trtllm")
    assert unit.coefficients == twin.coefficients
    assert unit.outside(Workload(1000, 200), 8) != twin.outside(Workload(1000, 200), 8)


def test_no_engine_borrows_a_kernel_that_reads_fp8_slower_than_bf16():
    """SGLang's latent attention on Hopper has one; its own unit keeps it, for it is what runs."""
    told = KERNELS.attention
    assert told["sglang"]["h200-sxm"]["MLA, fp8"].memory < 0.1
    vllm, trtllm = (told[engine]["h200-sxm"]["MLA, fp8"] for engine in ("vllm", "trtllm"))
    assert vllm.memory == trtllm.memory > 0.1


def test_a_layer_launches_what_it_has_whether_or_not_it_was_measured():
    """The A100 has no table of MXFP4 experts or of heads of 64: its launches are not nothing."""
    old, new = (found("gpt-oss-120b", gpu, "mxfp4") for gpu in ("a100-80gb", "h100-sxm"))
    assert old["launch"] > 0.8 * new["launch"]
    assert "MLA, bf16" in KERNELS.attention["vllm"]["a100-80gb"]
