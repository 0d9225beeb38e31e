"""Models by name: counts against what their makers say, spellings, and what is meant by a name nearly right."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from inference_math.catalogue import MODELS, model, names
from inference_math.catalogue.naming import likeness, near, plain_name

NUMBER = re.compile(r"(?<![x\d.])(\d+(?:\.\d+)?)(b|m)(?![a-z])")
EXPERTS = re.compile(r"-a(\d+)b")
STATED = tomllib.loads((Path(__file__).parent / "counts.toml").read_text(encoding="utf-8"))["stated"]  # billions
# Bytes of a token's cache in BF16: 2 x layers x KV heads x head size x 2 bytes, by hand from model cards.
CACHES = {
    "llama-2-7b": 2 * 32 * 32 * 128 * 2, "llama-3.2-1b": 2 * 16 * 8 * 64 * 2, "mistral-7b-v0.3": 2 * 32 * 8 * 128 * 2,
    "qwen2.5-7b": 2 * 28 * 4 * 128 * 2, "qwen2.5-72b": 2 * 80 * 8 * 128 * 2, "gemma-2b": 2 * 18 * 1 * 256 * 2,
    "phi-4": 2 * 40 * 10 * 128 * 2, "falcon3-10b": 2 * 40 * 4 * 256 * 2, "deepseek-r1": 61 * (512 + 64) * 2,
    "nemotron-3-nano-30b-a3b": 2 * 6 * 2 * 128 * 2, "qwen3.5-27b": 2 * 16 * 4 * 256 * 2,
    "qwen3.5-9b": 2 * 8 * 4 * 256 * 2, "devstral-2-123b": 2 * 88 * 8 * 128 * 2, "glm-4.7": 2 * 92 * 8 * 128 * 2,
}  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_parameters_are_those_of_the_name(name: str) -> None:
    of = model(name)
    counted = (of.n_params_total + of.vocab_params) / 1e9
    found = NUMBER.search(name)
    said = STATED.get(name) or (float(found[1]) / {"b": 1, "m": 1000}[found[2]] if found else 0)
    assert counted == pytest.approx(said, rel=0.03 if name in STATED else 0.1)
    if active := EXPERTS.search(name):
        # Some count the head among what a token uses, some do not.
        assert of.n_params / 1.12e9 <= float(active[1]) <= (of.n_params + of.lm_head_params) / 0.88e9


def test_a_token_takes_what_model_cards_make_of_it() -> None:
    assert {name: model(name).kv_token("bf16") for name in CACHES} == CACHES


def test_there_are_many_and_none_twice() -> None:
    assert len(names()) == len(set(names())) > 140
    assert [plain_name(name) for name in names()] == names()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3-70b"),
        ("Meta Llama 3.1 8B", "llama-3-8b"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("Qwen/Qwen3.8-27B-FP8", "qwen3.5-27b"),
        ("mistralai/Devstral-2-123B-Instruct-2512", "devstral-2-123b"),
        ("RedHatAI/Llama-3.2-3B-Instruct-FP8", "llama-3.2-3b"),
    ],
)
def test_a_repository_s_name_is_understood(said: str, meant: str) -> None:
    assert model(said).name == meant


@pytest.mark.parametrize(
    ("said", "first"), [("llama3-8b", "llama-3-8b"), ("qwen-2.5-32b", "qwen2.5-32b"), ("gemma3-27b", "gemma-3-27b")]
)
def test_a_name_nearly_right_is_answered_with_the_right_one(said: str, first: str) -> None:
    with pytest.raises(ValueError, match=f"model must be one of .* did you mean '{first}'"):
        model(said)


@given(st.text("ab-3.", max_size=9), st.text("ab-3.", max_size=9))
def test_likeness_is_a_share_and_one_for_the_same(one: str, other: str) -> None:
    assert 0 <= likeness(one, other) <= 1
    assert likeness(one, other) == pytest.approx(likeness(other, one))
    if len(one) > 1:
        assert likeness(one, one) == 1
    assert len(near(one, list(MODELS), 3)) <= 3


def test_a_model_made_as_another_one_has_its_own_length() -> None:
    assert model("qwen2.5-coder-32b").context == 32768
    assert model("qwq-32b").context == 131072
    assert model("qwq-32b").stack == model("qwen2.5-32b").stack
    assert model("qwq-32b").source == "Qwen/QwQ-32B"


def test_names_that_are_just_alike_enough() -> None:
    assert near("abc", ["abxy"], 1) == ["abxy"]
    assert near("abcde", ["abcxy"], 1) == ["abcxy"]
    assert near("abcd", ["abcd", "abce", "abcf"], 2) == ["abcd", "abce"]
    assert plain_name("meta/llama--3-8b-") == "llama-3-8b"
