"""What a simulation remembers: requests, the gaps between tokens as a histogram, on request the steps."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference_math.evidence.checks import SHARE, as_number
from inference_math.simulate.engine import Request

__all__ = ["GapHistogram", "Record", "Run"]

_BINS_PER_E = 1000  # a bin is 0.1 % wide
_STEPS = 2**16  # are put into the histogram at once


class GapHistogram:
    """Times between two tokens of a request, counted in bins 0.1 % wide; of drafted tokens, which come together, steps.

    `mean`, `count` and `largest` are exact; a quantile is right to half a bin. Empty: NaN.
    """

    def __init__(self) -> None:
        self._bins: dict[int, float] = {}
        self.count = 0
        self.total = 0.0
        self.largest = 0.0

    def add(self, gaps: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Count each of `gaps`, in seconds, as often as `weights` says."""
        if not gaps.size:
            return
        logs = np.floor(np.log(np.maximum(gaps, 1e-12)) * _BINS_PER_E).astype(np.int64)
        low = int(np.min(logs))
        counts = np.bincount(logs - low, weights)
        for i in np.flatnonzero(counts).tolist():
            self._bins[low + i] = self._bins.get(low + i, 0.0) + float(counts[i])
        self.count += int(weights.sum())
        self.total += float(gaps @ weights)
        self.largest = max(self.largest, float(np.max(gaps)))

    @property
    def mean(self) -> float:
        """Mean gap in seconds."""
        return self.total / self.count if self.count else float("nan")

    def quantile(self, q: float) -> float:
        """Return the smallest gap, in seconds, that at least the share `q` of all gaps does not exceed."""
        share = as_number("q", q, SHARE)
        frame = self.frame()
        if frame.empty:
            return float("nan")
        reached = frame["count"].cumsum().to_numpy() >= share * self.count * (1 - 1e-12)
        return float(frame["gap"].to_numpy()[np.argmax(reached)])

    def frame(self) -> pd.DataFrame:
        """Return the bins that are not empty: gap (the bin's middle, s) and count."""
        bins = np.array(sorted(self._bins), dtype=np.float64)
        counts = [self._bins[int(i)] for i in bins]
        return pd.DataFrame({"gap": np.exp((bins + 0.5) / _BINS_PER_E), "count": counts})


@dataclass(frozen=True, eq=False)
class Run:
    """What a simulation found.

    Attributes
    ----------
    requests
        One row per request that finished after the warm-up, in that order: user's `arrival`, `admitted` (the
        first step that computes its prompt starts), `first_token`, `finished`, `n_in`, `n_out`, `cached`; and
        `ttft`, `tpot` (NaN for a single token) and `latency`. Seconds and tokens. What was before the start of a
        request that was under way is NaN.
    gaps
        Histogram of the times between two tokens, all requests together.
    seconds, steps
        How long the measured part lasted, and its engine steps (of all engines).
    every_gap
        Every gap in seconds, if asked for.
    log
        Every step, if asked for: engine, start, seconds, decodes, context, prefills, tokens.
    preempted
        How often a request of an engine or a decode unit with growing KV caches was thrown out, to be computed again.
    """

    requests: pd.DataFrame
    gaps: GapHistogram
    seconds: float
    steps: int
    every_gap: NDArray[np.float64] | None
    log: pd.DataFrame | None
    preempted: int = 0

    @property
    def request_rate(self) -> float:
        """Requests finished per second."""
        return len(self.requests) / self.seconds if self.seconds else float("nan")

    def counted(self) -> dict[str, object]:
        """Return what the metrics of an engine that served this would count, by the names of `metrics.Window`.

        The buckets of its histogram of gaps are the bins of `gaps`.
        """
        rows, gaps, mean = self.requests, self.gaps.frame(), self.requests.mean(numeric_only=True)
        first = np.sort(rows["ttft"].to_numpy(dtype=float)).tolist()
        gap_counts = [*gaps["count"].cumsum(), gaps["count"].sum()]
        return {
            "requests": len(rows),
            "n_in": mean["n_in"],
            "n_out": mean["n_out"],
            "alpha": mean["cached"] / mean["n_in"],
            "running": 0,
            "waiting": 0,
            "usage": math.nan,
            "in_flight": float((rows["finished"] - rows["admitted"]).sum() / (self.steps * self.gaps.mean)),
            "ttft": mean["ttft"],
            "queue": mean["admitted"] - mean["arrival"],
            "first": mean["first_token"] - mean["admitted"],
            "tpot": self.gaps.mean,
            "preempted": 0,
            "ttft_counts": dict(zip([*first, math.inf], [*range(1, len(first) + 1), len(first)], strict=True)),
            "tpot_counts": dict(zip([*gaps["gap"], math.inf], gap_counts, strict=True)),
        }

    def summary(self) -> pd.Series[float]:
        """Return means and P50, P90, P99 of TTFT, TPOT and gap, in seconds, and the request rate (1/s)."""
        values: dict[str, float] = {}
        for name in ("ttft", "tpot", "latency"):
            column = self.requests[name].dropna()
            values[f"{name}_mean"] = float(column.mean())
            for q in (50, 90, 99):
                values[f"{name}_p{q}"] = float(column.quantile(q / 100))
        values["gap_mean"] = self.gaps.mean
        values |= {f"gap_p{q}": self.gaps.quantile(q / 100) for q in (50, 90, 99)}
        return pd.Series(values | {"request_rate": self.request_rate})


