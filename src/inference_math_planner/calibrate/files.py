"""Measured runs of an engine, read from the result files of load generators, for calibrating the model.

Formats are told apart by content. Field names were checked in the source, and, where marked †, also in files
that the tool wrote: vLLM 0.10.2, 0.11.0 and 0.33.0 (`vllm bench serve`, and the array of `vllm bench sweep`); SGLang
0.4.6† (`sglang.bench_serving`); GuideLLM 0.3.1† and 0.8.1†; AIPerf 0.7.0† and 0.13.0†; genai-perf 0.0.11 and 0.0.16;
the CSV files of AIPerf 0.10† and of genai-perf†.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from inference_math.catalogue.files import unique
from inference_math.evidence.checks import AT_LEAST_ZERO, as_number

__all__ = ["Runs", "read"]

_ACCEPTED = (
    "accepted are JSON of `vllm bench serve` (--save-result, --append-result), `vllm bench sweep`, "
    "sglang.bench_serving, GuideLLM, AIPerf and genai-perf, CSV of the last two, "
    "and CSV (UTF-8, commas) with the columns n_in, n_out, concurrency, and e2e or ttft and tpot, in seconds"
)
_MOST_OVER = 1.15  # of a closed loop: means of TTFT and TPOT do not make the mean latency exactly
_ALONE = 1.05  # requests in the system: no other's prompt lengthens a step
_LEAST_BUSY, _ROUNDS = 0.5, 4  # the last requests of a loop leave places empty, of few rounds many
_FEWEST = 5  # completed requests; a mean of fewer says nothing
_MOST_RUNS, _LARGEST = 10_000, 100_000_000  # of a file; its bytes: what tools write of thousands of requests each
_MOST_FAILED = 0.01  # of all; what fails early takes its load away from the others
_COLUMNS = ("n_in", "n_out", "concurrency", "e2e", "ttft", "tpot")
_PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "sec": 1.0, "s": 1.0}


@dataclass(frozen=True, eq=False)
class Runs:
    """Measured runs of an engine.

    Attributes
    ----------
    table
        One row for each run that can be used. `source`: file name, with the number of the run where a file has
        several ("a.json#2"), or of the row in a CSV file (the header is row 1). `n_in`, `n_out`: mean tokens.
        `concurrency`: mean requests in the system. `ttft`, `tpot`, `e2e`: mean seconds, the first two NaN where
        unknown. `requests`: completed, <NA> where unknown. `model` and `tp`: the model's name and the GPUs that share
        it, where the file says (vLLM's model_id, and tensor_parallel_size of its --metadata); else None and NaN.
    unusable
        `source` and `reason` of each other run.
    """

    table: pd.DataFrame
    unusable: pd.DataFrame


def read(*paths: str | Path) -> Runs:
    """Return the runs in result files of vLLM, SGLang, GuideLLM, AIPerf, genai-perf, and in CSV files.

    `e2e` is the mean request latency that the file reports, else ttft + (n_out - 1) tpot. `concurrency` is that
    of the closed loop where it was reached; else the mean that the tool counted (GuideLLM, SGLang); else, by Little's
    law, completed requests per second times `e2e`: so, too, of the CSV files of AIPerf and genai-perf, which say no
    concurrency. SGLang, genai-perf and these do not write down failed requests: taken as none.
    Of AIPerf give the file at the top of the artifact folder; those in `phases/` repeat it, or are the warm-up.

    Raises
    ------
    FileNotFoundError
        For a path that is no file.
    ValueError
        For no path, a file given twice, in no accepted format, or without a run, and a CSV file that lacks columns.
    """
    if not paths:
        raise ValueError(f"read needs the path of at least one result file; {_ACCEPTED}")
    files = [Path(path) for path in paths]
    for file, times in Counter(file.resolve() for file in files).items():
        if times > 1:
            raise ValueError(f"{file} is given {times} times, its runs would count as often")
    names = Counter(file.name for file in files)
    rows, unusable = [], []
    for file in files:
        name = file.name if names[file.name] == 1 else str(file)
        for number, reader, data in _runs_of(file):
            source = name + number
            try:
                rows.append({"source": source, **_row(reader(data))})
            except _UnusableError as reason:
                unusable.append({"source": source, "reason": str(reason)})
    floats = dict.fromkeys(("n_in", "n_out", "concurrency", "ttft", "tpot", "e2e"), "float64")
    types = {**floats, "requests": "Int64", "model": "object", "tp": "float64"}
    table = pd.DataFrame(rows, columns=["source", *types]).astype(types)
    return Runs(table=table, unusable=pd.DataFrame(unusable, columns=["source", "reason"]))


class _UnusableError(Exception):
    """Says why one run cannot be used."""


@dataclass(frozen=True)
class _Run:
    """What a file says of one run, in tokens and seconds; NaN where it says nothing."""

    n_in: float
    n_out: float
    completed: float
    ttft: float
    tpot: float
    e2e: float
    failed: float = 0.0
    cut: float = 0.0  # requests that were in the system when the run ended
    closed: float = math.nan  # requests that a closed loop keeps in the system
    peak: float = math.nan  # the most requests that were in the system
    counted: float = math.nan  # mean requests in the system, as the tool counted them
    rate: float = math.nan  # completed requests per second
    model: str | None = None  # as the engine calls it
    tp: float = math.nan  # GPUs that share the model


_Found = tuple[str, Callable[[Any], _Run], Any]


def _row(run: _Run) -> dict[str, object]:
    """Return the row of the table, or raise _UnusableError."""
    if run.failed > _MOST_FAILED * (run.completed + run.failed):
        raise _UnusableError(f"{run.failed:g} requests failed, {run.completed:g} completed; at most 1 % may fail")
    if run.completed < _FEWEST or run.completed % 1 > 0:
        raise _UnusableError(f"{run.completed:g} requests completed; it takes a whole number, {_FEWEST} or more")
    if run.n_in <= 0 or run.n_out < 2:
        raise _UnusableError(f"n_in is {run.n_in:g}, n_out {run.n_out:g}; it takes a prompt and two output tokens")
    if any(seconds <= 0 for seconds in (run.ttft, run.tpot, run.e2e)):
        raise _UnusableError(f"a time is not positive: ttft {run.ttft:g}, tpot {run.tpot:g}, e2e {run.e2e:g}")
    e2e = run.ttft + (run.n_out - 1) * run.tpot if math.isnan(run.e2e) else run.e2e
    if math.isnan(e2e):
        raise _UnusableError("no request latency, nor TTFT and TPOT to work it out (was streaming off?)")
    if run.ttft > e2e:
        raise _UnusableError(f"ttft, {run.ttft:g} s, exceeds e2e, {e2e:g} s")
    concurrency = _concurrency(run, e2e)
    if concurrency < _ALONE and run.ttft < run.tpot:
        both = f"ttft {run.ttft:g} s, tpot {run.tpot:g} s"
        raise _UnusableError(f"a first token of one user came sooner than a next one: are they swapped? {both}")
    return {
        "n_in": run.n_in,
        "n_out": run.n_out,
        "concurrency": concurrency,
        "ttft": run.ttft,
        "tpot": run.tpot,
        "e2e": e2e,
        "requests": pd.NA if math.isnan(run.completed) else int(run.completed),
        "model": run.model,
        "tp": run.tp,
    }


def _concurrency(run: _Run, e2e: float) -> float:
    """Return the mean number of requests in the system; every comparison with NaN is false."""
    total = run.completed + run.failed + run.cut
    if run.closed > total:
        raise _UnusableError(f"a concurrency of {run.closed:g} was never reached, with {total:g} requests")
    # The limit may never bind although the loop looks closed, as where vLLM replays a trace at its own times.
    if run.closed > 0 and not run.peak < run.closed:
        _agrees(run, e2e, total)
        return run.closed
    mean = run.rate * e2e if math.isnan(run.counted) else run.counted
    if not mean > 0:
        raise _UnusableError("no concurrency above zero, and no duration to work it out")
    if mean > total:
        raise _UnusableError(f"a mean concurrency of {mean:g} is impossible with {total:g} requests")
    return mean


def _agrees(run: _Run, e2e: float, total: float) -> None:
    """Refuse a closed loop whose duration and latencies contradict its concurrency (Little's law)."""
    mean = run.rate * e2e
    if mean > _MOST_OVER * run.closed:
        said = f"{run.rate:.3g} requests/s of {e2e:.3g} s each are {mean:.3g} at once"
        raise _UnusableError(f"{said}, and at most {run.closed:g} were: duration and latencies contradict each other")
    if total >= _ROUNDS * run.closed and mean < _LEAST_BUSY * run.closed:
        raise _UnusableError(f"{mean:.3g} requests were there on average, not {run.closed:g}: the client was too slow")


def _runs_of(file: Path) -> list[_Found]:
    """Return number, reader and content of each run in a file."""
    if not file.is_file():
        raise FileNotFoundError(f"{file} is no file; {_ACCEPTED}")
    if file.stat().st_size > _LARGEST:
        raise ValueError(f"{file} has {file.stat().st_size:,} bytes; accepted are at most {_LARGEST:,}: is it a trace?")
    try:
        text = file.read_text(encoding="utf-8-sig")
        runs = _from_json(text.strip()) if text.lstrip().startswith(("{", "[")) else _from_csv(text)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{file}: {error}; {_ACCEPTED}") from error
    except RecursionError:
        raise ValueError(f"{file}: it is nested too deeply; {_ACCEPTED}") from None
    if not runs:
        raise ValueError(f"{file} holds no run; {_ACCEPTED}")
    if len(runs) > _MOST_RUNS:
        raise ValueError(f"{file} holds {len(runs):,} runs; accepted are at most {_MOST_RUNS:,}")
    return runs


def _from_json(text: str) -> list[_Found]:
    runs: list[tuple[Callable[[Any], _Run], Any]] = []
    values = [one for value in _values(text) for one in (value if isinstance(value, list) else [value])]
    for number, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise ValueError(f"value {number} is no object of a known format")
        benchmarks = value.get("benchmarks")
        # Other tools have benchmarks, too; only those of GuideLLM have metrics.
        if isinstance(benchmarks, list) and all(isinstance(_at(run, "metrics"), dict) for run in benchmarks):
            runs += [(_guidellm, run) for run in benchmarks]
        elif {"completed", "duration", "total_input_tokens"} <= value.keys():
            runs.append((_sglang if "total_output_tokens_retokenized" in value else _vllm, value))
        elif isinstance(value.get("input_config"), dict):
            runs.append((_aiperf, value))
        else:
            raise ValueError(f"object {number} is in no known format")
    return [(f"#{number}" if len(runs) > 1 else "", *run) for number, run in enumerate(runs, start=1)]


def _values(text: str) -> Iterator[object]:
    """Yield the JSON values that stand one behind the other, on lines of their own or not."""
    decoder, at = json.JSONDecoder(object_pairs_hook=unique), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value
        while text[at : at + 1].isspace():
            at += 1


def _from_csv(text: str) -> list[_Found]:
    cells = csv.reader(io.StringIO(text), skipinitialspace=True)
    rows = [(number, [cell.strip() for cell in row]) for number, row in enumerate(cells, start=1)]
    (_, header), *rows = [(number, row) for number, row in rows if any(row)] or [(0, [])]
    if header[:2] == ["Metric", "avg"]:
        return [("", _aiperf, {"input_config": {}, **_statistics(row for _, row in rows)})]
    if not set(_COLUMNS) & set(header):
        raise ValueError("is empty or in no known format")
    missing = [name for name in _COLUMNS[:3] if name not in header]
    if "e2e" not in header and not {"ttft", "tpot"} <= set(header):
        missing.append("e2e, or ttft and tpot")
    if missing:
        raise ValueError(f"columns are missing: {', '.join(missing)}")
    if twice := [name for name in (*_COLUMNS, "requests") if header.count(name) > 1]:
        raise ValueError(f"columns occur twice: {', '.join(twice)}")
    return [(f"#{number}", _csv, (header, row)) for number, row in rows]


def _statistics(rows: Iterable[list[str]]) -> dict[str, dict[str, object]]:
    """Return the means of a CSV file of AIPerf or genai-perf as its JSON has them: "Request Latency (ms)", its mean."""
    statistics: dict[str, dict[str, object]] = {}
    for named, value, *_ in (row for row in rows if len(row) > 1):
        name, unit = re.fullmatch(r"(.*?)(?: \((.*)\))?", named).groups()  # type: ignore[union-attr]
        digits = value.replace(",", "")
        if re.fullmatch(r"[\d.]+", digits):
            statistics[name.lower().replace(" ", "_")] = {"unit": unit, "avg": float(digits)}
    return statistics


def _csv(data: tuple[list[str], list[str]]) -> _Run:
    header, row = data
    if len(row) != len(header):
        raise _UnusableError(f"{len(row)} cells, {len(header)} columns")
    cells = {name: _cell(name, text) for name, text in zip(header, row, strict=True) if name in (*_COLUMNS, "requests")}
    return _Run(
        n_in=_needed(cells, "n_in"),
        n_out=_needed(cells, "n_out"),
        completed=_number(cells, "requests"),
        counted=_needed(cells, "concurrency"),
        ttft=_number(cells, "ttft"),
        tpot=_number(cells, "tpot"),
        e2e=_number(cells, "e2e"),
    )


def _cell(name: str, text: str) -> float | None:
    if "_" in text:  # which Python takes for a separator of digits
        raise _UnusableError(f"{name} is no number: {text!r:.80}")
    try:
        return None if text.lower() in ("", "nan") else float(text)
    except ValueError as error:
        raise _UnusableError(f"{name} is no number: {text!r:.80}") from error


def _vllm(data: Mapping[str, object]) -> _Run:
    """Read one result of `vllm bench serve`; latencies count from when the client sends, not from its own queue."""
    if data.get("ramp_up_strategy"):
        raise _UnusableError("the request rate was ramped up: the means belong to no one load")
    if any(name.startswith("spec_decode_") and value is not None for name, value in data.items()):
        raise _UnusableError("speculative decoding was on: a step yields more than one token")
    model = data.get("model_id")
    completed, failed = _needed(data, "completed"), _number(data, "failed")
    if math.isnan(failed):  # not written down up to 0.11
        failed = _needed(data, "num_prompts") - completed
    if failed < 0:
        raise _UnusableError(f"{completed:g} requests completed of {completed + failed:g} in num_prompts")
    return replace(
        _served(data, failed, "mean_e2el_ms"),
        peak=_number(data, "max_concurrent_requests"),
        model=model if isinstance(model, str) else None,
        tp=_number({"tp": _plain(data.get("tensor_parallel_size"))}, "tp"),
    )


def _sglang(data: Mapping[str, object]) -> _Run:
    """Read one line of `sglang.bench_serving`, which counts requests in the system itself, but no failures."""
    if _number(data, "accept_length") > 1:
        raise _UnusableError("speculative decoding was on: a step yields more than one token")
    asked, completed = _number(data, "num_prompts"), _needed(data, "completed")
    failed = max(asked - completed, 0.0) if asked == asked else 0.0
    return replace(_served(data, failed, "mean_e2e_latency_ms"), counted=_number(data, "concurrency"))


def _served(data: Mapping[str, object], failed: float, latency: str) -> _Run:
    """Read what results of vLLM's and SGLang's benchmarks call by the same names."""
    completed, duration = _needed(data, "completed"), _number(data, "duration")
    return _Run(
        n_in=_needed(data, "total_input_tokens") / max(completed, 1),
        n_out=_needed(data, "total_output_tokens") / max(completed, 1),
        completed=completed,
        failed=failed,
        ttft=_streamed(data, "mean_ttft_ms") / 1e3,
        tpot=_streamed(data, "mean_tpot_ms") / 1e3,
        e2e=_number(data, latency) / 1e3,
        closed=_number(data, "max_concurrency") if data.get("request_rate") in ("inf", math.inf) else math.nan,
        rate=completed / duration if duration > 0 else math.nan,
    )


def _guidellm(data: Mapping[str, object]) -> _Run:
    """Read one benchmark of GuideLLM.

    Its time_per_output_token_ms has included the first token or not, from version to version; so TPOT is
    inter_token_latency_ms. Its requests may reach beyond the duration, so Little's law would not hold.
    """
    strategy = _at(data, "config", "strategy") or _at(data, "args", "strategy")  # args up to 0.3
    totals = ("metrics", "request_totals") if _at(data, "metrics", "request_totals") else ("request_totals",)
    return _Run(
        n_in=_needed(data, "metrics", "prompt_token_count", "successful", "mean"),
        n_out=_needed(data, "metrics", "output_token_count", "successful", "mean"),
        completed=_needed(data, *totals, "successful"),
        failed=_needed(data, *totals, "errored"),
        cut=_needed(data, *totals, "incomplete"),
        ttft=_streamed(data, "metrics", "time_to_first_token_ms", "successful", "mean") / 1e3,
        tpot=_streamed(data, "metrics", "inter_token_latency_ms", "successful", "mean") / 1e3,
        e2e=_number(data, "metrics", "request_latency", "successful", "mean"),
        # "throughput" has a limit, too, but that of its own workers; it seldom meets it.
        closed=1.0 if _at(strategy, "type_") == "synchronous" else _number(strategy, "streams"),
        peak=_number(data, "metrics", "request_concurrency", "total", "max"),
        counted=_number(data, "metrics", "request_concurrency", "total", "mean"),
    )


def _aiperf(data: dict[str, Any]) -> _Run:
    """Read the statistics of AIPerf, or of genai-perf before it; AIPerf leaves out a count of failures that is 0."""
    if data.get("was_cancelled") or data.get("is_complete") is False:
        raise _UnusableError("the run was cancelled or is not complete")
    failed, tpot = _number(data, "error_request_count", "avg"), _seconds(data, "inter_token_latency")
    return _Run(
        n_in=_needed(data, "input_sequence_length", "avg"),
        n_out=_needed(data, "output_sequence_length", "avg"),
        completed=_needed(data, "request_count", "avg"),
        failed=0.0 if math.isnan(failed) else failed,
        # Without streaming, genai-perf calls the whole latency the time to first token.
        ttft=math.nan if math.isnan(tpot) else _seconds(data, "time_to_first_token"),
        tpot=tpot,
        e2e=_seconds(data, "request_latency"),
        closed=_loop(data["input_config"]),
        rate=_number(data, "request_throughput", "avg"),
    )


def _loop(config: dict[str, Any]) -> float:
    """Return the concurrency that AIPerf or genai-perf was told to keep, NaN where it sent on a clock."""
    if isinstance(config.get("phases"), list):  # AIPerf from 0.9 on
        phases = [p for p in config["phases"] if (_at(p, "kind") or _at(p, "name")) != "warmup"]
        if len(phases) != 1 or any(_at(phases[0], key) for key in ("adaptive_scale", "rate_series")):
            raise _UnusableError("several phases, or a load changed on purpose: the means belong to no one load")
        constant = _at(phases[0], "type") == "concurrency" and not _at(phases[0], "concurrency_ramp")
        return _number({"concurrency": 1, **phases[0]}, "concurrency") if constant else math.nan
    if _at(config, "input", "fixed_schedule"):
        return math.nan
    # AIPerf up to 0.8; genai-perf 0.0.16; genai-perf 0.0.11.
    blocks = (_at(config, "loadgen"), _at(config, "perf_analyzer", "stimulus"), config)
    block = next((b for b in blocks if _at(b, "concurrency")), {})
    clocks = ("request_rate", "user_centric_rate", "concurrency_ramp_duration")
    return math.nan if any(_at(block, key) for key in clocks) else _number(block, "concurrency")


def _seconds(data: Mapping[str, object], name: str) -> float:
    """Return the mean of a time that carries its unit; NaN where it is missing."""
    value, unit = _number(data, name, "avg"), str(_at(data, name, "unit"))
    if not math.isnan(value) and unit not in _PER_SECOND:
        raise _UnusableError(f"{name} is in {unit!r:.80}; known units are {', '.join(_PER_SECOND)}")
    return value / _PER_SECOND.get(unit, math.nan)


def _at(data: object, *path: str) -> object:
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _number(data: object, *path: str) -> float:
    """Return the number >= 0 at `path`, NaN where there is nothing; anything else makes the run unusable."""
    value = _at(data, *path)
    if value is None:
        return math.nan
    try:
        return as_number(".".join(path), value, AT_LEAST_ZERO)
    except (TypeError, ValueError, OverflowError) as error:
        raise _UnusableError(str(error)) from error


def _plain(value: object) -> object:
    """Return a number that --metadata wrote as text."""
    return float(value) if isinstance(value, str) and value.isdecimal() else value


def _needed(data: Mapping[str, object], *path: str) -> float:
    number = _number(data, *path)
    if math.isnan(number):
        raise _UnusableError(f"{'.'.join(path)} is missing")
    return number


def _streamed(data: Mapping[str, object], *path: str) -> float:
    """Return a time that only streaming can tell; vLLM and GuideLLM write 0 where it was off."""
    return _number(data, *path) or math.nan
