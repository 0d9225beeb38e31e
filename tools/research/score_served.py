"""Score the points that were set aside: data/served_error.csv, data/accuracy.csv and data/saturated_error.csv.

    python tools/research/score_served.py

Run it once for a release, after `fit_served.py` and `fit_front.py`: `make score`. Nothing is fitted. Of the points of
`use` "validation" those are taken that have no queue. The first table is what a plan says of its own calibration, the
second has TTFT, TPOT and e2e by group and part, the third the throughput of offline runs. Whatever comes out is
reported whole.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import accuracy
import halves
import pandas as pd
import saturated
import scores
import served
from tables import write


def main() -> None:
    """Write the tables; print them."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    options = arguments.parse_args()
    chosen = halves.chosen()
    halves.show(chosen)
    today = halves.results(chosen)
    print(halves.score(today, ["source", "kind", "drafts"]).round(3).to_string(index=False))
    more = pd.concat([accuracy.watched_results(), accuracy.silybench_results(), today], ignore_index=True)
    found = served.errors(more)
    write(found, options.out / "served_error.csv", "error", "ttft", "inside", "printed", "lacked")
    print(found.to_string(index=False))
    points = served.scored(served.points("validation").query("left_out != 'queue'"))
    table = scores.by_group(points)
    shares = [name for name in table.columns if name not in (*scores.BY, "points")]
    write(table, options.out / "accuracy.csv", *shares)
    print(table.round(3).to_string(index=False))
    offline = saturated.by_layout(saturated.played())
    write(offline, options.out / "saturated_error.csv", "error", "bias", "nearest")
    print(offline.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
