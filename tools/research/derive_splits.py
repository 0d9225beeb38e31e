"""Derive what served prefill-decode splits give beside aggregated serving: data/measured/served_splits.csv.

    python tools/research/derive_splits.py points.csv

`points.csv` holds served points of DeepSeek-R1-0528 by SemiAnalysis InferenceX (Apache-2.0), read from the results that
two copies of its application keep as fixtures: facts, each with the number of its run. Kept are set-ups that were
served both ways, and of their splits those whose layout is stated. Each is in the part by which errors are chosen, or
in the part that only scores them; see `parts`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from tables import write

SEED = 56  # of `parts`: set before any gain was compared with a prediction
ENGINE = {
    "dynamo-sglang": "sglang", "mori-sglang": "sglang", "sglang": "sglang",
    "dynamo-trt": "trtllm", "trt": "trtllm",
}  # fmt: skip
GPU = {"h100": "h100-sxm"}
# Four bits of weights and activations; those of AMD are MXFP4, of which the unit model knows rates only by this name.
WEIGHTS = {"fp8": "fp8", "fp4": "nvfp4"}
SHARE = 0.9  # of the nominal lengths is the mean: drawn uniformly from 0.8 to 1.0 of it
_RUN = r"/runs/(\d+)"  # its number under github.com/SemiAnalysisAI/InferenceX/actions
GROUP = ["gpu", "weights", "n_in", "n_out"]
SET_UP = [*GROUP, "drafts", "engine"]
POOLS = {"prefill": "prefill_", "decode": ""}
COLUMNS = [
    "part", "gpu", "engine", "date", "weights", "drafts", "n_in", "n_out", "users",
    "prefill_workers", "prefill_tp", "prefill_dp", "prefill_ep", "workers", "tp", "dp", "ep",
    "ttft_s", "tpot_s", "rate", "run",
]  # fmt: skip


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("points", type=Path)
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    write(
        served_splits(pd.read_csv(options.points)),
        options.out / "served_splits.csv", "n_in", "n_out", "ttft_s", "tpot_s", "rate",
    )  # fmt: skip


def served_splits(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of splits, and the aggregated ones beside them, that have 0 `prefill_workers`."""
    table = served_points(raw)
    table = table[table["engine"].notna() & table["rate"].notna()]
    ways = table.assign(split=table["prefill_workers"] > 0).groupby(SET_UP)["split"].transform("nunique")
    return parts(table[ways == 2])[COLUMNS].sort_values(COLUMNS[:-4], kind="stable")


def served_points(raw: pd.DataFrame) -> pd.DataFrame:
    """Return each point whose layout is stated, aggregated ones with 0 `prefill_workers`; without its part."""
    table = pd.DataFrame({"gpu": raw["gpu"].replace(GPU), "engine": raw["engine"].map(ENGINE), "date": raw["date"]})
    table["weights"], table["drafts"] = raw["precision"].map(WEIGHTS), raw["drafts"]
    table["n_in"], table["n_out"], table["users"] = SHARE * raw["isl"], SHARE * raw["osl"], raw["users"]
    split = raw["disagg"] == 1
    stated = pd.Series(True, index=raw.index)
    for pool, prefix in POOLS.items():
        size = raw[[f"{pool}_tp", f"{pool}_ep"]].max(axis=1)
        ranks = raw[f"{pool}_dp_attention"].where(raw[f"{pool}_dp_attention"] == 0, size).clip(lower=1)
        table[f"{prefix}workers"] = raw[f"{pool}_num_workers"].where(split, int(pool == "decode"))
        table[f"{prefix}tp"], table[f"{prefix}dp"], table[f"{prefix}ep"] = size // ranks, ranks, raw[f"{pool}_ep"]
        whole = (table[f"{prefix}workers"] * size == raw[f"num_{pool}_gpu"]) & (table[f"{prefix}workers"] > 0)
        # A group of attention in which tensors are split has as many GPUs as it says.
        stated &= ~split | (whole & ((ranks > 1) | (raw[f"{pool}_tp"] == size)))
    for name in ("workers", "tp", "dp", "ep"):
        table[f"prefill_{name}"] = table[f"prefill_{name}"].where(split, 0)
    # The source's output rate is that of a decode GPU; `gpus` of aggregated rows is wrong where experts are whole.
    table["rate"] = raw["out_tok_s_gpu"] * raw["num_decode_gpu"].where(split, raw["decode_tp"])
    table["ttft_s"], table["tpot_s"], table["run"] = (
        raw["ttft_p50_s"],
        raw["tpot_p50_s"],
        raw["run_url"].str.extract(_RUN, expand=False),
    )
    return table[stated]


def parts(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the `part` of each row, "choose" or "score".

    Whole groups of a GPU, a precision and lengths are in one part, so that no pair has a neighbour in the other one.
    """
    told = pd.Series("", index=table.index)
    rng = np.random.default_rng(SEED)
    for _, rows in table.groupby("gpu"):
        groups = [index for _, index in rows.groupby(GROUP, sort=True).groups.items()]
        for place, number in enumerate(rng.permutation(len(groups))):
            told.loc[groups[number]] = "choose" if 2 * place < len(groups) else "score"
    return table.assign(part=told)


if __name__ == "__main__":
    main()
