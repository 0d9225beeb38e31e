"""Shared by all tests."""

from __future__ import annotations

import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The laws are checked on the same examples in every run; no deadline, since machines differ.
settings.register_profile("book", deadline=None, derandomize=True, max_examples=200)
settings.load_profile("book")


ROOT = Path(__file__).parents[1]
CLAIMS = tomllib.loads((ROOT / "data" / "claims.toml").read_text(encoding="utf-8"))["claim"]
NAMED = frozenset(name for claim in CLAIMS for name in claim.get("checks", ()))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, None]:
    """A test that the ledger names must run: skipped, or expected to fail, it has failed."""
    report = (yield).get_result()
    if report.skipped and {item.nodeid, item.nodeid.partition("[")[0]} & NAMED:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} is named by a claim and must not be skipped"


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return ROOT
