"""Derive data/published/vllm_kv_offload.csv from the digitised figure 1 of the vLLM blog's post of 2026-01-08.

    python tools/research/derive_kv_offload.py figure1_digitised.csv

The argument has a row per point of the figure (https://vllm.ai/blog/kv-offloading-connector): the prompt in
thousands of tokens and the two times to first token in milliseconds, read off the picture to about ±10 ms.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

RAW = ["prompt_k_tokens", "ttft_gpu_compute_ms", "ttft_load_from_cpu_ms"]


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("raw", type=Path, help="figure1_digitised.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/published"))
    options = arguments.parse_args()
    write(derive(pd.read_csv(options.raw)), options.out / "vllm_kv_offload.csv", "compute_ms", "load_ms")


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the two times by prompt length in tokens, shortest prompt first.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    if missing := [column for column in RAW if column not in raw]:
        raise ValueError(f"the digitised figure lacks the columns {', '.join(missing)}")
    prompt, compute, load = (raw[column] for column in RAW)
    table = pd.DataFrame({"prompt_tokens": prompt * 1000, "compute_ms": compute, "load_ms": load})
    return table.sort_values("prompt_tokens", ignore_index=True)


if __name__ == "__main__":
    main()
