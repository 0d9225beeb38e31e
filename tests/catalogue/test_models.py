"""Models, GPUs and configurations against published numbers."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from inference_math.catalogue import GPUS, MODELS, Gpu, Model, as_precision, bytes_per_value, gpu, model
from inference_math.catalogue.precisions import as_kv_precision

# Trimmed files: of each family a model that the catalogue has, then three that it has not.
LLAMA, QWEN3, OPT, MIXTRAL, DEEPSEEK, QWEN3_MOE, QWEN2_MOE, DEEPSEEK_LITE = json.loads(
    (Path(__file__).parent / "plain_configs.json").read_text(encoding="utf-8")
).values()

# Fields that change what a layer costs.
SPECIAL = """
is_encoder_decoder hybrid_override_pattern hybrid_layer_pattern attn_layer_period full_attention_interval
linear_attn_config mamba_d_state mamba_num_heads compress_ratios sparse_attention_config index_topk
attention_chunk_size block_configs num_kv_shared_layers hidden_size_per_layer_input sliding_window_pattern
"""


def without(config: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in fields}


def shape(of: Model) -> Model:
    return replace(of, name="", source="", url="", context=0, stored="bf16")


def parameters(of: Model) -> int:
    """What a model's name counts: everything that is stored."""
    return of.n_params_total + of.vocab_params


# --- models -----------------------------------------------------------------------------------------


def test_llama_3_70b() -> None:
    m = model("llama-3-70b")
    assert m.n_params == m.n_params_total == 68_451_041_280
    assert m.lm_head_params == m.embedding_params == 8192 * 128256
    assert m.d_att == 8192
    assert m.group_size == 8
    assert m.n_params / (2 * m.n_layers * m.d_att) == 52_224  # C03
    assert (m.kv_token("fp8"), m.kv_token("bf16")) == (163_840, 327_680)  # C01
    assert m.weight_bytes("bf16") == 2 * parameters(m)
    assert m.weight_bytes("fp8") == m.n_params + 2 * m.vocab_params
    assert m.source == "meta-llama/Llama-3.1-70B"


def test_kv_cache_of_an_opt_66b_prompt() -> None:
    assert 512 * model("opt-66b").kv_token("fp16") == pytest.approx(1.208e9, rel=1e-3)  # C33


def test_mla_caches_latent_and_rope() -> None:
    m = model("deepseek-v3")
    assert m.kv_token("bf16") == 61 * 576 * 2
    assert m.d_att == 128 * (192 + 128) / 2
    assert m.group_size == 2 * m.d_att / 576


def test_tied_embeddings_are_stored_once() -> None:
    assert model("opt-13b").vocab_params == model("opt-13b").embedding_params


def test_precisions() -> None:
    assert [bytes_per_value(p) for p in ("bf16", "fp16", "fp8")] == [2, 2, 1]
    assert as_precision("kv", "fp16") == "bf16"
    assert bytes_per_value("nvfp4") == 9 / 16  # a scale of 8 bits for 16 values
    assert bytes_per_value("mxfp4") == 17 / 32
    with pytest.raises(ValueError, match="weights must be one of bf16, fp16, fp8, nvfp4, mxfp4, int4, not 'int3'"):
        as_precision("weights", "int3")
    with pytest.raises(ValueError, match="kv must be one of bf16, fp8, fp16, not 'int4'"):
        as_kv_precision("kv", "int4")


