"""A running engine held against the law: its Prometheus page in, what was predicted and what moved out.

The page counts since the engine started; two pages of one engine count what lay between them. What names a metric has
stands in the engine's record (`data/engines.toml`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from prometheus_client.parser import text_string_to_metric_families

from inference_math.catalogue.engines import engines
from inference_math.evidence.checks import ANY_POSITIVE, as_number
from inference_math.unit import Unit
from inference_math.unit.coefficients import COEFFICIENTS, Calibration
from inference_math.unit.steps import draft_yield
from inference_math.workload import Workload
from inference_math_planner.calibrate.fitting import moved_to
from inference_math_planner.calibrate.from_runs import refuse_others, start_of

__all__ = ["Watched", "Window", "watch", "window"]

_FEWEST = 100  # requests: a mean of fewer says little of a load
_LARGEST = 50_000_000  # bytes of a page
_EXPLAINED = 0.12  # of the logarithm of either time: what leaves more of it open explains nothing
_NINETY = 1.645  # standard deviations
_NOW = ("running", "waiting", "usage")  # of the moment, not since the start
_MOVES = ["name", "before", "after", "widths"]
_ACCEPTED = "accepted are pages of vLLM's and SGLang's /metrics, as curl saves them"


@dataclass(frozen=True)
class Window:
    """What an engine counted, since its start or between two pages: requests, tokens, mean seconds of its own clock.

    Attributes
    ----------
    engine, model
        Whose page it is, and what it calls its model; "" where it does not say.
    requests
        Finished.
    n_in, n_out
        Mean tokens of a request.
    alpha
        Share of the prompts' tokens that was found in a cache.
    running, waiting, usage
        At the second page: requests that run and that wait, and the share of the KV cache that is in use.
    in_flight
        Mean requests that ran at once while the engine was busy.
    ttft, queue, tpot
        Mean seconds: to the first token, of these waiting for a place (NaN where the page does not say), and from token
        to token.
    first
        Mean seconds from a place to the first token, by the engine's own clock; NaN where it does not say, and the TTFT
        holds what the server does before (tokenizer, messages).
    preempted
        Requests that lost their place.
    ttft_counts, tpot_counts
        Upper ends in seconds and how many lay below, of the page's histograms.
    gap_counts
        The same of the times from step to step of a request; empty where the page has none.
    drafted, accepted
        Tokens that a request drafted in a step, and the chance that one was accepted whose predecessors were (NaN
        without drafts).
    """

    engine: str
    model: str
    requests: int
    n_in: float
    n_out: float
    alpha: float
    running: int
    waiting: int
    usage: float
    in_flight: float
    ttft: float
    queue: float
    first: float
    tpot: float
    preempted: int
    ttft_counts: Mapping[float, float]
    tpot_counts: Mapping[float, float]
    gap_counts: Mapping[float, float] = field(default_factory=dict)
    drafted: float = 0.0
    accepted: float = math.nan

    @property
    def work(self) -> Workload:
        """Its requests, as means."""
        return Workload(self.n_in, self.n_out, min(self.alpha, (self.n_in - 1) / self.n_in))

    def within(self, quantity: str, limit: float) -> tuple[float, float]:
        """Return between which shares a limit on "ttft" or "tpot" was kept: what the buckets around it say.

        Of "tpot" it is each request's own mean, where the page has it, else each time from token to token.
        """
        counts = self.ttft_counts if quantity == "ttft" else self.tpot_counts
        total = counts.get(math.inf, 0.0)
        if not total:
            return 0.0, 1.0
        below = max((count for end, count in counts.items() if end <= limit), default=0.0)
        above = min((count for end, count in counts.items() if end >= limit), default=total)
        return below / total, above / total

    def longer(self, seconds: float) -> float:
        """Return how many gaps between two steps of a request were certainly longer than so many seconds."""
        known = [count for end, count in self.gap_counts.items() if end >= seconds]
        return self.gap_counts[math.inf] - min(known) if known else 0.0

    def sampled(self, quantity: str) -> float:
        """Return by how many seconds the mean of "ttft" or "tpot" may be off for its requests were so many: 90 %.

        From the spread over the page's buckets, even within each, the open one taken for its lower end, as if requests
        were independent; those of one burst are not. NaN without buckets.
        """
        counts = self.ttft_counts if quantity == "ttft" else self.tpot_counts
        ends = sorted(counts)
        many = np.diff([0.0, *(counts[end] for end in ends)])
        if not ends or not many.sum() > 0:
            return math.nan
        lower = np.array([0.0, *ends[:-1]])
        upper = np.where(np.isinf(ends), lower, ends)
        middle = (lower + upper) / 2
        spread = (middle - np.average(middle, weights=many)) ** 2 + (upper - lower) ** 2 / 12
        return float(_NINETY * np.sqrt(np.average(spread, weights=many) / self.requests))


@dataclass(frozen=True, eq=False)
class Watched:
    """A window beside what a unit was predicted to do with the same requests, as many at once.

    `table` has a row for each time: name, measured, sampled (by how much its mean may be off, see `Window.sampled`),
    value, low, high (seconds; 5 and 95 %), and whether the measured one, give or take what is sampled, is `inside`.
    `moved` has the coefficients each of which alone explains what is outside, the nearest first: name, before, after
    and by how many `widths` of what was known; several where these times cannot tell them apart, none where nothing is
    outside or no single one explains it. `calibration` lets all of them move.
    """

    unit: Unit
    window: Window
    table: pd.DataFrame
    moved: pd.DataFrame
    calibration: Calibration

    @property
    def as_predicted(self) -> bool:
        """Whether every time lies in its interval."""
        return bool(self.table["inside"].all())

    def step(self, budget: float) -> float:
        """Return the seconds of a step with so many prompt tokens, at most (95 %), by what explains the window."""
        seen, unit = self.window, self.unit.calibrated(self.calibration)
        wide = float((self.table["high"] / self.table["value"]).iloc[0])
        return wide * float(unit.step_time(max(seen.in_flight, 1.0), seen.n_in + seen.n_out / 2, budget, seen.n_in))


def window(page: str | Path, earlier: str | Path | None = None, seconds: float | None = None) -> Window:
    """Return what an engine counted until `page` was taken, since its start or since an `earlier` page.

    Requests in flight are those of Little's law over the time that steps took: steps of a group of attention times the
    mean from token to token. That is too many where steps compute prompts alone, for they are longer. `seconds` between
    two pages take its place; they are needed where an engine does not count its steps (SGLang).

    Raises
    ------
    FileNotFoundError
        For a path that is no file.
    ValueError
        For a page of no known engine, without what is needed, or of an engine that was started anew in between; for
        fewer requests than tell a mean, and where seconds are needed.
    """
    late = _samples(Path(page))
    name, known = _engine(late, page)
    early = {} if earlier is None else _samples(Path(earlier))
    if earlier is not None and _engine(early, earlier)[0] != name:
        raise ValueError(f"{earlier} must be a page of {name}, as {page} is")
    before = {key: value for key, value in _totals(early, known).items() if key not in _NOW}
    counted = {key: value - before.get(key, 0.0) for key, value in _totals(late, known).items()}
    if any(value < 0 for value in counted.values()):
        raise ValueError(f"{page} must be a later page than {earlier}, of an engine that was not started in between")
    if missing := [key for key in ("requests", "prompt", "output", "ttft_sum", "tpot_sum") if key not in counted]:
        raise ValueError(
            f"{page} lacks {', '.join(' or '.join(known[key.removesuffix('_sum')]) for key in missing)}; {_ACCEPTED}"
        )
    requests = counted["requests"]
    if requests < _FEWEST:
        raise ValueError(f"{page} must have at least {_FEWEST} finished requests, not {requests:g}")
    if counted["output"] < 2 * requests or not counted["ttft_count"] or not counted["tpot_count"]:
        raise ValueError(f"{page} must be of an engine that computes prompts and answers: a pool does one of both")
    return _window(name, late, known, counted, _counts(late, early, known), seconds)


def watch(unit: Unit, seen: Window) -> Watched:
    """Return a window beside the unit's prediction for the same requests, as many at once, and what moved.

    Compared are the TPOT and, where the page tells it, the time from a place to the first token. The law says both from
    mean lengths and mean requests in flight, so a window over night and day is a mean over loads that the law does not
    see. Of an engine that drafts, it is asked with the drafts that were accepted. Where one lies outside of its
    interval, each coefficient moves alone, by maximum a posteriori as far as `fit` would let it: those are named that
    explain both times, which of two times of one load may be several.

    Raises
    ------
    ValueError
        For a window of another engine than the unit's, with other drafts, or a calibration that no fit starts from.

    Examples
    --------
    >>> from inference_math import simulate
    >>> unit = Unit.of("llama-3-8b", "h100-sxm")
    >>> run = simulate.open_loop(Workload(1500, 150), simulate.Steps(unit), rate=4.0, requests=100, seed=1)
    >>> watch(unit, Window("vllm", "", **run.counted())).as_predicted
    True
    """
    if seen.engine != unit.engine:
        raise ValueError(f"engine must be {seen.engine}, whose page it is, not {unit.engine}")
    if round(seen.drafted) != unit.drafts:
        raise ValueError(f"drafts must be {seen.drafted:.0f}, as many as on the page, not {unit.drafts}")
    if unit.drafts:
        unit = unit.resized(accepted=seen.accepted)
    refuse_others(unit, pd.DataFrame([{"source": "the page", "model": seen.model or None, "tp": math.nan}]))
    work, users = seen.work, max(seen.in_flight, 1.0)
    own = seen.first == seen.first
    measured = {"ttft": seen.first if own else seen.ttft - seen.queue, "tpot": seen.tpot}
    measured = {name: value for name, value in measured.items() if not math.isnan(value)}
    rows = []
    for name, value in measured.items():
        said = unit.predict(name, work, users)
        before = 0.0 if own or name != "ttft" else unit.front.seconds  # up to this lies in a server's own TTFT
        low, high = float(said.low), float(said.high) + before
        sampled = value * seen.sampled(name) / getattr(seen, name)  # the page has no buckets of TTFT after the wait
        give = 0.0 if math.isnan(sampled) else sampled
        rows.append([name, value, sampled, float(said.value), low, high, low - give <= value <= high + give])
    table = pd.DataFrame(rows, columns=["name", "measured", "sampled", "value", "low", "high", "inside"])
    if table["inside"].all():
        return Watched(unit, seen, table, pd.DataFrame(columns=_MOVES), unit.calibration)
    start, widths = start_of(unit.calibration)
    seconds = np.array(list(measured.values()))

    def predicted(at: Calibration) -> NDArray[np.float64]:
        moved = unit.calibrated(at)
        return np.array([getattr(moved, name)(work, users) for name in measured], dtype=np.float64)

    alone = [_alone(name, width, start, seconds, predicted) for name, width in widths.items()]
    known = [row for missed, row in sorted(alone, key=lambda one: abs(one[1][3])) if missed < _EXPLAINED]
    calibration, _ = moved_to(seconds, predicted, start, widths, "profile")
    return Watched(unit, seen, table, pd.DataFrame(known, columns=_MOVES), calibration)


def _alone(
    name: str,
    width: float,
    start: Calibration,
    seconds: NDArray[np.float64],
    predicted: Callable[[Calibration], NDArray[np.float64]],
) -> tuple[float, tuple[str, float, float, float]]:
    """Return what stays open where one coefficient is to explain the times, and how far that would have moved."""
    calibration, _ = moved_to(seconds, predicted, start, {name: width}, "profile")
    place = COEFFICIENTS.index(name)
    known = math.hypot(float(start.covariance[place, place]) ** 0.5, width)
    before, after = (getattr(one.coefficients, name) for one in (start, calibration))
    by = math.log(after / before) / known if before > 0 < after and known else 0.0
    return float(abs(np.log(predicted(calibration) / seconds)).max()), (name, before, after, by)


def _samples(path: Path) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return the samples of a page by their name: labels and value."""
    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes; accepted are at most {_LARGEST:,}")
    samples: dict[str, list[tuple[dict[str, str], float]]] = {}
    try:
        for family in text_string_to_metric_families(path.read_text(encoding="utf-8")):
            for one in family.samples:
                samples.setdefault(one.name, []).append((one.labels, float(one.value)))
    except (ValueError, KeyError, IndexError) as error:
        raise ValueError(f"{path} is no page of metrics: {error!s:.200}; {_ACCEPTED}") from error
    return samples


