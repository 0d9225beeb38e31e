"""What moves kernels to served points: engines, models under them, generations of GPUs, kinds, all fitted together.

Maximum a posteriori of log(predicted / measured) of e2e and TPOT. The logarithm of a coefficient is that of the
unit's measured kernels (`unit.kernels`), or a centre where these do not tell it, plus what all share, an engine, a
model under it, a generation of GPUs, a kind of model and a precision add, each normal about nothing with a width of
`BETWEEN`: few points move little, and what a level has in common with others is told by all. What engines add to a
layer and to a decode is moved by engine, kind and the model under the engine, and by no GPU: these constants carry over
between GPUs of one model, not between models. So it is with experts: a model's router says how unevenly they are
chosen, and which kernel computes them an engine decides by the model. Residuals are Student's t, so that a warm-up or a
draft that nobody reported pulls no coefficient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from recipes import WARM, recipe_of
from scipy.optimize import least_squares
from served import GROUP, Loop

from inference_math import theory
from inference_math.catalogue import GPUS
from inference_math.evidence.checks import Numbers
from inference_math.unit.coefficients import COEFFICIENTS, ENGINES, SHARES, Calibration
from inference_math.unit.kernels import TABLED, kernels
from inference_math.unit.mean import expected_max_loads, mean_seen
from inference_math.unit.mixing import FACTORS, MOST, kernel_values
from inference_math.unit.nearest import TOGETHER, coefficient_key
from inference_math.unit.steps import parts, spans_of, unit_terms
from inference_math.unit.types import CoefficientValues, MixedEffects

__all__ = [
    "BETWEEN",
    "CENTRES",
    "MEASURED",
    "NINE_TENTHS",
    "Asked",
    "Fit",
    "centre",
    "fit",
    "held",
    "loops_of",
    "spreads",
]

# Where kernels tell nothing: what coefficients start from.
CENTRES = {"fp4": 0.4, "attention": 0.6, "decode_attention": 0.8, "experts": 0.8, "grouped": 0.7, "kv": 0.8}
CENTRES |= {"interconnect_efficiency": 0.5}
CENTRES |= {"collective_latency": 1e-5, "per_sequence_overhead": 2.5e-7, "expert_imbalance": 1.0}
CENTRES |= {"layer": 1e-5}  # beside its launches
# How sure what all share is before a point is seen: the width of its logarithm.
SURE = {
    "memory": 0.015, "bf16": 0.02, "fp8": 0.06, "fp4": 0.1, "attention": 0.1, "decode_attention": 0.1, "experts": 0.1,
    "grouped": 0.2, "kv": 0.2, "interconnect_efficiency": 0.1, "layer": 1.0, "collective_latency": 0.4,
    "per_sequence_overhead": 1.0, "expert_imbalance": 0.8,
}  # fmt: skip
# What levels of a factor differ by: less than half of that before kernels were measured on each GPU.
_KERNELS = {
    "memory": 0.025, "bf16": 0.05, "fp8": 0.075, "fp4": 0.1, "attention": 0.075, "decode_attention": 0.075,
    "experts": 0.05, "grouped": 0.05, "kv": 0.1, "interconnect_efficiency": 0.05, "collective_latency": 0.2,
    "expert_imbalance": 0.1,
}  # fmt: skip
BETWEEN = {factor: dict.fromkeys(COEFFICIENTS, 0.0) | _KERNELS for factor in FACTORS}
BETWEEN["engine"] |= {"layer": 0.4, "per_sequence_overhead": 0.4}
BETWEEN["kind"] |= {"layer": 0.4, "per_sequence_overhead": 0.3}
BETWEEN["model"] = dict.fromkeys(COEFFICIENTS, 0.0) | {"layer": 0.4, "per_sequence_overhead": 0.3}
BETWEEN["model"] |= {"grouped": 0.4, "expert_imbalance": 0.4}
# Of a generation of GPUs whose kernels nobody measured they are another's, launches too: thrice as far, and a layer.
MEASURED = {GPUS[name].generation for name in TABLED}
BARE = dict.fromkeys(COEFFICIENTS, 0.0) | {name: 3 * width for name, width in _KERNELS.items()}
BARE |= {"layer": 1.0, "per_sequence_overhead": 0.4}
NOISE = 0.08  # of the logarithm of a time
FREEDOM = 4.0  # of Student's t
TPOT = 0.5  # weight of a TPOT beside its e2e, of which it is most
NINE_TENTHS = 1.645  # standard deviations on either side of the middle that hold so much of a normal distribution
EQUAL = 20  # points of a group that count in full; more share that weight
_STEP = 1e-5  # of a logarithm, for slopes
STARTS, SCATTER = 3, 0.3  # places besides nothing that a fit starts from, in standard deviations of what it finds


@dataclass(frozen=True, eq=False)
class Fit:
    """Found coefficients: `levels` as `unit.mixing.composed` takes them, `moves` the fitted numbers."""

    levels: MixedEffects
    moves: NDArray[np.float64]
    names: tuple[tuple[str, str], ...]


class Asked:
    """A closed loop ready to be predicted many times, and where its levels stand among the fitted numbers."""

    def __init__(self, loop: Loop, weight: float) -> None:
        unit, work, rows = loop.unit, loop.work, loop.rows
        self.numbers, self.work, self.weight, self.users = unit.numbers, work, weight, loop.users
        self.context = theory.mean_context(n_in=work.n_in, n_out=work.n_out, cv=0)
        self.e2e, self.tpot = rows["e2e_s"].to_numpy() / loop.waiting, rows["tpot_s"].to_numpy()
        version, layout = str(rows["version"].iloc[0]), unit.tp * unit.dp
        at = coefficient_key(unit.model, unit.gpu, unit.weights, unit.engine, version, kv=unit.kv, together=layout)
        self.levels, self.engine = at.levels, at.levels["engine"]
        if (foreign := str(rows["engine"].iloc[0])) not in ENGINES:  # not in the catalogue: its unit is another's
            self.levels = self.levels | {"engine": foreign, "model": f"{foreign}/{unit.model.name}"}
            self.engine = foreign
        base = kernel_values(kernels(), centre(self.engine), at)
        self.launch = base["launch"]
        self.start = np.log([base[name] for name in COEFFICIENTS])

    def values(self, logs: NDArray[np.float64]) -> CoefficientValues:
        """Return the coefficients of fitted logarithms: shares below the datasheet, layers with their launches."""
        told = dict(zip(COEFFICIENTS, np.exp(logs).tolist(), strict=True))
        told |= {name: min(told[name], MOST) for name in SHARES}
        return told | {"layer": told["layer"] + self.launch, "anchor": 0.0}

    def predict(self, found: CoefficientValues) -> tuple[Any, Any]:
        """Return (TPOT, e2e) in seconds under some coefficients."""
        terms = unit_terms(self.numbers, found)
        n_out, spans = self.work.n_out, spans_of(terms, self.context, self.work.n_in, 0.0, np.minimum)

        def step(decodes: Numbers, prompts: Numbers) -> Any:
            each = parts(terms, spans, decodes, prompts, np.maximum, np.minimum, expected_max_loads)
            return theory.step_time.unchecked(each[0], each[1], sum(each[2:]))

        tpot = mean_seen(step, self.users, n_out, 0)
        return tpot, mean_seen(step, self.users, n_out, 1) + (n_out - 1) * tpot


def loops_of(found: Sequence[Loop]) -> list[Loop]:
    """Return the loops without rows that wait for a place, whose time is the queue's, or for kernels to be compiled."""
    kept = [(loop, (loop.waiting <= 1) & ~_cold(loop)) for loop in found]
    return [Loop(loop.unit, loop.work, loop.rows[free]) for loop, free in kept if free.any()]


