"""Derive data/published/saturated.csv: output throughput of TensorRT-LLM with all requests handed over at once.

    python tools/research/derive_saturated.py trtllm_perf_overview.csv

The argument holds the tables of NVIDIA's page perf-overview.md (TensorRT-LLM, Apache-2.0) at three revisions, a line a
value. Left out are mixtures of the page of 1.0 on several GPUs: it does not say how they were divided. Layouts TPn
share each matrix, DEPn divide requests and experts among n GPUs. gpt-oss is published in four bits, whatever the page
calls it; caches are in FP8, as the checkpoints say, but for gpt-oss on Hopper.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

MODELS = {
    "DeepSeek-R1-0528": "deepseek-v3", "Llama-3.1-405B": "llama-3-405b", "Llama-3.1-8B": "llama-3-8b",
    "Llama-3.3-70B": "llama-3-70b", "Llama-4-Maverick": "llama-4-maverick", "Llama-4-Scout": "llama-4-scout",
    "Qwen3-235B-A22B": "qwen3-235b-a22b", "Qwen3-30B-A3B": "qwen3-30b-a3b", "gpt-oss-120b": "gpt-oss-120b",
    "gpt-oss-20b": "gpt-oss-20b",
}  # fmt: skip
GPUS = {
    "H100": "h100-sxm", "H200": "h200-sxm", "B200": "b200", "GB200": "gb200", "B300": "b300", "GB300": "gb300",
    "RTX-6000-Pro-Blackwell-SE": "rtx-pro-6000",
}  # fmt: skip
DENSE = ("llama-3-405b", "llama-3-8b", "llama-3-70b")
VERSIONS = {"v1.0": "1.0", "03e27c7d": "1.1", "release1.2": "1.2"}  # the second page came after 1.0 and before 1.2
# Requests of a run by (prompt, answer) tokens; all others 1,000.
REQUESTS = {(128, 128): 30_000}
REQUESTS |= dict.fromkeys([(1024, 1024), (1000, 1000), (128, 2048), (2048, 128), (500, 2000)], 3000)
REQUESTS |= dict.fromkeys([(8192, 1024), (1024, 8192), (128, 4096), (1000, 2000), (2048, 2048), (5000, 500)], 1500)


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("source", type=Path, help="trtllm_perf_overview.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/published"))
    options = arguments.parse_args()
    write(derive(pd.read_csv(options.source)), options.out / "saturated.csv", "tokens_per_s")


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each value whose layout is stated."""
    model = raw["model"].map(MODELS)
    oss, hopper = model.str.startswith("gpt-oss"), raw["gpu"].isin(["H100", "H200"])
    weights = raw["precision"].map({"FP8": "fp8", "FP4": "nvfp4"}).mask(oss, "mxfp4")
    dp = raw["dp"].fillna(1).astype(int)
    table = pd.DataFrame(
        {
            "version": raw["page"].map(VERSIONS),
            "model": model,
            "gpu": raw["gpu"].map(GPUS),
            "weights": weights,
            "kv": (oss & hopper).map({True: "bf16", False: "fp8"}),
            "tp": raw["tp"].astype(int),
            "ep": raw["ep"].fillna(1).astype(int),
            "dp": dp,
            "pp": raw["pp"].fillna(1).astype(int),
            "n_in": raw["isl"].astype(int),
            "n_out": raw["osl"].astype(int),
            "requests": [REQUESTS.get(lengths, 1000) for lengths in zip(raw["isl"], raw["osl"], strict=True)],
            "tokens_per_s": raw["output_tok_s_per_gpu"] * raw["n_gpus"],
        }
    )
    told = ~((raw["page"] == "v1.0") & ~model.isin(DENSE) & (raw["n_gpus"] > 1))
    order = ["version", "model", "gpu", "tp", "dp", "pp", "n_in", "n_out"]
    return table[told].sort_values(order).reset_index(drop=True)


if __name__ == "__main__":
    main()
