"""Write what the book shows of predictions: data/predicted/*.csv, from the calibration that ships.

    python tools/research/predict.py                    # all tables, some minutes (make score)
    python tools/research/predict.py loops splits       # these alone

Nothing is fitted but profiles of a user's runs. Where a table stands beside a measured one, `row` is the line of that
one's file, as a spreadsheet counts: the first point stands in row 2.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import accuracy
import arrivals
import halves
import pandas as pd
import scores
import served
import splits
import support
from recipes import unit_of
from scipy.optimize import brentq
from tables import write

from inference_math.evidence import load
from inference_math.unit import Unit
from inference_math.unit.coefficients import ENGINES
from inference_math.unit.front import front_of
from inference_math_planner import calibrate

DIGITS = 6
FIRST = 2  # the row of a file's first point
KEPT = 24  # runs of a profile
VERSIONS = ("0.17.0", "0.19.0")  # of vLLM, of which one model's points are


def main() -> None:
    """Write the tables that were asked for; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(TABLES)}; default: all")
    arguments.add_argument("--out", type=Path, default=Path("data") / "predicted")
    options = arguments.parse_args()
    for name in options.names or TABLES:
        table = TABLES[name]()
        numbers = table.select_dtypes("float").columns
        write(table, options.out / f"{name}.csv", *numbers, digits=DIGITS)


def served_points() -> pd.DataFrame:
    """Return what is predicted for the validation rows of `served` without a queue."""
    tried = served.points("validation").query("left_out != 'queue'")
    found = served.scored(tried)
    drafting = found[found["drafts"] == "mtp"]
    without = served.scored(tried.loc[drafting.index].assign(drafts="none"))["e2e"]
    plain = tried.query("drafts == 'none'")
    law = [pd.Series(loop.unit.ttft(loop.work, loop.users), index=loop.rows.index) for loop in served.loops(plain)]
    ends = {"ttft": ("ttft_low", "ttft_high"), "tpot": ("tpot_low", "tpot_high"), "e2e": ("low", "high")}
    inside = {f"{name}_inside": _flags(found[f"{name}_s"].between(found[a], found[b])) for name, (a, b) in ends.items()}
    table = found.assign(law=pd.concat(law), undrafted=without, **inside)
    return table[["row", "part", "ttft", "tpot", "e2e", *inside, "law", "undrafted"]]


def elsewhere() -> pd.DataFrame:
    """Return what is predicted for the rows of `served_elsewhere`."""
    found = served.external_results()
    inside = _flags(found["tpot_s"].between(found["low"], found["high"]))
    return found.assign(row=found.index + FIRST, inside=inside)[["row", "tpot", "inside"]]


@cache
def _queued() -> pd.DataFrame:
    return arrivals.played()


def queue_runs() -> pd.DataFrame:
    """Return the played TTFT of the requests of `queue_runs`."""
    found = _queued()
    return found.assign(row=found.index + FIRST)[["row", "ttft"]].sort_values("row")


def queue_times() -> pd.DataFrame:
    """Return means and P90 of recorded queues and of their plays; of one also with links that fit its mean TPOT."""

    def linked(share: float) -> pd.DataFrame:
        def unit(own: Unit) -> Unit:
            known = own.calibration.coefficients
            slower = replace(known, interconnect_efficiency=share * known.interconnect_efficiency)
            return own.calibrated(replace(own.calibration, coefficients=slower))

        return arrivals.compared(arrivals.played(unit).query("model == 'qwen3-32b'"))

    share = brentq(lambda share: linked(share).set_index("time").loc["tpot", "error"], 0.05, 1, xtol=0.01)
    tables = [arrivals.compared(_queued()).assign(links=1.0), linked(share).assign(links=share)]
    names = {"predicted mean": "predicted_mean", "P90": "p90", "predicted P90": "predicted_p90"}
    return pd.concat(tables)[["links", "model", "time", "mean", *names]].rename(columns=names)


def silybench() -> pd.DataFrame:
    """Return what is predicted for the used points of `silybench`: as shipped, and by a profile."""
    tables = []
    for precision, other in (("bf16", "fp8"), ("fp8", "bf16")):
        runs = accuracy.silybench_runs(precision)
        fitted = calibrate.fit((accuracy.qwen()[other], accuracy.silybench_runs(other, KEPT)))
        shipped, crossed = (
            accuracy.silybench({precision: units[precision]})
            for units in (accuracy.qwen(), accuracy.qwen(fitted.calibration))
        )
        assert (shipped["measured"].to_numpy() == runs.table["e2e"].to_numpy()).all()
        table = pd.DataFrame({"row": [int(source.partition("#")[2]) for source in runs.table["source"]]})
        ends = {"e2e": "predicted", "e2e_low": "low", "e2e_high": "high"}
        table = table.assign(**{name: shipped[column] for name, column in ends.items()})
        tables.append(table.assign(profile=crossed["predicted"]))
    return pd.concat(tables, ignore_index=True)