def _cold(loop: Loop) -> NDArray[np.bool_]:
    """Return which rows' first step compiled its kernels; see `recipes.COLD`."""
    rows = loop.rows
    return np.asarray((recipe_of(rows.iloc[0]).cold > 0) & (rows["users"] * rows["n_in"] > WARM))


def fit(found: Sequence[Loop], start: Fit | None = None, most: int = 60) -> Fit:
    """Fit all levels to closed loops; `most` evaluations of the slopes.

    From another fit where there is one. Else from nothing and from `STARTS` random places, of which the best counts:
    coefficients at their bounds make several maxima.
    """
    sizes: dict[tuple[object, ...], int] = {}
    for loop in found:
        key = tuple(loop.rows[GROUP].iloc[0])
        sizes[key] = sizes.get(key, 0) + len(loop.rows)
    asked = [Asked(loop, weight_of(sizes[tuple(loop.rows[GROUP].iloc[0])]) ** 0.5) for loop in found]
    names = start.names if start else tuple(sorted({pair for one in asked for pair in one.levels.items()}))
    problem, shape = _Problem(asked, names), (len(names) + 1, len(COEFFICIENTS))
    rng = np.random.default_rng(STARTS)
    begins = [start.moves] if start else [np.zeros(shape), *(SCATTER * rng.normal(size=(STARTS, *shape)))]
    tried = [least_squares(problem.misses, begin.ravel(), jac=problem.slopes, max_nfev=most) for begin in begins]
    solved = min(tried, key=lambda one: one.cost)
    moves = solved.x.reshape(shape)
    return Fit(problem.levels(moves, problem.widths(solved.jac)), moves, names)


