"""What answers pass on: plain dictionaries with known keys, in Python and in JavaScript."""

from __future__ import annotations

from typing import TypedDict


class Sized(TypedDict):
    """A fleet's size; GPUs that its traffic takes and requests/s that it serves, each with both ends."""

    name: str
    replicas: float
    units: float
    gpus: list[float]
    rate: list[float]
