"""Served points: the unit of each, what is predicted for it, and how far off that is.

Of table `served` the rows of `use` "calibration" set coefficients (`from_served`) and fronts (`from_first_tokens`);
those of "validation" are only predicted. A prediction is a play of the benchmark as it was run (`plays`); the fit of
coefficients takes each row as a closed loop with full slots, users in bunches (`Unit.synchronized_arrivals`), which
means agree with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import pandas as pd
import plays
from numpy.typing import NDArray
from plays import drafting
from recipes import recipe_of, unit_of

from inference_math import catalogue
from inference_math.catalogue import GPUS
from inference_math.evidence import load
from inference_math.evidence.checks import as_one_of
from inference_math.unit import Unit
from inference_math.unit.coefficients import ENGINES, Calibration
from inference_math.unit.front import front_of
from inference_math.unit.scope import set_ups_of
from inference_math.unit.shapes import kind_of
from inference_math.unit.types import ErrorRow
from inference_math.workload import Workload
from inference_math_planner.answers.notes import LEFT_OUT, SET_ASIDE
from inference_math_planner.calibrate import from_runs
from inference_math_planner.calibrate.files import Runs

__all__ = [
    "ASIDE",
    "BURST",
    "Loop",
    "beside_peer",
    "errors",
    "external_results",
    "knowing",
    "like_ours",
    "loops",
    "parts",
    "points",
    "profiled",
    "runs_of",
    "score",
    "scored",
    "slowed",
]

DRAFTS = {"none": ["none"], "mtp": ["mtp"], "unknown": ["none", "mtp"]}  # what rows that say so may have done
ASIDE = f", {SET_ASIDE}"  # behind the name of a source whose points score once
BURST = 10.0  # seconds of mean TTFT: beyond, it is a queue's or a warm-up's
MANY = 16  # users: with fewer a step is the read of its weights, however many they are
_TWICE, _SAME = 1.9, 1.02
# Times as long: nine in ten loads that were served at several dates differ by less, in their TPOT and in their TTFT.
SLOWED = {"tpot_s": 1.5, "ttft_s": 2.5}
GROUP = ["model", "gpu", "engine", "weights"]
SPLIT = 28  # the seed of `parts`: set before anything was fitted to either of them
_SET_UP = [*GROUP, "tp", "ep", "dp", "version", "n_in", "n_out"]
_LOAD = [*_SET_UP, "users"]


def points(use: str) -> pd.DataFrame:
    """Return the rows of `served` that are "calibration" or "validation", with e2e_s and the reason to leave one out.

    `row` is the line of the table's file, as a spreadsheet counts: the first point stands in row 2.

    Left out of fits and of scores are rows whose layout or precision is not stated; "queue" marks a mean TTFT above
    `BURST`, whose e2e is not predicted by a law of full slots; "drafts" those with drafted tokens, left out of fits;
    "users" those of calibration whose TPOT is that of twice the users, so that one of the two was not served so many.
    Validation rows have their `part`; see `parts`.
    """
    frame = load("served").frame.fillna({"version": "", "left_out": ""})
    frame = frame.assign(row=frame.index + 2)[frame["use"] == use].reset_index(drop=True)
    frame["e2e_s"] = frame["ttft_s"] + (frame["n_out"] - 1) * frame["tpot_s"]
    clean = frame["left_out"] == ""
    frame.loc[clean & (frame["drafts"] == "mtp"), "left_out"] = "drafts"
    frame.loc[clean & (frame["ttft_s"] > BURST), "left_out"] = "queue"
    if use == "calibration":
        frame.loc[(frame["left_out"] == "") & _untold(frame[frame["left_out"] == ""], frame.index), "left_out"] = (
            "users"
        )
    return frame.assign(part=parts(frame) if use == "validation" else "")


def _untold(frame: pd.DataFrame, index: pd.Index[int]) -> pd.Series[bool]:
    """Return which rows of `MANY` users or more have the TPOT of a row with twice the users, or are that one."""
    untold = pd.Series(False, index=index)
    for _, rows in frame[frame["users"] >= MANY].groupby([*_SET_UP, "drafts"]):
        users, tpot = rows["users"].to_numpy(float), rows["tpot_s"].to_numpy(float)
        alike = (users >= _TWICE * users[:, None]) & (tpot < _SAME * tpot[:, None])
        untold[rows.index] = np.asarray(alike.any(axis=0) | alike.any(axis=1))
    return untold


def slowed(frame: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows took `SLOWED` times as long, TPOT or TTFT, as the same load on a GPU with no higher rate.

    Something held such a run up that is neither the GPU nor the model.
    """
    found = pd.Series(False, index=frame.index)
    for _, rows in frame.groupby([name for name in _LOAD if name not in ("gpu", "version")] + ["drafts"]):
        for gpu, own in rows.groupby("gpu"):
            others = rows[[other != gpu and _no_better(str(other), str(gpu)) for other in rows["gpu"]]]
            if len(others):
                slow = [own[name] > factor * others[name].min() for name, factor in SLOWED.items()]
                found[own.index] = np.logical_or.reduce(slow)
    return found


