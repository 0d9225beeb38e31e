"""What the laboratory saw, on disk: lines of JSON, written as it goes, and read back as the simulator's `Run`.

The first line tells machine, engine, flags, model and seed. Then, in the order of events: `costs` of the bare steps,
a `prediction` before each trial, and, when it is over, its `steps`, `requests` and `outcome`. A trial that was
interrupted has a prediction and nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from inference_math_bench.lab.drive import Observed, Request
from inference_math_bench.lab.engines import Emitted, Step

__all__ = ["Book", "Trial", "arm_name", "read", "steps_of", "value_of"]

VERSION = 1
_SAME = ("version", "model", "engine", "machine", "seed")  # what a file that is gone on with must agree in


@dataclass(frozen=True, eq=False)
class Trial:
    """One trial: the setting, what was said before, what was found, whether something else was busy beside it."""

    number: int
    round: int
    experiment: str
    arm: Mapping[str, Any]
    said: Mapping[str, float]
    found: Mapping[str, float]
    beside: float
    usable: bool
    observed: tuple[Observed, ...]


@dataclass(frozen=True, eq=False)
class Laboratory:
    """A file read back: its first line, the costs of bare steps with their round, and the trials that were finished."""

    head: Mapping[str, Any]
    costs: tuple[Mapping[str, Any], ...]
    trials: tuple[Trial, ...]

    @property
    def table(self) -> pd.DataFrame:
        """One row for each number that was predicted and found: round, experiment, arm, quantity, predicted, found.

        Predictions of another form of the law are in columns of their own, by its name; `usable` is False where
        something else was busy beside the trial.
        """
        rows = []
        for trial in self.trials:
            others = [name for name in trial.said if "@" in name]
            for quantity, value in trial.found.items():
                row = {
                    "round": trial.round,
                    "experiment": trial.experiment,
                    "arm": arm_name(trial.arm),
                    "quantity": quantity,
                    "predicted": trial.said.get(quantity, math.nan),
                    "found": value,
                }
                row |= {name.split("@")[1]: trial.said[name] for name in others if name.split("@")[0] == quantity}
                rows.append(row | {"usable": trial.usable})
        return pd.DataFrame(rows)


def arm_name(arm: Mapping[str, Any]) -> str:
    """Return the setting as text: "users 8, lengths geometric"."""
    return ", ".join(f"{name} {value}" for name, value in arm.items())


def value_of(text: str) -> Any:
    """Return a number or a truth value where the text is one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


class Book:
    """The file that is written: created with `head` as its first line, or gone on with.

    Raises
    ------
    ValueError
        For a file of another model, engine, machine or seed, naming what differs.
    """

    def __init__(self, path: str | Path, head: Mapping[str, Any]) -> None:
        self.path, self.head = Path(path), {"version": VERSION, **head}
        self.number = self.round = 0
        if self.path.exists():
            _mend(self.path)
            there = read(self.path)
            known = json.loads(json.dumps(self.head))
            differs = [name for name in _SAME if there.head.get(name) != known.get(name)]
            if differs:
                raise ValueError(f"{path} is of another {', '.join(differs)}: name another file")
            self.number = max((trial.number for trial in there.trials), default=0)
            self.round = max((trial.round for trial in there.trials), default=0)
        else:
            self._write("lab", self.head)

    def costs(self, number: int, values: Mapping[str, float], steps: Sequence[Step] = ()) -> None:
        """Note the costs of bare steps, before a group of trials, and the steps that are new."""
        rows = {"rows": [_compact(step) for step in steps]} if steps else {}
        self._write("costs", {"round": number, **values, **rows})

    def prediction(self, round_number: int, experiment: str, arm: Mapping[str, Any], said: Mapping[str, float]) -> int:
        """Note what the laws say before a trial; return its number."""
        self.number += 1
        what = {"trial": self.number, "round": round_number, "experiment": experiment, "arm": dict(arm)}
        self._write("prediction", {**what, "said": dict(said)})
        return self.number

    def outcome(
        self, trial: int, found: Mapping[str, float], observed: list[Observed], beside: float, usable: bool
    ) -> None:
        """Note what a trial saw."""
        for part, seen in enumerate(observed):
            times = {"trial": trial, "part": part, "start": seen.start, "end": seen.end}
            self._write("steps", {**times, "rows": [_compact(step) for step in seen.steps]})
            self._write("requests", {"trial": trial, "part": part, "rows": [_flat(r) for r in seen.requests]})
        self._write("outcome", {"trial": trial, "found": dict(found), "beside": beside, "usable": usable})

    def _write(self, kind: str, content: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **content}, separators=(",", ":"), default=float) + "\n")


