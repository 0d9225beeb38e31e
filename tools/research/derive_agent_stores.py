"""Derive data/measured/agent_stores.csv: what a host tier brought to engines that serve agents and long prompts.

    python tools/research/derive_agent_stores.py runs.csv

The argument holds published runs of AISimulate and InferenceX (Apache-2.0) and of ROCm ATOM (MIT), one a line.
Kept are the groups of `GROUPS`, whose runs differ in a tier, or in what it finds, and else in nothing that is known.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pandas as pd
from tables import write

GROUPS = (
    "glm53_c8", "glm53_c8_steady", "glm53_c32", "glm53_c32_steady", "glm53_pool8192_c8", "glm52_early_16",
    "glm52_early_64", "glm52_rework_64", "kimik3_c16", "kimik3_c32", "kimik3_c16_process", "mm3_mi355x_c2",
    "mm3_mi355x_lookup", "mm25_host", "kimik3_b300_c16", "dsv4_b200_host_size",
)  # fmt: skip
_ANSWER = re.compile(r"(\d+) out\b")
_PATH = re.compile(r"\(([\d.]+) us each\)")


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("source", type=Path, help="runs.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    table = derive(pd.read_csv(options.source))
    floats = ["n_in", "found", "found_hbm", "rate", "answers_s", "prompts_s", "ttft_s", "gap_s"]
    write(table, options.out / "agent_stores.csv", *floats)


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of `GROUPS` whose share of found tokens is known, or whose partner's is."""
    rows = []
    for run in raw[raw["pair"].isin(GROUPS)].to_dict("records"):
        found = run["reuse_total"]
        if pd.isna(found):
            parts = [run["reuse_hbm"], run["reuse_host"]]
            found = sum(part for part in parts if pd.notna(part)) if pd.notna(parts[0]) else None
        if found is not None and found > 1:  # shares that are not of the same tokens
            found = None
        told = _ANSWER.search(str(run["workload"]))
        answer = run["output_mean"] if pd.notna(run["output_mean"]) else float(told[1]) if told else None
        rate = run["output_tok_s"] / answer if answer and pd.notna(run["output_tok_s"]) else None
        if rate is None and pd.notna(run["n_requests"]) and run["window_s"] > 0:
            rate = run["n_requests"] / run["window_s"]
        path = [float(each) for each in _PATH.findall(str(run["note"]))]
        first = next((name for name in ("ttft_p50_s", "ttft_mean_s") if pd.notna(run[name])), None)
        gap = next((name for name in ("tpot_p50_ms", "tpot_mean_ms", "tpot_p90_ms") if pd.notna(run[name])), None)
        rows.append(
            {
                "run": run["run_id"], "pair": run["pair"], "arm": run["arm"], "model": run["model"],
                "gpu": run["gpu"].split(" ")[0], "gpus": int(run["n_gpus"]), "engine": run["engine"],
                "users": run["users"], "n_in": run["prompt_mean"], "n_out": answer, "found": found,
                "found_hbm": run["reuse_hbm"], "tier_gb": run["host_gb"], "rate": rate,
                "answers_s": run["output_tok_s"], "prompts_s": run["total_tok_s"],
                "ttft_s": None if first is None else run[first], "ttft": first and first.split("_")[1],
                "gap_s": None if gap is None else run[gap] / 1e3, "gap": gap and gap.split("_")[1],
                "preemptions": run["preemptions"],
                "load_us": path[0] if path else None, "write_us": path[1] if path else None,
            }
        )  # fmt: skip
    return pd.DataFrame(rows).astype({"users": "Int64", "preemptions": "Int64"})


if __name__ == "__main__":
    main()
