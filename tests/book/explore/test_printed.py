"""The modules that are printed as JavaScript keep to what both languages have; see `browser`."""

from __future__ import annotations

import ast
import inspect

import pytest

from inference_math.book.explore import browser

LISTS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp)  # and what is annotated as one
ANNOTATED = ("list", "dict", "Sequence", "Mapping")


def breaches(source: str) -> list[str]:
    """Return what JavaScript reads otherwise, and what the printer leaves out, by line."""
    tree, found = ast.parse(source), []
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            from_sympy = all(ast.unparse(value).endswith(".plain") for value in values)
            if not (name.isupper() or name == "__all__" or from_sympy):
                found.append((node.lineno, f"{name} is left out: constants are upper-case"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.append((node.lineno, "a class is left out"))
        if isinstance(node, ast.FunctionDef):
            if node.args.defaults or any(node.args.kw_defaults):
                found.append((node.lineno, "a default argument is left out"))
            what = "the truth of a list, which JavaScript always holds"
            found += [(test.lineno, what) for test in lists_tested(node)]
    return [f"line {line}: {what}" for line, what in found]


def lists_tested(function: ast.FunctionDef) -> list[ast.expr]:
    """Return where a list or a dict stands as a condition."""
    lists, tests = set(), []
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
    return [test for test in tests if isinstance(test, LISTS) or (isinstance(test, ast.Name) and test.id in lists)]


@pytest.mark.parametrize("module", browser._MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_printed_module_keeps_to_what_both_languages_have(module):
    assert breaches(inspect.getsource(module)) == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("most = 3", "upper-case"),
        ("most: tuple[float, ...] = (3, 4)", "upper-case"),
        ("class Row:\n    pass", "a class"),
        ("def f(a, b=1):\n    return a", "a default argument"),
        ("def f(rows: list[float]) -> float:\n    return 1 if rows else 0", "the truth of a list"),
        ("def f(a):\n    kept = [x for x in a]\n    return kept and a", "the truth of a list"),
        ("def f(a):\n    kept = {}\n    while not kept:\n        a()", "the truth of a list"),
    ],
)
def test_what_only_python_has_is_seen(source, what):
    (said,) = breaches(source)
    assert what in said
