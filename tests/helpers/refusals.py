"""What is refused, by the name of the argument that is wrong."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

__all__ = ["refused"]


def refused(call: Callable[..., Any], good: Mapping[str, Any], *wrong: Mapping[str, Any]) -> None:
    """Assert that a call refuses each change of its good arguments, and says first what must be of the changed one."""
    for change in wrong:
        (name,) = change
        with pytest.raises((TypeError, ValueError), match=f"^{name} must "):
            call(**{**good, **change})
