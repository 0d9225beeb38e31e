"""The front of a request (`unit.front`) from the measured TTFT of served points.

Each point is played as its benchmark was run, at some values of the front; in between its TTFT is interpolated. Then
one number for each level is fitted: maximum a posteriori of log(played / measured), each move normal about nothing with
a width of `WIDTHS`, residuals much like Student's t, so that a warm-up that nobody reported pulls nothing. The kind of
model has the widest: the choosing part of the validation rows prefers that to one for the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from from_served import FREEDOM, NINE_TENTHS, held, weight_of
from numpy.typing import ArrayLike, NDArray
from plays import played
from scipy.optimize import least_squares
from served import GROUP, Loop

from inference_math.unit.front import levels_of_front
from inference_math.unit.mixing import FRONTS as FACTORS

__all__ = [
    "FRONTS",
    "WIDTHS",
    "as_run",
    "columns_of",
    "fit",
    "grid",
    "left_out",
    "moved_apart",
    "seconds_of",
    "spreads",
    "ttft_of",
]

FRONTS = (0.004, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
"""Seconds at which points are played."""

WIDTHS = {"base": 0.5, "kind": 1.0, "model": 0.4, "engine": 0.3, "engine, model": 0.3, "engine, model, gpu": 0.4}
CENTRE = 0.05  # seconds, where the base begins
NOISE = 0.12  # of the logarithm of a mean TTFT


def as_run(loop: Loop, front: float) -> pd.Series[float]:
    """Return the mean TTFT of each row of a loop, played as its recipe says with such a front, in seconds."""
    return played(loop.rows, loop.unit, loop.work, front)["ttft"]


def grid(loops: Sequence[Loop], play: Callable[[Loop, float], pd.Series[float]] = as_run) -> pd.DataFrame:
    """Return the rows of loops with their levels and, for each of `FRONTS`, the TTFT in seconds by `play`."""
    tables = []
    for loop in loops:
        unit, version = loop.unit, str(loop.rows["version"].iloc[0])
        told = levels_of_front(unit.model, unit.gpu, unit.engine, version)
        times = {f"at {front}": play(loop, front) for front in FRONTS}
        tables.append(loop.rows.assign(**{f"level: {name}": level for name, level in told.items()}, **times))
    return pd.concat(tables).sort_index()


def fit(table: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return by factor and level what is added to the logarithm of the front, from the rows of `grid`.

    Without those that something held up, where column `slowed` says so.
    """
    table = table[~table["slowed"]] if "slowed" in table else table
    names = [(factor, level) for factor in FACTORS for level in sorted(set(table[f"level: {factor}"]))]
    places = {name: place for place, name in enumerate(names)}
    columns = np.array([[places[factor, level] for level in table[f"level: {factor}"]] for factor in FACTORS])
    widths = np.array([WIDTHS[factor] for factor in FACTORS])
    weights = np.sqrt(weight_of(table.groupby(GROUP)["ttft_s"].transform("size").to_numpy()))
    measured = np.log(table["ttft_s"].to_numpy())

    def misses(moves: NDArray[np.float64]) -> NDArray[np.float64]:
        seconds: NDArray[np.float64] = CENTRE * np.exp((widths[:, None] * moves[columns]).sum(axis=0))
        far = (np.log(ttft_of(table, seconds)) - measured) / NOISE
        return np.concatenate([weights * np.sign(far) * np.sqrt(FREEDOM * np.log1p(far**2 / FREEDOM)), moves])

    solved = least_squares(misses, np.zeros(len(names)), diff_step=0.05)
    found = {name: WIDTHS[name[0]] * float(move) for name, move in zip(names, solved.x, strict=True)}
    found["base", "all"] += float(np.log(CENTRE))
    return found


def seconds_of(table: pd.DataFrame, found: dict[tuple[str, str], float]) -> NDArray[np.float64]:
    """Return the front of each row of `grid`; levels that were not fitted move nothing."""
    moves = [[found.get((factor, level), 0.0) for level in table[f"level: {factor}"]] for factor in FACTORS]
    return np.asarray(np.exp(np.sum(moves, axis=0)))


def ttft_of(table: pd.DataFrame, seconds: ArrayLike) -> NDArray[np.float64]:
    """Return the TTFT of each row of `grid` with a front of its own, interpolated in logarithms."""
    known, asked = np.log(FRONTS), np.log(np.clip(seconds, FRONTS[0], FRONTS[-1]))
    times = np.log(table[[f"at {front}" for front in FRONTS]].to_numpy())
    low = np.clip(np.searchsorted(known, asked) - 1, 0, len(FRONTS) - 2)
    part = (asked - known[low]) / (known[low + 1] - known[low])
    rows = np.arange(len(table))
    return np.asarray(np.exp((1 - part) * times[rows, low] + part * times[rows, low + 1]))


def left_out(table: pd.DataFrame) -> NDArray[np.float64]:
    """Return the TTFT of each row under a fit without its engine on its GPU."""
    told = np.zeros(len(table))
    pairs = table["level: engine"] + "/" + table["gpu"]
    if pairs.nunique() < 2:
        raise ValueError(f"table must have two engines, or one on two GPUs, not {pairs.iloc[0]} alone")
    for pair in sorted(set(pairs)):
        apart = (pairs == pair).to_numpy()
        rows = table[apart]
        told[apart] = ttft_of(rows, seconds_of(rows, fit(table[~apart])))
    return told


def moved_apart(table: pd.DataFrame) -> float:
    """Return how far fronts move where their own set-up is left out: the root mean square of the logarithm.

    So unsure is a front on machines that the fit did not see. Each model under an engine on a GPU counts once.
    """
    own, pairs = np.log(seconds_of(table, fit(table))), table["level: engine, model, gpu"].to_numpy()
    far = []
    for pair in sorted(set(pairs)):
        apart = pairs == pair
        rows = table[apart]
        far.append(np.log(seconds_of(rows, fit(table[~apart]))[0]) - own[apart][0])
    return float(np.sqrt(np.mean(np.square(far))))


def spreads(table: pd.DataFrame, predicted: NDArray[np.float64]) -> dict[str, float]:
    """Return by kind the standard deviation of log(measured / predicted), of the middle nine tenths as if normal.

    Rows that draft are a kind of their own, "drafting".
    """
    by = table["level: kind"].where(table["drafts"] != "mtp", "drafting")
    return held(np.abs(np.log(table["ttft_s"].to_numpy() / predicted)) / NINE_TENTHS, table, by)


def columns_of(found: dict[tuple[str, str], float], unsure: float, wide: dict[str, float]) -> pd.DataFrame:
    """Return the fitted moves, how unsure fronts are and the spreads as the rows of table `served_front`."""
    rows = [{"factor": factor, "level": level, "moved": moved} for (factor, level), moved in found.items()]
    rows.append({"factor": "sd", "level": "all", "moved": unsure})
    return pd.DataFrame(rows + [{"factor": "spread", "level": kind, "moved": width} for kind, width in wide.items()])
