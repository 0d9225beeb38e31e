"""Recorded arrivals at real engines, played by the simulator: a queue predicted before it was looked at.

Table `queue_runs` has the requests of three engines that were sent more than they could serve, with the times of each.
No row sets a coefficient: steps are those of the nearest calibration that ships.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from recipes import unit_of

from inference_math import simulate
from inference_math.evidence import load
from inference_math.unit import Unit
from inference_math.workload import Trace, Workload
from inference_math_planner.fleets.benchmarks import policy_of

__all__ = ["compared", "played"]

_ENGINE = ["model", "gpu", "tp", "ep", "dp", "engine", "version", "weights", "max_batch", "budget"]
_ORDER = ["arrival_s", "n_in", "n_out"]
_TIMES = {"ttft": "ttft", "tpot": "tpot", "e2e": "latency"}


def played(unit: Callable[[Unit], Unit] | None = None) -> pd.DataFrame:
    """Return the rows of `queue_runs` with what the simulator finds for each: ttft, tpot and e2e, in seconds.

    Chunked prefill with the budget and the places that the engine had; of attention data parallelism each group has
    both, and all groups step together. `unit` changes each unit before it is asked: another calibration.

    Examples
    --------
    >>> import arrivals
    >>> found = arrivals.played()
    >>> bool((found["e2e"] > found["ttft"]).all())
    True
    """
    tables = []
    for _, rows in load("queue_runs").frame.groupby(_ENGINE, sort=False):
        one = rows.iloc[0]
        own = unit_of(one)
        ordered = rows.sort_values(_ORDER, kind="stable")
        tables.append(ordered.assign(**_times(unit(own) if unit else own, ordered)))
    return pd.concat(tables)


def compared(found: pd.DataFrame) -> pd.DataFrame:
    """Return by model the mean and P90 of each time in seconds, measured and predicted, and the error of the mean."""
    rows = []
    for model, of in found.groupby("model", sort=False):
        for name in _TIMES:
            measured, predicted = of[f"{name}_s"], of[name]
            rows.append(
                {
                    "model": model,
                    "time": name,
                    "mean": measured.mean(),
                    "predicted mean": predicted.mean(),
                    "P90": measured.quantile(0.9),
                    "predicted P90": predicted.quantile(0.9),
                    "error": predicted.mean() / measured.mean() - 1,
                }
            )
    return pd.DataFrame(rows)


def _times(unit: Unit, rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the times of each row, which are in the order of arrivals."""
    one, mean = rows.iloc[0], Workload(float(rows["n_in"].mean()), float(rows["n_out"].mean()))
    engine = simulate.Chunked(
        budget=int(one["budget"] * one["dp"]),
        max_batch=float(one["max_batch"] * one["dp"]),
        kv_capacity=float(unit.kv_tokens(mean.n_in + mean.n_out)),
        grows=True,
        policy=policy_of(unit.engine, version=unit.version),
    )
    trace = Trace.from_frame(rows.rename(columns={"arrival_s": "arrival"}))
    run = simulate.replay(trace, simulate.Steps(unit), scheduler=engine)
    # Requests come back in the order in which they finish; equal ones may change places.
    requests = run.requests.sort_values(["arrival", "n_in", "n_out"], kind="stable")
    return {name: requests[column].to_numpy() for name, column in _TIMES.items()}
