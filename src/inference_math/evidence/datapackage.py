"""The tables of `data/`: read, checked against `datapackage.json`, and handed out with their origin.

The descriptor is a Frictionless data package; the tests validate it with Frictionless. Reading needs none
of that: the part of the schema that the tables use is checked here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype

from inference_math.evidence.checks import as_one_of

__all__ = ["Table", "data_dir", "digest", "load", "read", "rows", "tables"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Table:
    """One table and where it comes from.

    `units` and `meanings` have an entry per column of `frame`. `evidence` tells "measured" from "published";
    `source` and `url` are the first of the sources. What a table does not state is "" (`cautions`: ()). `setup` is
    what `inference_math_bench.measure` says about a measurement of its own: model, layers, precision, machine.
    """

    name: str
    frame: pd.DataFrame
    title: str
    units: Mapping[str, str]
    meanings: Mapping[str, str]
    hardware: str
    engine: str
    source: str
    url: str
    revision: str
    licence: str
    evidence: str
    cautions: tuple[str, ...]
    setup: Mapping[str, Any] = field(default_factory=dict)


def data_dir() -> Path:
    """Return the folder of the tables: in an installed wheel inside the package, else the checkout's."""
    packaged = Path(__file__).parents[1] / "_data"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "data"


def tables(folder: Path | None = None) -> tuple[str, ...]:
    """Return the names that `load` knows, in the order of the descriptor."""
    return tuple(resource["name"] for resource in _package(folder or data_dir())["resources"])


def load(name: str, folder: Path | None = None) -> Table:
    """Return the table `name` of `folder` (default: `data_dir()`), read once; the frame is the caller's own.

    An empty cell is a missing value. Columns are "str", "int64", "float64" or "bool"; with empty cells an
    integer column is "Int64", a Boolean one "boolean".

    Raises
    ------
    ValueError
        For an unknown name, and for a table that breaks its schema, naming file, column and row
        (as a spreadsheet counts: row 1 is the header).
    """
    folder = folder or data_dir()
    table = _load(folder, as_one_of("table", name, tables(folder)))
    return replace(table, frame=table.frame.copy())


