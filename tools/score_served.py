"""Score the served points that were set aside, data/served_error.csv: what a plan says of its own calibration.

    python tools/score_served.py

Run it after `fit_served.py`. Nothing is fitted: of the points of `use` "validation" those are taken that the chapter
on what the field runs takes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tables import write

from inference_math.profiles import served


def main() -> None:
    """Write the table; print it."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    options = arguments.parse_args()
    found = served.errors()
    write(found, options.out / "served_error.csv", "error", "inside")
    print(found.to_string(index=False))


if __name__ == "__main__":
    main()
