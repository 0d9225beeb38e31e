"""What answers pass on: records; in JavaScript plain objects."""

from __future__ import annotations

from inference_math.evidence.records import OpenRecord, Record
from inference_math.unit.types import ErrorRow, Message


class Sized(OpenRecord):
    """What a card compares: replicas of an architecture, or a unit of it; what is a list has both ends.

    GPUs of all, requests/s, seconds of TTFT and TPOT; of a replica its units, those that prefill where there are pools,
    and of chunks the prompt tokens of a step and the decodes beside them: 0 elsewhere. `feasible_share`: of the draws,
    those that keep the limits.
    """

    name: str
    replicas: float
    units: float
    prefill: float
    decode: float
    chunk: float
    decodes: float
    feasible_share: float
    gpus: list[float]
    rate: list[float]
    ttft: list[float]
    tpot: list[float]


class About(Record):
    """Of what an answer is a card; see `card.card_of`.

    `goal`: "gpus" for the requests/s of `traffic`, "rate" of the GPUs that there are (`have`), or one "unit" of `gpus`.
    `price`: USD for a GPU and hour, 0 where none is known; `example`: whether nobody chose it.
    `tail`: the quantile of TTFT and of gaps, 0 for means.
    `never`: whether the GPU, the model or a length was never calibrated; `own`: whether coefficients are one's own;
    `scaled`: whether they are operators', of today's engine, and no served points'. `rows`: how far off points were.
    `verdicts`: how many verdicts said "sure", "likely" or "open" of served pairs were right, of how many, and how many
    users on a GPU alone tell; `concurrency_bins`: how many served splits gained, by users on a GPU;
    `unseen`: how far off time per token is on points that were kept for a score, see `verdicts.unseen`.
    """

    goal: str
    traffic: float
    have: float
    gpus: float
    price: float
    example: bool
    tail: float
    never: bool
    own: bool
    scaled: bool
    model: str
    gpu: str
    weights: str
    kind: str
    engine: str
    rows: list[ErrorRow]
    verdicts: dict[str, list[int]]
    concurrency_bins: list[list[float]]
    unseen: float


class Card(Record):
    """An answer: its number with both ends, its sentences as parts, and the same of each architecture."""

    name: str
    goal: str
    value: list[float]
    ranged: bool
    headline: Message
    noun: Message
    axis: Message
    what: Message
    others: list[Message]
    rows: list[CardRow]
    meters: list[CardMeter]
    sure: str
    why: list[Message]
    evidence: list[Message]
    cost: list[Message]
    start: list[Message]
    next: Message


class CardRow(Record):
    """An architecture, and what it takes or serves."""

    name: str
    value: list[float]


class CardMeter(Record):
    """TTFT or TPOT, of means or of a quantile, in seconds, and its limit."""

    name: str
    of: Message
    value: list[float]
    limit: float
