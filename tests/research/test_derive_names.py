"""What is kept of a configuration, and which models are the same."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from derive_names import Named, alike, config_of, derive, needed

from inference_math.catalogue import MODELS, Model

LLAMA = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128,
    "num_key_value_heads": 8, "vocab_size": 128256, "intermediate_size": 14336, "max_position_embeddings": 8192,
    "tie_word_embeddings": False, "rope_theta": 5e5,
}  # fmt: skip
STATED = SimpleNamespace(
    n_layer=32, n_embd=4096, n_head=32, n_query_groups=8, head_size=128, padded_vocab_size=128256,
    intermediate_size=14336, block_size=8192, n_expert=0, sliding_window_size=None, sliding_window_indices=None,
    mlp_class_name="LLaMAMLP",
)  # fmt: skip


def test_what_is_kept_says_as_much() -> None:
    kept = needed(LLAMA)
    assert set(LLAMA) - set(kept) == {"max_position_embeddings", "tie_word_embeddings", "rope_theta", "head_dim"}
    assert Model.from_config(kept, "one").n_params == Model.from_config(LLAMA, "one").n_params


def test_of_an_object_what_it_says_is_kept() -> None:
    weights = {"num_bits": 4, "type": "float", "group_size": 32, "observer": "minmax"}
    said = {"quant_method": "compressed-tensors", "format": "x", "config_groups": {"g": {"weights": weights}}}
    kept = needed(LLAMA | {"quantization_config": said})["quantization_config"]
    assert kept["config_groups"]["g"]["weights"] == {"num_bits": 4, "type": "float", "group_size": 32}
    assert "format" not in kept


def test_sizes_of_another_package_make_the_same_model() -> None:
    told = Model.from_config(config_of(STATED, "llama-3-8b", 8192), "llama-3-8b")
    assert alike(told, MODELS, exported=False) == "llama-3-8b"
    windowed = SimpleNamespace(**{**vars(STATED), "sliding_window_size": 1024, "sliding_window_indices": [1, 0] * 16})
    kinds = Model.from_config(config_of(windowed, "x", 8192), "x").layers
    assert [(one.count, one.attention.kind) for one in kinds] == [(16, "window"), (16, "full")]


def test_rows_name_what_is_the_same_and_counts_must_agree() -> None:
    one, other = Named("a/Some-8B", "one 1", LLAMA), Named("b/Other-8B-Instruct", "one 1", LLAMA)
    table = derive([one, other]).set_index("name")
    assert table.like.to_dict() == {"some-8b": "llama-3-8b", "other-8b": "llama-3-8b"}
    with pytest.raises(ValueError, match=r"llama-3-8b: parameters .* in two packages"):
        derive([Named("meta/Llama-3-8B", "one 1", LLAMA | {"num_hidden_layers": 30})])