def test_models_that_make_no_sense_are_refused() -> None:
    m = model("llama-3-8b")
    for change, message in (
        ({"n_layers": 0}, "n_layers must be a whole number >= 1, not 0"),
        ({"n_kv_heads": 5}, "n_kv_heads must divide n_heads = 32, not 5"),
        ({"n_experts": 4}, "n_active_experts must be a whole number >= 1"),
        ({"n_experts": 4, "n_active_experts": 5, "d_expert": 64}, "n_active_experts must be at most"),
        ({"attention": "mla"}, "kv_lora must be a whole number >= 1"),
        ({"attention": "linear"}, "attention must be one of gqa, mla"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(m, **change)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="gated must be True or False"):
        replace(m, gated="yes")  # type: ignore[arg-type]


# --- catalogues -------------------------------------------------------------------------------------


def test_unknown_names_are_refused_with_those_that_would_do() -> None:
    with pytest.raises(ValueError, match=r"model must be one of .*, not 'llama-3-7b'; did you mean 'llama-3-"):
        model("llama-3-7b")
    with pytest.raises(ValueError, match=r"gpu must be one of h100-sxm, .*, not 'zzz'$"):
        gpu("zzz")
    with pytest.raises(TypeError, match="gpu must be a name, not 100"):
        gpu(100)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match=r"'gpt-5' is none of the models: llama-2-70b"):
        MODELS["gpt-5"]


# --- matrix products --------------------------------------------------------------------------------

powers = st.integers(0, 3).map(lambda n: 2**n)
dense_models = st.builds(
    lambda layers, d_model, kv_heads, group, head_size, d_ff, vocab, gated: Model(
        "random", layers, d_model, kv_heads * group, kv_heads, head_size, 8 * d_ff, vocab, gated
    ),
    st.integers(1, 100),
    st.integers(1, 9999),
    powers,
    powers,
    st.integers(1, 256),
    st.integers(1, 9999),
    st.integers(1, 200_000),
    st.booleans(),
)


@given(dense_models, powers)
def test_shards_add_up_and_kv_heads_are_replicated(m: Model, tp: int) -> None:
    if m.n_heads % tp:
        with pytest.raises(ValueError, match="tp must divide n_heads"):
            m.gemm_shapes(tp)
        return
    sizes = {name: n * k for name, (n, k) in m.gemm_shapes(tp).items()}
    assert 0 <= tp * sizes.pop("lm_head") - m.lm_head_params < tp * m.d_model
    replicas = max(tp - m.n_kv_heads, 0) * 2 * m.head_size * m.d_model
    assert m.n_layers * (tp * sum(sizes.values()) - replicas) == m.n_params


def test_gemm_shapes_of_llama_3_70b() -> None:
    assert model("llama-3-70b").gemm_shapes(tp=2) == {
        "qkv": (5120, 8192),
        "attention_out": (8192, 4096),
        "gate_up": (28672, 8192),
        "down": (8192, 14336),
        "lm_head": (64128, 8192),
    }
    assert model("llama-3-8b").gemm_shapes(tp=16)["qkv"] == ((2 + 2) * 128, 4096)
    assert model("opt-13b").gemm_shapes()["up"] == (20480, 5120)


def test_gemm_shapes_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="tp must divide d_ff = 6, not 4"):
        Model("odd", 1, 8, 4, 4, 2, 6, 10).gemm_shapes(4)
    with pytest.raises(ValueError, match="tp must divide n_kv_heads = 6 or be a multiple"):
        Model("odd", 1, 8, 12, 6, 2, 8, 10).gemm_shapes(4)
    with pytest.raises(ValueError, match="tp must be a whole number"):
        model("llama-3-8b").gemm_shapes(0)
    for name in ("mixtral-8x7b", "deepseek-v3"):
        with pytest.raises(ValueError, match=f"not for '{name}'"):
            model(name).gemm_shapes()


