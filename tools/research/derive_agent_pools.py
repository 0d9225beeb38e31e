"""Derive data/measured/agent_pools.csv: what prefix caches found of prompts that begin with one of a pool of prefixes.

    python tools/research/derive_agent_pools.py runs.csv

The argument holds runs from recipes and pull requests of github.com/ROCm/ATOM (MIT), collected one a line. Those whose
workload is a pool of prefixes are kept, with the HBM's tokens, whether a host tier stood behind it, and what was found.
`requests` of a window that is not counted from its start are left empty: its caches were filled before.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pandas as pd
from tables import write

_POOL = re.compile(r"prefix pool (\d+).*?(\d+) shared \+ (\d+) tail(?:, (\d+) out)?")
STEADY = "_steady"


def main() -> None:
    """Write the table; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("source", type=Path, help="runs.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    write(derive(pd.read_csv(options.source)), options.out / "agent_pools.csv", "found_hbm", "found")


def derive(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the runs whose prompts begin with one of a pool of prefixes, and whose hits are known."""
    rows = []
    for run in raw.to_dict("records"):
        told = _POOL.search(str(run["workload"]))
        alone = run["host_kind"] == "none"
        found = run["reuse_hbm"] if alone and pd.isna(run["reuse_total"]) else run["reuse_total"]
        if told is None or pd.isna(found):  # shares of two tiers that are given apart are not of the same tokens
            continue
        prefixes, prefix, tail, answer = (int(number or 0) for number in told.groups())
        steady = str(run["pair"]).endswith(STEADY)
        requests = run["n_requests"]
        if pd.isna(requests) and run["output_tok_s"] > 0 and answer:
            requests = round(run["output_tok_s"] * run["window_s"] / answer)
        rows.append(
            {
                "run": run["run_id"], "pair": run["pair"], "model": run["model"], "gpu": run["gpu"],
                "gpus": int(run["n_gpus"]), "users": int(run["users"]), "prefixes": prefixes, "prefix": prefix,
                "tail": tail, "answer": answer, "hbm_tokens": int(run["hbm_kv_tokens"]),
                "tier": "none" if alone else "host",
                "requests": None if steady else requests, "found_hbm": run["reuse_hbm"], "found": found,
            }
        )  # fmt: skip
    return pd.DataFrame(rows).astype({"requests": "Int64"})


if __name__ == "__main__":
    main()
