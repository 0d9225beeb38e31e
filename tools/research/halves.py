"""Rows of `served_halves`, each played as it was run: those that choose, and for a release those that score.

    python tools/research/halves.py

Those that are closed loops set coefficients with the calibration rows of `served`, too: `fitted` says which.

What a row was told stands in the row, or in its recipe (InferenceX); what nobody told is the engine's default. Times
are compared in the statistic that the source has: means, else medians.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import recipes
from derive_halves import names_of
from plays import Cold
from recipes import EACH, SPAN, Recipe, ServedRow, recipe_of, unit_of
from served import ASIDE, Loop, knowing, like_ours

from inference_math.catalogue import GPUS
from inference_math.catalogue.engines import engine, usual_limits
from inference_math.evidence import load
from inference_math.simulate import Run, Steps, benchmark
from inference_math.unit import Unit
from inference_math.unit.coefficients import ENGINES
from inference_math.unit.nearest import known_errors
from inference_math.workload import RandomLengths, Workload
from inference_math_planner.fleets.benchmarks import policy_of

__all__ = ["SAME", "choosing", "chosen", "closed", "first_tokens", "fitted", "predicted", "results", "score", "show"]

SPANS = {"equal": 0.0, "0 to 1": 0.999, "0.8 to 1": SPAN}
_DRAFTED = 3  # tokens, where nobody says how many: what recipes of MTP ask for
_HELD = 256  # requests of DeepSeek-V4 that SGLang holds untold, by its later code
_FEW = 2  # requests of each user, where nobody says how many: the cookbook's habit, of ten at least
SAME = ["gpu", "model", "weights", "engine", "tp", "dp", "ep", "drafts", "drafted", "lengths", "n_in", "n_out", "users"]
SAME += ["requests", "budget", "seqs", "memory", "kv", "version", "cold", "script", "told"]  # what a play hangs on
_OF = ["model", "gpu", "engine"]
_LOOP = [name for name in SAME if name not in ("users", "requests")]
_POINTS = 3  # of a group, from which on it sets coefficients
_YEARS = {"SGLang cookbook": "SGLang cookbook of 2026"}  # of which an older one is in `served_elsewhere`
_LOOPS = 5  # requests of each user, from which on a run is a closed loop; with fewer much of it is the opening burst


def choosing() -> pd.DataFrame:
    """Return the rows whose groups choose, with the `group` of each, and whether its client was `cold` (of 2025)."""
    return _rows("choose")


def chosen() -> pd.DataFrame:
    """Return the rows that choose with what is `predicted`, and which of them are `fitted`."""
    frame = choosing()
    return predicted(frame.assign(fitted=fitted(frame)))


def results(chosen: pd.DataFrame) -> pd.DataFrame:
    """Return all rows that set no coefficient with what is predicted, columns as of `served.external_results`.

    And `ttft` and `ttft_s`. Of rows that choose, those of `chosen`. Rows that score are played here, as theirs are, and
    say so in their `source`. Ask for a release alone: `score_served`.
    """
    others = chosen[~chosen["fitted"]].drop(columns="fitted")
    found = pd.concat([others, predicted(_rows("score"))], ignore_index=True)
    aside = found["part"].map({"choose": "", "score": ASIDE})
    times = {f"{name}_s": found[f"{name}_s"].fillna(found[f"{name}_p50_s"]) for name in ("ttft", "tpot")}
    return found.assign(source=found["source"].replace(_YEARS) + aside, **times)


def _rows(part: str) -> pd.DataFrame:
    frame = load("served_halves").frame
    frame = frame[frame["part"] == part]
    date = frame["date"].fillna("9")
    told = frame.assign(group=names_of(frame), version=frame["version"].fillna(""))
    told["script"] = sum(((date >= day) & frame["gpu"].str.startswith("mi")).astype(int) for day in recipes.CHANGED)
    return told.assign(cold=(told["source"] == "InferenceX") & (date < "2026")).reset_index(drop=True)


def predicted(frame: pd.DataFrame, level: float = 0.9) -> pd.DataFrame:
    """Return the rows with what is predicted: ttft, tpot, tokens a second, and ends of TPOT as plans have them.

    `low` and `high` are those of an engine like ours, `wide_low` and `wide_high` those of a plan that does not know the
    rows that score here: of another engine, or widened by what other points lacked. Nights of one set-up are played
    once.
    """
    tables = []
    for _, rows in frame.groupby(SAME, dropna=False, sort=False):
        row = rows.iloc[0].to_dict()
        tables.append(pd.DataFrame([_predicted(row, level)] * len(rows), rows.index))
    return frame.join(pd.concat(tables))


def fitted(frame: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows set coefficients: those that a law of closed loops can take, of groups of `_POINTS` or more.

    Without drafts, `_LOOPS` requests of each user or more, as stated, none of whom waits for a place, equal lengths or
    nearly so. Not those of a model on a GPU under an engine of which `served` sets rows aside: scores of these stay
    those of what nobody fitted. Which rows these are hangs on no time, measured or predicted.
    """
    found = (frame["drafts"] == "none") & frame["lengths"].isin(["equal", "0.8 to 1"])
    found &= frame["requests"].astype(float) >= _LOOPS * frame["users"]
    found &= ~frame[_OF].agg(" ".join, axis=1).isin(_set_aside())
    for _, rows in frame[found].groupby(_LOOP, dropna=False):
        found[rows.index] = rows["users"] <= told_of(rows.iloc[0].to_dict()).places
    return found & (found.groupby(frame["group"]).transform("sum") >= _POINTS)


