"""What fleets, benchmarks and stores pass on: records; in JavaScript plain objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import field

from inference_math.evidence.records import OpenRecord, Record

if TYPE_CHECKING:
    from inference_math.simulate.types import StepTimes


class TurnNumbers(Record):
    """Sessions of equal turns; see `fleets.turns.Turns`."""

    turns: int
    first: int
    message: int
    answer: int
    think: float
    cv: float = 1.0
    shared: int = 0


class SessionNumbers(Record):
    """Means of sessions; see `fleets.turns.Sessions`."""

    again: float
    brought: float
    gap: float
    cv: float = 1.0
    answer: float = 0.0
    shared: float = 0.0
    served: float = 0.0


class SessionHabits(Record):
    """How an engine computes and loads; see `fleets.loops.Habit`. A step gives each decode tokens, and brings some."""

    budget: float
    groups: int
    blocking: bool
    lifetime: float
    gives: float
    brings: float


class Visit(Record):
    """What users in a closed loop see; see `fleets.loops.Loop`. A turn waits for room, and holds it, for seconds."""

    found: list[float]
    rate: float
    ttft: float
    tpot: float
    in_flight: float
    full: bool
    prompts: float
    waits: float
    holds: float


class LadderNumbers(Record):
    """What is asked of a ladder of tiers: users of so many units, and the tokens that HBM and each tier hold of one."""

    turns: TurnNumbers
    users: float
    units: int
    gpus: int  # of a unit
    front: float
    tokens: list[float]
    loads: list[float]  # seconds of a token, 0 of HBM
    bytes: float  # of a token, once
    habits: SessionHabits
    doubt: list[float]  # of what a store gains; see `optimiser.doubt`


class TierRow(Record):
    """What the tiers down to one find and bring; see `planner.Ladder`."""

    together: float
    found: list[float]
    users: float
    rate: float
    ttft: float
    tpot: float
    in_flight: float
    full: bool
    prompts: float


class Standing(OpenRecord):
    """The best replica of an architecture, and the fleet of it: see `queues.standing` and `queues.settle`."""

    name: str
    units: int
    row: int
    gpus: int
    each: list[float]  # requests/s by draw
    sure: float  # that it sustains in nine of ten draws
    idle: float  # draws in which it keeps the promise with next to nothing to do, where no fleet does
    replicas: int
    gpus_all: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    sold: float = 0.0
    full: float = 0.0  # requests/s of the same GPUs at full load
    ttft: list[float] = field(default_factory=list)
    tpot: list[float] = field(default_factory=list)
    kept: float = 0.0


class Host(Record):
    """Who plays replicas, and answers what was asked before from memory; see `queues.standing`."""

    rows: Callable[[str, int], int]
    top: Callable[[str, int, int, int], float]
    play: Callable[[str, int, int, int, float, float], list[float]]


class Draw(Record):
    """A draw of the calibration: seconds of steps, of each TTFT beside them, and the place of its arrivals."""

    pace: StepTimes
    prefill: StepTimes  # of a unit of the prefill pool
    front: float
    place: int


class Drawn(Record):
    """What requests are made of: times between them and their CV, chances of lengths, rows to be like, the promise."""

    gaps: list[float]
    cv: float
    lengths: list[float]
    like: list[tuple[int, int, int]]
    share: float
