"""A unit fitted to runs of your own engine: coefficients from a handful of runs, and anchors.

What the runs cannot tell is not guessed: the fit starts from the unit's own calibration (zero-shot, measured on its
GPU, or a profile), lets each coefficient move as far as engines differ, and keeps one on which the runs say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference_math import catalogue
from inference_math.unit import Unit
from inference_math.unit.coefficients import COEFFICIENTS, Anchor, Calibration
from inference_math.workload import Workload
from inference_math_planner.calibrate.files import Runs
from inference_math_planner.calibrate.fitting import moved_to

__all__ = ["PROFILED", "Profile", "anchored", "fit", "refuse_others", "start_of"]

# Of logarithms, by the mode of what the fit starts from: how far an engine may be from it, beyond its own uncertainty,
# which holds what generations of engines differ by in kv and request. A GPU's own kernels bind an engine's shares more.
# Served points are as unsure of everything as engines, GPUs and models were seen to differ.
_WIDTH = {
    "zero-shot": {"bf16": 0.2, "fp8": 0.2, "kv": 0.0, "layer": 0.7, "per_sequence_overhead": 0.0},
    "measured": {"bf16": 0.1, "fp8": 0.1, "kv": 0.1, "layer": 0.7, "per_sequence_overhead": 0.0},
    "profile": {"bf16": 0.0, "fp8": 0.0, "kv": 0.0, "layer": 0.0, "per_sequence_overhead": 0.0},
    "served": dict.fromkeys(COEFFICIENTS, 0.0),
}
PROFILED = tuple(_WIDTH["zero-shot"])
# What checkpoints of a precision are called.
_TOLD = {
    "fp8": "fp8",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "int4": "int4",
    "awq": "int4",
    "gptq": "int4",
    "w4a16": "int4",
}
_FEWEST, _SPAN, _FULL = 3, 4, 0.97
_MOST = 1e9  # tokens of a request, or requests at a time
_HOPELESS = 0.3  # mean error of a fit that fits nothing


@dataclass(frozen=True, eq=False)
class Profile:
    """A calibration from runs; `table` of these with `predicted` and `error`, `unusable` with reasons, `mape`.

    `asked` names the coefficients that were fitted, `kept` those of them on which the runs say nothing and which keep
    the value that they started from.
    """

    calibration: Calibration
    table: pd.DataFrame
    unusable: pd.DataFrame
    asked: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def mape(self) -> float:
        """Mean size of the relative error on the runs themselves."""
        return float(self.table["error"].abs().mean())


def fit(*measured: tuple[Unit, Runs]) -> Profile:
    """Fit coefficients to the end-to-end latencies of runs, each beside the unit that it was run on.

    `PROFILED` of a dense model whose operators are known; all, where a unit starts from served points. Least squares of
    log(predicted / measured) from the calibration that the units have, the same for all, without its anchors.
    End-to-end latency alone decides: in closed loops that start together, the split between TTFT and TPOT wanders.

    Raises
    ------
    ValueError
        For units of different engines, GPUs or calibrations, and for the datasheet's; for runs that name another model
        or another number of GPUs; for runs too few or too much alike, saying what is missing and why others were left
        out; for runs that no coefficients describe.
    """
    if not measured:
        raise ValueError("measured must have at least one (unit, runs)")
    units = [unit for unit, _ in measured]
    if len({(unit.engine, unit.gpu.name) for unit in units}) > 1:
        raise ValueError("measured must be of one engine on one kind of GPU")
    start, widths = start_of(units[0].calibration)
    if any(not _same(unit.calibration, start) for unit in units):
        raise ValueError("measured must be of units with one calibration, from which the fit starts")
    usable, unusable = zip(*(_sorted_out(unit, runs) for unit, runs in measured), strict=True)
    table = pd.concat([rows.assign(unit=i) for i, rows in enumerate(usable)], ignore_index=True)
    left_out = pd.concat(unusable, ignore_index=True)
    _refuse_alike(table, left_out)
    seconds = table["e2e"].to_numpy(dtype=float)
    calibration, kept = moved_to(seconds, lambda at: _predicted(units, table, at), start, widths, "profile")
    calibration = replace(calibration, scope=_scope(units, table))
    predicted = _predicted(units, table, calibration)
    shown = table.drop(columns="unit").assign(predicted=predicted, error=predicted / seconds - 1)
    size = shown["error"].abs()
    if size.mean() > _HOPELESS:
        worst = shown["source"].iloc[int(size.to_numpy().argmax())]
        fit_is = f"the best fit is {size.mean():.0%} off, most at {worst}"
        raise ValueError(f"runs must be of these units, with times in seconds: {fit_is}")
    return Profile(calibration, shown, left_out, tuple(widths), kept)


def start_of(calibration: Calibration) -> tuple[Calibration, Mapping[str, float]]:
    """Return where a fit starts, without anchors, and how far each coefficient may be from there, in logarithms.

    Raises
    ------
    ValueError
        For a calibration that no fit starts from: the datasheet's.
    """
    if calibration.mode not in _WIDTH:
        raise ValueError(f"calibration must be one of {', '.join(_WIDTH)} to start from, not {calibration.mode}")
    return replace(calibration, anchors=()), _WIDTH[calibration.mode]


def anchored(unit: Unit, runs: Runs) -> Unit:
    """Return `unit` moved by what its runs of one user at a time took longer than predicted, per output token.

    Other loads and lengths move by the same seconds per token, that of the run with the nearest lengths.

    Raises
    ------
    ValueError
        For runs without one of a concurrency of 1.
    """
    rows, _ = _sorted_out(unit, runs)
    alone = rows[(rows["concurrency"] - 1).abs() < 0.05]
    if alone.empty:
        raise ValueError("runs must have at least one usable run of concurrency 1, as an anchor")
    bare = unit.calibrated(replace(unit.calibration, anchors=()))
    anchors = []
    for n_in, n_out, users, seconds in alone[["n_in", "n_out", "concurrency", "e2e"]].to_numpy(dtype=float).tolist():
        missing = seconds - bare.e2e(Workload(n_in, n_out), users)
        anchors.append(Anchor(n_in, n_out, missing / n_out))
    return unit.calibrated(replace(unit.calibration, anchors=tuple(anchors)))


def _sorted_out(unit: Unit, runs: Runs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the runs whose requests all fit the KV cache, and the others with the reason."""
    refuse_others(unit, runs.table)
    rows = runs.table.assign(concurrency=runs.table["concurrency"].where(lambda c: ~c.between(0.95, 1), 1.0))
    columns = ["n_in", "n_out", "concurrency", "e2e"]
    unusable = [runs.unusable]
    sound = np.isfinite(rows[columns].to_numpy(dtype=float)) & (rows[columns].to_numpy(dtype=float) > 0)
    long = (rows[["n_in", "n_out", "concurrency"]] > _MOST).any(axis=1).to_numpy()
    few = ~sound.all(axis=1) | (rows["concurrency"] < 1).to_numpy() | long
    unusable.append(_left(rows[few], f"less than one request at a time, a number above {_MOST:g}, or one that is none"))
    rows = rows[~few]
    quick = np.zeros(len(rows), bool)
    shapes: Any = rows.reset_index(drop=True).groupby(["n_in", "n_out"]).indices
    for (n_in, n_out), at in shapes.items():
        users, e2e = (rows[name].to_numpy(dtype=float)[at] for name in ("concurrency", "e2e"))
        quick[at] = unit.floor.e2e(Workload(float(n_in), float(n_out)), users) > e2e
    unusable.append(_left(rows[quick], "faster than the hardware allows: are the times in seconds, is it this unit?"))
    rows = rows[~quick]
    first = rows["ttft"].to_numpy(dtype=float) < unit.floor.prefill_time(rows["n_in"].to_numpy(dtype=float), 1.0, 0.0)
    unusable.append(
        _left(
            rows[first],
            "a first token sooner than the hardware computes its prompt: is it ttft, is it "
            "in seconds, are prompts stored?",
        )
    )
    rows = rows[~first]
    lengths = rows["n_in"] + rows["n_out"]
    full = rows["concurrency"] * lengths > _FULL * lengths.map(unit.kv_tokens)
    reason = f"more than {_FULL:.0%} of the KV cache's {unit.kv_capacity:.0f} tokens: requests wait or are preempted"
    unusable.append(_left(rows[full], reason))
    return rows[~full].reset_index(drop=True), pd.concat(unusable, ignore_index=True)


