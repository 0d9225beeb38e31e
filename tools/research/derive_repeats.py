"""Derive data/measured/repeats.csv: runs that were repeated with nothing changed but a recorder of steps.

    python tools/research/derive_repeats.py runs.csv

The argument is a table of runs out of `docs/experiments/` and `benchmarks/evidence/` of github.com/ai-dynamo/aisimulate
(Apache-2.0), a run a row, whose `run_id` ends in _on or _off, by whether steps were recorded. Of its columns (ours:
column of the export) are used: set_up: pair; lengths: workload; gpu; engine; users; and the means and medians ttft_s:
ttft_mean_s; ttft_p50_s; tpot_s: tpot_mean_ms; tokens_per_s: output_tok_s.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

GPU = {"B200": "b200", "B300": "b300"}
ENGINE = {"vLLM": "vllm", "SGLang": "sglang"}
FIXED = "8k1k"  # in the name of runs whose requests are alike; the others replay sessions of coding agents
# Sets of runs of which some differ in more: only those that the recorder tells apart are repeats.
REPEATED = (
    "dsv4_8k1k_c1", "dsv4_8k1k_c32", "dsv4_8k1k_c128", "dsv4_b200_host_size", "dsv4_b300_10min", "dsv4_b300_hicache",
    "glm52_b200_hicache", "mm3_b200_repeat",
)  # fmt: skip
TIMES = ["ttft_s", "ttft_p50_s", "tpot_s", "tokens_per_s"]


def main() -> None:
    """Write the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("raw", type=Path, help="runs.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    write(derive(pd.read_csv(options.raw)), options.out / "repeats.csv", *TIMES)


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the repeated runs, by set-up and in their order.

    Raises
    ------
    ValueError
        If a column that the table needs is not there, or a set-up has no repeat.
    """
    needed = {
        "run_id", "pair", "gpu", "engine", "users", "ttft_mean_s", "ttft_p50_s", "tpot_mean_ms", "output_tok_s",
    }  # fmt: skip
    if missing := needed - set(raw.columns):
        raise ValueError(f"the raw file lacks the columns {', '.join(sorted(missing))}")
    recorded = raw["run_id"].str.contains(r"_(?:on|off)(?:_c\d+)?$")
    rows = raw[raw["pair"].isin(REPEATED) & recorded].rename(columns={"pair": "set_up", "output_tok_s": "tokens_per_s"})
    if missing := set(REPEATED) - {str(name) for name, of in rows.groupby("set_up") if len(of) > 1}:
        raise ValueError(f"the raw file has no repeats of {', '.join(sorted(missing))}")
    found = rows.assign(
        gpu=rows["gpu"].map(GPU), engine=rows["engine"].map(ENGINE), users=rows["users"].astype(int),
        lengths=["fixed" if FIXED in name else "agents" for name in rows["set_up"]],
        ttft_s=rows["ttft_mean_s"], tpot_s=rows["tpot_mean_ms"] / 1e3,
    )  # fmt: skip
    ordered = found.sort_values(["set_up", "run_id"], kind="stable")
    return ordered[["set_up", "lengths", "gpu", "engine", "users", *TIMES]].reset_index(drop=True)


if __name__ == "__main__":
    main()
