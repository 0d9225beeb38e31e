"""Recorded requests as text, line by line: Mooncake's objects, Azure's tables, and tables of one's own.

There is no NumPy here, so that the planner's page can run it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from inference_math.catalogue.files import strict as strictly
from inference_math.checks.plain import AT_LEAST_ZERO, as_real, as_whole

__all__ = ["BLOCK_TOKENS", "Line", "block_count", "parsed_lines"]

BLOCK_TOKENS = 512  # of Mooncake's blocks
_MOST = 2**53  # beyond it a float, and so the arithmetic with shares, is no longer exact
_LENGTHS = ("n_in", "n_out")
_OWN = ("arrival", *_LENGTHS)
_AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


class Line(NamedTuple):
    """One request; its numbers are unchecked until `checked` returns it. Arrival and blocks are None where unknown."""

    arrival: Any
    n_in: Any
    n_out: Any
    blocks: Any


def parsed_lines(
    text: Iterable[str], objects: bool, name: str, strict: bool, block_tokens: int, most: int
) -> tuple[list[Line], list[tuple[int, str]]]:
    """Return the requests of some lines, and what is wrong with which others; see `traces.read`.

    `objects` says whether lines are Mooncake's, else they are a table's; `name` is what complaints call them. More than
    `most` are refused.
    """
    requests: list[Line] = []
    problems: list[tuple[int, str]] = []
    lines = ((number, line) for number, line in enumerate(text, 1) if line.strip())
    parse, dated = (_mooncake, False) if objects else _csv_parser(name, lines)
    for number, line in lines:
        if len(requests) + len(problems) >= most:
            raise ValueError(f"{name} must have at most {most:,} requests: take a part of them")
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


def _checked(raw: Line, earliest: float, block_tokens: int) -> Line:
    """Return the request with its values converted, or say what is wrong with it."""
    n_in, n_out = as_whole("the prompt length", raw.n_in), as_whole("the output length", raw.n_out)
    if max(n_in, n_out) > _MOST:
        raise ValueError(f"a length must be at most 2^53, not {max(n_in, n_out)}")
    arrival = raw.arrival
    if arrival is not None:
        arrival = as_real("the time of arrival", arrival, AT_LEAST_ZERO)
        if arrival < earliest:
            raise ValueError(f"the time of arrival goes back from {earliest:.12g} to {arrival:.12g} s")
    if raw.blocks is not None:
        _check_ids(raw.blocks, n_in, block_tokens)
    return Line(arrival, n_in, n_out, raw.blocks)


def _check_ids(ids: object, n_in: int, block_tokens: int) -> None:
    if not isinstance(ids, list) or not all(isinstance(i, int | str) and not isinstance(i, bool) for i in ids):
        raise TypeError(f"the block ids must be a list of whole numbers or strings, not {ids!r:.80}")
    if len(ids) != block_count(n_in, block_tokens):
        expected = block_count(n_in, block_tokens)
        raise ValueError(f"{n_in} tokens are {expected} blocks of {block_tokens}, not {len(ids)}")


def block_count(n_in: int, block_tokens: int) -> int:
    """Return the blocks of a prompt; the last may be partial."""
    return -(-n_in // block_tokens)


def _mooncake(line: str) -> Line:
    fields = strictly(line)
    if not isinstance(fields, dict):
        raise TypeError(f"a request must be a JSON object, not {line.strip()!r:.80}")
    _require(fields, "timestamp", "input_length", "output_length")
    arrival = as_real("timestamp", fields["timestamp"], AT_LEAST_ZERO) / 1000
    return Line(arrival, fields["input_length"], fields["output_length"], fields.get("hash_ids"))


def _require(fields: Mapping[str, object], *names: str) -> None:
    if missing := [name for name in names if fields.get(name) is None]:
        raise ValueError(f"{', '.join(missing)} missing")


def _csv_parser(name: str, lines: Iterator[tuple[int, str]]) -> tuple[Callable[[str], Line], bool]:
    """Take the header off the lines; return what parses the others, and whether their times are dates."""
    header = [column.strip() for column in next(csv.reader([next(lines, (0, ""))[1]]), [])]
    found = next((columns for columns in (_OWN, _AZURE, _LENGTHS) if set(columns) <= set(header)), None)
    if found is None:
        own, azure = ", ".join(_LENGTHS), ", ".join(_AZURE)
        raise ValueError(f"{name} must have the columns {own} (and arrival), or {azure}, not {header!s:.300}")
    if twice := [column for column in found if header.count(column) > 1]:
        raise ValueError(f"{name} has columns twice: {', '.join(twice)}")
    dated = found is _AZURE

    def parse(line: str) -> Line:
        cells = next(csv.reader([line]))
        if len(cells) != len(header):
            raise ValueError(f"{len(cells)} cells under {len(header)} columns")
        named = dict(zip(header, cells, strict=True))
        values = [named[column].strip() for column in found]  # the lengths come last
        arrival = None if len(found) < 3 else _seconds(values[0]) if dated else _number(values[0])
        return Line(arrival, _number(values[-2]), _number(values[-1]), None)

    return parse, dated


def _seconds(text: str) -> float:
    """Return seconds since 1970, with UTC where the text names no zone."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(text: str) -> float:
    if "_" in text:  # which Python takes for a separator of digits
        raise ValueError(f"could not convert string to float: {text!r}")
    return float(text)
