"""What was measured, on disk: a CSV file in the schema of this project's tables, and its descriptor.

Each row is written as soon as it is measured, so an interruption loses at most the point in work.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from inference_math import evidence
from inference_math.evidence import Table
from inference_math.workload.points import KINDS, SIZES, Point
from inference_math_bench.measure.timing import Sample

__all__ = ["COLUMNS", "FIELDS", "Record", "Row", "Setup"]

_MEANINGS = (
    ("request", "Requests that decode one token each"),
    ("token", "Tokens that each decode attends to, its own included"),
    ("request", "Prompts computed at once"),
    ("token", "Tokens computed of each prompt"),
    ("token", "Tokens of each prompt before those: in the KV cache, or loaded from host memory"),
)
_TIMES = {
    "time_us": ("µs", "Median over the repeats"),
    "low_us": ("µs", "Lower quartile over the repeats"),
    "high_us": ("µs", "Upper quartile over the repeats"),
}


def _fields() -> list[dict[str, Any]]:
    def one(name: str, kind: str, unit: str, text: str, **limits: Any) -> dict[str, Any]:
        held = {"required": True, **limits}
        return {"name": name, "type": kind, "unit": unit, "description": text, "constraints": held}

    whole = [one(name, "integer", *meaning, minimum=0) for name, meaning in zip(SIZES, _MEANINGS, strict=True)]
    times = [one(name, "number", *meaning, minimum=0) for name, meaning in _TIMES.items()]
    text = "Kind of work. " + ". ".join(f"{name}: {text}" for name, text in KINDS.items())
    moved = "Moved by a copy (read plus written) or over the link by a load; 0 for other work"
    return [
        one("round", "integer", "1", "Which round: every point is measured again in each", minimum=1),
        one("what", "string", "name", text, enum=list(KINDS)),
        *whole,
        one("bytes", "number", "byte", moved, minimum=0),
        one("flop", "number", "FLOP", "Of large products; 0 for other work", minimum=0),
        *times,
        one("repeats", "integer", "1", "Repeats behind the median", minimum=1),
    ]


FIELDS = _fields()
COLUMNS = tuple(field["name"] for field in FIELDS)


@dataclass(frozen=True)
class Setup:
    """What a measurement is of: a model's first `layers`, in some precision, `kept` tokens of KV cache, on a machine.

    `gpu` is the name in the catalogue, or "" where the device is none of it; `machine` describes it: device, driver,
    PyTorch, attention kernels. `toy` marks a run on a CPU, which is no measurement.
    """

    model: str
    layers: int
    kept: int
    weights: str
    kv: str
    gpu: str
    seed: int
    toy: bool
    machine: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, path: str | Path) -> Setup | None:
        """Return the setup of the file that is there already, None where none is."""
        if not Path(path).exists():
            return None
        _mend(Path(path))
        try:
            return cls(**evidence.read(path).setup)
        except TypeError as error:
            raise ValueError(f"{path} is no measurement of this version: {error}") from None


@dataclass(frozen=True)
class Row:
    """One line of the table: a point, the bytes it moves and FLOPs it computes where they are the point, its times."""

    round: int
    point: Point
    sample: Sample
    bytes: float = 0.0
    flop: float = 0.0

    @property
    def cells(self) -> tuple[Any, ...]:
        """The cells in the order of `COLUMNS`: times in microseconds, six digits."""
        times = (f"{1e6 * s:.6g}" for s in (self.sample.median, self.sample.low, self.sample.high))
        work = (f"{self.bytes:.10g}", f"{self.flop:.10g}")
        return (self.round, *astuple(self.point), *work, *times, self.sample.repeats)


class Record:
    """The CSV file `path` and its descriptor: created, or gone on with.

    Raises
    ------
    ValueError
        For a path that is no ``.csv``, and for a file there of another setup, naming what differs.
    """

    def __init__(self, path: str | Path, setup: Setup) -> None:
        self.path, self.setup = Path(path), setup
        self.check(path, setup)
        if not self.path.exists():
            self._descriptor.write_text(_described(self.path, setup), encoding="utf-8")
            self.path.write_text(_line(COLUMNS), encoding="utf-8")

    @property
    def _descriptor(self) -> Path:
        return self.path.with_suffix(".json")

    @staticmethod
    def check(path: str | Path, setup: Setup) -> None:
        """Raise what creating would, and create nothing: before minutes are spent on a model."""
        file, earlier = Path(path), Setup.of(path)
        if file.suffix != ".csv":
            raise ValueError(f"out must end in .csv, not {file.name!r}")
        if not file.parent.is_dir():
            raise ValueError(f"out must lie in a folder that is there, not {str(file.parent)!r}")
        if earlier is None and file.with_suffix(".json").exists():
            raise ValueError(f"{file.with_suffix('.json')} is there without its table {file.name}: name another file")
        if earlier is not None:
            there, ours = asdict(earlier), asdict(setup)
            differs = [name for name in ours if there[name] != ours[name]]
            said = ", ".join(f"{name} ({there[name]!r}, now {ours[name]!r})" for name in differs)
            if differs:
                raise ValueError(f"{file} is of another {said}: name another file")

    @property
    def table(self) -> Table:
        """What is measured so far."""
        return evidence.read(self.path)

    @property
    def done(self) -> set[tuple[int, Point]]:
        """(round, point) of each row."""
        rows = self.table.frame[["round", "what", *SIZES]].to_numpy().tolist()
        return {(number, Point(what, *sizes)) for number, what, *sizes in rows}

    def add(self, row: Row) -> None:
        """Append a row and see it written."""
        with self.path.open("a", encoding="utf-8", newline="") as file:
            file.write(_line(row.cells))
            file.flush()


def _mend(path: Path) -> None:
    """Drop a last line without an end, which an interruption cut."""
    text = path.read_text(encoding="utf-8")
    if not text.endswith("\n"):
        path.write_text(text[: text.rfind("\n") + 1] or _line(COLUMNS), encoding="utf-8")


def _line(cells: Any) -> str:
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _described(path: Path, setup: Setup) -> str:
    """Return a Frictionless data package with this one table."""
    machine = setup.machine
    cautions = [
        "Kernels and copies alone: no scheduler, no sampling, no network, no host between steps",
        "Random weights and tokens; all requests of a step have the same length",
        "Norms, rotation and activation are PyTorch's own kernels, which engines fuse",
    ]
    if setup.toy:
        cautions.insert(0, "A TOY ON A CPU. NO MEASUREMENT: these times say nothing about any GPU")
    resource = {
        "name": "".join(c if c.isalnum() or c in "-_." else "-" for c in path.stem.lower()),
        "path": path.name,
        "title": f"{setup.model}, {setup.layers} layers in {setup.weights}, on {machine.get('device', 'a device')}",
        "description": "Times of prefills, decode steps, mixed steps, their parts, and loads of prefixes",
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "hardware": machine.get("device", ""),
        "engine": machine.get("software", ""),
        "evidence": "toy" if setup.toy else "measured",
        "cautions": cautions,
        "setup": asdict(setup),
        "schema": {"fields": FIELDS, "primaryKey": ["round", "what", *SIZES]},
    }
    package = {"name": resource["name"], "resources": [resource]}
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"
