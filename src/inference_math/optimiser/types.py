"""What a search for settings returns: records; in JavaScript plain objects."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

from msgspec import field

from inference_math.evidence.records import Record

if TYPE_CHECKING:
    from inference_math.unit.types import OperatingPoint, StepCosts


class Solution(Record):
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
    settings: dict[str, OperatingPoint] = field(default_factory=dict)
    each: dict[str, list[OperatingPoint]] = field(default_factory=dict)
    feasible_share: dict[str, float] = field(default_factory=dict)
    costs: list[StepCosts] = field(default_factory=list)
    pool_costs: list[StepCosts] = field(default_factory=list)


class Side(Record):
    """A number of decodes, or of prompts together, and what a unit of that pool serves with it in each draw."""

    number: float
    rates: list[float]


class Ranking(Record):
    """The order of layouts, what each serves less than the most, how often it is the best: `choice.layouts_ranked`."""

    order: list[int]
    loss: list[float]
    best_in: list[float]


class Sensitivity(Record):
    """What a fifth less and a fifth more of an input bring; see `answers.sensitivities`."""

    input: str
    low: float
    high: float
    best_low: str
    best_high: str
    change: float


class Verdict(Record):
    """The chance that a gain is one, NaN for none, and the word for it, "" for none; see `verdict.verdict`."""

    chance: float = nan
    sure: str = ""


class StoreGain(Verdict, kw_only=True):
    """What loading the stored share of prompts from somewhere gains; see `answers.gains`."""

    where: str
    binds: str
    rate: float = 0.0
    rate_low: float = nan
    rate_high: float = nan
    speedup: float = nan
    gain: float = nan
