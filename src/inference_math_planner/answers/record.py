"""The record of an answer: plain values by fixed names, which the views print and `plan --json` writes out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
import pandas as pd
from msgspec import Meta, Struct

from inference_math.evidence.sentences import render
from inference_math.unit.types import Layout
from inference_math.workload import SLA, Workload
from inference_math_planner.answers import types

__all__ = ["Answer", "Card", "Choice", "Command", "Fleets", "OneUnit", "Record", "Three", "carded", "rows_of", "schema"]

if TYPE_CHECKING:  # always a number here; what is NaN or infinite is null in JSON
    Real = float
    Share = float
else:
    Real = float | None
    Share = Annotated[float, Meta(ge=0, le=1.000001)] | None
Name = Annotated[str, Meta(pattern="^(aggregated|chunked|disaggregated)$")]
Size = Annotated[int, Meta(ge=1)]


class Three(Struct, frozen=True):
    """A median with its 5 % and 95 % ends, over the draws of the calibration."""

    value: Real
    low: Real
    high: Real


class Answer(Struct, frozen=True):
    """One number of a plan: its `title` in words, its interval (90 %), its unit, how it was found, what it means.

    `value` is the median of the draws, `low` and `high` their 5 % and 95 % quantiles; a setting is the same under each.
    `by` names what computed it: "step", the unit's step; "formula", the closed form `formula`; "search", whole numbers
    tried against the step; "compare", what settings do, or one architecture against another; "fitted", measured TTFTs.
    Where a formula of the book says less than a search or a comparison, `by_formula` is what it says at the medians;
    NaN where there is none, or where what it assumes does not hold.
    """

    name: str
    title: str
    value: Real
    low: Real
    high: Real
    unit: str
    by: str
    formula: str
    by_formula: Real
    why: str


class Command(Struct, frozen=True):
    """What is started, and its command line."""

    title: str
    command: str


class Choice(Struct, frozen=True, kw_only=True):
    """An architecture: of a fleet where traffic or GPUs were named, else of a unit, or its pools, at full load.

    `architecture` is null where nothing meets the limits, or no fleet keeps the promise. `gpus` and `rate` (requests/s)
    are those of a whole fleet, null at full load; `unit_gpus` and `unit_rate` those of one unit at full load, of pools
    their mean; `pools_gpus` and `pools_rate` those of all `units` of both pools at full load. `loss` is how
    much less is served in the mean over the draws, as a share of what the one that serves most does; `none_in` the
    share of the draws in which no architecture meets the limits; `kept` that in which this one does. `served` is what a
    fleet serves in the median where GPUs were given; `ttft` and `tpot` are in seconds; `tokens_per_gpu` in output
    tokens/s; `promise` the share of the requests within both limits, or "means"; `link_gb_s` in GB/s of KV caches into
    each decode unit. `options` are the settings in the engine's own words, `settings` those by our own names: null
    where there is no such limit. Of pools `split` has the units, and `pools` the layouts of each.
    """

    architecture: Name | None = None
    tie: bool = False
    best_in: Share
    loss: Share | None = None
    gpus: Three | None = None
    layout: Layout
    rate: Three | None = None
    unit_gpus: Size
    unit_rate: Three | None = None
    pools_gpus: Size | None = None
    pools_rate: Three | None = None
    ttft: Three | None = None
    tpot: Three | None = None
    tokens_per_gpu: Real | None = None
    promise: Literal["means"] | float
    store: str | None
    settings: dict[str, int | None] | None = None
    split: dict[str, Real] | None = None
    pools: dict[str, Layout] | None = None
    link_gb_s: Real | None = None
    commands: list[Command] = []
    replicas: Size = 1
    units: Size = 1
    kept: Share | None = None
    decodes: Real | None = None
    none_in: Share
    served: Three | None = None
    options: list[str] = []


class Timed(Struct, frozen=True, kw_only=True):
    """What a unit does at full load: requests/s and seconds, medians with their 5 % and 95 % ends."""

    rate: Real
    rate_low: Real
    rate_high: Real
    ttft: Real
    ttft_low: Real
    ttft_high: Real
    tpot: Real
    tpot_low: Real
    tpot_high: Real


class OneUnit(Timed, frozen=True, kw_only=True):
    """What an architecture does at full load, of one unit and without queues; see `Plan.compared`."""

    architecture: Name
    layout: str
    best_in: Share
    loss: Share
    kept: Share
    decodes: Real
    batch: Real
    chunk: Real
    prefill_units: Real
    decode_units: Real
    computed: Real
    options: list[str]
    commands: list[Command]


class Store(Struct, frozen=True):
    """Where the stored share may lie, and the requests/s of a fleet with it, or where there is none of a unit."""

    store: str
    rate: Real


class Stored(Struct, frozen=True):
    """The same of one unit at full load, and why; see `planner.offloading`.

    `chance` is that of a gain above 1 and `sure` the word for it; null and "" where nothing is compared.
    """

    where: str
    e: Real
    binds: str
    speedup: Real
    rate: Real
    rate_low: Real
    rate_high: Real
    gain: Real
    chance: Share
    sure: Literal["sure", "likely", "open", ""]


class TriedLayout(Struct, frozen=True):
    """A layout that was tried; see `planner.search`.

    Its `answer` to a question for a fleet: GPUs for the traffic, or requests/s of the GPUs; null where a layout before
    it does as well. See `planner.size`.
    """

    architecture: Name
    layout: str
    tp: Size
    ep: Size
    dp: Size
    pp: Size
    prefill: Layout | None  # of a prefill unit, where it is its own
    gpus: Size
    rate: Real
    tokens_per_gpu: Real
    low: Real
    high: Real
    best_in: Share
    loss: Share
    decodes: Real
    ttft: Real
    tpot: Real
    answer: Real = float("nan")


class OtherGpu(Struct, frozen=True):
    """The same on another GPU, per GPU and at full load; see `planner.across`."""

    gpu: str
    standing: str
    architecture: str
    rate: Real
    rate_low: Real
    rate_high: Real
    ratio: Real
    ratio_low: Real
    ratio_high: Real
    price: Real
    break_even: Real
    break_even_low: Real
    break_even_high: Real
    usd_per_million: Real
    usd_per_million_low: Real
    usd_per_million_high: Real
    joules: Real


class Drafted(Timed, frozen=True, kw_only=True):
    """A unit at full load with drafts, or without; see `Plan.drafting`."""

    drafts: str
    architecture: str


class Fleets(Struct, frozen=True):
    """What is said of a fleet: under what it holds; US dollars for a million output tokens."""

    how: str
    usd_per_million: Real


class Counted(Struct, frozen=True):
    """What an architecture takes, or serves, and what its requests see: a name, a number with both ends."""

    name: str
    value: Three


class Metered(Counted, frozen=True):
    """TTFT or TPOT in seconds, the mean or a quantile (`of`), and its limit."""

    of: str
    limit: Real


class Card(Struct, frozen=True, kw_only=True):
    """The answer as all views show it; see `card.card_of`.

    `value` counts GPUs, or requests/s, as `noun` says, and is null where nothing is an answer; `ranged` where only its
    ends should be told, for the GPU, the model or a length was never calibrated. `rows` are the architectures, the
    chosen one first, on the axis `axis`. `sure` is "sure", "likely" or "open": by the draws of the calibration, and by
    how far gains of served pairs were off; `why` says how often such words were right. `what` is started, `others` are
    what else would do, `start` is why a step is as long as it is, `evidence` how far off predictions were on this very
    GPU.
    """

    headline: str
    value: Three | None = None
    ranged: bool = False
    noun: str = ""
    axis: str = ""
    what: str = ""
    others: list[str] = []
    rows: list[Counted] = []
    meters: list[Metered] = []
    sure: Literal["sure", "likely", "open"] | None = None
    why: str = ""
    evidence: list[str] = []
    cost: list[str] = []
    start: list[str] = []
    next: str = ""


class Record(Struct, frozen=True, kw_only=True, tag_field="schema", tag="inference-math/plan/1"):
    """What `inference-math plan --json` prints.

    Seconds, requests/s, shares from 0 to 1. NaN and infinity are null in JSON. Every number is a statistic over the
    same draws of the calibration: a median with its 5 % and 95 % ends, or a share. `answer` is the recommendation,
    `architectures` are all of its kind; `one_unit`, `offloading`, `drafting` and `numbers` are those of one unit at
    full load, `none_in` the share of the draws in which it meets the limits with no architecture. `runner_up` is empty
    where nobody asked for it; `warnings` are what a command notes beside its answer. `feasible` is false, too, where
    no fleet keeps the promise that was asked for: then `advice` says why, and which promise one would keep. It also
    says why a store is slower than computing.
    """

    unit: str
    calibration: str
    workload: Workload
    sla: SLA
    units: int
    feasible: bool
    card: Card
    answer: Choice
    architectures: list[Choice]
    one_unit: list[OneUnit]
    none_in: Share
    stores: list[Store]
    offloading: list[Stored]
    layouts: list[TriedLayout] = []
    gpus: list[OtherGpu] = []
    drafting: list[Drafted]
    fleets: Fleets | None = None
    numbers: dict[str, Answer]
    runner_up: str
    advice: list[str]
    outside: list[str]
    cautions: list[str]
    hindered: dict[str, str]
    warnings: list[str] = []

    def as_json(self) -> str:
        """Return it as JSON, by `schema`."""
        content = json.loads(msgspec.json.encode(self, enc_hook=np.generic.item))
        del content["workload"]["cv"]  # which its `lengths` say
        return json.dumps(content, indent=2)


def carded(card: types.Card) -> Card:
    """Return a card in words."""
    said: dict[str, Any] = {name: render(getattr(card, name)) for name in _SAID}
    said |= {name: list(map(render, getattr(card, name))) for name in _LISTS}
    rows = [Counted(one.name, Three(*one.value)) for one in card.rows]
    meters = [Metered(one.name, Three(*one.value), render(one.of), one.limit) for one in card.meters]
    values: dict[str, Any] = {"value": Three(*card.value), "ranged": card.ranged, "sure": card.sure}
    return Card(rows=rows, meters=meters, **values, **said)


_LISTS = ("others", "cost", "start", "evidence")
_SAID = ("headline", "noun", "axis", "what", "why", "next")


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def schema() -> dict[str, object]:
    """Return the JSON Schema of what `inference-math plan --json` prints.

    >>> schema()["$ref"]
    '#/$defs/Record'
    """
    return msgspec.json.schema(Record)