def _no_better(gpu: str, other: str) -> bool:
    """Tell whether a GPU has no higher rate than another one."""
    rates = ("hbm_bw", "link_bw", "bf16_flops", "fp8_flops", "fp4_flops")
    return all((getattr(GPUS[gpu], rate) or 0) <= (getattr(GPUS[other], rate) or 0) for rate in rates)


def parts(frame: pd.DataFrame) -> pd.Series[str]:
    """Return the part of each row, of all validation rows: "choose", by which terms are chosen, or "blind".

    Widths are chosen by the first, too; the second is only ever scored.

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
    for _, rows in frame.groupby([*_SET_UP, "drafts"], sort=False):
        one = rows.iloc[0]
        recipe = recipe_of(one)
        sized = recipe.sized(unit_of(one, kv=recipe.kv, calibration=calibration))
        yield Loop(replace(sized, synchronized_arrivals=True), Workload(float(one["n_in"]), float(one["n_out"])), rows)


def scored(frame: pd.DataFrame, level: float = 0.9, unit: Callable[[Unit], Unit] | None = None) -> pd.DataFrame:
    """Return the rows with what is predicted for them, in seconds: each played as its benchmark was run.

    Columns `ttft`, `tpot` and `e2e`, means of one play; each with a low and a high end (`low` and `high` those of e2e)
    between which the mean lies with probability `level`; `floor`, below which no e2e is; `kind` of model.
    Rows that do not say whether they draft get the middle of both answers, and intervals that hold both. `unit` changes
    each unit before it is asked: another calibration.
    """
    if frame.empty:
        raise ValueError("frame must have a row at least")
    tables = []
    for loop in loops(frame):
        said = str(loop.rows["drafts"].iloc[0])
        answers = [_answered(loop, level, unit, drafts) for drafts in DRAFTS[said]]
        tables.append(_either(*answers) if len(answers) > 1 else answers[0])
    return pd.concat(tables).sort_index()


def _answered(loop: Loop, level: float, change: Callable[[Unit], Unit] | None, drafts: str) -> pd.DataFrame:
    """Return a loop's rows with what its unit says of them as if they drafted, "mtp", or not, "none"."""
    rows, work, users = loop.rows.assign(drafts=drafts), loop.work, loop.users
    front = front_of(loop.unit.model, loop.unit.gpu, loop.unit.engine, str(rows["version"].iloc[0]))
    unit = drafting(rows.iloc[0], change(loop.unit) if change else loop.unit)
    told = plays.played(rows, unit, work, front.seconds)
    least = unit.floor.e2e(work, rows["users"].to_numpy(float))
    table = loop.rows.assign(**told, floor=least, kind=unit.kind)
    found = unit.predict("e2e", work, users, level, known=[])  # most of it is TPOT, whose relative error is the same
    for name, low, high in (("e2e", "low", "high"), ("tpot", "tpot_low", "tpot_high")):
        table[low], table[high] = told[name] * found.low / found.value, told[name] * found.high / found.value
    table["low"] = np.maximum(table["low"], least)
    spread = front.drafting if unit.drafts else front.spread
    wide = np.exp(NormalDist().inv_cdf((1 + level) / 2) * spread)
    least_first = unit.floor.ttft(work, 1.0)
    return table.assign(ttft_low=np.maximum(told["ttft"] / wide, least_first), ttft_high=told["ttft"] * wide)


