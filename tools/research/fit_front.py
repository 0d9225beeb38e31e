"""Fit the front of requests, data/served_front.csv, to the measured TTFT of calibration rows of `served`.

Adds to data/served_left_out.csv how far TTFT is off for groups whose engine on their GPU is left out.

    python tools/research/fit_front.py

Of `served_halves` those count, too, that set coefficients, of engines in the catalogue; a median is fitted by the
played one. Rows that something held up (`served.slowed`) set nothing. Run it after `fit_served.py`: points are played
with the coefficients that ship. The spread is what means then err by on the choosing part of the validation rows; of
kinds of models that it lacks, where an engine on a GPU is left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import from_first_tokens as first
import halves
import numpy as np
import pandas as pd
import served
from tables import write

from inference_math.unit.coefficients import ENGINES


def main() -> None:
    """Write the table; print how far off it is."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    options = arguments.parse_args()
    own = [loop for loop in halves.closed() if loop.rows["engine"].iloc[0] in ENGINES]
    points = served.points("calibration").query("left_out == ''")
    parts = (
        first.grid(list(served.loops(points.assign(slowed=served.slowed(points))))),
        first.grid(own, halves.first_tokens),
    )
    known = pd.concat(parts, ignore_index=True)
    found = first.fit(known)
    apart = first.left_out(known)
    rows = served.points("validation").query("left_out != 'queue' and drafts != 'unknown' and part == 'choose'")
    chosen = first.grid(list(served.loops(rows)))
    tried = first.ttft_of(chosen, first.seconds_of(chosen, found))
    wide = first.spreads(known, apart) | first.spreads(chosen, tried)
    write(first.columns_of(found, first.moved_apart(known), wide), options.out / "served_front.csv", "moved")
    off = known.assign(ttft=np.abs(apart / known["ttft_s"] - 1)).groupby(served.GROUP)["ttft"].mean().reset_index()
    told = pd.read_csv(options.out / "served_left_out.csv").drop(columns="ttft", errors="ignore")
    write(told.merge(off, how="left", on=served.GROUP), options.out / "served_left_out.csv", "e2e", "tpot", "ttft")
    again = first.ttft_of(known, first.seconds_of(known, found))
    for name, table, times in (("fitted", known, again), ("left out", known, apart), ("to choose by", chosen, tried)):
        print(f"{name}:\n{errors(table, times)}")


def errors(table: pd.DataFrame, predicted: np.ndarray) -> str:
    """Return mean and median errors of TTFT by group, as text."""
    off = table.assign(off=np.abs(predicted / table["ttft_s"] - 1))
    by = off.groupby(served.GROUP)["off"].agg(["size", "mean", "median"]).round(3)
    return f"{by.to_string()}\nmean {off['off'].mean():.3f}, median {off['off'].median():.3f}"


if __name__ == "__main__":
    main()
