"""Served points as closed loops: the unit of each, and what is predicted for it.

Of table `served` the rows of `use` "calibration" set coefficients (`from_served`); those of "validation" are only
predicted. Users begin together and send their next request when the last is answered, so that prompts come in bunches
(`Unit.bunched`). Where the KV cache holds fewer requests than there are users, the others wait, and a request takes as
much longer as there are users for each place. Rows that do not say whether tokens were drafted get both answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference_math.catalogue import GPUS
from inference_math.checks import as_one_of
from inference_math.evidence import load
from inference_math.perf.words import SET_ASIDE
from inference_math.profiles import from_runs
from inference_math.runs import Runs
from inference_math.unit import Unit
from inference_math.unit.coefficients import ENGINES, Calibration
from inference_math.workload import Workload

__all__ = [
    "BURST",
    "DRAFTED",
    "Loop",
    "beside_peer",
    "elsewhere",
    "errors",
    "loops",
    "parts",
    "points",
    "profiled",
    "runs_of",
    "score",
    "scored",
]

# What DeepSeek says of its model's own draft, the least of it [deepseekv3]; the rows do not state theirs.
DRAFTED: dict[str, Any] = {"drafts": 1, "accepted": 0.85}
BURST = 10.0  # seconds of mean TTFT: beyond, it is a queue's or a warm-up's
GROUP = ["model", "gpu", "engine", "weights"]
SPLIT = 28  # the seed of `parts`: set before anything was fitted to either of them
_SET_UP = [*GROUP, "tp", "ep", "dp", "version", "n_in", "n_out"]
_LOAD = [*_SET_UP, "users"]


def points(use: str) -> pd.DataFrame:
    """Return the rows of `served` that are "calibration" or "validation", with e2e_s and the reason to leave one out.

    Left out of fits and of scores are rows whose layout or precision is not stated; "queue" marks a mean TTFT above
    `BURST`, whose e2e is not predicted by a law of full slots; "drafts" those with drafted tokens, left out of fits.
    """
    frame = load("served").frame.fillna({"version": "", "left_out": ""})
    frame = frame[frame["use"] == use].reset_index(drop=True)
    frame["e2e_s"] = frame["ttft_s"] + (frame["n_out"] - 1) * frame["tpot_s"]
    clean = frame["left_out"] == ""
    frame.loc[clean & (frame["drafts"] == "mtp"), "left_out"] = "drafts"
    frame.loc[clean & (frame["ttft_s"] > BURST), "left_out"] = "queue"
    return frame


def parts(frame: pd.DataFrame) -> pd.Series[str]:
    """Return the part of each row: "choose", by which terms and widths are chosen, or "blind", only ever scored.

    Each model on a GPU under an engine gives half of its curves to either: whole ones, so that no point has a
    neighbour in the other part. The errors of all rows before 0.3 are in print; what "blind" keeps apart is what came
    after.
    """
    told = pd.Series("", index=frame.index)
    rng = np.random.default_rng(SPLIT)
    for _, rows in frame.groupby(["model", "gpu", "engine"]):
        curves = [index for _, index in rows.groupby(_SET_UP, sort=True).groups.items()]
        for place, number in enumerate(rng.permutation(len(curves))):
            told.loc[curves[number]] = "choose" if 2 * place < len(curves) else "blind"
    return told


def kv_of(row: Any) -> str:
    """Return the KV cache's precision, which the rows do not state: FP8 where the checkpoint or its recipe says so.

    NVFP4 checkpoints carry scales for an FP8 cache, TensorRT-LLM follows them, the recipe of Llama-3.1-70B asks for it.
    """
    eight = row["engine"] == "trtllm" or row["weights"] == "nvfp4" or row["model"] == "llama-3-70b"
    return "fp8" if eight else "bf16"


@dataclass(frozen=True, eq=False)
class Loop:
    """Rows of one unit and workload: a closed loop at several numbers of users."""

    unit: Unit
    work: Workload
    rows: pd.DataFrame

    @property
    def users(self) -> NDArray[np.float64]:
        """Users of each row that are served at once."""
        return np.asarray(np.minimum(self.rows["users"].to_numpy(float), max(self.unit.places(self.work), 1)))

    @property
    def waiting(self) -> NDArray[np.float64]:
        """How many users share a place."""
        return np.asarray(self.rows["users"].to_numpy(float) / self.users)


def loops(frame: pd.DataFrame, calibration: Calibration | None = None) -> Iterator[Loop]:
    """Return the rows grouped to closed loops, units under a `calibration` or the nearest one that ships."""
    for _, rows in frame.groupby(_SET_UP, sort=False):
        one = rows.iloc[0]
        unit = Unit.of(
            one["model"], one["gpu"], int(one["tp"]), weights=one["weights"], kv=kv_of(one), engine=one["engine"],
            calibration=calibration, ep=int(one["ep"]), dp=int(one["dp"]), version=one["version"],
        )  # fmt: skip
        yield Loop(replace(unit, bunched=True), Workload(float(one["n_in"]), float(one["n_out"])), rows)


def scored(frame: pd.DataFrame, level: float = 0.9, unit: Callable[[Unit], Unit] | None = None) -> pd.DataFrame:
    """Return the rows with what is predicted: tpot, e2e, low and high of e2e, its floor, all in seconds, and kind.

    `unit` changes each unit before it is asked: another calibration. Without it, rows that draft tokens are predicted
    with `DRAFTED`, and rows that do not say get the middle of both answers, and an interval that holds both.
    """
    tables = []
    for loop in loops(frame):
        table = _answered(loop, unit(loop.unit) if unit else loop.unit, level)
        if unit is None and (loop.rows["drafts"] != "none").any():
            table = _either(table, _answered(loop, replace(loop.unit, **DRAFTED), level))
        tables.append(table)
    return pd.concat(tables).sort_index()


def _answered(loop: Loop, unit: Unit, level: float) -> pd.DataFrame:
    """Return a loop's rows with what a unit says of them."""
    found = unit.predict("e2e", loop.work, loop.users, level)
    return loop.rows.assign(
        tpot=unit.tpot(loop.work, loop.users), e2e=found.value * loop.waiting, low=found.low * loop.waiting,
        high=found.high * loop.waiting, floor=unit.floor.e2e(loop.work, loop.rows["users"].to_numpy(float)),
        kind=unit.kind,
    )  # fmt: skip