def _either(plain: pd.DataFrame, drafting: pd.DataFrame) -> pd.DataFrame:
    """Return the middle of two answers, and ends that hold both."""
    table = plain.copy()
    for name in plays.PLAYED:  # the middle of ratios
        table[name] = np.sqrt(plain[name] * drafting[name])
    for name in ("low", "tpot_low", "ttft_low", "floor"):
        table[name] = np.minimum(plain[name], drafting[name])
    for name in ("high", "tpot_high", "ttft_high"):
        table[name] = np.maximum(plain[name], drafting[name])
    return table


def external_results(
    level: float = 0.9, unit: Callable[[Unit], Unit] | None = None, source: str | None = None, foreign: bool = True
) -> pd.DataFrame:
    """Return the rows of `served_elsewhere` with what is predicted: tpot, low and high, all in seconds, and kind.

    Answers scatter there, and users come as they like. An engine that is not calibrated is taken for a vLLM that its
    calibration does not know, so that intervals are wider.
    `unit` changes each unit before it is asked, `source` takes the rows of one alone; `foreign`: whether that is so.
    """
    frame = load("served_elsewhere").frame.fillna({"version": ""})
    if source is not None:
        frame = frame[frame["source"] == as_one_of("source", source, sorted(frame["source"].unique()))]
        frame = frame.reset_index(drop=True)
    found = []
    for row in frame.to_dict("records"):
        other = row["engine"] not in ENGINES
        own = unit_of(row, engine=ENGINES[0]) if other else unit_of(row)
        asked = unit(own) if unit else own
        asked = _as_foreign(asked) if other and foreign else asked
        told = asked.predict(
            "tpot", Workload(row["n_in"], row["n_out"], lengths="geometric"), row["users"], level, known=[]
        )
        found.append({"tpot": told.value, "low": told.low, "high": told.high, "kind": asked.kind})
    return frame.assign(**pd.DataFrame(found))


def like_ours(unit: Unit) -> Unit:
    """Return a unit whose intervals are those of an engine like ours, whichever it is."""
    scope = {name: known for name, known in unit.calibration.scope.items() if name not in ("engine", "set_up")}
    return unit.calibrated(replace(unit.calibration, scope=scope))


def knowing(unit: Unit, rows: list[ErrorRow]) -> Unit:
    """Return a unit whose plan knows the set-ups of some scored points, and of no others."""
    scope = dict(unit.calibration.scope)
    if "set_up" in scope:
        scope["set_up"] = tuple(sorted(set(set_ups_of(rows))))
    return unit.calibrated(replace(unit.calibration, scope=scope))


def _as_foreign(unit: Unit) -> Unit:
    """Return a unit with a calibration of whose sources its engine is none; see `unit.scope`."""
    scope = dict(unit.calibration.scope)
    if "engine" in scope:
        scope["engine"] = tuple(name for name in scope["engine"] if name != unit.engine)
    return unit.calibrated(replace(unit.calibration, scope=scope))


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
    """Return rows with the e2e and the TTFT that aiconfigurator predicts, `peer` and `peer_ttft` in seconds.

    With its continuous batching. It was told of no drafts: rows that are known to draft have none.
    """
    found = load("peers_served").frame.set_index("row").reindex(table["row"]).set_index(table.index)
    plain, n_out = table["drafts"] != "mtp", table["n_out"]
    e2e = found["ttft_s"] + (n_out - 1) * found["tpot_s"]
    return table.assign(peer=e2e.where(plain), peer_ttft=found["ttft_s"].where(plain))


