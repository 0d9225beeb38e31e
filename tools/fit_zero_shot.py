"""Fit the zero-shot coefficients to the committed operator tables: data/coefficients.csv.

    python tools/fit_zero_shot.py

One fit for each engine whose operators are measured, and one to both, which serves sglang. `low` and `high` span the
fits that leave one of the five models out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

from inference_math import calibrate


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    options = arguments.parse_args()
    write(derive(calibrate.composed_steps()), options.out / "coefficients.csv", "value", "low", "high", "mape")


def derive(steps: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each engine and coefficient: its value, the range without one model, the error of the fit."""
    rows = []
    for engine in ("vllm", "trtllm", "sglang"):
        chosen = steps if engine == "sglang" else steps[steps["engine"] == engine]
        found, others = calibrate.fit(chosen), calibrate.left_out(chosen, "model")
        rows += [
            {
                "engine": engine, "name": name, "value": getattr(found.coefficients, name),
                "low": others[name].min(), "high": others[name].max(), "mape": found.mape,
            }
            for name in calibrate.COEFFICIENTS
        ]  # fmt: skip
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