def read(path: str | Path) -> Laboratory:
    """Read a file of the laboratory; a last line that an interruption cut is left out.

    Raises
    ------
    FileNotFoundError
        For a path that is no file.
    ValueError
        For a file that the laboratory did not write, naming the line.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is no file of the laboratory")
    head: Mapping[str, Any] | None = None
    costs, trials = [], []
    said: dict[int, Any] = {}
    parts: dict[int, dict[int, dict[str, Any]]] = {}
    for line in _lines(file):
        kind = line.get("kind")
        if head is None:
            if kind != "lab" or line.get("version") != VERSION:
                first = f"its first line is of {kind!r:.40}"
                raise ValueError(f"{file} was not written by this version of the laboratory: {first}")
            head = line
        elif kind == "costs":
            costs.append({name: value for name, value in line.items() if name != "kind"})
        elif kind == "prediction":
            said[line["trial"]] = line
        elif kind in ("steps", "requests"):
            parts.setdefault(line["trial"], {}).setdefault(line["part"], {})[kind] = line
        elif kind == "outcome":
            before = said[line["trial"]]
            seen = tuple(_observed(part) for _, part in sorted(parts.pop(line["trial"], {}).items()))
            known = {name: before[name] for name in ("round", "experiment", "arm", "said")}
            known |= {name: line[name] for name in ("found", "beside", "usable")}
            trials.append(Trial(line["trial"], **known, observed=seen))
    if head is None:
        raise ValueError(f"{file} is empty")
    return Laboratory(head, tuple(costs), tuple(trials))


def _mend(path: Path) -> None:
    """Drop a last line without an end, which an interruption cut."""
    with path.open("rb+") as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                value = json.loads(line)
            except ValueError:
                if not line.endswith("\n"):
                    return
                raise ValueError(f"{file}, line {number}, is no JSON") from None
            if not isinstance(value, dict):
                raise ValueError(f"{file}, line {number}, is no object")
            yield value


def _compact(step: Step) -> list[Any]:
    """Return a step as numbers; of what was emitted, the numbers of the requests, those that ended as negative ones."""
    times = [round(value, 7) for value in step[:3]]
    emitted = [-e.number if e.last else e.number for e in step.emitted]
    return [*times, *(round(value, 6) for value in step[3:-1]), emitted]


def steps_of(rows: Sequence[Sequence[Any]]) -> list[Step]:
    """Return steps from their rows in a file, those of `costs` too."""
    return [Step._make([*row[:-1], tuple(Emitted(abs(n), n < 0) for n in row[-1])]) for row in rows]


def _flat(request: Request) -> list[Any]:
    values = asdict(request)
    values["gaps"] = [round(gap, 6) for gap in request.gaps]
    return [None if isinstance(v, float) and math.isnan(v) else v for v in values.values()]


def _observed(part: Mapping[str, Any]) -> Observed:
    steps = steps_of(part["steps"]["rows"])
    names = list(Request.__dataclass_fields__)
    requests = []
    for row in part["requests"]["rows"]:
        known: dict[str, Any] = {
            name: math.nan if value is None else value for name, value in zip(names, row, strict=True)
        }
        requests.append(Request(**known))
    return Observed(steps, requests, part["steps"]["start"], part["steps"]["end"])
