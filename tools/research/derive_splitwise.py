"""Derive data/measured/splitwise_llama2_70b.csv from Splitwise's measurements.

    python tools/research/derive_splitwise.py perf_model.csv

The argument is `data/perf_model.csv` of github.com/Mutinifni/splitwise-sim at 8f99e7dc (MIT).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

# The names of data/gpus.csv. "h100-80gb-pcap" is left out: its prompt times are the H100's times 1.3.
GPU = {"a100-80gb": "a100-80gb", "h100-80gb": "h100-sxm"}
KEY = {"gpu": "hardware", "tp": "tensor_parallel", "prompt": "prompt_size", "batch": "batch_size",
       "output_tokens": "token_size"}  # fmt: skip
# A run this many times longer than its phases explain was waiting: its prompt and token times are no
# measurement of the batch that it names.
BROKEN = 2


def main() -> None:
    """Write the table; print what was written and left out."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("raw", type=Path, help="perf_model.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    table, broken = derive(pd.read_csv(options.raw))
    write(table, options.out / "splitwise_llama2_70b.csv", "prefill_ms", "step_ms")
    print("Left out: BLOOM, the power-capped H100, and broken:")
    print(broken.to_string(index=False))


def derive(raw: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the medians over the repeats for Llama-2-70B, in milliseconds, and the groups left out.

    Rows that two sweeps of the source share are there more than once and are counted once.
    """
    rows = raw[(raw.model == "llama2-70b") & raw.hardware.isin(GPU)].drop_duplicates()
    rows = rows.replace({"hardware": GPU}).rename(columns={old: new for new, old in KEY.items()})
    medians = rows.groupby(list(KEY), as_index=False).agg(
        prefill_ms=("prompt_time", "median"),
        step_ms=("token_time", "median"),
        repeats=("prompt_time", "size"),
        total_ms=("e2e_time", "median"),
    )
    explained = medians.prefill_ms + (medians.output_tokens - 1) * medians.step_ms
    broken = medians.total_ms > BROKEN * explained
    kept = medians[~broken].drop(columns="total_ms").reset_index(drop=True)
    return kept, medians[broken].reset_index(drop=True)


if __name__ == "__main__":
    main()
