"""Derive data/published/mlperf.csv: Llama-2-70B on a DGX H100 in MLPerf Inference 4.1.

    python tools/research/derive_mlperf.py llm_h100_h200.csv

The argument holds the summaries of closed/*/results of github.com/mlcommons/inference_results_v4.1 at 198fc467
(Apache-2.0), a line a run: org, system, bench, scen, valid, tok_s, sps, ttft_mean_ms and so on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

RUN = {"org": "NVIDIA", "system": "DGX-H100_H100-SXM-80GBx8_TRT", "bench": "llama2-70b-99.9"}
QUANTITIES = {
    "tok_s": ("tokens_per_s", "token/s"), "sps": ("requests_per_s", "1/s"),
    "ttft_mean_ms": ("ttft_mean", "ms"), "ttft_p99_ms": ("ttft_p99", "ms"),
    "tpot_mean_ms": ("tpot_mean", "ms"), "tpot_p99_ms": ("tpot_p99", "ms"),
}  # fmt: skip


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("source", type=Path, help="llm_h100_h200.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/published"))
    options = arguments.parse_args()
    write(derive(pd.read_csv(options.source)), options.out / "mlperf.csv", "value")


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each quantity of NVIDIA's offline and server runs; the source writes 0 where there is none."""
    rows = raw[(raw[list(RUN)] == pd.Series(RUN)).all(axis=1) & raw["valid"]]
    return pd.DataFrame(
        [
            {"scenario": row["scen"].lower(), "gpus": 8, "quantity": name, "value": row[column], "unit": unit}
            for row in rows.to_dict("records")
            for column, (name, unit) in QUANTITIES.items()
            if row[column]
        ]
    )


if __name__ == "__main__":
    main()