def _either(plain: pd.DataFrame, drafting: pd.DataFrame) -> pd.DataFrame:
    """Return for each row what is said without drafts, with them, or where the row does not tell, both."""
    with_drafts, unknown = plain["drafts"] == "mtp", plain["drafts"] == "unknown"
    table = plain.where(~with_drafts, drafting)
    for name in ("tpot", "e2e"):  # the middle of ratios
        table.loc[unknown, name] = np.sqrt(plain[name] * drafting[name])
    for name in ("low", "high", "floor"):
        ends = np.maximum if name == "high" else np.minimum
        table.loc[unknown, name] = ends(plain[name], drafting[name])
    return table


def elsewhere(
    level: float = 0.9, unit: Callable[[Unit], Unit] | None = None, source: str | None = None
) -> pd.DataFrame:
    """Return the rows of `served_elsewhere` with what is predicted: tpot, low and high, all in seconds, and kind.

    Answers scatter there, and users come as they like. An engine that is not calibrated is taken for today's vLLM.
    `unit` changes each unit before it is asked, `source` takes the rows of one alone.
    """
    frame = load("served_elsewhere").frame.fillna({"version": ""})
    if source is not None:
        frame = frame[frame["source"] == as_one_of("source", source, sorted(frame["source"].unique()))]
        frame = frame.reset_index(drop=True)
    found = []
    for row in frame.to_dict("records"):
        engine = row["engine"] if row["engine"] in ENGINES else ENGINES[0]
        own = Unit.of(
            row["model"], row["gpu"], row["tp"], weights=row["weights"], engine=engine, ep=row["ep"], dp=row["dp"],
            version=row["version"] if engine == row["engine"] else "",
        )  # fmt: skip
        asked = unit(own) if unit else own
        told = asked.predict("tpot", Workload(row["n_in"], row["n_out"], lengths="geometric"), row["users"], level)
        found.append({"tpot": told.value, "low": told.low, "high": told.high, "kind": asked.kind})
    return frame.assign(**pd.DataFrame(found))


