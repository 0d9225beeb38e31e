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


class ErrorRow(TypedDict):
    """How far predictions were off on some served points; see `notes.checked`."""

    model: str
    gpu: str
    kind: str
    engine: str
    maker: str
    weights: str
    source: str
    drafts: str
    points: float
    error: float
    ttft: float  # -1 where it was not scored, as for `inside`
    inside: float
