"""Examples in the docstrings of tools/research run."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "tools" / "research"
NAMES = [path.stem for path in sorted(FOLDER.glob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name):
    assert doctest.testmod(import_module(name)).failed == 0