class Record:
    """Collects while a simulation runs; nothing in it grows with the tokens unless it is asked for."""

    COLUMNS = ("arrival", "admitted", "first_token", "finished", "n_in", "n_out", "cached")

    def __init__(self, warmup: int, every_gap: bool, log: bool) -> None:
        self._warmup = warmup
        self.measured = 0
        self.start = 0.0
        self._rows = array("d")
        self._runs = array("d")
        self._pending = 0  # steps in them
        self.steps = 0
        self.preempted = 0
        self.histogram = GapHistogram()
        self._every: list[NDArray[np.float64]] | None = [] if every_gap else None
        self._log: list[tuple[object, ...]] | None = [] if log else None
        self.logs = log
        self.notes = True

    def run(self, first: float, rise: float, steps: int, decodes: int) -> None:
        """Note `steps` steps in a row: the first takes `first` seconds, each one after it `rise` more."""
        self.steps += steps
        if decodes:
            self._runs.extend((first, rise, steps, decodes))
            self._pending += steps
            if self._pending >= _STEPS:
                self._flush()

    def gap(self, seconds: float) -> None:
        """Note one gap that is no step of its engine."""
        self._runs.extend((seconds, 0.0, 1.0, 1.0))

    def request(self, request: Request, admitted: float, first_token: float, finished: float) -> None:
        """Note a request that has finished."""
        if self._warmup:
            self._warmup -= 1
            if not self._warmup:
                self._restart(finished)
        elif finished > self.start:  # those who finish with the last of the warm-up belong to it
            self.measured += 1
            sizes = request.n_in, request.n_out, request.cached
            self._rows.extend((request.arrival, admitted, first_token, finished, *sizes))

    def step(self, *row: object) -> None:
        """Note one step in the log."""
        if self._log is not None:
            self._log.append(row)

    def result(self, end: float) -> Run:
        """Return what was found, measured from the end of the warm-up to `end`."""
        self._flush()
        rows = np.frombuffer(self._rows, dtype=np.float64).reshape(-1, len(self.COLUMNS))
        requests = pd.DataFrame(rows, columns=list(self.COLUMNS))
        tokens = ["n_in", "n_out", "cached"]
        requests[tokens] = requests[tokens].astype(np.int64)
        requests["ttft"] = requests.first_token - requests.arrival
        more = requests.n_out - 1
        requests["tpot"] = (requests.finished - requests.first_token) / more.where(more > 0)
        requests["latency"] = requests.finished - requests.arrival
        names = ["engine", "start", "seconds", "decodes", "context", "prefills", "tokens"]
        return Run(
            requests=requests,
            gaps=self.histogram,
            seconds=end - self.start,
            steps=self.steps,
            every_gap=None if self._every is None else np.concatenate([np.empty(0), *self._every]),
            log=None if self._log is None else pd.DataFrame(self._log, columns=names),
            preempted=self.preempted,
        )

    def _flush(self) -> None:
        """Move the runs of steps into the histogram."""
        first, rise, steps, decodes = np.frombuffer(self._runs, dtype=np.float64).reshape(-1, 4).T.copy()
        self._runs, self._pending = array("d"), 0
        lengths = steps.astype(np.int64)
        # 0, 1, 2, … within each run.
        nth = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        gaps = np.repeat(first, lengths) + np.repeat(rise, lengths) * nth
        weights = np.repeat(decodes, lengths)
        self.histogram.add(gaps, weights)
        if self._every is not None:
            self._every.append(np.repeat(gaps, weights.astype(np.int64)))

    def _restart(self, now: float) -> None:
        """Forget what was measured so far: the warm-up is over."""
        self.start = now
        self._runs, self._pending = array("d"), 0
        self.steps = 0
        self.preempted = 0
        self.histogram = GapHistogram()
        if self._every is not None:
            self._every = []
