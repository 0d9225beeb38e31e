"""Many simulations at once, on any executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, as_completed
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

__all__ = ["sweep"]


def sweep(
    simulate: Callable[..., object],
    settings: Iterable[Mapping[str, object]],
    *,
    executor: Executor | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Run ``simulate(seed=…, **setting)`` for each of `settings`; return one row for each, in their order.

    Parameters
    ----------
    simulate
        A function at the top level of a module, so that other processes can import it. It returns a mapping
        (a row), or a `Run`, of which the summary is taken.
    executor
        Any `concurrent.futures.Executor`: a process pool, MPI's, or a Dask cluster's ``client.get_executor()``.
        None: one after the other, here.
    seed
        Each setting gets a seed of its own, derived from this one and its position alone: the result does not
        depend on the executor.
    progress
        Whether to show a progress bar; None: where there are more than ten settings and someone watches.

    Raises
    ------
    Exception
        Whatever a simulation raises; the others are cancelled.
    """
    rows = [dict(setting) for setting in settings]
    seeds = [int(s.generate_state(1)[0]) for s in np.random.SeedSequence(seed).spawn(len(rows))]
    # disable=None shows the bar on a terminal only.
    hidden = (True if len(rows) <= 10 else None) if progress is None else not progress
    with tqdm(total=len(rows), disable=hidden, unit="run") as bar:
        if executor is None:
            results = []
            for setting, own in zip(rows, seeds, strict=True):
                results.append(_row(simulate, setting, own))
                bar.update()
        else:
            futures = [executor.submit(_row, simulate, row, own) for row, own in zip(rows, seeds, strict=True)]
            results = _gathered(futures, bar)
    return pd.DataFrame(results)


def _gathered(futures: list[Future[dict[str, object]]], bar: Any) -> list[dict[str, object]]:
    try:
        for future in as_completed(futures):
            future.result()
            bar.update()
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return [future.result() for future in futures]


def _row(simulate: Callable[..., Any], setting: Mapping[str, object], seed: int) -> dict[str, object]:
    run = simulate(seed=seed, **setting)
    summary = run.summary() if hasattr(run, "summary") else run
    plain: dict[str, object] = {
        name: value for name, value in setting.items() if isinstance(value, str | int | float | np.generic)
    }
    return plain | dict(summary)
