"""The page's fields ask what the package asks."""

from __future__ import annotations

import pytest
from forms import DEFAULT, as_fields, case_of, known, settings, unit_of
from node import close, plain

from inference_math.evidence.sentences import render
from inference_math_book.explore.form import candidate, draws_of, few_draws, refused, sought
from inference_math_planner import layouts


def test_fields_are_a_case():
    """All that settings of random forms come to: the question, coefficients, and every tenth time the draws."""
    for i, given in enumerate(settings(60)):
        one, case = candidate(as_fields(given), known()), case_of(given).checked()
        assert close(plain(case.problem), plain(one.problem)), given
        assert close(case.pairs(0)[0][0], one.centred.found), given
        assert i % 10 or close(plain(case.pairs(64)), plain(draws_of(one, known()))), given
        assert refused(as_fields(given), True, known()) == []
    assert few_draws(one, known()) == draws_of(one, known())[:: known().looked]


@pytest.mark.parametrize("changes", [{}, {"model": "qwen3-235b-a22b"}, {"model": "deepseek-v3"}], ids=str)
def test_layouts_are_those_of_the_package(changes):
    found = sought(as_fields(DEFAULT | {"tp": "auto"} | changes), True, known())
    whole = unit_of(DEFAULT | changes | {"tp": "8", "pp": "2"})
    names = [unit_of(DEFAULT | one).name for one in found.tried]
    assert names == [one.name for one in layouts(whole, 8) or layouts(whole, 64)]


@pytest.mark.parametrize(
    ("changes", "field", "why", "fixes"),
    [
        ({"model": "gpt-4o"}, "model", "gpt-4o is none of the", None),
        ({"model": "lama-3-8b"}, "model", "did you mean llama-3-8b or llama-3.1-8b", None),
        ({"tp": "1", "weights": "bf16"}, "gpu", "llama-3-70b in bf16 does not fit 1 × h100-sxm", []),
        ({"gpu": "a100-80gb"}, "weights", "must be bf16 or four bits on a100-80gb, which has no FP8", []),
        ({"gpu": "mi300x", "engine": "trtllm"}, "engine", "TensorRT-LLM does not run on GPUs of AMD", None),
        ({"goal": "have", "have": "1"}, "have", "must be at least 2, those of a unit", [{"have": "2"}]),
        ({"prompt": "140000"}, "prompt", "must be smaller: a request of 140,170 tokens", [{"prompt": "130902"}]),
        ({"imbalance": "1.5"}, "imbalance", "must be left empty: llama-3-70b has no", [{"imbalance": ""}]),
        ({"stored": "50", "sessions": "100000"}, "sessions", "must be", [{"sessions": "0"}]),
        ({"experts": "whole"}, "experts", "must be a part of each: llama-3-70b has none", [{"experts": "split"}]),
        ({"prefill": "TP 8, EP 8"}, "experts", "must be a part of each", [{"experts": "split"}]),
        ({"goal": "have", "have": "1", "tp": "auto", "weights": "bf16"}, "have", "must be at least 2", [{"have": "2"}]),
        (
            {"model": "qwen3-235b-a22b", "weights": "bf16", "tp": "1", "dp": "8", "experts": "whole",
             "engine": "sglang"},
            "dp", "in 8 groups, where SGLang leaves 59% of the memory", [{"tp": "4", "dp": "2"}],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_is_refused_with_what_may_mend_it(changes, field, why, fixes):
    (part,) = sought(as_fields(DEFAULT | changes), True, known()).wrong
    assert part["field"] == field
    assert why in render(part)
    assert fixes is None or part["fixes"] == fixes