def _engine(samples: Mapping[str, object], page: str | Path) -> tuple[str, Mapping[str, list[str]]]:
    """Return which engine a page is of, and what its record says of metrics."""
    for name, record in engines().items():
        names = [one for key in ("requests", "prompt") for one in record.metrics.get(key, [])]
        if any(one in samples for one in names):
            return name, record.metrics
    raise ValueError(f"{page} has no requests of a known engine; {_ACCEPTED}")


def _totals(
    samples: Mapping[str, list[tuple[dict[str, str], float]]], known: Mapping[str, list[str]]
) -> dict[str, float]:
    """Return the sum over all labels of each known metric, by our name; of several names the first that is there."""
    totals = {}
    for key, names in known.items():
        for name in names:
            for suffix in ("_sum", "_count") if f"{name}_sum" in samples else ("",):
                if name + suffix in samples and key + suffix not in totals:
                    values = [value for _, value in samples[name + suffix]]
                    totals[key + suffix] = max(values) if key == "usage" else sum(values)
    return totals


def _counts(
    late: Mapping[str, list[tuple[dict[str, str], float]]],
    early: Mapping[str, list[tuple[dict[str, str], float]]],
    known: Mapping[str, list[str]],
) -> dict[str, dict[float, float]]:
    """Return cumulative counts of the window by upper end: TTFT, requests' times between tokens, gaps between steps."""
    cumulative: dict[str, dict[float, float]] = {"ttft": {}, "tpot": {}, "gap": {}}
    for key, counts in cumulative.items():
        names = [*(known.get("each", []) if key == "tpot" else []), *known["ttft" if key == "ttft" else "tpot"]]
        name = next((f"{one}_bucket" for one in names if f"{one}_bucket" in late), "")
        for sign, samples in ((1.0, late), (-1.0, early)):
            for labels, value in samples.get(name, []):
                end = float(labels["le"])
                counts[end] = counts.get(end, 0.0) + sign * value
    return cumulative