def read(path: str | Path) -> Table:
    """Return the table in a CSV file with its descriptor beside it: ``mine.csv`` and ``mine.json``.

    Raises
    ------
    ValueError
        For a descriptor that describes no such file, and for a table that breaks its schema, as in `load`.
    FileNotFoundError
        Where one of the two is missing.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is not there")
    descriptor = file.with_suffix(".json")
    if not descriptor.is_file():
        raise FileNotFoundError(f"{descriptor} is not there; it describes {file.name} and is written with it")
    try:
        package = json.loads(descriptor.read_text(encoding="utf-8"))
        resource = next(r for r in package["resources"] if r["path"] == file.name)
        return _table(file.parent, resource)
    except (StopIteration, KeyError, TypeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{descriptor} must be a data package that describes {file.name}") from error


def digest(folder: Path | None = None) -> str:
    """Return 12 hexadecimal digits that change with any byte or name of the data (README aside)."""
    folder = folder or data_dir()
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        parts = path.relative_to(folder).parts
        if parts != ("README.md",) and not any(p.startswith(".") or p == "__pycache__" for p in parts):
            content = path.read_bytes()
            # With its length in front, no file can pass for the end of another.
            total.update(f"{'/'.join(parts)}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:12]


def _package(folder: Path) -> dict[str, Any]:
    content: dict[str, object] = json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))
    return content


@lru_cache
def _load(folder: Path, name: str) -> Table:
    return _table(folder, next(r for r in _package(folder)["resources"] if r["name"] == name))


def _table(folder: Path, resource: Mapping[str, Any]) -> Table:
    schema, name = resource["schema"], resource["name"]
    source, *_ = resource.get("sources") or [{}]
    return Table(
        name=name,
        frame=_frame(folder / resource["path"], resource["path"], schema),
        title=resource.get("title", name),
        units=MappingProxyType({field["name"]: field.get("unit", "") for field in schema["fields"]}),
        meanings=MappingProxyType({field["name"]: field.get("description", "") for field in schema["fields"]}),
        hardware=resource.get("hardware", ""),
        engine=resource.get("engine", ""),
        source=source.get("title", ""),
        url=source.get("path", ""),
        revision=resource.get("revision", ""),
        licence=", ".join(entry["name"] for entry in resource.get("licenses", ())),
        evidence=resource.get("evidence", ""),
        cautions=tuple(resource.get("cautions", ())),
        setup=MappingProxyType(resource.get("setup", {})),
    )


def _frame(path: Path, file: str, schema: Mapping[str, Any]) -> pd.DataFrame:
    """Read a CSV file as text, so that a bad cell is still there to be named, and convert each column."""
    try:
        text = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except ValueError as error:  # the parser knows the row, not the file
        raise ValueError(f"{file}: {error}") from error
    expected = [field["name"] for field in schema["fields"]]
    if list(text.columns) != expected:
        raise ValueError(f"{file}: the columns must be {', '.join(expected)}, not {', '.join(text.columns)}")
    frame = pd.DataFrame({field["name"]: _column(file, field, text[field["name"]]) for field in schema["fields"]})
    if key := list(schema.get("primaryKey", ())):
        repeated = frame.duplicated(key)
        if repeated.any():
            _refuse(file, ", ".join(key), repeated, text[key].agg(", ".join, axis=1), "occurs twice")
    return frame


def _column(file: str, field: Mapping[str, Any], text: pd.Series[str]) -> pd.Series[Any]:
    """Convert the cells of one column to its type and hold them against its constraints."""
    name, limits = field["name"], field.get("constraints", {})
    kind = as_one_of(f"{file}: the type of {name}", field["type"], _DTYPES)
    for constraint in limits:
        as_one_of(f"{file}: the constraint on {name}", constraint, _CONSTRAINTS)
    missing = text == ""
    values = _converted(kind, text)
    wrong = {f"is no {kind}": values.isna() & ~missing, "is missing": missing & limits.get("required", False)}
    if "enum" in limits:
        wrong[f"is none of {', '.join(map(str, limits['enum']))}"] = ~values.isin(limits["enum"]) & ~missing
    if "minimum" in limits:
        wrong[f"is below {limits['minimum']}"] = values < limits["minimum"]
    if "maximum" in limits:
        wrong[f"is above {limits['maximum']}"] = values > limits["maximum"]
    for what, where in wrong.items():
        if where.any():
            _refuse(file, name, where, text, what)
    dtype = _DTYPES[kind][int(missing.any())]
    return values if dtype is None else values.astype(dtype)


# By type: the dtype without and with empty cells (None: as read).
_DTYPES: dict[str, tuple[ExtensionDtype | np.dtype[Any] | None, ...]] = {
    "string": (None, None),
    "integer": (np.dtype("int64"), pd.Int64Dtype()),
    "number": (np.dtype("float64"), np.dtype("float64")),
    "boolean": (np.dtype("bool"), pd.BooleanDtype()),
}
_CONSTRAINTS = ("required", "minimum", "maximum", "enum")


def _converted(kind: str, text: pd.Series[str]) -> pd.Series[Any]:
    """Return the values of the cells, missing where a cell is empty or is no `kind`."""
    if kind == "string":
        return text.where(text != "")
    if kind == "boolean":
        return text.map({"true": True, "false": False}).astype("object")
    numbers = pd.to_numeric(text, errors="coerce").astype("float64")
    return numbers.where(np.isfinite(numbers) & ((kind == "number") | (numbers % 1 == 0)))


def _refuse(file: str, column: str, where: pd.Series[bool], text: pd.Series[str], what: str) -> NoReturn:
    row = int(np.flatnonzero(where)[0])
    raise ValueError(f"{file}, column {column}, row {row + 2}: {text.iloc[row]!r} {what}")


def rows(frame: pd.DataFrame, kind: Callable[..., T]) -> dict[str, T]:
    """Return a table's rows by name, each as a dataclass of its columns; what is empty is left to the default."""
    known = {own.name for own in fields(kind)}  # type: ignore[arg-type]
    records = [{str(k): v for k, v in row.items() if k in known and not pd.isna(v)} for row in frame.to_dict("records")]
    return {row["name"]: kind(**row) for row in records}
