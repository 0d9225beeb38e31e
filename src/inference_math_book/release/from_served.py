"""Coefficients from served points: a centre for each engine, and what moves it, all fitted together.

Maximum a posteriori of log(predicted / measured) of e2e and TPOT. The logarithm of a coefficient is that of the
engine's operators, where these tell it, plus what an engine, a generation of GPUs, a kind of model and a precision add,
each normal about nothing with a width of `BETWEEN`: few points move little, and what a level has in common with others
is told by all. Residuals are Student's t, so that a warm-up or a draft that nobody reported pulls no coefficient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from inference_math import theory
from inference_math.calibrate.served import GROUP, Loop
from inference_math.checks import Numbers
from inference_math.perf.calibrate import FACTORS, MOST
from inference_math.perf.steps import parts, unit_terms
from inference_math.unit.coefficients import COEFFICIENTS, SHARES, Calibration
from inference_math.unit.mean import mean_seen
from inference_math.unit.nearest import engine_generation, levels_of

__all__ = ["BETWEEN", "CENTRES", "Asked", "Fit", "centre", "fit", "loops_of", "spreads"]

# What operators do not tell, and how sure each is before a point is seen: the width of its logarithm.
CENTRES = {"fp4": 0.4, "attention": 0.6, "experts": 0.8, "grouped": 0.7, "kv": 0.8, "interconnect_efficiency": 0.5}
CENTRES |= {"collective_latency": 1e-5, "per_sequence_overhead": 1.5e-5, "expert_imbalance": 0.3}
SURE = {
    "memory": 0.03, "bf16": 0.04, "fp8": 0.12, "fp4": 0.5, "attention": 0.2, "experts": 0.2, "grouped": 0.4, "kv": 0.4,
    "interconnect_efficiency": 0.4, "layer": 0.4, "collective_latency": 0.8, "per_sequence_overhead": 0.5,
    "expert_imbalance": 0.8,
}  # fmt: skip
# What levels of a factor differ by: engines, generations of GPUs, kinds of models, precisions.
BETWEEN = {
    "memory": 0.05, "bf16": 0.1, "fp8": 0.15, "fp4": 0.2, "attention": 0.15, "experts": 0.1, "grouped": 0.3, "kv": 0.2,
    "interconnect_efficiency": 0.3, "layer": 0.3, "collective_latency": 0.4, "per_sequence_overhead": 0.3,
    "expert_imbalance": 0.4,
}  # fmt: skip
NOISE = 0.08  # of the logarithm of a time
FREEDOM = 4.0  # of Student's t
TPOT = 0.5  # weight of a TPOT beside its e2e, of which it is most
EQUAL = 20  # points of a group that count in full; more share that weight


@dataclass(frozen=True, eq=False)
class Fit:
    """Found coefficients: `levels` as `perf.calibrate.composed` takes them, `moves` the fitted numbers."""

    levels: dict[str, Any]
    moves: NDArray[np.float64]
    names: tuple[tuple[str, str], ...]


class Asked:
    """A closed loop ready to be predicted many times, and where its levels stand among the fitted numbers."""

    def __init__(self, loop: Loop, weight: float) -> None:
        unit, work, rows = loop.unit, loop.work, loop.rows
        self.numbers, self.work, self.weight, self.users = unit.numbers, work, weight, loop.users
        self.context = theory.mean_context(n_in=work.n_in, n_out=work.n_out, cv=0)
        self.e2e, self.tpot = rows["e2e_s"].to_numpy() / loop.waiting, rows["tpot_s"].to_numpy()
        version = str(rows["version"].iloc[0])
        self.engine = engine_generation(unit.engine, version)
        self.levels = {"engine": self.engine, **levels_of(unit.model, unit.gpu, unit.weights)}

    def predict(self, found: Mapping[str, float]) -> tuple[Any, Any]:
        """Return (TPOT, e2e) in seconds under some coefficients."""
        terms = unit_terms(self.numbers, dict(found))
        n_in, n_out = self.work.n_in, self.work.n_out

        def step(decodes: Numbers, prompts: Numbers) -> Any:
            each = parts(terms, decodes, self.context, n_in, 0.0, prompts, np.maximum, np.minimum)
            return theory.step_time.unchecked(each[0], each[1], sum(each[2:]))

        tpot = mean_seen(step, self.users, n_out, 0)
        return tpot, mean_seen(step, self.users, n_out, 1) + (n_out - 1) * tpot


def loops_of(found: Sequence[Loop]) -> list[Loop]:
    """Return the loops without rows that wait for a place: their time is the queue's."""
    kept = [(loop, loop.waiting <= 1) for loop in found]
    return [Loop(loop.unit, loop.work, loop.rows[free]) for loop, free in kept if free.any()]


