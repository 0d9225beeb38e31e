"""Recorded requests: read from their files, and how much of their prompts a prefix cache can reuse.

**Blocks.** A prompt is cut into blocks of `block_tokens` tokens; the last may be partial. A block's id names the
whole prompt up to and including the block, so two prompts share a block exactly where they begin alike. An id
thus always follows the same id; anything else is refused, since a match of such ids says nothing about prefixes.

**Reuse.** When a request arrives, the stored blocks at the start of its prompt are found, up to the first that is
not stored, at most `n_in` − 1 tokens (the last token is always computed). Then all its blocks are stored. So
blocks count as stored at once, while the request that computes them may still run, and only prompts are stored:
the trace has no ids for outputs, and a later prompt that repeats an answer computes it again.

**LRU.** A cache of C blocks (a partial block takes a whole one) drops the block that was not used for longest. A
request uses its blocks from the last to the first. A block never comes without the one before it, which is used
after it, so it is always the older of the two and is dropped first: what is stored of a prompt is a prefix at any
time. The cache holds the C blocks used last, whatever C is; a block is found exactly if fewer than C others were
used since (its stack distance; Mattson et al., 1970). One pass for the distances gives the hits of every C.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from inference_math.catalogue.files import strict as strictly
from inference_math.evidence.checks import AT_LEAST_ZERO, as_counts, as_numbers, as_one_of, as_real, as_whole
from inference_math.workload import Trace

__all__ = ["BLOCK_TOKENS", "KINDS", "QUANTILES", "Read", "gains", "length_quantiles", "read", "reusable", "reuse_curve"]

BLOCK_TOKENS = 512  # of Mooncake's blocks
_MOST = 2_000_000  # requests: a hundred times what tells their lengths
_LONGEST = 2**53  # tokens: beyond it a float, and so the arithmetic with shares, is no longer exact
_LENGTHS = ("n_in", "n_out")
_OWN = ("arrival", *_LENGTHS)
_AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
Blocks = Sequence[Sequence[Hashable]]
QUANTILES = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100)
"""Per cent, as the tables give them."""
KINDS = (".jsonl", ".csv")
"""How the names of files end that hold traces."""


@dataclass(frozen=True, eq=False)
class Read:
    """A trace as read from its file.

    `requests` has the columns arrival (s), n_in, n_out (tokens) and blocks (ids of the prompt's blocks of
    `block_tokens` tokens; None where unknown). `problems` has the columns line (1 is the file's first) and
    reason: the lines that hold no proper request and are missing from `requests`.
    """

    requests: pd.DataFrame
    problems: pd.DataFrame
    block_tokens: int

    def trace(self) -> Trace:
        """Return the requests with the α of `reusable`, 0 where blocks are unknown.

        Raises
        ------
        ValueError
            For block ids that do not name prefixes.
        """
        known = self.requests[self.requests.blocks.notna()]
        alpha = pd.Series(0.0, index=self.requests.index)
        if len(known):
            alpha[known.index] = reusable(list(known.blocks), known.n_in, self.block_tokens)
        frame = self.requests.assign(alpha=alpha)
        return Trace.from_frame(frame.drop(columns="arrival") if frame.arrival.isna().any() else frame)


def read(path: str | Path, *, strict: bool = False, block_tokens: int = BLOCK_TOKENS) -> Read:
    """Read a trace file: one request a line, in order of arrival.

    A `.jsonl` file holds Mooncake's objects: `timestamp` (ms), `input_length`, `output_length` and, if known,
    `hash_ids`, the ids of the prompt's blocks. A `.csv` file has a header with the columns `arrival` (s), `n_in`,
    `n_out`, or Azure's `TIMESTAMP` (date and time; arrival counts from the first), `ContextTokens`,
    `GeneratedTokens`; others are ignored. Without a column of arrivals (NaN in the frame) a trace has lengths alone.
    Empty lines are passed over.

    A line is a problem if it cannot be parsed, lacks a field, has a length that is no whole number ≥ 1, a negative
    time or one before that of the last good line, or another number of block ids than its prompt has blocks.

    Parameters
    ----------
    path
        The file.
    strict
        Refuse the file at its first problem instead of listing problems.
    block_tokens
        Tokens of a block.

    Raises
    ------
    ValueError
        For another kind of file, a header without the columns, a file without a proper request or with more than two
        million; if `strict`, for the first problem, naming file, line and reason.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    kind = as_one_of(f"the suffix of {path.name}", path.suffix, KINDS)
    as_whole("block_tokens", block_tokens)
    _not_too_long(path, _MOST + (kind == ".csv"))  # and a header
    # Bytes that are no UTF-8 spoil their line alone.
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        requests, problems = _parsed_lines(file, kind == ".jsonl", path.name, strict, block_tokens)
    frame = pd.DataFrame(requests, columns=list(_Line._fields)).astype({"blocks": "object", "arrival": "float64"})
    table = pd.DataFrame(problems, columns=["line", "reason"]).astype({"line": "int64", "reason": "str"})
    return Read(frame, table, block_tokens)


class _Line(NamedTuple):
    """One request; its numbers are unchecked until `_checked` returns it. Arrival and blocks are None where unknown."""

    arrival: Any
    n_in: Any
    n_out: Any
    blocks: Any


def _parsed_lines(
    text: Iterable[str], objects: bool, name: str, strict: bool, block_tokens: int
) -> tuple[list[_Line], list[tuple[int, str]]]:
    """Return the requests of some lines, and what is wrong with which others.

    `objects` says whether lines are Mooncake's, else they are a table's; `name` is what complaints call them.
    """
    requests: list[_Line] = []
    problems: list[tuple[int, str]] = []
    lines = ((number, line) for number, line in enumerate(text, 1) if line.strip())
    parse, dated = (_mooncake, False) if objects else _csv_parser(name, lines)
    for number, line in lines:
        try:
            requests.append(_checked(parse(line), requests[-1].arrival if requests else 0.0, block_tokens))
        except (ValueError, TypeError, OverflowError, RecursionError, csv.Error) as error:
            if strict:
                raise ValueError(f"{name}, line {number}: {error}") from error
            problems.append((number, str(error)))
    if not requests:
        first = " (line {}: {})".format(*problems[0]) if problems else ""
        raise ValueError(f"{name} holds no proper request{first}")
    if dated:
        began = requests[0].arrival
        requests = [one._replace(arrival=round(one.arrival - began, 6)) for one in requests]
    return requests, problems


def _checked(raw: _Line, earliest: float, block_tokens: int) -> _Line:
    """Return the request with its values converted, or say what is wrong with it."""
    n_in, n_out = as_whole("the prompt length", raw.n_in), as_whole("the output length", raw.n_out)
    if max(n_in, n_out) > _LONGEST:
        raise ValueError(f"a length must be at most 2^53, not {max(n_in, n_out)}")
    arrival = raw.arrival
    if arrival is not None:
        arrival = as_real("the time of arrival", arrival, AT_LEAST_ZERO)
        if arrival < earliest:
            raise ValueError(f"the time of arrival goes back from {earliest:.12g} to {arrival:.12g} s")
    if raw.blocks is not None:
        _check_ids(raw.blocks, n_in, block_tokens)
    return _Line(arrival, n_in, n_out, raw.blocks)


def _check_ids(ids: object, n_in: int, block_tokens: int) -> None:
    if not isinstance(ids, list) or not all(isinstance(i, int | str) and not isinstance(i, bool) for i in ids):
        raise TypeError(f"the block ids must be a list of whole numbers or strings, not {ids!r:.80}")
    if len(ids) != _block_count(n_in, block_tokens):
        expected = _block_count(n_in, block_tokens)
        raise ValueError(f"{n_in} tokens are {expected} blocks of {block_tokens}, not {len(ids)}")


def _block_count(n_in: int, block_tokens: int) -> int:
    """Return the blocks of a prompt; the last may be partial."""
    return -(-n_in // block_tokens)


def _mooncake(line: str) -> _Line:
    fields = strictly(line)
    if not isinstance(fields, dict):
        raise TypeError(f"a request must be a JSON object, not {line.strip()!r:.80}")
    _require(fields, "timestamp", "input_length", "output_length")
    arrival = as_real("timestamp", fields["timestamp"], AT_LEAST_ZERO) / 1000
    return _Line(arrival, fields["input_length"], fields["output_length"], fields.get("hash_ids"))


def _require(fields: Mapping[str, object], *names: str) -> None:
    if missing := [name for name in names if fields.get(name) is None]:
        raise ValueError(f"{', '.join(missing)} missing")


def _csv_parser(name: str, lines: Iterator[tuple[int, str]]) -> tuple[Callable[[str], _Line], bool]:
    """Take the header off the lines; return what parses the others, and whether their times are dates."""
    header = [column.strip() for column in next(csv.reader([next(lines, (0, ""))[1]]), [])]
    known_columns = next((columns for columns in (_OWN, _AZURE, _LENGTHS) if set(columns) <= set(header)), None)
    if known_columns is None:
        own, azure = ", ".join(_LENGTHS), ", ".join(_AZURE)
        raise ValueError(f"{name} must have the columns {own} (and arrival), or {azure}, not {header!s:.300}")
    if twice := [column for column in known_columns if header.count(column) > 1]:
        raise ValueError(f"{name} has columns twice: {', '.join(twice)}")
    dated = known_columns is _AZURE

    def parse(line: str) -> _Line:
        cells = next(csv.reader([line]))
        if len(cells) != len(header):
            raise ValueError(f"{len(cells)} cells under {len(header)} columns")
        named = dict(zip(header, cells, strict=True))
        values = [named[column].strip() for column in known_columns]  # the lengths come last
        arrival = None if len(known_columns) < 3 else _seconds(values[0]) if dated else _number(values[0])
        return _Line(arrival, _number(values[-2]), _number(values[-1]), None)

    return parse, dated


def _seconds(text: str) -> float:
    """Return seconds since 1970, with UTC where the text names no zone."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(text: str) -> float:
    if "_" in text:  # which Python takes for a separator of digits
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text)


def _not_too_long(path: Path, most: int) -> None:
    """Refuse a file of too many lines before its lines are looked at, which would take long."""
    with path.open("rb") as file:
        filled = (line for line in file if line.strip())
        if next(islice(filled, most, None), b""):
            raise ValueError(f"{path.name} must have at most {_MOST:,} requests: take a part of them")


def reusable(blocks: Blocks, n_in: ArrayLike, block_tokens: int = BLOCK_TOKENS) -> NDArray[np.float64]:
    """Return the share α of each prompt that earlier prompts began with: an unlimited cache that keeps everything.

    Parameters
    ----------
    blocks
        Block ids of each prompt, in order of arrival.
    n_in
        Prompt tokens of each request.
    block_tokens
        Tokens of a block.

    Raises
    ------
    ValueError
        For no requests, a prompt with another number of ids than blocks, an id that follows two different ids.
    """
    tokens = _prompt_tokens(blocks, n_in, block_tokens)
    seen: set[Hashable] = set()
    reused = np.zeros(len(blocks))
    for i, prompt in enumerate(blocks):
        reused[i] = next((k for k, block in enumerate(prompt) if block not in seen), len(prompt))
        seen.update(prompt)
    shares: NDArray[np.float64] = np.minimum(reused * block_tokens, tokens - 1) / tokens
    return shares


def reuse_curve(
    blocks: Blocks, n_in: ArrayLike, block_tokens: int = BLOCK_TOKENS, capacity: ArrayLike | None = None
) -> pd.DataFrame:
    """Return what an LRU prefix cache finds, by its capacity: exact, from one pass over the trace.

    Takes O(n log n) time for n block references. The cache starts empty. `capacity` (tokens; a part of a block
    holds nothing) defaults to 0 and every capacity that finds more than all smaller ones, so that the last row is
    the unlimited cache.

    Returns
    -------
    pandas.DataFrame
        Columns capacity (tokens), block_share (of all blocks of all prompts, the share found; partial blocks count
        like whole ones), token_share (of all prompt tokens) and mean_alpha (mean over the requests of their α).

    Raises
    ------
    ValueError
        As `reusable`, and for a capacity that is negative or not finite.
    """
    gained = gains(blocks, n_in, block_tokens)
    tokens, counts = as_counts("n_in", n_in), np.array([len(prompt) for prompt in blocks])
    whole = np.repeat(tokens, counts)
    distances = _distances(blocks)
    order = np.argsort(distances, kind="stable")[: int(np.isfinite(distances).sum())]
    distances = distances[order]
    if capacity is None:
        slots = np.concatenate([[0], np.unique(distances) + 1])
        capacity = slots * block_tokens
    else:
        capacity = np.atleast_1d(as_numbers("capacity", capacity, AT_LEAST_ZERO))
        slots = capacity // block_tokens
    places = np.searchsorted(distances, slots, side="left")
    totals = {
        "block_share": np.arange(distances.size + 1) / counts.sum(),
        "token_share": _running(gained[order]) / tokens.sum(),
        "mean_alpha": _running((gained / whole)[order]) / tokens.size,
    }
    return pd.DataFrame({"capacity": capacity} | {name: values[places] for name, values in totals.items()})


def gains(blocks: Blocks, n_in: ArrayLike, block_tokens: int = BLOCK_TOKENS) -> NDArray[np.int64]:
    """Return for each block of each prompt the tokens that finding it adds to finding those before it.

    The prompt's last token is not among them: it is always computed.

    Raises
    ------
    ValueError
        As `reusable`.
    """
    tokens = _prompt_tokens(blocks, n_in, block_tokens)
    counts = np.array([len(prompt) for prompt in blocks])
    whole = np.repeat(tokens, counts)
    start = block_tokens * (np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts))
    return np.asarray(np.minimum(start + block_tokens, whole - 1) - np.minimum(start, whole - 1))


def length_quantiles(n_in: ArrayLike, n_out: ArrayLike) -> pd.DataFrame:
    """Return the distribution of prompt and output lengths, in tokens.

    Returns
    -------
    pandas.DataFrame
        Rows n_in and n_out; columns count, mean, std (of the requests, not an estimate for others) and p0 to p100,
        the `QUANTILES`: the smallest recorded length that at least so many per cent do not exceed.

    Raises
    ------
    ValueError
        For lengths that `Trace` refuses.
    """
    trace = Trace(n_in, n_out)
    return pd.DataFrame({"n_in": _summary(trace.n_in), "n_out": _summary(trace.n_out)}).T.astype(
        {"count": np.int64} | {f"p{q}": np.int64 for q in QUANTILES}
    )


def _summary(values: NDArray[np.int64]) -> dict[str, float]:
    quantiles = np.percentile(values, QUANTILES, method="inverted_cdf")
    moments = {"count": values.size, "mean": float(np.mean(values)), "std": float(np.std(values))}
    return moments | {f"p{q}": value for q, value in zip(QUANTILES, quantiles, strict=True)}


def _prompt_tokens(blocks: Blocks, n_in: ArrayLike, block_tokens: int) -> NDArray[np.int64]:
    """Return the prompt lengths after holding the blocks against them and against each other."""
    size = as_whole("block_tokens", block_tokens)
    tokens = as_counts("n_in", n_in)
    if len(blocks) != tokens.size:
        raise ValueError(f"blocks and n_in must have the same length, not {len(blocks)} and {tokens.size}")
    before: dict[Hashable, Hashable] = {}
    for request, (prompt, length) in enumerate(zip(blocks, tokens, strict=True)):
        if len(prompt) != _block_count(length, size):
            raise ValueError(f"blocks: request {request} has {len(prompt)} for {length} tokens, {size} in a block")
        previous: Hashable = _START
        for block in prompt:
            if before.setdefault(block, previous) != previous:
                raise ValueError(
                    f"blocks: in request {request}, {block!r} follows another block than before; "
                    "an id must name the whole prompt up to its block"
                )
            previous = block
    return tokens


_START = object()


def _distances(blocks: Blocks) -> NDArray[np.float64]:
    """Return for each block of each prompt how many others were used since it was, infinite if it never was.

    All blocks of a prompt are looked up before any of them is used again, the last first.
    """
    marks = _Fenwick(sum(len(prompt) for prompt in blocks))
    last: dict[Hashable, int] = {}
    distances: list[float] = []
    now = 0
    for prompt in blocks:
        known = len(last)
        distances += [known - marks.upto(last[block]) if block in last else math.inf for block in prompt]
        for block in reversed(prompt):
            now += 1
            if block in last:
                marks.add(last[block], -1)
            marks.add(now, 1)
            last[block] = now
    return np.array(distances)


class _Fenwick:
    """Sums over the first so many of `size` counters, each sum and each change in O(log size)."""

    def __init__(self, size: int) -> None:
        self.tree = [0] * (size + 1)

    def add(self, position: int, amount: int) -> None:
        """Add to the counter at `position`, from 1."""
        tree, size = self.tree, len(self.tree)
        while position < size:
            tree[position] += amount
            position += position & -position

    def upto(self, position: int) -> int:
        """Return the sum of the counters 1 to `position`."""
        tree, total = self.tree, 0
        while position:
            total += tree[position]
            position &= position - 1
        return total


def _running(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sums of the first 0, 1, 2 and so on of the values."""
    return np.concatenate([[0], np.cumsum(values)])