@lru_cache(maxsize=1)
def _set_aside() -> set[str]:
    aside = load("served").frame.query("use == 'validation'")
    return set(aside[_OF].agg(" ".join, axis=1))


def closed() -> list[Loop]:
    """Return the rows that are `fitted`, grouped to loops as `served.loops` does, nights of one set-up as their middle.

    Medians, where there are no means, count as such: in plays of these rows both differ by less than a twentieth.
    """
    frame, found = choosing(), []
    for _, rows in frame[fitted(frame)].groupby(_LOOP, dropna=False):
        told = told_of(rows.iloc[0].to_dict())
        found.append(Loop(replace(told.unit, synchronized_arrivals=True), told.work, _middle(rows)))
    return found


def _middle(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each number of users once, with `ttft_s`, `tpot_s` and `e2e_s`; `middle`: whether these are medians."""
    times = {f"{name}_s": np.log(rows[f"{name}_s"].fillna(rows[f"{name}_p50_s"])) for name in ("ttft", "tpot")}
    nights = rows.assign(middle=rows["tpot_s"].isna(), **times).groupby("users")
    found = nights.first().assign(**{name: np.exp(nights[name].mean()) for name in times}).reset_index()
    e2e = found["ttft_s"] + (found["n_out"] - 1) * found["tpot_s"]
    return found.assign(e2e_s=e2e, use="calibration", slowed=False)


def first_tokens(loop: Loop, front: float) -> pd.Series[float]:
    """Return the TTFT of each row of a loop of `closed`, played with such a front, in seconds."""
    rows = loop.rows.to_dict("records")
    times = [_one(ran(row, told_of(row), front=front).requests["ttft"], row["middle"]) for row in rows]
    return pd.Series(times, loop.rows.index)


@dataclass(frozen=True)
class Told:
    """A row's unit, its workload, and what its engine was told."""

    unit: Unit
    work: Workload
    recipe: Recipe
    places: int


def told_of(row: ServedRow) -> Told:
    """Return what a row says, and its recipe; the unit of an engine that no calibration knows is vLLM's."""
    own = {"engine": ENGINES[0]} if row["engine"] not in ENGINES else {}
    known = row["source"] == "InferenceX"
    recipe = recipe_of(dict(row) | {"version": "" if row["cold"] else row["version"] or "0.5"}) if known else _said(row)
    unit = recipe.sized(unit_of(row, kv=recipe.kv, **own))
    if recipe.drafts:
        unit = replace(unit, drafts=recipe.drafts, accepted=recipes.ACCEPTED)
    if recipe.memory is None:
        graph = re.search(r"cuda-graph-max-bs(?:-decode)?=(\d+)", str(row["told"]))
        unit = replace(unit, memory=unit.usual_share(recipe.budget, float(graph[1]) if graph else 0.0))
    work = Workload(row["n_in"], row["n_out"], lengths="geometric" if row["lengths"] == "chats" else "fixed")
    usual = usual_limits(unit.engine, unit.gpu).seqs * _groups(unit.engine, row)
    seqs = _given(row["seqs"], _HELD if str(row["model"]).startswith("deepseek-v4") else usual)
    return Told(unit, work, recipe, int(max(1, min(seqs, unit.places(work)))))


def _said(row: ServedRow) -> Recipe:
    """Return what a row states, else what its engine takes by itself."""
    name = row["engine"] if row["engine"] in ENGINES else ENGINES[0]
    usual = usual_limits(name, GPUS[row["gpu"]]).tokens * _groups(name, row)
    kv = row["kv"] if isinstance(row["kv"], str) else unit_of(row, engine=name).usual_kv
    drafts = int(_given(row["drafted"], _DRAFTED)) if row["drafts"] == "mtp" else 0
    chunked = True if "enable_chunked_prefill" in str(row["told"]) else None
    policy = policy_of(name, chunked, str(row["version"]))
    free, budget = name == "trtllm", int(_given(row["budget"], usual))
    told: float | None = None if pd.isna(row["memory"]) else float(row["memory"])
    return Recipe(budget, policy, kv, drafts, memory=told, free=free and told is not None)


def _groups(name: str, row: ServedRow) -> int:
    return 1 if engine(name).scheduler.counts_together else int(row["dp"])


def _given(value: Any, usual: float) -> float:
    return usual if pd.isna(value) else float(value)


def _predicted(row: ServedRow, level: float) -> dict[str, Any]:
    told = told_of(row)
    run, at_once = ran(row, told), min(row["users"], told.places)
    middle = np.isnan(row["tpot_s"])
    found: dict[str, Any] = {name: _one(run.requests[name], middle) for name in ("ttft", "tpot")}
    found["tokens"] = float(run.requests["n_out"].sum() / run.seconds)
    others = [one for one in known_errors() if not one.source.endswith(ASIDE)]
    for name, unit, known in (("", like_ours(told.unit), []), ("wide_", knowing(told.unit, others), others)):
        said = unit.predict("tpot", told.work, at_once, level, known=known)
        found |= {f"{name}{end}": found["tpot"] * getattr(said, end) / said.value for end in ("low", "high")}
    return found | {"kind": told.unit.kind, "spread": told.unit.calibration.spread}


def _one(times: pd.Series[float], middle: bool) -> float:
    return float(times.median() if middle else times.mean())


def ran(row: ServedRow, told: Told, seed: int = 1, front: float | None = None) -> Run:
    """Return a row's benchmark, played; each group of attention has prompts of its own, and a part of the budget.

    With the seconds of a `front`; None: those of its unit.
    """
    users = int(row["users"])
    unsaid = max(EACH, _FEW * users)
    work = told.work
    chats = Workload(round(work.n_in), work.n_out, lengths="geometric")
    source = chats if row["lengths"] == "chats" else RandomLengths(work.n_in, work.n_out, SPANS[row["lengths"]])
    steps: Any = Steps(told.unit.near(work))
    scheduler = told.recipe.scheduler(told.places, int(row["dp"]))
    return benchmark(
        source, Cold(steps, told.recipe.cold) if told.recipe.cold else steps, concurrency=users,
        requests=int(max(users, _given(row["requests"], unsaid))), scheduler=scheduler,
        front=told.unit.front.seconds if front is None else front, seed=seed,
    )  # fmt: skip


def score(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return for each group of rows of `predicted`: points, sizes and medians of errors, the share inside of intervals.

    `ttft`, `tpot` and `rate` are mean sizes of predicted over measured less one, `ttft_bias` and so on medians; the
    intervals are of TPOT, those of a plan in `plan`.
    """
    each = table[by].copy()
    for name, said in (("ttft", "ttft"), ("tpot", "tpot"), ("rate", "tokens")):
        measured = table[name] if name == "rate" else table[f"{name}_s"].fillna(table[f"{name}_p50_s"])
        each[f"{name}_bias"] = table[said] / measured - 1
        each[name] = each[f"{name}_bias"].abs()
    tpot = table["tpot_s"].fillna(table["tpot_p50_s"])
    each["inside"], each["plan"] = (tpot.between(table[f"{w}low"], table[f"{w}high"]) for w in ("", "wide_"))
    told = dict.fromkeys(("ttft", "tpot", "rate", "inside", "plan"), "mean")
    told |= {f"{name}_bias": "median" for name in ("ttft", "tpot", "rate")}
    groups = each.groupby(by)
    return groups.agg(told).assign(points=groups.size()).reset_index()


def show(table: pd.DataFrame) -> None:
    """Print how far predictions of `chosen` are off, by group and by source."""
    for by in (["group", "drafts", "fitted"], ["source", "fitted"]):
        print(score(table, by).round(3).to_string(index=False))


if __name__ == "__main__":
    show(chosen())
