"""The modules that are printed as JavaScript keep to what both languages have; see `browser`."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from math import exp
from pathlib import Path

import pytest
from node import Node
from scipy.optimize import brentq
from scipy.special import gammainc

from inference_math.evidence import numerals
from inference_math_book.explore import browser as printed

LISTS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp)  # and what is annotated as one
ANNOTATED = ("list", "dict", "Sequence", "Mapping")
PAGES = Path(__file__).parents[3] / "book" / "_static"


def breaches(source: str) -> list[str]:
    """Return what JavaScript reads otherwise, by line; what the printer leaves out whole shows in `test_node.py`."""
    tree, found = ast.parse(source), []
    held = lists_held(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            if node.args.defaults or any(node.args.kw_defaults):
                found.append((node.lineno, "a default argument is left out"))
            what = "the truth of a list, which JavaScript always holds"
            found += [(test.lineno, what) for test in lists_tested(node, held)]
        ranged = isinstance(node, ast.For) and ast.unparse(node.iter).startswith("range(")
        if ranged and any(isinstance(end, ast.IfExp) for end in node.iter.args):
            found.append((node.lineno, "a choice as a loop's end: printed without brackets, it never ends"))
    return [f"line {line}: {what}" for line, what in found]


def lists_held(tree: ast.Module) -> set[str]:
    """Return the attributes that objects keep lists in."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            (target, *_) = node.targets if isinstance(node, ast.Assign) else [node.target]
            made = isinstance(node.value, LISTS) or (node.value and ast.unparse(node.value) == "deque()")
            if made and isinstance(target, ast.Attribute):
                found.add(ast.unparse(target))
    return found


def lists_tested(function: ast.FunctionDef, held: set[str]) -> list[ast.expr]:
    """Return where a list or a dict stands as a condition; attributes `held` are lists."""
    lists, tests = set(held), []
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.annotation and ast.unparse(node.annotation).startswith(ANNOTATED):
            lists.add(node.arg)
        elif isinstance(node, ast.Assign) and isinstance(node.value, LISTS):
            lists |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            tests.append(node.test)
        elif isinstance(node, ast.comprehension):
            tests += node.ifs
        elif isinstance(node, ast.BoolOp):
            tests += node.values
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            tests.append(node.operand)
    return [test for test in tests if isinstance(test, LISTS) or ast.unparse(test) in lists]


@pytest.mark.parametrize("module", printed._MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_printed_module_keeps_to_what_both_languages_have(module):
    assert breaches(inspect.getsource(module)) == []


def test_no_two_printed_modules_and_no_function_that_the_page_has_share_a_name():
    """They become one program, in which the later would replace the earlier."""
    names = Counter(
        ast.unparse(name)
        for module in printed._MODULES
        for node in printed._portable(ast.parse(inspect.getsource(module))).body
        for name in (node.targets if isinstance(node, ast.Assign) else [ast.Name(node.name)])
    )
    names.update([*printed._records()])  # what makes one is printed as braces
    names.update({*numerals.__all__, *re.findall(r"^function (\w+)", printed._PRELUDE, re.MULTILINE)})
    assert [name for name, times in names.items() if times > 1] == []
    assert len(names) > 150


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def f(a, b=1):\n    return a", "a default argument"),
        ("def f(a):\n    kept = [x for x in a]\n    return kept and a", "the truth of a list"),
        ("def f(a):\n    for i in range(1, 0 if a else 3):\n        a()", "a choice as a loop's end"),
        ("def f(a):\n    kept = {}\n    while not kept:\n        a()", "the truth of a list"),
    ],
)
def test_what_only_python_has_is_seen(source, what):
    (said,) = breaches(source)
    assert what in said


def test_everything_that_the_page_asks_for_is_printed():
    """The printer refuses names that JavaScript keeps for itself; what is exported keeps its name when shortened."""
    (exported,) = re.findall(r"window\.inferenceMath ?= ?\{(.*?),\s*data:", printed.script(), re.DOTALL)
    known = set(re.findall(r"\w+(?=\s*(?::|,|$))", exported)) | {"data"}
    asked = "".join(one.read_text(encoding="utf-8") for one in PAGES.glob("planner*.js"))
    assert "provenance_of" in known
    assert set(re.findall(r"\bmath\.(\w+)", asked)) <= known


def arguments(text, start):
    """Return how many arguments a call has whose bracket opens at `start`."""
    depth, pieces = 0, [""]
    for letter in text[start:]:
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0:
            return sum(bool(piece.strip(" \n(")) for piece in pieces)
        if letter == "," and depth == 1:
            pieces.append("")
        else:
            pieces[-1] += letter
    raise AssertionError(text[start : start + 80])


def test_the_page_gives_each_function_all_that_it_takes():
    """JavaScript calls a function with too few arguments, and fails where it uses them."""
    takes = {
        name: len(inspect.signature(function).parameters)
        for module in printed._MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
    }
    calls = 0
    for one in PAGES.glob("planner*.js"):
        text = re.sub(r"`[^`]*`|'[^'\n]*'|\"[^\"\n]*\"", '""', one.read_text(encoding="utf-8"))  # commas of strings
        for found in re.finditer(r"\bmath\.(\w+)\(", text):
            if found[1] in takes and "..." not in text[found.end() : text.index(";", found.end())]:  # which spread some
                calls += 1
                assert arguments(text, found.end() - 1) == takes[found[1]], (one.name, found[1])
    assert calls > 100


def test_what_is_scipy_s_in_python_is_the_same_in_the_script(tmp_path):
    """Roots and the incomplete gamma function have JavaScript of their own."""
    node = Node("", tmp_path)
    places = [(a, x) for a in (0.02, 0.5, 1, 3.7, 40, 900) for x in (0, 1e-3, 0.4, 1, 5, 38, 880, 1200)]
    found = node.ask(f"(() => {{ {printed._PRELUDE} return gammainc; }})()", places)
    assert found == pytest.approx([gammainc(a, x) for a, x in places], rel=1e-9, abs=1e-12)
    for formula, python, high in (
        ("x ** 3 - 2", lambda x: x**3 - 2, 5.0),
        ("Math.min(Math.exp(40 * x), 1e12) - 7", lambda x: min(exp(40 * x), 1e12) - 7, 9.0),
        ("x < 3 ? -1 : 1e12 * (x - 2)", lambda x: -1 if x < 3 else 1e12 * (x - 2), 20.0),
    ):
        asked = f"(high) => {{ {printed._PRELUDE} return brentq((x) => {formula}, 0, high, [], 1e-12, 1e-12); }}"
        assert node.ask(asked, [[high]]) == pytest.approx([brentq(python, 0.0, high, (), 1e-12, 1e-12)], rel=1e-9)