def mlenergy() -> pd.DataFrame:
    """Return what is predicted for the rows of `mlenergy`, prompts taken as 512 tokens."""
    found = accuracy.mlenergy()
    assert (found["measured"].to_numpy() == load("mlenergy").frame["itl_p50_ms"].to_numpy() / 1e3).all()
    return found.assign(row=found.index + FIRST)[["row", "predicted", "low", "high"]].rename(
        columns={"predicted": "step"}
    )


def loops() -> pd.DataFrame:
    """Return what is predicted for the closed loops of our own vLLM, and what the laboratory's law said before."""
    columns = ["quantity", "users", "measured", "predicted", "low", "high", "law", "ratio"]
    return accuracy.watched_loops()[columns].sort_values(["quantity", "users"])


def profiled() -> pd.DataFrame:
    """Return by group how far off validation rows of `served` are, as shipped and by a profile of 24 others."""
    tried = served.points("validation").query("left_out != 'queue' and drafts != 'mtp'")
    own = served.profiled(tried)
    before = served.scored(tried.loc[own.index])
    shipped, after = (served.score(rows, served.GROUP).set_index(served.GROUP) for rows in (before, own))
    table = after[["points", "e2e", "inside"]].rename(columns={"e2e": "profile"}).assign(shipped=shipped["e2e"])
    return table[["points", "shipped", "profile", "inside"]].reset_index()


def repeats() -> pd.DataFrame:
    """Return by how much served points differ that were run again: with nothing changed, and under another version."""
    known, tried = served.points("calibration").query("left_out == ''"), served.points("validation")
    apart = scores.noise(pd.concat([known, tried.query("left_out != 'queue'")]))
    mini = known.query("model == 'minimax-m2' and gpu == 'b200' and weights == 'fp8'")
    load_ = ["tp", "dp", "ep", "n_in", "n_out", "users"]
    old, new = (mini[mini["version"] == version].groupby(load_)[["ttft_s", "tpot_s"]].mean() for version in VERSIONS)
    ratio = (old / new).dropna()
    return pd.DataFrame(
        [
            {"what": "same", "ttft": apart["ttft"], "tpot": apart["tpot"], "e2e": apart["e2e"]},
            {"what": "MiniMax-M2 on the B200, vLLM 0.17 over 0.19", "loads": len(ratio),
             "ttft": ratio["ttft_s"].median() - 1, "tpot": ratio["tpot_s"].median() - 1},
        ]
    )[["what", "loads", "ttft", "tpot", "e2e"]].astype({"loads": "Int64"})  # fmt: skip


def fronts() -> pd.DataFrame:
    """Return the front of requests by model, GPU and engine of the rows that were fitted, and of how many."""
    rows = []
    ours = [loop.rows for loop in halves.closed() if loop.rows["engine"].iloc[0] in ENGINES]
    known = pd.concat([served.points("calibration").query("left_out == ''"), *ours], ignore_index=True)
    for (model, gpu, engine), part in known.groupby(served.GROUP[:3]):
        unit, version = unit_of(part.iloc[0]), str(part["version"].iloc[-1])
        seconds = front_of(unit.model, unit.gpu, str(engine), version).seconds
        rows.append(
            {"model": model, "gpu": gpu, "engine": engine, "version": version, "points": len(part), "front": seconds}
        )
    return pd.DataFrame(rows)


def stands() -> pd.DataFrame:
    """Return what stands behind each kind of model on each GPU in each precision: a column for each engine."""
    found, key = support.matrix(), ["model", "gpu", "weights"]
    by_engine = []
    for engine, rows in found.groupby("engine", sort=False):
        names = {"stands": engine, "error": f"{engine}_error", "points": f"{engine}_points"}
        by_engine.append(rows.set_index(key)[[*names]].rename(columns=names))
    return pd.concat(by_engine, axis=1).reset_index()


def split_gains() -> pd.DataFrame:
    """Return what served splits give over aggregated serving: measured, played and planned."""
    found = splits.compared(splits.points())
    found = found.assign(row=found.index + FIRST, rival=found["rival"] + FIRST)
    likely = splits.chances(found).add_suffix("_chance")
    kept = ["part", *splits.SAME, "users", "gpus", "speed", "gain", *splits.HOW, *likely, *splits.FACTORS]
    table: pd.DataFrame = pd.concat([found, likely], axis=1)[["row", "rival", *kept]]
    return table


def split_places() -> pd.DataFrame:
    """Return where each pair of `split_gains` is on the map of the three ways to serve, with four digits."""
    frame = splits.points()
    both = splits.pairs(frame)
    table = splits.places(both, frame).map(lambda number: float(f"{number:.4g}"))
    return table.assign(row=both.index + FIRST)[["row", *table.columns]]


def _flags(values: pd.Series[bool]) -> Any:
    return values.map({True: "true", False: "false"})


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "served": served_points, "served_elsewhere": elsewhere, "queue_runs": queue_runs, "queue_times": queue_times,
    "silybench": silybench, "mlenergy": mlenergy, "loops": loops, "profiled": profiled, "repeats": repeats,
    "fronts": fronts, "stands": stands, "split_gains": split_gains,
    "split_places": split_places,
}  # fmt: skip


if __name__ == "__main__":
    main()
