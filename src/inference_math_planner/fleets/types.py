"""What fleets, benchmarks and stores pass on: records; in JavaScript plain objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import field

from inference_math.evidence.records import OpenRecord, Record

if TYPE_CHECKING:
    from inference_math.simulate.types import StepTimes
    from inference_math.unit.types import Problem, StepCosts


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
    accepted_per_step: float
    verified_per_step: float


class Visit(Record):
    """What users in a closed loop see.

    Attributes
    ----------
    found
        Share of all prompt tokens that each tier finds, HBM first.
    rate
        Turns per second.
    ttft, tpot
        Means, in seconds; a TTFT with its wait.
    in_flight
        Turns that hold their tokens.
    full
        Whether more turns than HBM has room for are under way in the mean; some wait for room before that.
    prompts
        Share of the time that prompts take of the engine, beside what its steps take without: ψ of claim E07.
    waits, holds
        Seconds for which a turn waits for room, and holds it.
    """

    found: list[float]
    rate: float
    ttft: float
    tpot: float
    in_flight: float
    full: bool
    prompts: float
    waits: float
    holds: float

    @property
    def together(self) -> float:
        """Share of all prompt tokens that is found."""
        return sum(self.found)


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
    gain_error: list[float]  # of what a store gains; see `optimiser.gain_error`


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


class FleetCandidate(OpenRecord):
    """The best replica of an architecture, and the fleet of it: see `queues.best_fleet` and `queues.settle`."""

    name: str
    units: int
    row: int
    gpus: int
    each: list[float]  # requests/s by draw
    idle: float  # draws in which it keeps the promise with next to nothing to do, where no fleet does
    replicas: int
    gpus_all: list[float] = field(default_factory=list)
    rate: list[float] = field(default_factory=list)
    sold: float = 0.0
    full: float = 0.0  # requests/s of the same GPUs at full load
    ttft: list[float] = field(default_factory=list)
    tpot: list[float] = field(default_factory=list)
    feasible_share: float = 0.0


class FleetGoal(Record):
    """What a fleet is for: requests/s of all replicas together, or the GPUs that there are; the other is 0."""

    traffic: float
    have: float


class Draw(Record):
    """A draw of the calibration: seconds of steps, of each TTFT beside them, and what requests cost."""

    pace: StepTimes
    prefill: StepTimes  # of a unit of the prefill pool
    front: float
    costs: StepCosts


class DrawnUnit(Record):
    """A unit under the draws that stand for all, and their places among all."""

    problem: Problem
    places: list[int]
    draws: list[Draw]


class Arriving(Record):
    """Requests of a draw: times between them, of mean 1, prompt, output and stored tokens, a number to begin chance."""

    gaps: list[float]
    rows: list[tuple[int, int, int]]
    seed: float


class RequestSource(Record):
    """What requests are made of: times between them and their CV, chances of lengths, rows to be like, the promise.

    Or a recorded `trace`: arrival, prompt, output and stored tokens. The `goal` has the traffic of which a replica gets
    its part, where that is not at random; `share` is that of the requests that must keep both limits, 0 for means.
    """

    gaps: list[float]
    cv: float
    lengths: list[float]
    like: list[tuple[int, int, int]]
    trace: list[tuple[float, int, int, int]]
    share: float
    goal: FleetGoal
