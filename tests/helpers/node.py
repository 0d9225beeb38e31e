"""The script of the planner's page in node: what is printed as JavaScript beside the Python that it is printed from."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import asdict

__all__ = ["Node", "close", "plain"]

# Functions and what is not a number have no JSON: the former are left out, the latter are written as texts.
_CALL = """
const told = (_, x) => typeof x === "number" && !Number.isFinite(x) ? `@${x}` : x;
process.stdout.write(JSON.stringify(cases.map((one) => ask(...one)), told));
"""


class Node:
    """One process for each question, which is asked of all cases at once."""

    def __init__(self, script: str, folder: Path) -> None:
        found = shutil.which("node")
        if found is None and not os.environ.get("CI"):
            pytest.skip("no node: 'apt install nodejs' (Debian)")
        assert found, "CI needs node: apt install nodejs"
        self.node, self.folder = found, folder
        (folder / "printed.js").write_text(f"globalThis.window = globalThis;\n{script}", encoding="utf-8")

    def ask(self, function: str, cases: list[list[Any]]) -> list[Any]:
        """Return what a JavaScript function returns for each list of arguments; `math` is the printed package."""
        given = json.dumps(cases, default=_listed)  # NaN and Infinity are numbers of JavaScript, too
        program = self.folder / "asked.js"
        program.write_text(
            f'require("./printed.js");\nconst math = window.inferenceMath, ask = {function}, cases = {given};\n{_CALL}',
            encoding="utf-8",
        )
        done = subprocess.run([self.node, program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found: list[Any] = json.loads(re.sub(r'"@(-?Infinity|NaN)"', r"\1", done.stdout))
        return found


def _listed(value: Any) -> Any:
    """Return records and mappings as dictionaries, tuples and arrays as lists, their numbers as Python's."""
    if isinstance(value, Struct):
        return asdict(value)
    return dict(value) if hasattr(value, "keys") else value.tolist() if hasattr(value, "tolist") else list(value)


def plain(value: Any) -> Any:
    """Return what JSON keeps of a result: no functions."""
    if isinstance(value, Struct):
        return plain(asdict(value))
    if hasattr(value, "keys"):
        return {str(key): plain(one) for key, one in value.items() if not callable(one)}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.item() if hasattr(value, "item") else value


def close(here: Any, there: Any, rel: float = 1e-6) -> bool:
    """Tell whether both are the same but for the last digits of numbers."""
    if isinstance(here, dict):
        return set(here) == set(there) and all(close(here[name], there[name], rel) for name in here)
    if isinstance(here, list):
        return len(here) == len(there) and all(close(*pair, rel) for pair in zip(here, there, strict=True))
    if isinstance(here, float | int) and not isinstance(here, bool):
        return there == pytest.approx(here, rel=rel, abs=1e-9, nan_ok=True)
    return bool(here == there)