def errors(more: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return how far off predictions of points that set no coefficient are: table `served_error`.

    By e2e, with TTFT, of the part "blind" of the points set aside ("set aside"), and of the calibration rows of each
    group left out of the fit with its engine on its GPU ("left out"); by TPOT of other sources, with TTFT where `more`
    has it. By source, model, engine, GPU, precision and drafts. `inside`: the share within the calibration's own
    interval; `printed`: of sources that score once, within what a plan prints that does not know them. `lacked`: what
    nine in ten of them lacked at most; see `lacking`. `more` are rows as `external_results` has them.
    """
    aside = scored(points("validation").query("left_out != 'queue' and part == 'blind'")).assign(source=SET_ASIDE)
    others = external_results() if more is None else pd.concat([external_results(), more], ignore_index=True)
    drafts = others["drafts"].fillna("none") if "drafts" in others else "none"
    others = others.assign(e2e=others["tpot"], e2e_s=others["tpot_s"], drafts=drafts)
    table = pd.concat([aside, others], ignore_index=True)
    by = ["kind", "engine", "maker", "source", "model", "gpu", "weights", "drafts"]
    table = table.assign(maker=[GPUS[name].maker for name in table["gpu"]])
    found = score(table, by)
    left = load("served_left_out").frame
    left = left.assign(
        kind=[kind_of(catalogue.model(name)) for name in left["model"]],
        source=LEFT_OUT,
        drafts="none",
        maker=[GPUS[name].maker for name in left["gpu"]],
        inside=np.nan,
    )
    known = pd.concat([found, left], ignore_index=True).sort_values(by, ignore_index=True)
    lacked = table.assign(lacked=lacking(table)).groupby(by)["lacked"].quantile(0.9, interpolation="higher")
    known["lacked"] = lacked.reindex(pd.MultiIndex.from_frame(known[by])).to_numpy()
    aside = table[table["source"].str.endswith(ASIDE)]
    if len(aside):
        within = aside["tpot_s"].between(aside["wide_low"], aside["wide_high"]).groupby([aside[name] for name in by])
        known["printed"] = within.mean().reindex(pd.MultiIndex.from_frame(known[by])).to_numpy()
    found = known.reindex(columns=[*by, "points", "e2e", "ttft", "inside", "printed", "lacked"])
    return found.rename(columns={"e2e": "error"})


def lacking(table: pd.DataFrame) -> pd.Series[float]:
    """Return for each row the standard deviation of the logarithm that its 90 % interval lacks to hold the measured.

    Beside half the width of the interval on that side, in quadrature: 0 for a row inside.
    """
    off = np.log(table["e2e_s"] / table["e2e"])
    half = np.log(np.where(off > 0, table["high"] / table["e2e"], table["e2e"] / table["low"]))
    return pd.Series(np.sqrt(np.maximum(off**2 - half**2, 0)) / NormalDist().inv_cdf(0.95), table.index)


def score(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return for each group of rows of `scored` how many points it has and how far off predictions are.

    `ttft`, `tpot` and `e2e` are mean absolute errors; `ttft_bias` and `bias` (of e2e) medians of predicted over
    measured, less one; `ttft_inside`, `tpot_inside` and `inside` shares within the intervals. With a peer's columns
    also the mean absolute errors of these, over the points that it has. What a table does not predict is left out.
    """
    ends = {"ttft": ("ttft_low", "ttft_high"), "tpot": ("tpot_low", "tpot_high"), "e2e": ("low", "high")}
    each, told = table[by].copy(), {}
    for name, (low, high) in ends.items():
        if name in table:
            ratio = table[name] / table[f"{name}_s"] - 1
            each[name], told[name] = ratio.abs(), "mean"
            if name != "tpot":
                column = "bias" if name == "e2e" else f"{name}_bias"
                each[column], told[column] = ratio, "median"
        if low in table:
            column = "inside" if name == "e2e" else f"{name}_inside"
            each[column], told[column] = table[f"{name}_s"].between(table[low], table[high]), "mean"
    for peer, name in (("peer", "e2e_s"), ("peer_ttft", "ttft_s")):
        if peer in table:
            each[peer], told[peer] = (table[peer] / table[name] - 1).abs(), "mean"
    groups = each.groupby(by, sort=True)
    return groups.agg(told).assign(points=groups.size()).reset_index()[[*by, "points", *told]]
