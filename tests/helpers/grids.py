"""Grids of cases: one test runs many, and part of them waits for `make test-long`."""

from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

import pytest

__all__ = ["each", "early", "rest_long"]


def rest_long(values: Iterable[Any], keep: int = 1) -> list[Any]:
    """Return parameters for `pytest.mark.parametrize`, of which all but the first `keep` are long."""
    rows = list(values)
    late = [pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.long) for row in rows[keep:]]
    return [*rows[:keep], *late]


def early(paths: Sequence[Path], *soon: str) -> list[Any]:
    """Return files of which those whose names begin so come first, and all others are long."""
    rows = sorted(paths, key=lambda path: not path.name.startswith(soon))
    return rest_long(rows, sum(path.name.startswith(soon) for path in rows))


def each(rows: Sequence[Any], name: Callable[[Any], str] = str, parts: int = 1) -> Callable[..., Any]:
    """Run a test, whose first argument is a row, on all rows in one item; what fails is named, the rest still runs.

    Of several parts each has every so-many-th row, and all but the first are long.
    """

    def made(test: Callable[..., None]) -> Callable[..., None]:
        def whole(subtests: pytest.Subtests, part: int = 0, **fixtures: Any) -> None:
            for row in rows[part::parts]:
                with subtests.test(name(row)):
                    test(row, **fixtures)

        own = list(signature(test).parameters.values())[1:]
        taken = ["subtests", "part"] if parts > 1 else ["subtests"]
        whole.__signature__ = Signature(
            [
                *(Parameter(n, Parameter.KEYWORD_ONLY) for n in taken),
                *(p.replace(kind=Parameter.KEYWORD_ONLY) for p in own),
            ]
        )  # type: ignore[attr-defined]
        whole.__name__, whole.__doc__, whole.__module__ = test.__name__, test.__doc__, test.__module__
        whole.pytestmark = list(getattr(test, "pytestmark", ()))  # type: ignore[attr-defined]
        return pytest.mark.parametrize("part", rest_long(range(parts)))(whole) if parts > 1 else whole

    return made
