"""Served points played as they were run: all users begin together, ten requests each, lengths drawn as by the client.

A law of full slots knows neither the opening burst nor what a recipe told the engine. Here the simulator does what the
benchmark did, with the unit's own steps, so that TTFT, TPOT and end-to-end latency come from one run and cannot
contradict each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
from recipes import ACCEPTED, EACH, SPAN, WARM, ServedRow, recipe_of

from inference_math.simulate import Run, Scheduler, Steps, benchmark
from inference_math.unit import Unit
from inference_math.workload import RandomLengths, Workload

__all__ = ["PLAYED", "drafting", "play", "played", "ran"]

PLAYED = ["ttft", "tpot", "e2e"]


class Cold:
    """Steps of which the first with more than `WARM` tokens takes some seconds more."""

    def __init__(self, cost: Any, seconds: float) -> None:
        self._cost, self._seconds = cost, seconds
        self.accepted_per_step, self.verified_per_step = cost.accepted_per_step, cost.verified_per_step
        self.line = cost.line

    def __call__(self, decodes: int, context: float, prefills: float, tokens: int, pairs: float) -> float:
        """Return the seconds of a step; see `simulate.Cost` for the arguments."""
        seconds: float = self._cost(decodes, context, prefills, tokens, pairs)
        if tokens > WARM:
            seconds, self._seconds = seconds + self._seconds, 0.0
        return seconds


def played(rows: pd.DataFrame, unit: Unit, work: Workload, front: float, seed: int = 1) -> pd.DataFrame:
    """Return the mean TTFT, TPOT and latency of each row of a closed loop, in seconds: columns `PLAYED`.

    `front` is what a request takes before the engine has it. Repeats of a row are played once.
    """
    known: dict[int, list[float]] = {}
    for _, row in rows.drop_duplicates("users").iterrows():
        known[int(row["users"])] = play(row, unit, work, front, seed)
    return pd.DataFrame([known[int(users)] for users in rows["users"]], index=rows.index, columns=PLAYED)


def play(row: ServedRow, unit: Unit, work: Workload, front: float, seed: int = 1) -> list[float]:
    """Return the same of one row, a mapping or a series of the columns of `served`."""
    recipe, own = recipe_of(row), drafting(row, unit)
    cost: Any = Steps(own.near(work))
    steps = Cold(cost, recipe.cold) if recipe.cold else cost
    run = ran(row, work, steps, recipe.scheduler(own.places(work), own.dp), front, seed)
    return [float(run.requests[name].mean()) for name in ("ttft", "tpot", "latency")]


def ran(row: ServedRow, work: Workload, cost: Any, scheduler: Scheduler, front: float, seed: int) -> Run:
    """Return a row's benchmark, played with steps of this cost by this scheduler."""
    users, lengths = int(row["users"]), RandomLengths(work.n_in, work.n_out, SPAN)
    more: dict[str, Any] = {"front": front, "seed": seed, "scheduler": scheduler}
    return benchmark(lengths, cost, concurrency=users, requests=EACH * users, **more)


def drafting(row: ServedRow, unit: Unit) -> Unit:
    """Return the unit with the drafts of a row's recipe, of which so many are accepted as calibration rows say."""
    drafts = recipe_of(row).drafts
    return replace(unit, drafts=drafts, accepted=ACCEPTED) if drafts else unit