def _window(
    name: str,
    late: Mapping[str, list[tuple[dict[str, str], float]]],
    known: Mapping[str, list[str]],
    counted: Mapping[str, float],
    counts: Mapping[str, Mapping[float, float]],
    seconds: float | None,
) -> Window:
    requests = counted["requests"]
    mean = {
        key: counted[f"{key}_sum"] / counted[f"{key}_count"] if counted.get(f"{key}_count") else math.nan
        for key in ("ttft", "tpot", "queue", "first")
    }
    first = mean["ttft"] - mean["queue"] if math.isnan(mean["first"]) else mean["first"]
    if seconds is None and "steps" not in counted:
        raise ValueError(f"seconds must be given, those between two pages: {name} does not count its steps")
    groups = len({labels.get("engine", "") for one in known.get("steps", []) for labels, _ in late.get(one, [])})
    busy = counted["steps"] * mean["tpot"] / groups if seconds is None else as_number("seconds", seconds, ANY_POSITIVE)
    # Of a page that does not tell a first token from the wait before it, decodes alone.
    ran = (0.0 if math.isnan(first) else requests * first) + counted["tpot_sum"]
    drafts, accepted = counted.get("drafts", 0.0), counted.get("accepted", 0.0)
    per_step = 1 + accepted / drafts if drafts else 1.0  # tokens of a step and request; the page's gaps are of steps
    drafted = counted.get("drafted", 0.0) / drafts if drafts else 0.0
    models = {labels.get("model_name", "") for samples in late.values() for labels, _ in samples} - {""}
    if len(models) > 1:
        raise ValueError(f"a page must be of one model, not of {', '.join(sorted(models))}")
    return Window(
        name, next(iter(models), ""), int(requests), counted["prompt"] / requests, counted["output"] / requests,
        counted.get("cached", 0.0) / max(counted.get("looked_up", 0.0), 1.0),
        int(counted.get("running", 0)), int(counted.get("waiting", 0)), counted.get("usage", math.nan),
        ran / busy, mean["ttft"], mean["queue"], mean["first"], mean["tpot"] / per_step,
        int(counted.get("preempted", 0)), counts["ttft"], counts["tpot"], counts["gap"], drafted,
        _accepted(drafted, per_step),
    )  # fmt: skip


def _accepted(drafted: float, per_step: float) -> float:
    """Return the chance that a draft is accepted whose predecessors were, by the tokens of a step; else NaN."""
    if not drafted:
        return math.nan
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if draft_yield(drafted, middle) < per_step else (low, middle)
    return (low + high) / 2
