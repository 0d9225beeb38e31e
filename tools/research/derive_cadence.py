"""Derive data/measured/cadence.csv: what was measured with and without a cadence of prompts.

    python tools/research/derive_cadence.py cadence.csv

The argument has a value a row, out of public threads: vllm-project/vllm#44558 and #54627, sgl-project/sglang#40443,
ROCm/ATOM#2238, sparkring#178, and ai-dynamo/aisimulate at 305e46b4. Of its columns are used: source, model, gpu, gpus,
layout, engine, n_in, n_out, users, rate, interval, metric, value and unit. Ours count the steps from one with prompts
to the next, `every`: SGLang and ATOM count those between. Times are in seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

BETWEEN = ("sglang", "atom")  # engines that count the steps between
SECONDS = {"ms": 1e-3, "s": 1.0}
UNITS = {"requests/s": "1/s", "token/s": "token/s", "token/s of a request": "token/s", "ms": "s"}


def main() -> None:
    """Write the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("raw", type=Path, help="cadence.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    write(derive(pd.read_csv(options.raw)), options.out / "cadence.csv", "value")


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the values in SI units, in their order.

    Raises
    ------
    ValueError
        If a column that the table needs is not there, or a unit is unknown.
    """
    same = ["source", "model", "gpu", "gpus", "layout", "engine", "n_in", "n_out", "users", "rate"]
    if missing := {*same, "interval", "metric", "value", "unit"} - set(raw.columns):
        raise ValueError(f"the raw file lacks the columns {', '.join(sorted(missing))}")
    if strange := set(raw["unit"]) - set(UNITS):
        raise ValueError(f"the raw file has units that are not known: {', '.join(sorted(strange))}")
    whole = {name: raw[name].astype("Int64") for name in ("gpus", "n_in", "n_out", "users")}
    found = raw.assign(
        **whole, engine=raw["engine"].str.removesuffix(" fork"),
        every=raw["interval"] + raw["engine"].isin(BETWEEN),
        value=raw["value"] * raw["unit"].map(SECONDS).fillna(1.0), unit=raw["unit"].map(UNITS),
    )  # fmt: skip
    return found[[*same, "every", "metric", "value", "unit"]]


if __name__ == "__main__":
    main()
