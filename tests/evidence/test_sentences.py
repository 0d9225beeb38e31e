"""Sentences: every template is chosen somewhere, every choice has one, and what a hole holds."""

import ast
import re
from pathlib import Path

import pytest

from inference_math.evidence.sentences import HOLE, render, templates
from inference_math_planner.answers.deployment import ANSWERS

SOURCE = Path(__file__).parents[2]
# Tables of which a name is chosen: of an input, a size, what is counted, how sure or near that is, a variable.
BY_NAME = {"input", "less", "more", "headline", "noun", "axis", "other", "layout", "undecided", "next", "variable"}
BY_NAME |= {"kept", "near", "planned", "scope"}


def chosen():
    """Return the keys that Python and the page's own scripts name."""
    known = {key.partition(".")[0] for key in templates()}
    found = set()
    for path in (SOURCE / "src").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    for path in (SOURCE / "book/_static").glob("planner*.js"):
        found |= set(re.findall(r'key: "([\w.]+)"', path.read_text(encoding="utf-8")))
    known -= BY_NAME
    # A form says in its own words why a deployment cannot be: by the same keys.
    found |= {one.replace("unfit.", "form.") for one in found}
    return {one for one in found if re.fullmatch(r"\w+\.\w+", one) and one.partition(".")[0] in known}


def test_every_key_has_a_template_and_every_template_a_key():
    assert chosen() == {key for key in templates() if key.partition(".")[0] not in BY_NAME}
    assert [key for key, text in templates().items() if set("{}") & set(HOLE.sub("", text))] == []


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("{x} GPUs", 2, "2 GPUs"),
        ("{x:most}", float("inf"), "no number"),
        ("{x|1 unit|{} units}", 1.0, "1 unit"),
        ("{x|1 unit|{} units}", 1234.0, "1,234 units"),
        ("so{x||, or not}", False, "so, or not"),
        ("{x:and}", ["a", {"text": "{y}", "y": "b"}], "a and b"),
        ("'{\"factor\": {x}}' ${LONGEST:-{x}}", 4, "'{\"factor\": 4}' ${LONGEST:-4}"),
    ],
)
def test_a_hole_is_filled(text, value, said):
    assert render({"text": text, "x": value}) == said


def test_an_architecture_has_one_name_wherever_it_is_said():
    """Aggregated, chunked, disaggregated; a pool is a part of the last, and no name of it."""
    said = [HOLE.sub("", one) for one in templates().values()]
    said += [words for _, title, *told in ANSWERS for words in (title, told[-1])]
    others = ("prefill first", "whole prefill", "whole prompts beside", "plain", "pools", "PDD")
    assert [one for one in said for other in others if other in one] == []
