"""Fit what ships for engines, data/served_{levels,together,spread,left_out}.csv, from calibration rows of `served`.

    python tools/research/fit_served.py

And from those of `served_halves` that choose and are closed loops. An engine that the catalogue lacks (ATOM) has levels
of its own in the fit, so that what is left says how its GPU differs; these do not ship.

The spread is what predictions err by where nothing was fitted: for an engine on a GPU on which none of its rows was,
each pair of an engine and a GPU left out once, of GPUs whose kernels were measured; and for ML.ENERGY's mixtures, a
source of which no row is.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import from_served
import halves
import pandas as pd
import served
from tables import write

from inference_math.catalogue import GPUS
from inference_math.unit import Unit
from inference_math.unit.coefficients import COEFFICIENTS, DATASHEET, ENGINES
from inference_math.unit.mixing import FACTORS
from inference_math.unit.nearest import TOGETHER, coefficient_key, served as composed
from inference_math.unit.types import MixedEffects


def main() -> None:
    """Write the tables; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    arguments.add_argument("--levels", action="store_true", help="the levels alone, a third of the time")
    options = arguments.parse_args()
    points = served.points("calibration").query("left_out == ''")
    points = points.assign(slowed=served.slowed(points))
    loops = [*from_served.loops_of(list(served.loops(points, DATASHEET))), *halves.closed()]
    found = from_served.fit(sound(loops))
    write(table(found.levels), options.out / "served_levels.csv", *COEFFICIENTS)
    write(pd.DataFrame(found.levels.interactions, columns=TOGETHER), options.out / "served_together.csv")
    if options.levels:
        return
    apart = pd.concat([left_out(loops, found), other_source(found.levels)], ignore_index=True)
    measured = [GPUS[name].generation in from_served.MEASURED for name in apart["gpu"]]
    rows = [{"kind": kind, "spread": width} for kind, width in from_served.spreads(apart[measured]).items()]
    write(pd.DataFrame(rows), options.out / "served_spread.csv", "spread")
    errors = {name: (apart[name] / apart[f"{name}_s"] - 1).abs() for name in ("e2e", "tpot")}
    groups = apart[apart["use"] == "calibration"].assign(**errors).groupby(served.GROUP)
    off = groups[["e2e", "tpot"]].mean().assign(points=groups.size()).reset_index()
    write(off[[*served.GROUP, "points", "e2e", "tpot"]], options.out / "served_left_out.csv", "e2e", "tpot")
    ratio = errors["e2e"]
    print(ratio.groupby([apart[name] for name in served.GROUP]).agg(["size", "mean", "median"]).round(3).to_string())
    print(f"left out: mean {ratio.mean():.3f}, median {ratio.median():.3f}")


def table(levels: MixedEffects) -> pd.DataFrame:
    """Return the levels as rows, but those of engines that the catalogue lacks."""
    known = [name for name in levels.intercept if name.split("-")[0] in ENGINES]
    told = {"centre": levels.intercept, **levels.effects, "seen": {"": levels.sd_seen}, "unseen": levels.sd_unseen}
    rows = [
        {"factor": factor, "level": level, **told[factor][level]}
        for factor in ("centre", *FACTORS, "seen", "unseen")
        for level in told[factor]
        if factor not in ("centre", "engine", "model") or level.split("/")[0] in known
    ]
    return pd.DataFrame(rows)[["factor", "level", *COEFFICIENTS]]


def sound(loops: list[served.Loop]) -> list[served.Loop]:
    """Return the loops without rows that something held up; see `served.slowed`."""
    rows = [loop.rows[~loop.rows["slowed"]] for loop in loops]
    return [replace(loop, rows=own) for loop, own in zip(loops, rows, strict=True) if len(own)]


def left_out(loops: list[served.Loop], found: from_served.Fit) -> pd.DataFrame:
    """Return all rows with what is predicted for them by a fit, to `sound` ones, without their engine on their GPU."""
    tables = []
    each = [(str(loop.rows["engine"].iloc[0]), loop.unit.gpu.name) for loop in loops]
    for pair in sorted(set(each)):
        apart = [own == pair for own in each]
        others = [loop for loop, left in zip(loops, apart, strict=True) if not left]
        levels = from_served.fit(sound(others), found, most=20).levels
        tables += [predicted(loop, levels) for loop, left in zip(loops, apart, strict=True) if left]
    return pd.concat(tables, ignore_index=True)


def predicted(loop: served.Loop, levels: MixedEffects) -> pd.DataFrame:
    """Return the rows of a loop with e2e under some levels, ends of its interval, and the model's kind."""
    unit = under(loop.unit, levels)
    told, tpot = unit.predict("e2e", loop.work, loop.users, 0.9, known=[]), unit.tpot(loop.work, loop.users)
    times = {"e2e": told.value, "low": told.low, "high": told.high}
    return loop.rows.assign(**{name: each * loop.waiting for name, each in times.items()}, tpot=tpot, kind=unit.kind)


def other_source(levels: MixedEffects) -> pd.DataFrame:
    """Return ML.ENERGY's rows with what the levels predict; of these only the time of a token is known."""
    rows = served.external_results(unit=lambda unit: under(unit, levels), source="ML.ENERGY")
    return rows.assign(e2e=rows["tpot"], e2e_s=rows["tpot_s"])


def under(unit: Unit, levels: MixedEffects) -> Unit:
    """Return a unit with the coefficients that levels compose."""
    at = coefficient_key(
        unit.model, unit.gpu, unit.weights, unit.engine, unit.version, kv=unit.kv, together=unit.tp * unit.dp
    )
    return unit.calibrated(composed(levels, at))


if __name__ == "__main__":
    main()