class _Problem:
    def __init__(self, asked: Sequence[Asked], names: Sequence[tuple[str, str]]) -> None:
        self.asked, self.names = asked, names
        self.places = {pair: row + 1 for row, pair in enumerate(names)}
        widths = [[between(factor, level)[name] for name in COEFFICIENTS] for factor, level in names]
        self.scale = np.array([[SURE[name] for name in COEFFICIENTS], *widths])  # of each fitted number
        self.rows = [[0, *(self.places[pair] for pair in one.levels.items() if pair in self.places)] for one in asked]

    def misses(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return residuals, then the numbers themselves, of unit variance before a point was seen."""
        moved = flat.reshape(self.scale.shape) * self.scale
        told = [self.off(one, moved[rows].sum(axis=0)) for one, rows in zip(self.asked, self.rows, strict=True)]
        return np.concatenate([*told, flat])

    def off(self, one: Asked, moved: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a loop's residuals, its coefficients so far from their start."""
        tpot, e2e = one.predict(one.values(one.start + moved))
        both = _robust(np.log(e2e / one.e2e) / NOISE), TPOT * _robust(np.log(tpot / one.tpot) / NOISE)
        return np.asarray(one.weight * np.concatenate(both))

    def slopes(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slopes of `misses`: a loop's residuals hang on its own coefficients, and these on its levels."""
        moved, blocks = flat.reshape(self.scale.shape) * self.scale, []
        for one, rows in zip(self.asked, self.rows, strict=True):
            at = moved[rows].sum(axis=0)
            before = self.off(one, at)
            steps = [self.off(one, at + _STEP * unit) for unit in np.eye(len(COEFFICIENTS))]
            slope = (np.stack(steps, axis=1) - before[:, None]) / _STEP
            block = np.zeros((len(before), *self.scale.shape))
            block[:, rows] = slope[:, None] * self.scale[rows]
            blocks.append(block.reshape(len(before), -1))
        return np.vstack([*blocks, np.eye(flat.size)])

    def widths(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean standard deviation of a seen combination's coefficients, by the slopes at the maximum."""
        covariance = np.linalg.inv(slopes.T @ slopes).reshape(self.scale.shape * 2)
        each = np.arange(len(COEFFICIENTS))
        own = covariance[:, each, :, each] * self.scale.T[:, :, None] * self.scale.T[:, None, :]  # by coefficient
        seen = {tuple(rows) for rows in self.rows}
        variances = [own[:, rows][:, :, rows].sum(axis=(1, 2)) for rows in map(list, sorted(seen))]
        return np.asarray(np.sqrt(np.mean(variances, axis=0)))

    def levels(self, moves: NDArray[np.float64], widths: NDArray[np.float64]) -> MixedEffects:
        """Return the fitted levels: what engines start from, with what all share; all others as moves of it."""
        moved = moves * self.scale
        told: dict[str, dict[str, CoefficientValues]] = {factor: {} for factor in FACTORS}
        for (factor, level), row in zip(self.names, moved[1:], strict=True):
            # What all share goes with the engine, of which every unit has one.
            own = row + moved[0] if factor == "engine" else row
            told[factor][level] = dict(zip(COEFFICIENTS, (own + 0.0).tolist(), strict=True))  # no -0
        together = sorted({tuple(one.levels[factor] for factor in TOGETHER) for one in self.asked})
        return MixedEffects(
            intercept={engine: centre(engine) for engine in told["engine"]},
            effects=told,
            sd_seen=dict(zip(COEFFICIENTS, widths.tolist(), strict=True)),
            sd_unseen=BETWEEN,
            interactions=[list(row) for row in together],
            spread={},
        )


def between(factor: str, level: str) -> CoefficientValues:
    """Return how far a level of a factor may be from others: that of kernels nobody measured further."""
    return BARE if factor == "generation" and level not in MEASURED else BETWEEN[factor]


def centre(engine: str) -> CoefficientValues:
    """Return what an engine's coefficients start from where its kernels were not measured.

    Those of its operators on the H100, where these tell them.
    """
    name = engine.split("-")[0]
    told = Calibration.zero_shot(name if name in ENGINES else ENGINES[0]).coefficients
    known = {name: min(getattr(told, name), 0.98) for name in ("memory", "bf16", "fp8")}
    return {name: (known | CENTRES)[name] for name in COEFFICIENTS}


def weight_of(points: Any) -> Any:
    """Return what a point of a group of so many counts, so that a group of many does not speak for all."""
    return np.minimum(EQUAL / points, 1.0)


def spreads(table: pd.DataFrame) -> dict[str, float]:
    """Return by kind the standard deviation of log(measured / predicted) beside what coefficients are unsure by.

    With it intervals of 90 % hold nine tenths of points to which nothing was fitted: `low` and `high` are the ends of
    theirs without it. Points weigh as in the fit.
    """
    known = np.log(table["high"] / table["low"]) / (2 * NINE_TENTHS)
    off = np.log(table["e2e_s"] / table["e2e"]) / NINE_TENTHS
    return held(np.sqrt(np.maximum(off**2 - known**2, 0.0)), table, table["kind"])


def held(widths: Any, table: pd.DataFrame, kinds: pd.Series[str]) -> dict[str, float]:
    """Return by kind the width within which nine tenths of the rows of a table lie, weighed as in the fit."""
    each = pd.Series(widths, index=table.index)
    weights = weight_of(table.groupby(GROUP)[GROUP[0]].transform("size"))
    return {
        str(kind): float(np.quantile(own, 0.9, weights=weights[own.index], method="inverted_cdf"))
        for kind, own in each.groupby(kinds)
    }


def _robust(residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return residuals whose squares are twice the negative logarithm of Student's t."""
    return np.asarray(np.sign(residuals) * np.sqrt(FREEDOM * np.log1p(residuals**2 / FREEDOM)))
