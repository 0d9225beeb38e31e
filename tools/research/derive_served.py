"""Derive the table of served points: data/measured/served.csv.

    python tools/research/derive_served.py aggregated.csv deepseek_drafts.csv

The first from `silicon_sample.csv` of github.com/ai-dynamo/aiconfigurator at 095f58a5 (Apache-2.0), most of it
SemiAnalysis InferenceX, with layouts corrected and each row marked as calibration or validation before anything was
fitted. Here lengths become means (InferenceX draws them uniformly from 0.8 to 1.0 of nominal), times become seconds.
The second says which rows of DeepSeek drafted tokens, by the recipes of the day (SemiAnalysisAI/InferenceX at 843c6254,
Apache-2.0); where these allow both, by the time per token, and then the row sets no coefficient.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from tables import rounded, write

from inference_math.catalogue import MODELS

MODEL = {
    "DeepSeek-R1/V3": "deepseek-v3", "GLM-5": "glm-5", "Kimi-K2.5": "kimi-k2", "Llama-3.1-70B": "llama-3-70b",
    "Llama-3.1-8B-Instruct": "llama-3-8b", "Llama-3.1-8B-Instruct-FP8": "llama-3-8b", "MiniMax-M2.5": "minimax-m2",
    "Qwen3-32B": "qwen3-32b", "Qwen3-32B-NVFP4": "qwen3-32b", "Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
    "gpt-oss-120b": "gpt-oss-120b", "Qwen3-235B-A22B-FP8": "qwen3-235b-a22b",
}  # fmt: skip
GPU = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200", "b300_sxm": "b300", "gb200": "gb200"}
GPU |= {"gb300": "gb300"}
WEIGHTS = {"fp8": "fp8", "fp4": "nvfp4", "bf16": "bf16", "int4": "int4"}
REUSED = ("Llama-3.1-8B-Instruct-FP8", "h200_sxm", "vllm")  # faster than its prompts can be computed
LAYOUT = ["gpus", "tp", "ep", "dp"]
POINT = ["n_in", "n_out", "users", "ttft_s", "tpot_s", "drafts"]
# What tells a row of the source from all others; without the time per token, a run with drafts and one without may not.
KEY = ["date", "model", "gpu", "n_gpus", "tp", "ep", "dp", "engine", "precision", "isl", "osl", "concurrency"]
KEY += ["tpot_mean_ms"]


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("aggregated", type=Path)
    arguments.add_argument("drafts", type=Path)
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    points = served(with_drafts(pd.read_csv(options.aggregated), pd.read_csv(options.drafts)))
    write(points, options.out / "served.csv", "n_in", "n_out", "ttft_s", "tpot_s")


def with_drafts(raw: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `spec_decode` as their recipe says, and `by` what that was settled."""
    told = raw.merge(found[[*KEY, "drafts", "by"]], how="left", on=KEY, validate="many_to_one")
    settled = told["drafts"].isin(["none", "mtp"])
    if settled.sum() != found["drafts"].isin(["none", "mtp"]).sum():
        raise ValueError("each row of drafts must be one of the served rows")
    return told.assign(spec_decode=told["spec_decode"].where(~settled, told["drafts"]), by=told["by"].fillna(""))


def served(raw: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each served point, with the reason where one is left out."""
    table = common(raw)
    table["gpus"], table["tp"], table["dp"] = raw["n_gpus"], raw["tp"], raw["dp"]
    table["ep"] = raw["ep"].clip(lower=1)
    heads = table["model"].map(lambda name: MODELS[name].n_heads)
    reused = [row == REUSED for row in zip(raw["model"], raw["gpu"], raw["engine"], strict=True)]
    reasons = {
        "precision not stated": table["weights"].isna(),
        # Prefill and decode pools of whole racks, whose GPUs are counted together.
        "pools": (table["gpu"] == "gb200") & (table["model"] == "deepseek-v3") & (raw["source"] == "InferenceX"),
        "layout not stated": (heads % table["tp"] != 0)
        | ((table["gpu"] == "gb200") & (table["model"] == "deepseek-v3")),
        # What was settled by the time per token may not set it.
        "drafts by TPOT": (raw["by"] == "tpot") & (table["use"] == "calibration"),
        # 450 prompts of 15,000 tokens at once need three times the memory that there is.
        "prefixes reused": np.asarray(reused) | (table["n_in"] >= 15_000),
    }
    table["left_out"] = ""
    for reason, rows in reasons.items():
        table.loc[np.asarray(rows) & (table["left_out"] == ""), "left_out"] = reason
    table["weights"] = table["weights"].fillna("bf16")
    kept = table[["use", "model", "gpu", *LAYOUT, "engine", "version", "weights", *POINT, "left_out"]]
    # The source lists some runs twice, once as InferenceX's and once as its own, rounded differently.
    return kept[~rounded(kept, "ttft_s", "tpot_s").duplicated()]


def common(raw: pd.DataFrame) -> pd.DataFrame:
    """Return what stands in a row of the source whatever is left out."""
    random = raw["source"].isin(["InferenceX", "NVIDIA gap-analysis"])
    share = np.where(random, 0.9, 1.0)
    table = pd.DataFrame({"use": raw["use"], "model": raw["model"].map(MODEL), "gpu": raw["gpu"].map(GPU)})
    table["engine"], table["version"] = raw["engine"], raw["engine_version"].fillna("")
    # Exports of October 2025 state no version; InferenceX ran vLLM 0.10 and 0.11 then.
    table.loc[(raw["engine"] == "vllm") & (table["version"] == "") & (raw["date"] < "2025-12"), "version"] = "0.11"
    table["weights"] = raw["precision"].map(WEIGHTS)
    table.loc[table["model"] == "gpt-oss-120b", "weights"] = "mxfp4"  # as its only checkpoint
    table["n_in"], table["n_out"] = share * raw["isl"], share * raw["osl"]
    table["users"] = raw["concurrency"].astype(int)
    table["ttft_s"], table["tpot_s"] = raw["ttft_mean_ms"] / 1e3, raw["tpot_mean_ms"] / 1e3
    table["drafts"] = raw["spec_decode"]
    return table


if __name__ == "__main__":
    main()