def profiled(frame: pd.DataFrame, count: int = 24) -> pd.DataFrame:
    """Return what a profile of `count` rows of each group, spread evenly, says of the others: columns as in `scored`.

    A group is a model and precision under an engine on a GPU. Groups with too few rows to try it on are left out.
    """
    tables = []
    for _, rows in frame.groupby(GROUP):
        if len(rows) < count + 5:
            continue
        ordered = rows.sort_values([*_SET_UP, "users"])
        chosen = ordered.iloc[np.linspace(0, len(rows) - 1, count).round().astype(int)]
        units = [(loop.unit, runs_of(loop.rows)) for loop in loops(chosen)]
        own = from_runs.fit(*((unit.calibrated(units[0][0].calibration), runs) for unit, runs in units)).calibration
        known = rows.set_index(_LOAD).index.isin(chosen.set_index(_LOAD).index)  # repeats of what was chosen, too
        if not known.all():
            others = rows[~known]
            tables.append(scored(others, unit=lambda unit, own=own: unit.calibrated(own)))  # type: ignore[misc]
    return pd.concat(tables) if tables else frame.iloc[:0]


def runs_of(rows: pd.DataFrame) -> Runs:
    """Return rows of a table as runs, as if read from an engine's results."""
    names = {"users": "concurrency", "e2e_s": "e2e", "ttft_s": "ttft", "tpot_s": "tpot"}
    table = rows[["n_in", "n_out", *names]].rename(columns=names).astype(float)
    named = table.assign(source=[f"served#{index + 2}" for index in rows.index], requests=np.nan)
    return Runs(named.reset_index(drop=True), pd.DataFrame({"source": [], "reason": []}, dtype=str))


def beside_peer(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the e2e that aiconfigurator predicts, `peer` in seconds, with its continuous batching.

    It was told of no drafts: rows that are known to draft have none.
    """
    found = load("peers_served").frame.fillna({"version": ""}).query("way == 'aggregated'")
    found = found.assign(peer=found["ttft_s"] + (found["n_out"] - 1) * found["tpot_s"])
    merged = table.merge(found[[*_SET_UP, "users", "peer"]], how="left", on=[*_SET_UP, "users"]).set_axis(table.index)
    return merged.assign(peer=merged["peer"].where(merged["drafts"] != "mtp"))


def errors() -> pd.DataFrame:
    """Return how far off predictions of points that set no coefficient are: table `served_error`.

    Of the points set aside by e2e, of those of other sources by TPOT; by source, model, engine, GPU and drafts.
    """
    aside = scored(points("validation").query("left_out != 'queue'")).assign(source=SET_ASIDE)
    others = elsewhere()
    others = others.assign(e2e=others["tpot"], e2e_s=others["tpot_s"], drafts="none")
    table = pd.concat([aside, others], ignore_index=True)
    by = ["kind", "engine", "maker", "source", "model", "gpu", "drafts"]
    found = score(table.assign(maker=[GPUS[name].maker for name in table["gpu"]]), by)
    return found[[*by, "points", "e2e", "inside"]].rename(columns={"e2e": "error"})


def score(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return for each group: points, mean absolute errors of e2e and TPOT, bias, and the share inside the interval.

    `bias` is the median of predicted over measured e2e, less one. With a column `peer` also the mean absolute error of
    that, over the points that it has.
    """
    ratio = table["e2e"] / table["e2e_s"] - 1
    inside = (table["e2e_s"] >= table["low"]) & (table["e2e_s"] <= table["high"])
    each = table.assign(e2e=ratio.abs(), tpot=(table["tpot"] / table["tpot_s"] - 1).abs(), bias=ratio, inside=inside)
    if "peer" in table:
        each["peer"] = (table["peer"] / table["e2e_s"] - 1).abs()
    groups = each.groupby(by, sort=True)
    found = pd.DataFrame(
        {
            "points": groups.size(), "e2e": groups["e2e"].mean(), "tpot": groups["tpot"].mean(),
            "bias": groups["bias"].median(), "inside": groups["inside"].mean(),
        }
    )  # fmt: skip
    return (found.assign(peer=groups["peer"].mean()) if "peer" in table else found).reset_index()
