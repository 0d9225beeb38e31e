"""Shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# The laws are checked on the same examples in every run; no deadline, since machines differ.
settings.register_profile("book", deadline=None, derandomize=True, max_examples=200)
settings.load_profile("book")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return Path(__file__).parents[1]
