"""Rooms, arrows and budgets of the house, read from its files: who imports whom, and how much code each room has.

    python tools/house.py

A room is a folder of a distribution, or the distribution itself where it is one thing. CONTRIBUTING.md shows what this
prints; a test compares them, finds imports upwards and circles, and fails where a room outgrows its budget. Lines of
code are those without blanks, comments and docstrings.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
# From the ground up; a room imports from rooms of lower floors alone.
FLOORS = (
    ("evidence",), ("catalogue", "theory", "workload"), ("unit",), ("simulate", "optimiser"),
    ("laws", "answers", "calibrate"), ("fleets",), ("cli",), ("bench",), ("book",),
)  # fmt: skip
# Lines of code at most. Who needs more room takes it from another, or argues in the change that asks for it.
BUDGETS = {
    "evidence": 340, "catalogue": 1_620, "theory": 1_260, "workload": 260, "unit": 3_025, "simulate": 1_600,
    "optimiser": 1_340, "laws": 540, "answers": 1_945, "calibrate": 1_040, "fleets": 3_565, "cli": 920,
    "bench": 3_450, "book": 5_320,
}  # fmt: skip
SCRIPTS = 1_080  # lines of JavaScript by hand for the planner's pages
TESTS = 20_650  # of tests/, without those of tools/research
ARGUMENTS = 7  # of a function, but for this many that have more
LONG_SIGNATURES = 12
ANYS = 181  # words `Any` in what computes and decides
UNFORMATTED = 97  # statements kept from the formatter in src/
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(text: str) -> int:
    """Return the lines of a module that are code: no blank ones, comments or docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def script_lines(text: str) -> int:
    """Return the lines of a script that are code: no blank ones, no line of comment."""
    return sum(bool(line.strip()) and not line.strip().startswith("//") for line in text.splitlines())


def long_signatures(text: str) -> Iterator[str]:
    """Yield the functions of a module that take more than `ARGUMENTS`, without the instance or class."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len(names) - (names[:1] in (["self"], ["cls"])) > ARGUMENTS:
                yield node.name


def sizes() -> dict[str, int]:
    """Return the lines of code of each room."""
    lines = dict.fromkeys((room for floor in FLOORS for room in floor), 0)
    for name, path in modules().items():
        if room := room_of(name):
            lines[room] += code_lines(path.read_text(encoding="utf-8"))
    return lines


def modules() -> dict[str, Path]:
    """Return every module's file, by its name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[0].startswith("inference_math"):
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """Return the modules that each imports: at its top, inside its functions, and for annotations alone."""
    return {name: _imported(ast.parse(path.read_text(encoding="utf-8")), known) for name, path in known.items()}


def _imported(tree: ast.AST, known: Mapping[str, Path]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names} & known.keys()
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module in known:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            names |= {name if name in known else node.module for name in below}
    return names


def room_of(module: str) -> str:
    """Return a module's room; "" for the doors, which have none."""
    top, *below = module.split(".")
    if top in ("inference_math_bench", "inference_math_book"):
        return top.removeprefix("inference_math_")
    return below[0] if below and below[0] != "__main__" else ""


def arrows(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the other rooms that each room imports from."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, others in graph.items():
        if own := room_of(module):
            found[own] |= {room for other in others if (room := room_of(other)) not in (own, "")}
    return dict(found)


def main() -> None:
    """Print the house, the top floor first."""
    seen, lines = arrows(imports(modules())), sizes()
    for floor in reversed(FLOORS):
        for room in floor:
            others = ", ".join(sorted(seen[room])) or "nothing"
            print(f"{room:9} {lines[room]:6,} of {BUDGETS[room]:5,} lines   imports {others}")
    print(f"{len(lines)} rooms, {sum(map(len, seen.values()))} arrows, {sum(lines.values()):,} lines")


if __name__ == "__main__":
    main()