def fit(found: Sequence[Loop], start: Fit | None = None, most: int = 25) -> Fit:
    """Fit all levels to closed loops, from another fit where there is one; `most` evaluations of the slopes."""
    sizes: dict[tuple[object, ...], int] = {}
    for loop in found:
        key = tuple(loop.rows[GROUP].iloc[0])
        sizes[key] = sizes.get(key, 0) + len(loop.rows)
    asked = [Asked(loop, weight_of(sizes[tuple(loop.rows[GROUP].iloc[0])]) ** 0.5) for loop in found]
    names = start.names if start else tuple(sorted({pair for one in asked for pair in one.levels.items()}))
    begin = start.moves if start else np.zeros((len(names) + 1, len(COEFFICIENTS)))
    problem = _Problem(asked, names)
    solved = least_squares(problem.misses, begin.ravel(), max_nfev=most)
    moves = solved.x.reshape(begin.shape)
    return Fit(problem.levels(moves, problem.widths(moves, solved.jac)), moves, names)


class _Problem:
    def __init__(self, asked: Sequence[Asked], names: Sequence[tuple[str, str]]) -> None:
        self.asked, self.names = asked, names
        self.places = {pair: row + 1 for row, pair in enumerate(names)}
        self.between = np.array([BETWEEN[name] for name in COEFFICIENTS])
        self.sure = np.array([SURE[name] for name in COEFFICIENTS])
        self.centres = {one.engine: centre(one.engine) for one in asked}

    def misses(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return residuals, then the numbers themselves, of unit variance before a point was seen."""
        moves = flat.reshape(-1, len(COEFFICIENTS))
        out = []
        for one in self.asked:
            tpot, e2e = one.predict(self.found(moves, one))
            out.append(one.weight * _robust(np.log(e2e / one.e2e) / NOISE))
            out.append(TPOT * one.weight * _robust(np.log(tpot / one.tpot) / NOISE))
        return np.concatenate([*out, moves.ravel()])

    def found(self, moves: NDArray[np.float64], one: Asked) -> dict[str, float]:
        rows = [self.places[pair] for pair in one.levels.items() if pair in self.places]
        away = self.sure * moves[0] + self.between * moves[rows].sum(axis=0)
        values = np.exp(self.centres[one.engine] + away).tolist()
        held = zip(COEFFICIENTS, values, strict=True)
        return {name: min(value, MOST) if name in SHARES else value for name, value in held} | {"anchor": 0.0}

    def widths(self, moves: NDArray[np.float64], slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean standard deviation of a seen combination's coefficients, by the slopes at the maximum."""
        covariance = np.linalg.inv(slopes.T @ slopes)
        count = len(COEFFICIENTS)
        combinations = {tuple(one.levels.items()) for one in self.asked}
        variances = []
        for levels in sorted(combinations):
            into = np.zeros((count, moves.size))
            for i in range(count):
                into[i, i] = self.sure[i]
                for pair in levels:
                    if pair in self.places:
                        into[i, self.places[pair] * count + i] = self.between[i]
            variances.append(np.diag(into @ covariance @ into.T))
        return np.asarray(np.sqrt(np.mean(variances, axis=0)))

    def levels(self, moves: NDArray[np.float64], widths: NDArray[np.float64]) -> dict[str, object]:
        """Return the fitted levels, engines as values, all others as moves of the logarithm."""
        told: dict[str, Any] = {"engine": {}, **{factor: {} for factor in FACTORS}}
        for (factor, level), row in zip(self.names, moves[1:], strict=True):
            away = self.between * row
            if factor == "engine":
                away = np.exp(centre(level) + self.sure * moves[0] + away)
            told[factor][level] = dict(zip(COEFFICIENTS, away.tolist(), strict=True))
        told["seen"] = dict(zip(COEFFICIENTS, widths.tolist(), strict=True))
        together = sorted({tuple(one.levels[factor] for factor in FACTORS) for one in self.asked})
        return told | {"unseen": dict(BETWEEN), "together": together, "spread": {}}


def centre(engine: str) -> NDArray[np.float64]:
    """Return the logarithms from which an engine's coefficients start: its operators', where these tell them."""
    told = Calibration.zero_shot(engine.split("-")[0]).coefficients
    known = {name: min(getattr(told, name), 0.98) for name in ("memory", "bf16", "fp8")} | {"layer": told.layer}
    return np.log([(known | CENTRES)[name] for name in COEFFICIENTS])


def weight_of(points: Any) -> Any:
    """Return what a point of a group of so many counts, so that a group of many does not speak for all."""
    return np.minimum(EQUAL / points, 1.0)


def spreads(table: pd.DataFrame) -> dict[str, float]:
    """Return by kind the standard deviation of log(measured / predicted) for points to which nothing was fitted.

    Of the middle nine tenths, as of a normal distribution: the rest are warm-ups and drafts. Points weigh as in the
    fit.
    """
    logs = pd.Series(np.abs(np.log(table["e2e_s"] / table["e2e"])), index=table.index)
    weights = weight_of(table.groupby(GROUP)["e2e_s"].transform("size"))
    return {
        str(kind): float(np.quantile(each, 0.9, weights=weights[each.index], method="inverted_cdf") / 1.645)
        for kind, each in logs.groupby(table["kind"])
    }


def _robust(residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return residuals whose squares are twice the negative logarithm of Student's t."""
    return np.asarray(np.sign(residuals) * np.sqrt(FREEDOM * np.log1p(residuals**2 / FREEDOM)))
