"""Shared by all tests."""

import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The laws are checked on the same examples in every run, on twice as many others before a release. No deadline, since
# machines differ.
settings.register_profile("book", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("random", deadline=None, max_examples=200, print_blob=True)
settings.load_profile("book")


ROOT = Path(__file__).parents[1]
CLAIMS = tomllib.loads((ROOT / "data" / "claims.toml").read_text(encoding="utf-8"))["claim"]
NAMED = frozenset(name for claim in CLAIMS for name in claim.get("checks", ()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of what the ledger names, something runs in every `make test`; a notebook's pictures are not compared."""
    for file in {item.parent for item in items if type(item).__name__ == "IPyNbCell"}:
        file.skip_compare = (*file.skip_compare, "image/svg+xml")  # coordinates differ between machines
    if config.option.markexpr == "not long":
        late, soon = set[str](), set[str]()
        for item in items:
            (late if item.get_closest_marker("long") else soon).update({item.nodeid, item.nodeid.partition("[")[0]})
        if only := (late - soon) & NAMED:
            raise pytest.UsageError(f"named by a claim, and long: {', '.join(sorted(only))}")


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


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of eight draws and fleets of three, for tests of what is done with an answer, not of what it is."""
    from inference_math_planner.answers import deployment
    from inference_math_planner.fleets import gpus, layouts, queues, stores

    monkeypatch.setattr(queues, "DRAWN", 3)
    for module in (deployment, gpus, stores, layouts):
        monkeypatch.setattr(module, "DRAWS", 8)
