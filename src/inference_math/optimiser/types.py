"""What a search for settings returns: plain dictionaries with known keys, in Python and in JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    from inference_math.unit.types import Row, StepCosts


class Solution(TypedDict):
    """Which architecture serves most under some draws (`choice.chosen`), with what it was chosen from.

    Rates in requests/s, by draw; goodput is the mean of what settings serve, 0 in a draw in which they miss a limit.
    Settings, rows and costs are those of `choice.decide` and `answers.solve`.
    """

    rates: dict[str, list[float]]
    goodput: dict[str, float]
    best_in: dict[str, float]
    none_in: float
    loss: dict[str, float]
    order: list[str]
    best: str
    lead: float
    tie: bool
    settings: NotRequired[dict[str, Row]]
    each: NotRequired[dict[str, list[Row]]]
    kept: NotRequired[dict[str, float]]
    costs: NotRequired[list[StepCosts]]
    pool_costs: NotRequired[list[StepCosts]]


class Side(TypedDict):
    """A number of decodes, or of prompts together, and what a unit of that pool serves with it in each draw."""

    number: float
    rates: list[float]


class Ranking(TypedDict):
    """The order of layouts, what each serves less than the most, how often it is the best: `choice.layouts_ranked`."""

    order: list[int]
    loss: list[float]
    best_in: list[float]


class Swing(TypedDict):
    """What a fifth less and a fifth more of an input bring; see `answers.swings`."""

    input: str
    low: float
    high: float
    best_low: str
    best_high: str
    swing: float


class Verdict(TypedDict):
    """The chance that a gain is one, NaN for none, and the word for it, "" for none; see `verdict.verdict`."""

    chance: float
    sure: str


class StoreGain(Verdict):
    """What loading the stored share of prompts from somewhere gains; see `answers.gains`."""

    where: str
    rate: float
    rate_low: float
    rate_high: float
    speedup: float
    gain: float
    binds: str
