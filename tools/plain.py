"""Write formulas as functions that need no SymPy, from their expressions in SymPy: what `src/` takes from `MODULES`.

    python tools/plain.py

A module `plain` has functions of numbers, and `arrays` of NumPy's arrays: those that others import from it. A test says
where one is not what this writes.
"""

from __future__ import annotations

import ast
import inspect
import math
import subprocess
import sys
from pathlib import Path
from types import FunctionType

from inference_math import theory
from inference_math.theory.formula import Formula

SOURCE = Path(__file__).parents[1] / "src"
MODULES = ("inference_math.theory.plain", "inference_math.theory.arrays")
_NUMPY = "import numpy\n\nfrom inference_math.evidence.checks import Numbers"


def path_of(module: str) -> Path:
    """Return the file of a module."""
    return SOURCE.joinpath(*module.split(".")).with_suffix(".py")


def written(module: str) -> str:
    """Return a module, as `ruff format` has it."""
    names, kind = taken(module), module.rpartition(".")[2]
    formulas = [formula for name, formula in theory.CATALOGUE.items() if name in names]
    called = {name for one in formulas for name in compiled(one, kind).__code__.co_names} & {*dir(math)}
    imports = _NUMPY if kind == "arrays" else f"from math import {', '.join(sorted(called))}"
    head = f'"""Formulas of `{module.split(".")[-2]}`, written by `tools/plain.py`: do not edit."""'
    parts = [head, "# mypy: no-warn-return-any", "from __future__ import annotations", imports]
    text = "\n\n".join([*parts, *(function(one, kind) for one in formulas)])
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path_of(module)), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=SOURCE).stdout


def compiled(formula: Formula, kind: str) -> FunctionType:
    """Return what SymPy makes of a formula."""
    made = formula.plain if kind == "plain" else formula.unchecked
    assert isinstance(made, FunctionType)
    return made


def taken(module: str) -> set[str]:
    """Return the names that others import from a module."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.name for node in nodes if node.module == module for alias in node.names}


def function(formula: Formula, kind: str) -> str:
    """Return the source of a formula's compiled function, by its name and with types."""
    _, _, body = inspect.getsource(compiled(formula, kind)).partition("\n")
    one = "float" if kind == "plain" else "Numbers"
    arguments = ", ".join(f"{symbol.name}: {one}" for symbol in formula.arguments)
    return f"def {formula.name}({arguments}) -> {one}:\n{body}"


def main() -> None:
    """Write the modules."""
    for module in MODULES:
        path_of(module).write_text(written(module), encoding="utf-8")


if __name__ == "__main__":
    main()
