"""Fit how far predicted gains are off by kind of comparison, an error that draws of coefficients do not have.

    python tools/research/fit_comparisons.py                       # data/comparison_error.csv

A draw makes all steps of a unit slower together, and a comparison of two ways to serve hardly notices. What does not
cancel is how far each way's own law is off. It is measured on pairs that were run both ways: the logarithm of measured
gain over predicted gain. Pools have pairs of served points, of which those in the part "choose" are fitted, played as
they ran and planned at the speed that they reached. Chunks, cadences and stores have pairs of our own runs on an H100.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import splits
from numpy.typing import NDArray
from scipy.optimize import minimize
from tables import write

from inference_math.catalogue import gpu
from inference_math.evidence import load

FOUND = ["bias", "sd", "between_engines", "between_setups"]
FEW = 3  # set-ups: with fewer a common error of all pairs cannot be told from that of the set-up
# Experiment, quantity, the setting beside which others are, mean prompt and answer (of chunks as the arm says).
LAB = {
    "chunks": ("chunks", "tokens_per_s", "budget 65536", 1024, 0),
    "cadence": ("cadence", "rate", "cadence 1", 512, 32),
    "cadence, gap": ("cadence", "gap", "cadence 1", 512, 32),
    "cadence, p50": ("cadence", "p50", "cadence 1", 512, 32),
    "cadence, p90": ("cadence", "p90", "cadence 1", 512, 32),
    "store": ("reuse", "per_user", "cached 0", 8192, 16),
}


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    options = arguments.parse_args()
    table = pd.DataFrame([fitted(rows) for _, rows in pd.concat([pools(), lab()]).groupby("kind")])
    table[FOUND] = table[FOUND].round(3)
    write(table, options.out / "comparison_error.csv", *FOUND, digits=3)


def pools() -> pd.DataFrame:
    """Return the errors of the served pairs in the part that is fitted: kind, engine, setup, error."""
    frame = splits.points()
    both = splits.compared(frame[frame["part"] == "choose"])
    setup = both[splits.SAME].astype(str).agg(" ".join, axis=1)
    kinds = {"pools, played": both["played"], "pools, planned": both["planned"]}
    tables = [
        both[["engine", "n_in", "n_out"]].assign(kind=kind, setup=setup, error=np.log(both["gain"] / law))
        for kind, law in kinds.items()
    ]
    generations = both["gpu"].map(lambda name: gpu(name).generation)
    return pd.concat([one.assign(models=splits.KIND, generations=generations) for one in tables]).dropna()


def lab() -> pd.DataFrame:
    """Return the same of our own runs with vLLM: each setting beside the first of its kind and answers."""
    rows = load("lab_gpu_arms").frame
    told = []
    for kind, (experiment, quantity, base, n_in, n_out) in LAB.items():
        own = rows[(rows["experiment"] == experiment) & (rows["quantity"] == quantity)]
        for _, alike in own.groupby(own["arm"].str.extract(r"(n_out \d+|prefixes \d+|$)", expand=False)):
            first = alike[alike["arm"].str.contains(f"{base}(?:,|$)")]
            for _, row in alike.drop(first.index).iterrows() if len(first) else ():
                answer = n_out or int(row["arm"].rpartition(" ")[2])
                told.append((kind, n_in, answer, np.log(row["ratio"] / first["ratio"].iloc[0])))
    table = pd.DataFrame(told, columns=["kind", "n_in", "n_out", "error"])
    return table.assign(engine="vllm", setup="h100", models="dense", generations="Hopper")


def fitted(rows: pd.DataFrame) -> dict[str, object]:
    """Return bias and standard deviation of the logarithm of a kind's gains, for a pair of another set-up and engine.

    Errors are those of an engine, of a set-up and of a pair, all normal. Of few set-ups nothing common is told.
    """
    error, setups = rows["error"].to_numpy(float), rows["setup"].nunique()
    bias, sds = 0.0, np.array([0.0, 0.0, np.sqrt((error**2).mean())])
    if setups >= FEW:
        found = minimize(lambda at: _unlikely(rows, np.exp(at))[0], np.log([0.1, 0.1, 0.2]), method="Nelder-Mead")
        bias, sds = _unlikely(rows, np.exp(found.x))[1], np.exp(found.x)
    told = {"kind": rows["kind"].iloc[0], "bias": bias, "sd": float(np.sqrt((sds**2).sum()))}
    told |= {"between_engines": sds[0], "between_setups": sds[1], "pairs": len(rows), "setups": setups}
    ends = {f"{name}_{end}": getattr(rows[name], end)() for name in ("n_in", "n_out") for end in ("min", "max")}
    return told | ends | {name: ";".join(sorted(set(rows[name]))) for name in ("models", "generations")}


def _unlikely(rows: pd.DataFrame, sds: NDArray[np.float64]) -> tuple[float, float]:
    """Return minus the log likelihood of the errors, up to a constant, and their mean, which makes it least."""
    engines, setups = (rows[name].to_numpy() for name in ("engine", "setup"))
    same = [engines[:, None] == engines, setups[:, None] == setups, np.eye(len(rows))]
    covariance = np.asarray(sum(sd**2 * one for sd, one in zip(sds, same, strict=True)))
    error, ones = rows["error"].to_numpy(float), np.ones(len(rows))
    bias = float(ones @ np.linalg.solve(covariance, error) / (ones @ np.linalg.solve(covariance, ones)))
    off = error - bias
    return float(np.linalg.slogdet(covariance)[1] + off @ np.linalg.solve(covariance, off)) / 2, bias


if __name__ == "__main__":
    main()