# --- Hugging Face configurations --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (LLAMA, "llama-3-8b"),
        ({**LLAMA, "model_type": "mistral", "sliding_window": None}, "llama-3-8b"),
        ({**LLAMA, "model_type": "qwen2", "head_dim": 128}, "llama-3-8b"),
        ({**LLAMA, "layer_types": ["full_attention"] * 32}, "llama-3-8b"),
        (QWEN3, "qwen3-8b"),
        (OPT, "opt-13b"),
        (MIXTRAL, "mixtral-8x7b"),
        (DEEPSEEK, "deepseek-v3"),
        ({**DEEPSEEK, "model_type": "kimi_k2"}, "deepseek-v3"),
    ],
)
def test_a_configuration_gives_the_model_of_the_catalogue(config: dict[str, Any], name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    read = Model.from_config(path, name="mine")
    assert shape(read) == shape(Model.from_config(config)) == shape(model(name))
    assert (read.name, read.source) == ("mine", str(path))


@pytest.mark.parametrize(("kind", "gated"), [("llama", True), ("qwen2", True), ("gpt_neox", False)])
def test_without_kv_heads_each_head_has_its_own(kind: str, gated: bool) -> None:
    read = Model.from_config({**LLAMA, "model_type": kind, "num_key_value_heads": None})
    assert (read.n_kv_heads, read.head_size, read.gated, read.tied_embeddings) == (32, 128, gated, False)
    if kind != "qwen2":  # which may state that there is no such number, but has to
        assert Model.from_config(without(LLAMA, "num_key_value_heads") | {"model_type": kind}) == read


def test_qwen_mixtures_of_experts() -> None:
    assert Model.from_config({**QWEN3_MOE, "mlp_only_layers": [0, 5]}).n_dense_layers == 2
    # Qwen2-57B-A14B: the shared experts' width together, 8 × 2560
    m = Model.from_config(QWEN2_MOE)
    assert m.n_shared_experts == 8
    assert parameters(m) == pytest.approx(57.4e9, rel=0.002)


def test_deepseek_v2_lite_does_not_compress_the_query() -> None:
    assert parameters(Model.from_config(DEEPSEEK_LITE)) == pytest.approx(15.7e9, rel=0.005)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**QWEN3, "use_sliding_window": True}, "sliding_window = 4096: not modelled"),
        ({**LLAMA, "layer_types": ["linear_attention"]}, "layer_types = .*: not modelled: linear_attention"),
        (
            {**LLAMA, "model_type": "gpt_oss", "layer_types": ["linear_attention"] * 32},
            "layer_types = .*: not modelled: linear_attention",
        ),
        *(({**LLAMA, field: 8}, f"{field} = 8: not modelled: ") for field in SPECIAL.split()),
        ({"model_type": "mamba", "hidden_size": 64}, "model_type = 'mamba' is not known. No known family can be read"),
        (without(LLAMA, "model_type"), "model_type must be one of llama, .*, not ''"),
        ({**OPT, "word_embed_proj_dim": 512}, "word_embed_proj_dim = 512: not modelled"),
        ({**QWEN3_MOE, "decoder_sparse_step": 2}, "decoder_sparse_step = 2: not modelled"),
        ({**DEEPSEEK, "moe_layer_freq": [0, 1]}, "moe_layer_freq = .*: not modelled"),
        (without(LLAMA, "hidden_size"), "hidden_size is missing"),
        (without(QWEN3, "head_dim"), "head_dim is missing"),
        (without(MIXTRAL, "num_key_value_heads"), "num_key_value_heads is missing"),
        (without(DEEPSEEK, "q_lora_rank"), "q_lora_rank is missing"),
        ({**LLAMA, "vocab_size": "many"}, "vocab_size must be a whole number, not 'many'"),
        ({**LLAMA, "num_attention_heads": 24}, "num_attention_heads = 24: must divide hidden_size = 4096"),
        ({**LLAMA, "tie_word_embeddings": "no"}, "tie_word_embeddings = 'no': must be true or false"),
        ("{", "cannot be read"),
        ([1], "must hold an object"),
    ],
)
def test_a_configuration_is_refused_by_file_and_field(config: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    with pytest.raises(ValueError, match=rf"config\.json:? {message}"):
        Model.from_config(path)


# --- GPUs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "card"),
    [("h200", "h200-sxm"), ("a100", "a100-80gb"), ("NVIDIA H200 SXM", "h200-sxm"), *((name, name) for name in GPUS)],
)
def test_a_chip_with_one_card_is_that_card(said: str, card: str) -> None:
    assert gpu(said).name == card


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("h100", "h100-sxm h100-pcie h100-nvl"), ("h200-nvl", "h200-sxm"), ("a100-40gb", "a100-80gb"),
        ("h200sxm", "h200-sxm"), ("l40", "l40s"), ("mi300", "mi300x"), ("h2", ""), ("h2000", ""), ("a10", ""),
        ("rtx", ""), ("rtx-4090", ""), ("h800", ""), ("sxm", ""), ("", ""),
    ],
)  # fmt: skip
def test_another_chip_is_never_proposed(said: str, asked: str) -> None:
    """An H20 computes a seventh of an H200: letters that are alike are not enough."""
    told = f"; did you mean {' or '.join(map(repr, asked.split()))}?" if asked else ""
    with pytest.raises(ValueError, match=re.escape(f"mi355x, not {said!r}{told}") + "$"):
        gpu(said)