def _left(rows: pd.DataFrame, reason: str) -> pd.DataFrame:
    return pd.DataFrame({"source": rows["source"], "reason": reason}).astype(object)


def _same(one: Calibration, other: Calibration) -> bool:
    return one.coefficients == other.coefficients and np.array_equal(one.covariance, other.covariance)


def refuse_others(unit: Unit, table: pd.DataFrame) -> None:
    """Raise ValueError for runs that name another model, or another number of GPUs, than the unit's."""
    for source, model, tp in table.reindex(columns=["source", "model", "tp"]).itertuples(index=False):
        if isinstance(model, str) and not _may_be(unit.model.name, model):
            raise ValueError(f"runs must be of {unit.model.name}, not of {model!r:.80}, which {source} names")
        if isinstance(model, str) and (other := _precision(model)) and other != unit.weights:
            raise ValueError(f"runs must be of weights in {unit.weights}, not of {model!r:.80}, which {source} names")
        if tp > 0 and tp != unit.tp:
            raise ValueError(f"runs must be of tp = {unit.tp}, not of {tp:g}, which {source} names")


def _may_be(name: str, found: str) -> bool:
    """Return whether a model that an engine calls `found` may be the model `name`: no other family, no other size."""
    known = {re.split(r"[^a-z]", other)[0] for other in catalogue.MODELS}
    families = [{family for family in known if family in text.lower()} for text in (name, found)]
    sizes = [set(re.findall(r"(?<![\d.])(?:\d+x)?\d+(?:\.\d+)?b(?![a-z])", text.lower())) for text in (name, found)]
    versions = [
        {(family, number) for family in known for number in re.findall(rf"{family}-?v?(\d+)(?![\dxb])", text.lower())}
        for text in (name, found)
    ]
    return all(not mine or not theirs or mine & theirs for mine, theirs in (families, sizes, versions))


