"""Derive data/measured/silybench.csv, a closed loop of users on one GPU, from the points of silybench-data.

    python tools/research/derive_silybench.py perf_points.csv

The argument has a point a row, by precision, lengths and users, in the columns of `RAW`: 77 of those in
derived/csv/perf_points.csv of github.com/tgarg01/silybench-data at 93e48873 (CC BY 4.0), retyped with fewer digits.

The table is for validation only: no default coefficient of the package is fitted to it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from tables import write

KEY = {"precision": "precision", "isl": "prompt_tokens", "osl": "output_tokens", "conc": "concurrency"}
MEASURED = {"ttft_p95_ms": "ttft_p95_ms", "tpot_p95_ms": "tpot_p95_ms", "itl_median_ms": "itl_median_ms",
            "req_per_s": "requests_per_s", "out_tok_s": "output_tokens_per_s"}  # fmt: skip
RAW = {**KEY, "num_prompts": "requests", **MEASURED}
COUNTS = ["prompt_tokens", "output_tokens", "concurrency", "requests"]
# Tokens that the KV cache holds, as vLLM reported them, by the precision of the weights.
KV_TOKENS = {"bf16": 377_024, "fp8": 430_272}
# What validation leaves out: a full cache, very many users, and a row whose last wave is nearly empty.
FULL, MOST_USERS, RAGGED = 0.97, 256, 7


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("raw", type=Path, help="perf_points.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    # As text, which keeps the digits of the file.
    write(derive(pd.read_csv(options.raw, dtype=str)), options.out / "silybench.csv")


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return every point with the digits it came with, the end-to-end latency and whether it is used, sorted by key.

    Raises
    ------
    ValueError
        If a column is missing, for an unknown precision, and if a setting occurs twice.
    """
    if missing := [column for column in RAW if column not in raw]:
        raise ValueError(f"the raw file lacks the columns {', '.join(missing)}")
    if unknown := sorted(set(raw.precision) - set(KV_TOKENS)):
        raise ValueError(f"precision must be one of {', '.join(KV_TOKENS)}, not {', '.join(unknown)}")
    table = raw[list(RAW)].rename(columns=RAW)
    table[COUNTS] = table[COUNTS].astype(int)
    key = list(KEY.values())
    if table.duplicated(key).any():
        raise ValueError(f"more than one point per {', '.join(key)}")
    waves = np.ceil(table.requests / table.concurrency)
    e2e: pd.Series[float] = table.requests / table.requests_per_s.astype(float) / waves
    held = table.concurrency * (table.prompt_tokens + table.output_tokens)
    used = (
        (held <= FULL * table.precision.map(KV_TOKENS))
        & (table.concurrency <= MOST_USERS)
        & (table.concurrency != RAGGED)
    )
    table["e2e_s"] = e2e.map(lambda s: f"{s:.5g}")
    table["used"] = used.map({True: "true", False: "false"})
    return table.sort_values(key, ignore_index=True)


if __name__ == "__main__":
    main()