def toml(values: dict[str, Any]) -> str:
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None)


MINE = {"name": "mine", "bf16_flops": 1e14, "hbm_bw": 1e12, "hbm_bytes": 24e9, "link_bw": 32e9, "pcie_bw": 32e9}


def test_a_gpu_is_read_and_one_of_ones_own_names_its_file_as_source(tmp_path: Path) -> None:
    path = tmp_path / "gpu.toml"
    path.write_text(toml(asdict(gpu("h100-sxm"))))
    assert Gpu.from_toml(path) == gpu("h100-sxm")
    path.write_text(toml(MINE))
    mine = Gpu.from_toml(str(path))
    assert (mine.source, mine.ridge("bf16")) == (str(path), 100)
    with pytest.raises(ValueError, match=r"precision must be bf16 on mine, not 'fp8' .not modelled"):
        mine.flops("fp8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (toml({**MINE, "hbm_bandwidth": 1}), "key must be one of name, .*, not 'hbm_bandwidth'; did you mean"),
        (toml(without(MINE, "hbm_bw", "link_bw")), "missing: hbm_bw, link_bw"),
        (toml({**MINE, "hbm_bw": -1.0}), r"hbm_bw must be a number from 1e\+06 to 1e\+36, not -1"),
        (toml({**MINE, "tdp": 0.5}), r"tdp must be a number from 1 to 100000, not 0\.5"),
        (toml({**MINE, "name": 5}), "name must be text, not 5"),
        ("name = ", "cannot be read"),
    ],
)
def test_a_gpu_file_is_refused_by_file_and_key(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "gpu.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"gpu\.toml:? {message}"):
        Gpu.from_toml(path)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({**QWEN3, "model_type": "qwen5"}, "as those of qwen3: if"),
        ({**QWEN3, "model_type": "qwen5", "attn_gate": True}, "as those of qwen3, but for attn_gate: if"),
        ({**MIXTRAL, "model_type": "grok"}, "as those of mixtral: if"),
        ({**DEEPSEEK, "model_type": "deepseek_v9"}, "as those of deepseek_v3"),
        ({"text_config": {**LLAMA, "model_type": "llama9"}, "model_type": "seen"}, "as those of llama: if"),
    ],
)
def test_a_new_family_is_met_with_a_way_out(config, said):
    """A mixture is never read as a dense model, nor latent attention as another."""
    with pytest.raises(ValueError, match="is not known") as error:
        Model.from_config(config)
    assert said in str(error.value)
    family = str(error.value).partition("as those of ")[2].partition(":")[0].partition(",")[0]
    inner = config.get("text_config", config)
    read = Model.from_config({**inner, "model_type": family})
    assert (read.n_experts > 0, read.attention == "mla") == (
        "num_local_experts" in inner or "n_routed_experts" in inner,
        "kv_lora_rank" in inner,
    )


def test_mla_decodes_in_the_latent_space():
    """For a cached token each of 128 heads multiplies 512 latent and 64 rope values for its score, 512 for the sum."""
    (cache,) = model("deepseek-v3").layers[0].attention.caches
    assert cache.decode_flops == 2 * 128 * (512 + 64) + 2 * 128 * 512
