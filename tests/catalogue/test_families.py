"""Models whose layers differ, from trimmed `config.json` files, against what their publishers count."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math.catalogue import MODELS, Model, layers, model

COUNTS = tomllib.loads((Path(__file__).parent / "counts.toml").read_text(encoding="utf-8"))
PUBLISHED, NAMED = COUNTS["published"], COUNTS["named"]  # billions, all and active
CONFIGS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "configs.json").read_text())
# Bytes of a token's KV cache in BF16, all windows open: layers that cache, times keys and values of all KV heads, or
# the latent and its rotated key.
CACHED = {
    "Olmo-3-1125-32B": 64 * 2 * 8 * 128, "dots.llm1.inst": 62 * 2 * 32 * 128, "GLM-4.7-Flash": 47 * 576,
    "Kimi-K2.5": 61 * 576, "Step-3.5-Flash": 45 * 2 * 8 * 128, "Falcon-H1-7B": 44 * 2 * 2 * 128,
    "granite-4.0-h-small": 4 * 2 * 8 * 128, "granite-4.0-h-micro": 4 * 2 * 8 * 64, "LFM2-1.2B": 6 * 2 * 8 * 64,
    "LFM2-8B-A1B": 6 * 2 * 8 * 64, "Kimi-Linear-48B-A3B": 7 * 576, "ERNIE-4.5-21B-A3B": 28 * 2 * 4 * 128,
    "ERNIE-4.5-300B-A47B": 54 * 2 * 8 * 128, "Hunyuan-A13B-Instruct": 32 * 2 * 8 * 128, "Kimi-K3": 24 * 576,
    "Mistral-Small-4-119B": 36 * (256 + 64), "MiniMax-M3": 60 * 2 * 4 * 128 + 57 * 128,
}  # fmt: skip
# Values of the states that a request holds: matrices, and the last tokens of convolutions.
STATES = {
    "Falcon-H1-7B": 44 * (24 * 128 * 256 + 3 * (24 * 128 + 2 * 256)),
    "granite-4.0-h-small": 36 * (128 * 64 * 128 + 3 * (128 * 64 + 2 * 128)),
    "LFM2-1.2B": 10 * 2 * 2048,
    "Kimi-Linear-48B-A3B": 20 * (32 * 128 * 128 + 3 * 3 * 32 * 128),
    "Kimi-K3": 69 * (96 * 128 * 128 + 3 * 3 * 96 * 128),
}


def counts(of: Model) -> tuple[float, float]:
    return (of.n_params_total + of.vocab_params) / 1e9, (of.n_params + of.vocab_params) / 1e9


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_published(name: str) -> None:
    read = Model.from_config(CONFIGS[name])
    total, active = counts(read)
    assert total == pytest.approx(PUBLISHED[name][0], rel=0.012)
    # Some count embedding and head among what a token uses, some leave them out.
    head = CONFIGS[name].get("text_config", CONFIGS[name])
    embedding = head["hidden_size"] * head["vocab_size"] / 1e9
    assert PUBLISHED[name][1] * 0.93 - embedding <= active
    assert read.n_params / 1e9 <= PUBLISHED[name][1] * 1.07


@pytest.mark.parametrize("name", CACHED)
def test_the_cache_of_a_token_is_that_of_the_layers_that_cache(name: str) -> None:
    assert Model.from_config(CONFIGS[name]).kv_token("bf16") == 2 * CACHED[name]


@pytest.mark.parametrize("name", STATES)
def test_states_are_those_of_the_layers_that_hold_one(name: str) -> None:
    assert Model.from_config(CONFIGS[name]).state_values == STATES[name]


def test_compressed_entries_take_what_vllm_says() -> None:
    """DeepSeek-V4-Pro: 9.62 GiB for 2^20 tokens in BF16, 8.7 times less than V3.2, both with keys of the index in BF16.

    Here these have a byte for each of 128 values and four for their scale. One for each of four tokens in 30 layers.
    """
    tokens, shorter = 2**20, 2 * 128 - (128 + 4)
    pro = Model.from_config(CONFIGS["DeepSeek-V4-Pro"]).kv_bytes(tokens, "bf16") + 30 * tokens / 4 * shorter
    before = Model.from_config(CONFIGS["DeepSeek-V3.2"]).kv_bytes(tokens, "bf16") + 61 * tokens * shorter
    assert pro / 2**30 == pytest.approx(9.62, abs=0.005)
    assert before / pro == pytest.approx(8.7, abs=0.05)


def test_deepseek_v4_pro_has_as_many_elements_as_its_repository_lists() -> None:
    """862 billion: two experts' weights of four bits in one, a scale for each 32, and 62 layers, one of which drafts.

    That layer has attention and a shared expert, too, half a billion: left out.
    """
    pro = Model.from_config(CONFIGS["DeepSeek-V4-Pro"])
    experts, others = pro.routed_params * 62 / 61, pro.n_params_total - pro.routed_params + pro.vocab_params
    assert (experts / 2 + experts / 32 + others) / 1e9 == pytest.approx(862, rel=0.002)
    assert round(counts(pro)[0] / 1e3, 1) == 1.6
    assert (pro.n_params + pro.lm_head_params) / 1e9 == pytest.approx(49, rel=0.01)


def test_what_an_index_chooses_can_be_read_and_more_is_kept() -> None:
    """MiniMax-M3 reads 16 blocks of 128 of a long request, DeepSeek-V4-Flash 512 entries of four tokens."""
    for name, reach in (("MiniMax-M3", 16 * 128), ("DeepSeek-V4-Flash", 512 * 4)):
        caches = Model.from_config(CONFIGS[name]).caches
        (found,) = [cache for cache in caches if cache.reach == reach]
        assert not found.evicts
        assert found.kept
        assert [cache.reach for cache in caches if not cache.kept] == [0]  # the index's keys, of which all are seen
    keys = 57 * 2 * 128  # in BF16, whatever the cache is in
    assert Model.from_config(CONFIGS["MiniMax-M3"]).kv_token("fp8") == 60 * 2 * 4 * 128 + keys


def test_step_has_more_heads_in_its_windows() -> None:
    """12 layers of 64 heads see everything, 33 of 96 heads 512 tokens; the first three layers are dense."""
    layers = Model.from_config(CONFIGS["Step-3.5-Flash"]).layers
    seen = {(layer.attention.caches[0].reach, layer.attention.width) for layer in layers}
    assert seen == {(0, 64 * 128), (512, 96 * 128)}
    assert sum(layer.count for layer in layers if not layer.ffn.experts) == 3
    assert sum(layer.count for layer in layers if not layer.attention.caches[0].reach) == 12


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("Hunyuan-A13B-Instruct", {"use_cla": True}, "use_cla = True: not modelled: layers that share a KV cache"),
        ("Hunyuan-A13B-Instruct", {"moe_topk": [8, 4]}, "moe_topk = .*: not modelled: layers that differ"),
        ("ERNIE-4.5-21B-A3B", {"moe_layer_interval": 2}, "moe_layer_interval = 2: not modelled: other than 1"),
        ("ERNIE-4.5-21B-A3B", {"moe_layer_end_index": 20}, "moe_layer_end_index = 20: not modelled"),
        ("MiniMax-M3", {"attention_output_gate": True}, "attention_output_gate = True: not modelled"),
        ("MiniMax-M3", {"sparse_attention_config": 3}, "sparse_attention_config = 3: must be an object"),
        ("DeepSeek-V4-Flash", {"compress_ratios": [0, 16] * 22}, "compress_ratios = .*: not modelled: 16"),
        ("DeepSeek-V4-Flash", {"compress_ratios": None}, "compress_ratios is missing"),
        ("DeepSeek-V4-Flash", {"head_dim": 192}, "head_dim = 192: must be a multiple of 128"),
        ("DeepSeek-V4-Flash", {"kv_source_layer_ids": [0, 1]}, "kv_source_layer_ids = .*: not modelled: layers that"),
        ("gemma-4-E4B", {}, "num_kv_shared_layers = 18: not modelled: layers that share a KV cache"),
        ("Qwen3.8-Flash-Next", {}, "'qwen3_8_flash_next_text' is not known. .*indexer_budget = 2048: not modelled"),
        ("Kimi-Linear-48B-A3B", {"linear_attn_config": {}}, "full_attn_layers = None: must be a list of layers"),
        ("Falcon-H1-7B", {"attn_layer_indices": [3]}, "attn_layer_indices = .*: not modelled"),
        ("Falcon-H1-7B", {"mamba_d_ssm": 4096}, "mamba_d_ssm = 4096: must be 24 heads of 128"),
        ("Step-3.5-Flash", {"moe_layers_enum": "3,45"}, "moe_layers_enum = '3,45': must name layers below 45"),
    ],
)
def test_what_a_family_has_beyond_what_is_modelled_is_refused(name: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Model.from_config({**CONFIGS[name], **changes})


@pytest.mark.parametrize(
    ("name", "near"),
    [("Olmo-3-1125-32B", "olmo3"), ("dots.llm1.inst", "dots1"), ("LFM2-8B-A1B", "lfm2"),
     ("Falcon-H1-7B", "falcon_h1"), ("granite-4.0-h-small", "granitemoehybrid")],
)  # fmt: skip
def test_an_unknown_type_with_windows_or_states_is_shown_a_family_that_reads_it(name: str, near: str) -> None:
    """What stands in its way is that nobody knows its type, not layers that some family has."""
    with pytest.raises(ValueError, match=rf"'other2' is not known. Its sizes can be read as those of {near}:"):
        Model.from_config({**CONFIGS[name], "model_type": "other2"})


@pytest.mark.parametrize("name", NAMED)
def test_parameters_of_the_catalogue_are_those_published(name: str) -> None:
    read = model(name)
    assert counts(read)[0] == pytest.approx(NAMED[name][0], rel=0.005)
    # A token's own row of the embedding counts for nothing.
    assert (read.n_params + read.lm_head_params) / 1e9 == pytest.approx(NAMED[name][1], rel=0.08)


# Bytes of a token in BF16: with full attention, and what a window or a state makes of a long request.
def test_kv_bytes_fill_windows_and_hold_states() -> None:
    oss = model("gpt-oss-120b")  # 36 layers, every other one with a window of 128; 8 KV heads of 64
    assert oss.kv_token("bf16") == 36 * 2 * 8 * 64 * 2
    assert oss.kv_bytes(100, "bf16") == 100 * oss.kv_token("bf16")
    assert oss.kv_bytes(10_128, "bf16") - oss.kv_bytes(128, "bf16") == 10_000 * oss.kv_token("bf16") / 2
    qwen = model("qwen3.5-397b-a17b")  # 15 of 60 layers cache, 2 KV heads of 256; 45 hold 64 matrices of 128 x 128
    assert qwen.kv_token("fp8") == 15 * 2 * 2 * 256
    assert qwen.kv_bytes(0, "bf16") == 4 * 45 * (64 * 128 * 128 + 3 * (2 * 16 * 128 + 64 * 128))
    assert qwen.kv_bytes(1000, "bf16") - qwen.kv_bytes(0, "bf16") == 1000 * qwen.kv_token("bf16")
    sparse = model("glm-5")  # latent and rotated key in BF16, an index key in FP8 with its scale
    assert sparse.kv_token("bf16") == 78 * (2 * (512 + 64) + 128 + 4)
    assert model("kimi-k2").kv_token("bf16") == 70_272


@given(st.sampled_from(sorted(MODELS)), st.lists(st.integers(0, 10**6), min_size=2, max_size=5))
def test_a_longer_request_holds_more_but_never_more_a_token(name: str, lengths: list[int]) -> None:
    tokens = np.sort(np.array(lengths, dtype=float))
    held = model(name).kv_bytes(tokens, "bf16")
    assert (np.diff(held) >= 0).all()
    grown = held - model(name).kv_bytes(0, "bf16")
    assert (grown <= tokens * model(name).kv_token("bf16") * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("name", "stored", "fine", "coarse"),
    [
        ("Kimi-K2.6-NVFP4", "nvfp4", {"experts"}, "bf16"),
        ("MiniMax-M2.5-NVFP4", "nvfp4", {"ffn", "experts"}, "bf16"),
        ("Gemma-4-31B-IT-NVFP4", "nvfp4", {"ffn", "experts"}, "bf16"),
        ("Qwen3.6-35B-A3B-NVFP4", "nvfp4", {"ffn", "experts"}, "fp8"),
        ("DeepSeek-V3.2", "fp8", set(), "bf16"),
        ("Qwen3.5-27B", "bf16", set(), "bf16"),
        ("DeepSeek-V4-Flash", "mxfp4", {"experts"}, "fp8"),
        ("Kimi-K3", "mxfp4", {"experts"}, "bf16"),
    ],
)
def test_the_checkpoint_s_precision_is_read(name: str, stored: str, fine: set[str], coarse: str) -> None:
    read = Model.from_config(CONFIGS[name])
    assert (read.stored, set(read.fine), read.coarse) == (stored, fine, coarse)


def test_four_bits_are_those_of_the_checkpoint() -> None:
    kimi = model("kimi-k2")
    assert (kimi.stored, kimi.precisions("int4")) == ("int4", {"attention": "bf16", "ffn": "bf16", "experts": "int4"})
    assert kimi.weight_bytes("int4") == pytest.approx(595e9, rel=0.01)  # the checkpoint has 595 GB
    assert model("gpt-oss-120b").weight_bytes("mxfp4") == pytest.approx(65.2e9, rel=0.01)  # and 65.2 GB
    assert model("kimi-k3").weight_bytes("mxfp4") == pytest.approx(1.56e12, rel=0.005)  # and 1.56 TB
    assert model("llama-3-70b").precisions("nvfp4") == dict.fromkeys(("attention", "ffn", "experts"), "nvfp4")
    assert set(model("deepseek-v3").precisions("fp8").values()) == {"fp8"}


def test_experts_in_mxfp4_lie_padded_in_memory() -> None:
    """vLLM logs 64.38 GiB of gpt-oss-120b on an H100 (issue 33155 of its repository); its checkpoint has 60.8."""
    oss = model("gpt-oss-120b")
    assert oss.loaded_bytes("mxfp4") == pytest.approx(64.38 * 2**30, rel=0.005)
    assert oss.weight_bytes("mxfp4") < 0.95 * oss.loaded_bytes("mxfp4")
    assert oss.loaded_bytes("bf16") == oss.weight_bytes("bf16")
    kimi = model("kimi-k2")  # whose sizes are multiples
    assert kimi.loaded_bytes("mxfp4") == kimi.weight_bytes("mxfp4")


def test_modelopt_s_second_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS["MiMo-7B-Base"]))
    assert Model.from_config(path).stored == "bf16"
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    assert Model.from_config(path).stored == "fp8"


def tensors(**weights: Any) -> dict[str, Any]:
    """Return what compressed-tensors says of weights in FP8."""
    of = {"num_bits": 8, "type": "float", **weights}
    return {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": of}}}


FP8 = {"quant_method": "fp8", "weight_block_size": None}
ALGO = {"quant_algo": "FP8"}


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (None, {"blocks": False}), ({"quant_method": "awq", "bits": 4}, {"stored": "int4"}),
        ({"quant_method": "gptq", "bits": 4}, {"stored": "int4"}), ({"quant_method": "gptq", "bits": 3}, None),
        ({"quant_method": "fp8"}, {"stored": "fp8"}), ({"quant_method": "mxfp4"}, {"stored": "mxfp4"}), ("fp8", None),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, None), (tensors() | {"config_groups": {}}, None),
        (FP8, {"blocks": False}), (FP8 | {"weight_block_size": [128, 128]}, {"blocks": True}),
        (tensors(strategy="channel"), {"blocks": False}), (tensors(strategy="block"), {"blocks": True}),
        (ALGO, {"stored_kv": "bf16", "blocks": False}), (ALGO | {"kv_cache_scheme": None}, {"stored_kv": "bf16"}),
        (ALGO | {"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, {"stored_kv": "fp8"}),
        (ALGO | {"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, None),
        (ALGO | {"kv_cache_quant_algo": "FP8"}, {"stored_kv": "fp8"}), (ALGO | {"kv_cache_quant_algo": "NVFP4"}, None),
    ],
)  # fmt: skip
def test_a_quantisation_is_read_or_refused(said: Any, read: dict[str, object] | None) -> None:
    """Of weights, of the cache, and whether FP8 has scales for blocks."""
    config = {**CONFIGS["MiMo-7B-Base"], **({} if said is None else {"quantization_config": said})}
    if read is None:
        with pytest.raises(ValueError, match=r"quantization_config|the KV cache's quantisation must be FP8 or none"):
            Model.from_config(config)
        return
    found = Model.from_config(config)
    assert {name: getattr(found, name) for name in read} == read


@pytest.mark.parametrize("field", ["torch_dtype", "dtype"])
def test_a_type_of_weights_is_known_or_refused(field: str) -> None:
    for known in ("bfloat16", "torch.float16", None):
        Model.from_config({**CONFIGS["MiMo-7B-Base"], field: known})
    with pytest.raises(ValueError, match=f"{field} must be one of auto, bfloat16, .*, not 'float7'"):
        Model.from_config({**CONFIGS["MiMo-7B-Base"], field: "float7"})


def test_chunks_begin_anew() -> None:
    scout = Model.from_config(CONFIGS["Llama-4-Scout-17B-16E-Instruct"])
    kinds = {layer.attention.kind: layer for layer in scout.layers}
    assert {kind: layer.count for kind, layer in kinds.items()} == {"full": 12, "chunk": 36}
    assert kinds["chunk"].attention.caches[0].aligned
    assert scout.context == 10_485_760


# --- what layers cost -------------------------------------------------------------------------------


def test_layers_by_hand() -> None:
    assert layers.grouped(64, layers.Heads(4, 2, 16)).params == 64 * 16 * (4 + 2 + 2 + 4)
    assert layers.grouped(64, layers.Heads(4, 2, 16), gated=True).params == 64 * 16 * (4 + 2 + 2 + 4 + 4)
    assert layers.grouped(64, layers.Heads(4, 2, 16), reach=8).caches == (layers.Cache(64, 2, 64.0, 256.0, 8, True),)
    assert layers.plain_ffn(64, 100).shared == 3 * 64 * 100
    assert layers.mixture(64, 8, 2, 100, shared_width=50).shared == 64 * 8 + 3 * 64 * 50
    assert layers.mixture(64, 8, 2, 100, inner=16).expert == 3 * 16 * 100
    whole = layers.latent(64, 4, layers.Latent(0, 16, nope=8, rope=4, v_head=8))
    assert whole.params == 64 * 20 + 64 * 48 + 16 * 4 * 16 + 4 * 8 * 64
    chosen = layers.latent(
        64, 4, layers.Latent(32, 16, nope=8, rope=4, v_head=8), layers.Index(top_k=128, heads=2, head=8)
    )
    assert [cache.reach for cache in chosen.caches] == [128, 0]
    assert not any(cache.evicts for cache in chosen.caches)  # whatever is out of reach may be chosen later
    assert chosen.caches[1].heads == 1  # each GPU has the keys of the whole index
    state = layers.delta_net(64, key_heads=2, key=8, value_heads=4, value=16, kernel=4)
    both = layers.parallel(whole, state)
    assert both.params == whole.params + state.params
    assert both.kv_width == whole.kv_width + state.kv_width
    assert min(whole.kv_width, state.kv_width) > 0
    assert state.state == 4 * 8 * 16 + 3 * (2 * 16 + 64)
    low = layers.delta_net(64, key_heads=2, key=8, value_heads=2, value=8, kernel=4, ranks=(8, 8))
    assert low.params == 64 * 16 * 4 + 2 * (64 * 8 + 8 * 16) + 64 * 2
    gate = layers.delta_net(64, key_heads=2, key=8, value_heads=2, value=8, kernel=4, ranks=(8, 0))
    assert gate.params - low.params == 64 * 16 - (64 * 8 + 8 * 16)
    sizes = layers.Latent(0, 16, nope=8, rope=4, v_head=8)
    assert layers.latent(64, 4, sizes, gated=True).params - whole.params == 64 * 4 * 8
    index = layers.Index(top_k=32, heads=2, head=8)
    blocks = layers.chosen(64, layers.Heads(4, 2, 16), index)
    assert blocks.params == 64 * 16 * (4 + 2 + 2 + 4) + 64 * (2 * 8 + 8)
    assert [cache.reach for cache in blocks.caches] == [32, 0]
    small = layers.Compressed(q_lora=32, o_lora=8, head=16, groups=2, window=10)
    plain = 64 * (32 + 16) + 32 * 4 * 16 + 4 * 16 * 8 + 2 * 8 * 64
    assert layers.compressed(64, 4, small, 0).params == plain
    far = layers.compressed(64, 4, small, 8)
    assert (far.params, far.caches[1].kept) == (plain + 2 * 64 * 16, 16 / 8)
    near = layers.compressed(64, 4, small, 4, index)
    assert near.params == plain + 2 * 64 * 2 * 16 + 2 * 64 * 2 * 8 + 32 * 2 * 8 + 64 * 2
    assert [(cache.reach, cache.evicts) for cache in near.caches] == [(10, True), (32 * 4, False), (0, False)]
    assert near.caches[1].decode_flops == 4 * 4 * 16 / 4  # heads, score and sum, values, an entry for four tokens
    assert layers.short_conv(64, 3) == layers.Attention("state", 4 * 64 * 64, (), 2 * 64, 128.0, 64.0)
    both = layers.parallel(layers.grouped(64, layers.Heads(4, 2, 16)), low)
    assert (both.params, both.state, len(both.caches)) == (64 * 16 * 12 + low.params, low.state, 1)
    assert layers.mamba(64, heads=4, head=16, groups=2, state=8, kernel=4).state == 64 * 8 + 3 * (64 + 32)


ODD = [None, 0, -1, 1e300, "x", [], {}, [1, 2], True, 2**60, float("nan"), float("inf"), "", [[]], {"a": 1}]


@given(st.sampled_from(sorted(CONFIGS)), st.data(), st.sampled_from(ODD))
def test_a_malformed_configuration_is_read_or_refused_in_words(name: str, data: st.DataObject, value: Any) -> None:
    config = json.loads(json.dumps(CONFIGS[name]))
    part = config.get("text_config", config)
    part[data.draw(st.sampled_from(sorted(part)))] = value
    try:
        read = Model.from_config(config)
    except ValueError:
        return
    assert read.n_params_total >= 0
    assert read.kv_bytes(1000, "bf16") >= 0


def test_families_that_publish_fp8_in_blocks_have_it():
    blocks = {name for name, one in MODELS.items() if one.blocks}
    assert blocks == {
        "deepseek-v3", "glm-5", "kimi-k2", "minimax-m2", "qwen3-235b-a22b", "qwen3-30b-a3b", "qwen3.5-397b-a17b",
    }  # fmt: skip
