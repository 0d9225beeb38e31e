"""Efficiencies from measured operators: four numbers, and how far they are from each model and engine.

The operators of `operators.Operators` are composed to decode steps and prefills of five models. What lies between
the operators (norms, rotation, activations) is in no table, so it is left out of both sides here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.optimize import least_squares

from inference_math import catalogue, theory
from inference_math.unit import Unit, matrix_bytes
from inference_math.unit.coefficients import Coefficients
from inference_math.unit.mean import expected_max_loads
from inference_math.unit.operators import H100, Operators
from inference_math.unit.steps import parts, spans_of, unit_terms
from inference_math.unit.types import UnitNumbers

__all__ = ["FITTED", "Fit", "beyond", "composed_steps", "fit", "left_out", "new_model"]

FITTED = ("memory", "bf16", "fp8", "layer")
MODELS = ("llama-3-8b", "llama-3-70b", "qwen3-8b", "qwen3-14b", "qwen3-32b")
_START, _LOW, _HIGH = (0.9, 0.7, 0.5, 5e-5), (0.1, 0.1, 0.1, 0.0), (1.0, 1.0, 1.0, 1e-3)


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted coefficients; `steps` with the column `error`, predicted over measured less one; `mape`, its mean size.

    Every unit (model, TP, precisions, engine, phase) has the same weight, however many points it has.
    """

    coefficients: Coefficients
    steps: pd.DataFrame
    mape: float


def composed_steps(models: Sequence[str] = MODELS, engines: Sequence[str] = ("vllm", "trtllm")) -> pd.DataFrame:
    """Return measured decode steps and prefills.

    Columns: engine, model, tp, weights_in, kv; phase, "decode" of a batch at a context or "prefill" of a prompt of n_in
    tokens; batch, context, n_in; measured (s). Decode points whose KV cache fits L2 are left out: a model that goes
    through all its layers reads HBM.
    """
    gpu = catalogue.gpu(H100)
    tables = []
    for name, tp, weights, kv, engine in itertools.product(
        models, (1, 2, 4, 8), ("bf16", "fp8"), ("bf16", "fp8"), engines
    ):
        model = catalogue.model(name)
        if (weights, kv) == ("bf16", "fp8") or model.weight_bytes(weights) > 0.95 * tp * gpu.hbm_bytes:
            continue
        operators = Operators(model, tp=tp, weights=weights, kv=kv, engine=engine)
        decode = operators.steps().query("not in_l2").assign(phase="decode", n_in=0.0)
        prefill = operators.prefills().assign(phase="prefill", batch=0.0, context=0.0)
        both = pd.concat([decode, prefill])[["phase", "batch", "context", "n_in", "total"]]
        named = both.assign(engine=engine, model=name, tp=tp, weights_in=weights, kv=kv)
        tables.append(named.rename(columns={"total": "measured"}))
    return pd.concat(tables, ignore_index=True)


def fit(steps: pd.DataFrame) -> Fit:
    """Fit the four `FITTED` to composed steps: least squares of log(predicted / measured).

    Raises
    ------
    ValueError
        For steps of one precision only, from which the other's efficiency cannot be told.
    """
    if set(steps["weights_in"]) != {"bf16", "fp8"}:
        raise ValueError(f"steps must be of both precisions, not {', '.join(sorted(set(steps['weights_in'])))}")
    weight = 1 / np.sqrt(_sizes(steps))
    measured, law = steps["measured"].to_numpy(), _law(steps)

    def misses(values: NDArray[np.float64]) -> Any:
        return weight * np.log(law(_of(values)) / measured)

    found = least_squares(misses, _START, bounds=(_LOW, _HIGH), x_scale=_START)
    coefficients = _of(found.x)
    return Fit(coefficients, *_errors(steps, coefficients))


def _of(values: Any) -> Coefficients:
    """Return coefficients of the fitted four; KV caches are read at the share of all reads, attention is BF16."""
    memory, bf16, fp8, layer = (float(value) for value in values)
    return Coefficients(memory=memory, bf16=bf16, fp8=fp8, attention=bf16, kv=memory, layer=layer)


