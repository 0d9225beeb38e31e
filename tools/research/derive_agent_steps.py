"""Derive data/measured/agent_steps.csv: steps of engines that serve coding agents, with and without prompts in them.

    python tools/research/derive_agent_steps.py runs.csv steps.csv

The arguments have a run and a class of steps a row, out of experiments that ai-dynamo/aisimulate keeps at 2bc0da0d. Of
the runs are used: run_id, gpu, users, window_s, prompt_mean, output_mean, tokens_per_step, cadence, tpot_mean_ms and
n_requests; of the classes: run_id, model, gpu, engine, layout, cls, count, the times in milliseconds, and rank: a class
of all ranks counts each rank's steps. The share of prompt tokens that was reused is not noted for these runs; that of
the same set-up's published run is taken.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from tables import write

# Runs whose steps were timed: the published run of the same set-up, and of how many tokens of a prompt its recipe lets
# a step compute (vLLM's long-prefill-token-threshold; the tokens of a step).
RUNS = {"dsv4_b200_on": ("dsv4_b200_sa", 512), "mm3_b200_on": ("mm3_b200_sa", 16384)}
CLASSES = ("decode_only", "mixed", "prefill_only")
TIMES = ("mean", "p50", "p90", "p95", "p99")
OF_RUN = ("users", "window_s", "prompt_mean", "output_mean", "tokens_per_step", "n_requests")


def main() -> None:
    """Write the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("runs", type=Path, help="runs.csv")
    arguments.add_argument("steps", type=Path, help="steps.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    found = derive(pd.read_csv(options.runs), pd.read_csv(options.steps))
    times = [f"{name}_s" for name in TIMES]
    write(found, options.out / "agent_steps.csv", *times, "tpot_s", "n_in", "n_out", "reused", "tokens_per_step")


def derive(runs: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each class of steps of each run, times in seconds, `every` as steps from prompts to prompts.

    Raises
    ------
    ValueError
        If a column or a run that the table needs is not there.
    """
    needed = {"run_id", "gpu", "cadence", "tpot_mean_ms", "reuse_hbm", "reuse_total", *OF_RUN}
    if missing := {*needed - set(runs.columns), *({"cls", "count", "rank", "layout"} - set(steps.columns))}:
        raise ValueError(f"the raw files lack the columns {', '.join(sorted(missing))}")
    known = runs.set_index("run_id")
    if missing := (set(RUNS) | {published for published, _ in RUNS.values()}) - set(known.index):
        raise ValueError(f"the raw file has no runs {', '.join(sorted(missing))}")
    rows = []
    for name, (published, chunk) in RUNS.items():
        run, classes = known.loc[name], steps[(steps.run_id == name) & steps.mean_ms.notna()].set_index("cls")
        cadence = str(run["cadence"]).partition("prefill_schedule_interval ")[2].partition(",")[0]
        for kind in CLASSES:
            one = classes.loc[kind]
            rows.append(
                {
                    "run": name, "model": one["model"], "gpu": str(one["gpu"]).lower(), "engine": one["engine"].lower(),
                    "layout": one["layout"], "every": int(cadence or 1), "chunk": chunk,
                    "steps": kind.removesuffix("_only"),
                    "count": one["count"], **{f"{time}_s": one[f"{time}_ms"] / 1e3 for time in TIMES},
                    "users": run["users"], "window_s": run["window_s"], "requests": run["n_requests"],
                    "n_in": run["prompt_mean"], "n_out": run["output_mean"],
                    "reused": run["reuse_total"] if run["reuse_total"] > 0 else known.loc[published, "reuse_hbm"],
                    "tokens_per_step": run["tokens_per_step"],
                    "tpot_s": run["tpot_mean_ms"] / 1e3,
                }
            )  # fmt: skip
    return pd.DataFrame(rows).astype({"count": int, "users": int, "requests": int})


if __name__ == "__main__":
    main()