def _precision(found: str) -> str:
    """Return the precision that a checkpoint's name tells; "" where it tells none."""
    words = set(re.split(r"[^a-z0-9]+", found.lower()))
    return next((precision for word, precision in _TOLD.items() if word in words), "")


def _refuse_alike(table: pd.DataFrame, left_out: pd.DataFrame) -> None:
    missing = []
    if len(table) < _FEWEST:
        missing.append(f"at least {_FEWEST} usable runs (there are {len(table)})")
    elif table["concurrency"].max() < _SPAN * table["concurrency"].min():
        missing.append(f"concurrencies that span a factor of {_SPAN}")
    if missing:
        why = "".join(f"; {count} left out: {reason}" for reason, count in left_out["reason"].value_counts().items())
        raise ValueError(f"runs must have {' and '.join(missing)}: without, the coefficients cannot be told apart{why}")


def _predicted(units: Sequence[Unit], table: pd.DataFrame, calibration: Calibration) -> NDArray[np.float64]:
    seconds = np.empty(len(table))
    users = table["concurrency"].to_numpy(dtype=float)
    shapes: Any = table.groupby(["unit", "n_in", "n_out"]).indices
    for (unit, n_in, n_out), rows in shapes.items():
        at = units[int(unit)].calibrated(calibration)
        seconds[rows] = at.e2e(Workload(float(n_in), float(n_out)), users[rows])
    return seconds


def _scope(units: Sequence[Unit], table: pd.DataFrame) -> dict[str, tuple[object, ...]]:
    def names(attribute: Any) -> tuple[str, ...]:
        return tuple(sorted({attribute(unit) for unit in units}))

    ranges = {c: (float(table[c].min()), float(table[c].max())) for c in ("n_in", "n_out", "concurrency")}
    gpus = [unit.tp for unit in units]
    return {
        "engine": names(lambda u: u.engine),
        "model": names(lambda u: u.model.name),
        "gpu": names(lambda u: u.gpu.name),
        "weights": names(lambda u: u.weights),
        "kv": names(lambda u: u.kv),
        "tp": (min(gpus), max(gpus)),
    } | ranges
