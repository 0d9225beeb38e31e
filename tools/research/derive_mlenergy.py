"""Derive data/measured/mlenergy.csv from the ML.ENERGY Leaderboard v3.

    python tools/research/derive_mlenergy.py all_configs.csv

The argument holds the configurations of the files `public/data/models/*.json` of github.com/ml-energy/leaderboard
at 0cd52dab (Apache-2.0), one a row. Of their fields (file: column of all_configs.csv) are used: the file's name
without .json: model; gpu_model: gpu; tensor_parallel: tp; max_num_seqs: mns; avg_batch_size: B; median_itl_ms: itl50;
p90_itl_ms: itl90; output_throughput_tokens_per_sec: thr; avg_output_len: out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

TASK = "lm-arena-chat"
# The dense models of data/models.csv whose shapes these have, and the GPU of data/gpus.csv.
MODEL = {"meta-llama/Llama-3.1-8B-Instruct": "llama-3-8b", "meta-llama/Llama-3.1-70B-Instruct": "llama-3-70b",
         "meta-llama/Llama-3.3-70B-Instruct": "llama-3-70b", "Qwen/Qwen3-8B": "qwen3-8b",
         "Qwen/Qwen3-14B": "qwen3-14b", "Qwen/Qwen3-32B": "qwen3-32b"}  # fmt: skip
GPU = {"H100": "h100-sxm"}
KEY = ["model", "served_model", "gpu", "tp", "max_num_seqs"]
MEASURED = {"batch": "B", "itl_p50_ms": "itl50", "itl_p90_ms": "itl90", "output_tokens_per_s": "thr",
            "output_tokens": "out"}  # fmt: skip


def main() -> None:
    """Write the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("raw", type=Path, help="all_configs.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    write(derive(pd.read_csv(options.raw)), options.out / "mlenergy.csv", *MEASURED)


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the chat runs of the dense models on H100, sorted by `KEY`.

    Raises
    ------
    ValueError
        If a column that the table needs is not there.
    """
    if missing := {"model", "gpu", "tp", "mns", *MEASURED.values()} - set(raw.columns):
        raise ValueError(f"the raw file lacks the columns {', '.join(sorted(missing))}")
    task = raw.model.str.rsplit("__", n=1).str[-1]
    served = raw.model.str.rsplit("__", n=1).str[0].str.replace("__", "/", regex=False)
    rows = raw.rename(columns={"mns": "max_num_seqs"} | {old: new for new, old in MEASURED.items()})
    rows = rows.assign(model=served.map(MODEL), served_model=served, gpu=raw.gpu.map(GPU))
    kept = rows[(task == TASK) & rows.model.notna() & rows.gpu.notna()]
    return kept[[*KEY, *MEASURED]].sort_values(KEY, ignore_index=True)


if __name__ == "__main__":
    main()
