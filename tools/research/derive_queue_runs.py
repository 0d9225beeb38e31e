"""Derive data/measured/queue_runs.csv: each request of three overloaded engines, its arrival and its times.

    python tools/research/derive_queue_runs.py llmservingsim_bench.csv

The argument is an export of the folder `bench/examples` of github.com/casys-kaist/LLMServingSim at 5daddb21 (MIT), one
request a row. Of its columns (ours: column of the export) are used: model; gpu; tp; dp; version: engine_version;
max_batch: max_num_seqs; budget: max_num_batched_tokens; arrival_s; n_in: isl; n_out: osl; and the times wait, ttft,
tpot and e2e, there in milliseconds. Runs on a GPU that data/gpus.csv lacks are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

MODEL = {
    "meta-llama/Llama-3.1-8B": "llama-3-8b", "Qwen/Qwen3-32B": "qwen3-32b",
    "Qwen/Qwen3-30B-A3B-Instruct-2507": "qwen3-30b-a3b",
}  # fmt: skip
GPU = {"RTXPRO6000": "rtx-pro-6000"}
WEIGHTS = {"bfloat16": "bf16"}
SAME = ["model", "gpu", "tp", "ep", "dp", "engine", "version", "weights", "max_batch", "budget"]
NAMES = {
    "engine_version": "version", "precision": "weights", "max_num_seqs": "max_batch",
    "max_num_batched_tokens": "budget", "isl": "n_in", "osl": "n_out",
}  # fmt: skip
TIMES = {"wait": "sched_wait_ms", "ttft": "ttft_ms", "tpot": "tpot_ms", "e2e": "e2e_ms"}


def main() -> None:
    """Write the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("raw", type=Path, help="llmservingsim_bench.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    found = derive(pd.read_csv(options.raw))
    write(found, options.out / "queue_runs.csv", "arrival_s", *(f"{name}_s" for name in TIMES))


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the requests of known models and GPUs, by run and arrival, in seconds.

    Raises
    ------
    ValueError
        If a column that the table needs is not there.
    """
    needed = {"model", "gpu", "tp", "ep", "dp", "engine", "arrival_s", *NAMES, *TIMES.values()}
    if missing := needed - set(raw.columns):
        raise ValueError(f"the raw file lacks the columns {', '.join(sorted(missing))}")
    rows = raw.rename(columns=NAMES).assign(**{f"{name}_s": raw[column] / 1e3 for name, column in TIMES.items()})
    mapped = {"model": MODEL, "gpu": GPU, "weights": WEIGHTS}
    rows = rows.assign(**{name: rows[name].map(names) for name, names in mapped.items()})
    # Where experts are parted, each GPU has whole ones.
    rows["ep"] = (rows["tp"] * rows["dp"]).where(rows["ep"] > 0, 1)
    kept = rows.dropna(subset=list(mapped)).sort_values([*SAME, "arrival_s", "n_in", "n_out"], kind="stable")
    return kept[[*SAME, "arrival_s", "n_in", "n_out", *(f"{name}_s" for name in TIMES)]].reset_index(drop=True)


if __name__ == "__main__":
    main()
