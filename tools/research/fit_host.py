"""Fit what vLLM's host takes of a step that it does not plan while another runs: data/host.csv.

    python tools/research/fit_host.py

vLLM 0.11 waits for the tokens of a step, puts them out, and plans the next one while the GPU idles. So the median time
between tokens of ML.ENERGY's chats lies over the operators of the zero-shot calibration. Two numbers are fitted to all
of them: seconds of a step, and of it for each request that decodes. Per layer they explain the runs worse: a host works
for requests. `per_sequence_overhead` is left out of the operators, for a part of this is what it stands for.

Uncertainties are those of a model that was not fitted, as of operators (`from_operators.new_model`). Our own runs, of
another version, are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from from_operators import new_model
from numpy.typing import NDArray
from tables import write
from transfer import added, chats

from inference_math.unit.coefficients import Calibration

__all__ = ["NAMES", "derive", "fitted"]

NAMES = ["step", "request"]


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    options = arguments.parse_args()
    found = derive(chats(Calibration.zero_shot("vllm").coefficients))
    write(found, options.out / "host.csv", "seconds", "sd", *NAMES)


def derive(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each of `NAMES`: seconds, their standard deviation, and the correlations of the logarithms."""
    without = [fitted(rows[rows["model"] != model]) for model in rows["model"].unique()]
    covariance = new_model(pd.DataFrame(without, columns=NAMES), NAMES).to_numpy()
    seconds, width = fitted(rows), np.sqrt(np.diag(covariance))
    told = {"name": NAMES, "seconds": seconds, "sd": seconds * width}
    return pd.DataFrame(told | dict(zip(NAMES, covariance / np.outer(width, width), strict=True)))


def fitted(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return the seconds that a host takes of each step, and for each request of it."""
    return added(rows, np.ones(len(rows)), rows["batch"])


if __name__ == "__main__":
    main()
