"""Rooms and arrows of the house, read from its files: who imports whom.

    python tools/house.py

A room is a folder of a distribution, or the distribution itself where it is one thing. CONTRIBUTING.md shows what this
prints; a test compares them, and finds imports upwards and circles.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
# From the ground up; a room imports from rooms of lower floors alone.
FLOORS = (
    ("evidence",), ("catalogue", "theory", "workload"), ("unit",), ("simulate", "optimiser"),
    ("laws", "answers", "calibrate"), ("fleets",), ("cli",), ("bench",), ("book",),
)  # fmt: skip


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
    known = modules()
    seen = arrows(imports(known))
    lines = {room: 0 for floor in FLOORS for room in floor}
    for name, path in known.items():
        if room := room_of(name):
            lines[room] += len(path.read_text(encoding="utf-8").splitlines())
    for floor in reversed(FLOORS):
        for room in floor:
            print(f"{room:9} {lines[room]:6,} lines   imports {', '.join(sorted(seen[room])) or 'nothing'}")
    print(f"{len(lines)} rooms, {sum(map(len, seen.values()))} arrows, {sum(lines.values()):,} lines")


if __name__ == "__main__":
    main()
