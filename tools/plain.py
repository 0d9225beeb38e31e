"""Write all formulas as functions of plain numbers, from their SymPy expressions: `plain.py` in `theory` and in `laws`.

    python tools/plain.py

Who only computes imports these, and needs no SymPy. A test says where a module is not what this writes.
"""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from pathlib import Path

from inference_math.theory.formula import Formula
from inference_math_planner import laws

SOURCE = Path(__file__).parents[1] / "src"
MODULES = {"theory": SOURCE / "inference_math/theory/plain.py", "laws": SOURCE / "inference_math_planner/laws/plain.py"}


def written(room: str) -> str:
    """Return the module of a room, as `ruff format` has it."""
    formulas = [one for one in laws.CATALOGUE.values() if one.room == room]
    taken = sorted({name for one in formulas for name in one.plain.__code__.co_names if hasattr(math, name)})
    head = f'"""The formulas of `{room}` as functions of plain numbers: written by `tools/plain.py`, do not edit."""'
    imports = f"from __future__ import annotations\n\nfrom math import {', '.join(taken)}"
    text = "\n\n".join([head, "# mypy: no-warn-return-any", imports, *map(function, formulas)])
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(MODULES[room]), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=SOURCE).stdout


def function(formula: Formula) -> str:
    """Return the source of a formula's plain function, by its name and with types."""
    _, _, body = inspect.getsource(formula.plain).partition("\n")
    arguments = ", ".join(f"{symbol.name}: float" for symbol in formula.arguments)
    return f"def {formula.name}({arguments}) -> float:\n{body}"


def main() -> None:
    """Write the modules."""
    for room, path in MODULES.items():
        path.write_text(written(room), encoding="utf-8")


if __name__ == "__main__":
    main()