def predicted(steps: pd.DataFrame, coefficients: Coefficients) -> NDArray[np.float64]:
    """Return the seconds of composed steps: those of units whose layers move only what their matrices do."""
    return _law(steps)(coefficients)


def _law(steps: pd.DataFrame) -> Callable[[Coefficients], NDArray[np.float64]]:
    """Return `predicted` of these steps, as fast as a fit asks for it."""
    sizes = steps[["batch", "context", "n_in"]].to_numpy(float)
    units: Any = steps.groupby(["model", "tp", "weights_in", "kv"]).indices
    each = [(places, _numbers(name, int(tp), w, kv), *sizes[places].T) for (name, tp, w, kv), places in units.items()]

    def seconds(coefficients: Coefficients) -> NDArray[np.float64]:
        found, values = np.empty(len(steps)), asdict(coefficients) | {"anchor": 0.0}
        for places, numbers, batch, context, n_in in each:
            terms = unit_terms(numbers, values)
            spans = spans_of(terms, context, n_in, 0.0, np.minimum)
            part = parts(terms, spans, batch, 1.0 * (n_in > 0), np.maximum, np.minimum, expected_max_loads)
            found[places] = theory.step_time.unchecked(part[0], part[1], sum(part[2:]))
        return found

    return seconds


@cache
def _numbers(name: str, tp: int, weights: str, kv: str) -> UnitNumbers:
    unit = Unit.of(name, H100, tp, weights, kv)
    return replace(unit.numbers, layer_bytes=matrix_bytes(unit.model, tp))


def left_out(steps: pd.DataFrame, by: str) -> pd.DataFrame:
    """Fit without each value of the column `by`; return its coefficients and the error on what was left out."""
    rows = []
    for value in steps[by].unique():
        found = fit(steps[steps[by] != value])
        tested, error = _errors(steps[steps[by] == value], found.coefficients)
        values = {name: getattr(found.coefficients, name) for name in FITTED}
        rows.append({by: value, **values, "mape": error, "spread": _spread(tested)})
    return pd.DataFrame(rows)


def beyond(steps: pd.DataFrame, column: str, most: float) -> float:
    """Fit to the steps of at most `most` in `column`; return the standard deviation of log(measured / predicted) there.

    That is: on the steps beyond.
    """
    inside = steps[column] <= most
    tested, _ = _errors(steps[~inside], fit(steps[inside]).coefficients)
    return _spread(tested)


def new_model(others: pd.DataFrame, names: Sequence[str] = FITTED) -> pd.DataFrame:
    """Return the covariance of the logarithms of what was fitted for a model that was not among the fitted.

    From the fits without each model, as those of `left_out`: n models have the jackknife's covariance C of their mean,
    with its correlations; one model more has n + 1 times C (n for the models beside each other, 1 for the mean). Few
    models tell it, so it is the covariance of Student's t with n - 1 degrees of freedom, (n - 1)/(n - 3) times as much.
    """
    logs = np.log(others[list(names)].to_numpy(dtype=float))
    n = len(logs)
    covariance = (n - 1) * np.cov(logs, rowvar=False, ddof=0)  # the jackknife's
    return pd.DataFrame(covariance * (n + 1) * (n - 1) / (n - 3), index=list(names), columns=list(names))


def _errors(steps: pd.DataFrame, coefficients: Coefficients) -> tuple[pd.DataFrame, float]:
    error = predicted(steps, coefficients) / steps["measured"].to_numpy() - 1
    return steps.assign(error=error), float(np.average(np.abs(error), weights=1 / _sizes(steps)))


def _spread(tested: pd.DataFrame) -> float:
    return float(np.sqrt(np.average(np.log1p(tested["error"]) ** 2, weights=1 / _sizes(tested))))


def _sizes(steps: pd.DataFrame) -> NDArray[np.float64]:
    """Return for each row how many its unit and phase have."""
    groups = steps.groupby(["engine", "model", "tp", "weights_in", "kv", "phase"])
    return np.asarray(groups["measured"].transform("size"), dtype=np.float64)
