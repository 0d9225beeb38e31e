"""Examples in docstrings are tests; where PyTorch is missing, modules that import it have none to run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

ROOMS = Path(__file__).parent

collect_ignore = [] if find_spec("torch") else [p for p in ROOMS.rglob("*.py") if "\nimport torch\n" in p.read_text()]
