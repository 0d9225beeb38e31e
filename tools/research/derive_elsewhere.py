"""Derive data/measured/served_elsewhere.csv: served points of other sources, engines and GPUs, only predicted.

    python tools/research/derive_elsewhere.py mlenergy_v3_full.csv sgl_cookbook.csv atom_mi355x.csv

The first are exports of ML.ENERGY's leaderboard v3, github.com/ml-energy/leaderboard at 0cd52dab (Apache-2.0); of its
mixtures only long reasoning is taken (GPQA), where prompts, whose lengths it does not state, hardly count. The second
are benchmarks in the cookbook of SGLang, github.com/sgl-project/sgl-cookbook at 7b5bd9c0 (Apache-2.0); the third those
in the recipes of ATOM, github.com/ROCm/ATOM at ffdf3bb5 (MIT). All rows of the models below are taken that have a TPOT
and no drafted tokens.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from tables import write

MLENERGY = {
    "openai/gpt-oss-120b": "gpt-oss-120b", "openai/gpt-oss-20b": "gpt-oss-20b",
    "Qwen/Qwen3-30B-A3B-Thinking-2507": "qwen3-30b-a3b", "Qwen/Qwen3-235B-A22B-Thinking-2507": "qwen3-235b-a22b",
    "Qwen/Qwen3-235B-A22B-Thinking-2507-FP8": "qwen3-235b-a22b", "deepseek-ai/DeepSeek-V3.1": "deepseek-v3",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek-v3",
}  # fmt: skip
# Model and GPU in the cookbook, whose words differ: ours, and what checkpoints of that name are stored in.
COOKBOOK = {
    ("openai/gpt-oss-120b", "B200"): ("gpt-oss-120b", "b200", "mxfp4"),
    ("Qwen/Qwen3-235B-A22B-Instruct-2507", "B200"): ("qwen3-235b-a22b", "b200", "bf16"),
    ("deepseek-ai/DeepSeek-R1-0528", "B200"): ("deepseek-v3", "b200", "fp8"),
    ("deepseek-ai/DeepSeek-V3.1", "MI300X"): ("deepseek-v3", "mi300x", "fp8"),
    ("MiniMaxAI/MiniMax-M2", "MI300X"): ("minimax-m2", "mi300x", "fp8"),
    ("MiniMaxAI/MiniMax-M2.5", "B200"): ("minimax-m2", "b200", "fp8"),
    ("MiniMaxAI/MiniMax-M2.5", "H100"): ("minimax-m2", "h100-sxm", "fp8"),
    ("moonshotai/Kimi-K2.5", "H200"): ("kimi-k2", "h200-sxm", "int4"),
    ("moonshotai/Kimi-K2.6", "H200"): ("kimi-k2", "h200-sxm", "int4"),
    ("meta-llama/Llama-3.1-70B", "A100"): ("llama-3-70b", "a100-80gb", "bf16"),
}
ATOM = {"Qwen3-235B-A22B-Instruct-2507-FP8": "qwen3-235b-a22b", "Kimi-K2-Thinking-MXFP4": "kimi-k2"}
WEIGHTS = {"bfloat16": "bf16", "fp8": "fp8", "mxfp4": "mxfp4"}
GPU = {"H100": "h100-sxm", "B200": "b200"}
PROMPT = 300  # tokens of a question of GPQA, about
DRAWN = 0.9  # mean over nominal length where lengths are drawn from 0.8 to 1.0 of it


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("mlenergy", "cookbook", "atom"):
        arguments.add_argument(name, type=Path)
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    raw = [pd.read_csv(path, dtype=str).fillna("") for path in (options.mlenergy, options.cookbook, options.atom)]
    rows = [*mlenergy(raw[0]), *cookbook(raw[1]), *atom(raw[2])]
    # The cookbook repeats a benchmark under two versions of a model.
    table = pd.DataFrame(rows).drop_duplicates(["source", "model", "gpu", "gpus", "n_in", "n_out", "users", "tpot_s"])
    table = table.sort_values(["source", "model", "gpu", "gpus", "n_in", "n_out", "users"])
    write(table, options.out / "served_elsewhere.csv", "n_in", "n_out", "users", "tpot_s")


def mlenergy(raw: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the mixtures' rows of long reasoning: the mean time of a token at the mean batch."""
    for row in raw[(raw["task"] == "gpqa") & raw["model"].isin(list(MLENERGY))].to_dict("records"):
        gpus, dp = int(row["n_gpus"]), int(row["dp"])
        yield {
            "source": "ML.ENERGY", "model": MLENERGY[row["model"]], "gpu": GPU[row["gpu"]], "gpus": gpus,
            "tp": gpus // dp, "ep": int(row["ep"]), "dp": dp, "engine": "vllm", "version": row["engine_version"],
            "weights": WEIGHTS[row["precision"]], "n_in": float(PROMPT), "n_out": float(row["osl_mean_actual"]),
            "users": float(row["batch_mean"]), "tpot_s": float(row["tbt_mean_ms"]) / 1e3,
        }  # fmt: skip


def cookbook(raw: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield SGLang's rows by the lengths and the concurrency that were seen."""
    clean = raw[(raw["spec_decode"] == "none") & (raw["tpot_mean_ms"] != "")]
    for (name, gpu), (model, ours, weights) in COOKBOOK.items():
        of = clean[(clean["model"] == name) & clean["gpu"].str.contains(gpu) & ~clean["gpu"].str.contains(",.*,")]
        for row in of.to_dict("records"):
            gpus = int(row["tp"])
            yield {
                "source": "SGLang cookbook", "model": model, "gpu": ours, "gpus": gpus, "tp": gpus,
                "ep": int(row["ep"] or 1), "dp": 1, "engine": "sglang", "version": row["engine_version"],
                "weights": weights, "n_in": float(row["isl_mean_actual"]), "n_out": float(row["osl_mean_actual"]),
                "users": max(float(row["mean_concurrency"]), 1.0), "tpot_s": float(row["tpot_mean_ms"]) / 1e3,
            }  # fmt: skip


def atom(raw: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield ATOM's rows on the MI355X; lengths are exact, or drawn as the notes say."""
    for row in raw[raw["model"].isin(list(ATOM)) & (raw["tpot_mean_ms"] != "")].to_dict("records"):
        part = DRAWN if "0.8" in row["notes"] else 1.0
        yield {
            "source": "ATOM recipes", "model": ATOM[row["model"]], "gpu": row["gpu"], "gpus": int(row["n_gpus"]),
            "tp": int(row["tp"]), "ep": int(row["ep"]), "dp": int(row["dp"]), "engine": "atom", "version": "",
            "weights": row["precision"], "n_in": part * float(row["isl"]), "n_out": part * float(row["osl"]),
            "users": float(row["concurrency"]), "tpot_s": float(row["tpot_mean_ms"]) / 1e3,
        }  # fmt: skip


if __name__ == "__main__":
    main()
