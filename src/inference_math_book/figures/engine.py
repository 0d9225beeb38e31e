"""The engine, seen: the same requests aggregated, chunked and disaggregated, played step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from math import isinf
from typing import Any

import altair as alt
import msgspec
import numpy as np
import pandas as pd

from inference_math.simulate import Aggregated, Chunked, Disaggregated, Reuse, StepCost, replay
from inference_math.simulate.record import Run
from inference_math.simulate.schedulers import Scheduler, system_of
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math.workload import Trace
from inference_math_book import explore
from inference_math_book.figures.interference import KINDS, segments

__all__ = ["ARCHITECTURES", "SETTINGS", "opening", "played", "seen", "systems"]

ARCHITECTURES = ("aggregated", "chunked", "disaggregated")
SETTINGS: Mapping[str, tuple[str, float, float, float, float]] = {
    "rate": ("requests per second, of all units", 16, 2, 60, 1),
    "prompt": ("prompt (token)", 900, 100, 4000, 100),
    "answer": ("answer (token)", 10, 3, 30, 1),
    "batch": ("places of a unit", 4, 1, 12, 1),
    "chunk": ("tokens of a step, in chunks", 256, 32, 2048, 32),
    "units": ("units in all", 2, 2, 4, 1),
    "split": ("of them for prefill with pools, one fewer than all at most", 1, 1, 3, 1),
    "stored": ("stored share of each prompt", 0, 0, 0.95, 0.05),
    "e": ("e, computing over loading a token", 9, 0.5, 40, 0.5),
}
"""What may be moved: in words, the first value, the ends, and the step."""
_COUNT = 12  # requests
_MOVE = 2e-6  # seconds that a token takes from one pool to the other
_LANE, _GAP = 0.86, 2.2  # of a request; lanes between two architectures, for their names
_ENDLESS = 1e300  # JSON has no infinity


def _drawn() -> dict[str, list[float]]:
    """Return times between arrivals, and prompts and answers, over their means: drawn once."""
    rng = np.random.default_rng(7)
    gaps = np.concatenate([[0.0], rng.exponential(size=_COUNT - 1)])
    prompts, answers = rng.gamma(4, 0.25, _COUNT), rng.gamma(6, 1 / 6, _COUNT)
    named = {"gaps": gaps / gaps[1:].mean(), "prompts": prompts / prompts.mean(), "answers": answers / answers.mean()}
    return {name: [round(float(one), 3) for one in values] for name, values in named.items()}


def _trace(of: Sequence[int], at: Mapping[str, float]) -> Trace:
    """Return some of the requests."""
    drawn, whole = _drawn(), np.floor
    n_in = np.maximum(whole(at["prompt"] * np.array(drawn["prompts"]) + 0.5), 2).astype(int)
    n_out = np.maximum(whole(at["answer"] * np.array(drawn["answers"]) + 0.5), 2).astype(int)
    arrival = np.cumsum(drawn["gaps"]) / at["rate"]
    return Trace(n_in[of], n_out[of], arrival=arrival[of], alpha=np.full(len(of), at["stored"]))


def _schedulers(at: Mapping[str, float]) -> list[tuple[Scheduler, int]]:
    """Return what serves in each architecture, and how many of these there are."""
    units, batch = int(at["units"]), int(at["batch"])
    split = min(int(at["split"]), units - 1)
    pools = Disaggregated(split, units - split, transfer=_MOVE, max_batch=batch)
    return [(Aggregated(max_batch=batch), units), (Chunked(int(at["chunk"]), max_batch=batch), units), (pools, 1)]


def systems() -> list[dict[str, Any]]:
    """Return the systems of the three architectures at the first settings, without infinities."""
    at = {name: first for name, (_, first, *_) in SETTINGS.items()}
    found: list[dict[str, Any]] = []
    for scheduler, _ in _schedulers(at):
        numbers: dict[str, Any] = msgspec.to_builtins(system_of(scheduler, None))
        numbers["policy"] = {name: _finite(value) for name, value in numbers["policy"].items()}
        found.append({name: _finite(value) for name, value in numbers.items()})
    return found


def _finite(value: Any) -> Any:
    return _ENDLESS if isinstance(value, float) and isinf(value) else value


def played(cost: StepCost, **moved: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what every request did when, and when its tokens came.

    The first: architecture, request, y, y2, start, end (ms), curve (what it did), value (ms). The second: architecture,
    at (ms), and for first tokens ttft, for others gap (ms).
    """
    at = {name: first for name, (_, first, *_) in SETTINGS.items()} | moved
    load = Reuse(cost.T / at["e"])
    bars, tokens = [], []
    for place, (scheduler, many) in enumerate(_schedulers(at)):
        for first in range(many):
            of = list(range(first, _COUNT, many))
            run = replay(_trace(of, at), cost, scheduler=scheduler, reuse=load, log=True)
            rows = segments(run, cost)
            rows["request"] = [of[number - 1] + 1 for number in rows["request"]]
            rows["y"] = place * (_COUNT + _GAP) + rows["request"]
            bars.append(rows.assign(architecture=ARCHITECTURES[place], y2=rows["y"] + _LANE))
            tokens.append(_tokens(run, rows, of).assign(architecture=ARCHITECTURES[place], y=place * (_COUNT + _GAP)))
    drawn = pd.concat(bars, ignore_index=True).rename(columns={"kind": "curve"})
    for name in ("start", "end"):
        drawn[name] = (1e3 * drawn[name]).round(3)
    drawn["value"] = (drawn["end"] - drawn["start"]).round(3)
    columns = ["architecture", "request", "y", "y2", "start", "end", "curve", "value"]
    return drawn[columns], pd.concat(tokens, ignore_index=True)


