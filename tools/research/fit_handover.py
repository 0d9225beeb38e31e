"""Fit what a prefill-decode split adds to a request's first token: data/handover.csv.

    python tools/research/fit_handover.py                  # the table
    python tools/research/fit_handover.py --score          # how far off TTFT is with it where nothing was fitted

A router, two schedulers and the transfer of a KV cache stand between a user and the first token of a split, beside the
front that any engine has. What they take is seen where queues are out of the way: at most `FEW` users. There the median
TTFT lies over the played one by the hand-over and by what front and prompts are off by. The latter is common to the
aggregated point of the same set-up that was served at the nearest date, for engines get faster by the month, so the
hand-over is the difference of both. Only rows in the part "choose" are fitted.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import splits
from from_served import FREEDOM, NINE_TENTHS
from scipy.stats import t
from tables import write

__all__ = ["added", "fitted", "levels", "off", "scored"]

FEW = 4  # users: the least that most set-ups were served with both ways, so few that prompts seldom meet
LEAST = 0.01  # seconds: less is not told from nothing, since repeats of a split lie as far apart
SET_UP = ["gpu", "engine", "weights", "n_in", "n_out"]
LAYOUT = ["drafts", "users", *(f"{pool}{name}" for pool in ("prefill_", "") for name in ("workers", "tp", "dp", "ep"))]
ENOUGH = 3  # splits of which a spread is told


def main() -> None:
    """Write the table, or score it; print what was written or found."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    arguments.add_argument("--score", action="store_true", help="print errors on the part that chose nothing")
    options = arguments.parse_args()
    frame, path = splits.points(), options.out / "handover.csv"
    if options.score:
        seconds = pd.read_csv(path)["seconds"].iloc[0]
        print(scored(frame[frame["part"] == "score"], seconds).round(3).to_string())
    else:
        write(levels(added(frame[frame["part"] == "choose"])), path, "seconds", "sd", digits=2)


def off(rows: pd.DataFrame) -> pd.DataFrame:
    """Return points with their `played` median TTFT and what the measured one lies `over` it, in seconds."""
    shown = pd.Series([splits.played(row)["ttft"] for _, row in rows.iterrows()], index=rows.index, dtype=float)
    return rows.assign(played=shown, over=rows["ttft_s"] - shown)


def added(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the splits of few users, with what aggregated points lie `beside` their played TTFT, and `added` seconds.

    The aggregated points are those of the set-up at the date nearest to the split's, in the median.
    """
    few = off(frame[frame["users"] <= FEW])
    few = few.assign(day=pd.to_datetime(few["date"]))
    found = []
    for _, rows in few.groupby(SET_UP):
        whole = rows[rows["prefill_workers"] == 0]
        for index, split in rows[rows["prefill_workers"] > 0].iterrows() if len(whole) else ():
            apart = (whole["day"] - split["day"]).abs()
            found.append((index, whole["over"][apart == apart.min()].median()))
    beside = pd.Series(dict(found), dtype=float)
    told = few.loc[beside.index].assign(beside=beside)
    return told.assign(added=told["over"] - told["beside"])


def levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the hand-over of all splits, and of each engine, mean prompt and GPU alone, as rows of the table."""
    told = [{"factor": "all", "level": "all"} | fitted(rows)]
    for factor in ("engine", "gpu", "n_in"):
        told += [{"factor": factor, "level": f"{level}"} | fitted(own) for level, own in rows.groupby(factor)]
    return pd.DataFrame(told)


def fitted(rows: pd.DataFrame) -> dict[str, float]:
    """Return the seconds that splits add, the standard deviation of their logarithm, and of how many that is.

    A split that was served again counts once, with its median. Logarithms have Student's t, so that a split that waits
    for something else pulls little; the standard deviation is that of a normal whose nine tenths are as wide.
    """
    each = rows.groupby([*SET_UP, *LAYOUT])["added"].median()
    logs = np.log(each.clip(lower=LEAST).to_numpy())
    centre, sd = float(np.median(logs)), float("nan")
    if len(logs) >= ENOUGH:
        _, centre, scale = t.fit(logs, f0=FREEDOM)
        sd = float(scale * t.ppf(0.95, FREEDOM) / NINE_TENTHS)
    return {"seconds": float(np.exp(centre)), "sd": sd, "splits": len(each), "rows": len(rows)}


def scored(frame: pd.DataFrame, seconds: float) -> pd.DataFrame:
    """Return the median error of TTFT without and with a hand-over: |predicted / measured − 1|, and of how many rows.

    Few users: also beside what the aggregated points of the set-up are off by, which is no matter of the hand-over.
    """
    every, few = off(frame[frame["prefill_workers"] > 0]), added(frame)
    shown = {"all splits": every["played"], "few users": few["played"], "few, beside": few["played"] + few["beside"]}
    told = {}
    for name, played in shown.items():
        measured = frame["ttft_s"].loc[played.index]
        without, with_it = ((played + more) / measured - 1 for more in (0.0, seconds))
        told[name] = {"rows": len(played), "without": without.abs().median(), "with": with_it.abs().median()}
    return pd.DataFrame(told).T


if __name__ == "__main__":
    main()
