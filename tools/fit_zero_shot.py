"""Fit the zero-shot coefficients to the committed operator tables: data/coefficients.csv.

    python tools/fit_zero_shot.py

One fit for each engine whose operators are measured, and one to both, which serves sglang. Standard deviations are the
jackknife's over the five models, `low` and `high` 95 % intervals by Student's t. Two rows are no shares of a rate:
`request`, 0 in operators, with what an engine of 2025 adds as its standard deviation, and `spread`, the standard
deviation of log(measured / predicted) on models that were left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from scipy.stats import t
from tables import write

from inference_math.profiles import from_operators


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    options = arguments.parse_args()
    write(derive(from_operators.composed_steps()), options.out / "coefficients.csv", "value", "sd", "low", "high")


def derive(steps: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each engine and coefficient: its value, standard deviation and 95 % interval."""
    vllm = from_operators.fit(steps[steps["engine"] == "vllm"]).coefficients
    request = from_operators.request_overhead(vllm)
    rows = []
    for engine in ("vllm", "trtllm", "sglang"):
        chosen = steps if engine == "sglang" else steps[steps["engine"] == engine]
        found, others = from_operators.fit(chosen), from_operators.left_out(chosen, "model")
        sd = from_operators.jackknife(others)
        wide = t.ppf(0.975, len(others) - 1)
        fitted = [(name, getattr(found.coefficients, name), sd[name]) for name in from_operators.FITTED]
        fitted += [("kv", found.coefficients.kv, sd["memory"])]
        rows += [
            {"engine": engine, "name": name, "value": value, "sd": sd}
            | {"low": max(value - wide * sd, 0), "high": min(value + wide * sd, 1)}
            for name, value, sd in fitted
        ]
        rows.append({"engine": engine, "name": "request", "value": 0, "sd": request, "low": 0, "high": 1.96 * request})
        spread = (others["spread"] ** 2).mean() ** 0.5
        rows.append({"engine": engine, "name": "spread", "value": spread, "sd": 0, "low": spread, "high": spread})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