def _tokens(run: Run, rows: pd.DataFrame, of: Sequence[int]) -> pd.DataFrame:
    """Return when tokens came, after how long a wait (ms)."""
    found = []
    requests = run.requests.sort_values(["arrival", "admitted"]).to_dict("records")
    for number, request in zip(of, requests, strict=True):
        found.append({"at": request["first_token"], "ttft": request["first_token"] - request["arrival"]})
        own = rows[(rows["request"] == number + 1) & rows["kind"].isin(["decode", "bubble"])]
        ends = own.groupby("step")["end"].max().sort_values().to_numpy()
        gaps = np.diff(ends, prepend=request["first_token"])
        found += [{"at": float(end), "gap": float(gap)} for end, gap in zip(ends, gaps, strict=True)]
    return (1e3 * pd.DataFrame(found, columns=["at", "ttft", "gap"])).round(3)


def opening(
    unit: Operators | StepCost,
    question: str,
    presets: Mapping[str, Mapping[str, float | str]] | None = None,
    *,
    plays: bool = False,
    **first: float,
) -> explore.Live:
    """Return the live figure with which a chapter opens, at settings of its own.

    One that `plays` does so by itself, once, when it is seen; its controls open under *more*.
    """
    cost = unit if isinstance(unit, StepCost) else costs.step_cost(unit)
    return explore.Live(
        seen(cost, plays, **first),
        alt_text="Lanes of twelve requests that wait, are computed, decode, and stand in bubbles, under three "
        "schedulers, one above the other; sliders for what is asked here, play, pause and step.",
        question=question,
        presets=presets or {},
        shown=0 if plays else explore.IN_VIEW,
        again=partial(seen, cost, plays),
        computes=tuple(SETTINGS),
    )


def seen(cost: StepCost, plays: bool = False, **first: float) -> Any:
    """Return a live figure's chart: lanes of requests, a moment up to which they are played, and what was seen by then.

    What comes after that moment is pale. The page plays them again when a setting moves, by the same simulator
    (engine.js), and one that `plays` once by itself. `first` are settings to begin with in the place of those of
    `SETTINGS`.
    """
    bars, tokens = played(cost, **first)
    kinds = list(KINDS)
    axis = alt.Axis(labelOverlap="greedy", labelSeparation=6, grid=False, tickCount=6)
    whole = alt.Scale(domainMin=0, domainMax=alt.ExprRef("end"), nice=False)  # also before all of it was played
    x = alt.X("start:Q", title="time (ms)", axis=axis, scale=whole)
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-1, 3 * (_COUNT + _GAP)], reverse=True, nice=False))
    colours = alt.Scale(domain=kinds, range=list(KINDS.values()))
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    shape = {"x": x, "y": y, "y2": "y2:Q", "color": alt.Color("curve:N", legend=legend, scale=colours)}
    ahead = alt.Chart(bars, name="ahead").mark_rect(opacity=0.15).encode(x2="end:Q", **shape)
    lanes = (
        alt.Chart(bars, name="lanes")
        .transform_filter("datum.start <= now")
        .transform_calculate(until="min(datum.end, now)")
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            **shape,
            x2="until:Q",
            tooltip=["architecture:N", "request:O", "curve:N", alt.Tooltip("value:Q", title="ms")],
        )
    )
    words = (
        "datum.architecture + ' (ms): ' + (datum.firsts > 0 ? 'TTFT ' + format(datum.ttft, ',.0f') : 'no token yet')"
        " + (datum.gaps > 0 ? ', gaps ' + format(datum.gap, ',.0f') + ', longest '"
        " + format(datum.longest, ',.0f') : '')"
    )
    said = (
        alt.Chart(tokens, name="said")
        .transform_calculate(shown="datum.at <= now + 1e-6")
        # Fields of their own: what is calculated stays in a row, and the moment goes back, too.
        .transform_calculate(first="datum.shown ? datum.ttft : null", wait="datum.shown ? datum.gap : null")
        .transform_aggregate(
            ttft="mean(first)", firsts="valid(first)", gap="mean(wait)", gaps="valid(wait)", longest="max(wait)",
            groupby=["architecture", "y"],
        )
        .transform_calculate(text=words)
        .mark_text(align="left", fontSize=12, dy=2, clip=True)
        .encode(x=alt.value(4), y=alt.Y("y:Q"), text="text:N")
    )  # fmt: skip
    head = (
        alt.Chart(alt.sequence(0, 1, 1, as_="i"))
        .transform_calculate(start="now")
        .mark_rule(strokeDash=[4, 3])
        .encode(x="start:Q")
    )
    told = asdict(cost) | _drawn() | {"systems": systems(), "architectures": list(ARCHITECTURES), "move": _MOVE}
    told |= {"lane": _LANE, "apart": _COUNT + _GAP}
    clock = {"name": "played", "from": 0, "to": 100, "seconds": 12, "plays": plays}
    sliders = [
        explore.named_slider(name, words, first.get(name, usual), *ends)
        for name, (words, usual, *ends) in SETTINGS.items()
    ]
    return (
        alt.layer(ahead, lanes, said, head)
        .add_params(
            explore.named_slider("played", "played (%)", 100, 0, 100, 0.5),
            *sliders,
            alt.param(name="engine", value=told),
            alt.param(name="clock", value=clock),
            alt.param(name="end", value=float(bars["end"].max())),
            alt.param(name="now", expr="played / 100 * end"),
        )
        .properties(width="container", height=400)
    )
