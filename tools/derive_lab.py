"""Derive the tables data/measured/lab_*.csv from a file of the laboratory.

    python tools/derive_lab.py lab.jsonl [again.jsonl ...]
    python tools/derive_lab.py --add new.jsonl
    python tools/derive_lab.py --gpu lab.jsonl host.jsonl

`make lab` writes the file; the tables are of one machine, which datapackage.json names. Of an experiment that several
files have, the last one counts. With --add the laws keep what they have of other experiments, and the tables of bare
steps, counts and gaps stay as they are. With --gpu the files are of one GPU, for tables data/measured/lab_gpu_*.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from tables import write

from inference_math_bench.lab import analysis, pools
from inference_math_bench.lab.experiments import Counts, Limit, experiments
from inference_math_bench.lab.record import Laboratory, arm_name, read, steps_of

GAPS = [{"users": users, "lengths": "geometric"} for users in (1, 8, 32)]
COEFFICIENTS = ("t_w", "T_decode", "kv_read", "prompt", "T", "pair")
MOVES = ("join", "save")
TOGETHER = ("counts",)  # experiments with a table of their own


def main() -> None:
    """Write the tables; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("raw", type=Path, nargs="+", help="files that `inference-math lab` wrote")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    arguments.add_argument("--gpu", action="store_true", help="files of a GPU, with tables of their own")
    arguments.add_argument("--add", action="store_true", help="only add or replace experiments")
    options = arguments.parse_args()
    labs = [read(path) for path in options.raw]
    if options.gpu:
        for name, table in of_gpu(labs).items():
            write(table, options.out / f"{name}.csv")
        return
    lab = _joined(labs)
    if options.add:
        for name, table in judged(lab).items():
            path = options.out / f"{name}.csv"
            write(added(pd.read_csv(path, dtype=str, keep_default_na=False), table), path)
        return
    for name, table in derive(lab).items():
        write(table, options.out / f"{name}.csv")


def added(known: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table with those of the new experiments in place of what it knows of them."""
    kept = known[~known.experiment.isin(new.experiment)]
    return pd.concat([kept, new.astype(str)], ignore_index=True).sort_values("experiment", kind="stable")


def derive(*labs: Laboratory) -> Mapping[str, pd.DataFrame]:
    """Return the tables by name: found and predicted, other forms of the law, counts, gaps, costs of bare steps."""
    lab = _joined(labs)
    trials = [trial for trial in lab.trials if trial.experiment == "counts"]
    gaps = analysis.gaps(lab.trials, GAPS)
    return {
        **judged(lab),
        "lab_counts": analysis.counts(trials, Counts.most).sort_values(["lengths", "k"]),
        "lab_gaps": _rounded(gaps.drop(columns="lengths"), ["above", "gap"]),
        "lab_costs": _costs(lab),
    }


def of_gpu(labs: Sequence[Laboratory]) -> Mapping[str, pd.DataFrame]:
    """Return the tables of an engine on a GPU: found and predicted, other forms of the law, bare steps by kind."""
    tables = {name.replace("lab_", "lab_gpu_"): table for name, table in judged(_joined(labs)).items()}
    return {**tables, "lab_gpu_steps": _steps(labs)}


def _steps(labs: Sequence[Laboratory]) -> pd.DataFrame:
    """Return bare steps by what was in them: medians and quartiles of their time, and the median of the model's part.

    Contexts grow by a token a step; what is alike to a hundred tokens is of one kind.
    """
    rows = []
    for lab in labs:
        offloading = int("kv_offloading_size" in lab.head["engine"]["flags"])
        bare = [step for line in lab.costs for step in steps_of(line["rows"])]
        bare += [s for t in lab.trials if t.experiment == "step" for seen in t.observed for s in seen.steps]
        for s in bare:
            context = s.context / max(1, s.decodes)
            what = (offloading, s.decodes, round(context / 100), round(s.prefills), s.tokens, s.cached)
            rows.append((*what, context, 1e3 * s.seconds, 1e3 * s.model))
    kind = ["offloading", "decodes", "hundreds", "prompts", "tokens", "cached"]
    found = pd.DataFrame(rows, columns=[*kind, "context", "ms", "model"]).groupby(kind)
    table = found.agg(
        context=("context", lambda x: round(x.median())),
        step_ms=("ms", "median"),
        low_ms=("ms", lambda x: x.quantile(0.25)),
        high_ms=("ms", lambda x: x.quantile(0.75)),
        model_ms=("model", "median"),
        steps=("ms", "size"),
    ).reset_index()
    table = table[["offloading", "decodes", "context", *kind[3:], "step_ms", "low_ms", "high_ms", "model_ms", "steps"]]
    return _rounded(table, ["step_ms", "low_ms", "high_ms", "model_ms"])


def judged(lab: Laboratory) -> Mapping[str, pd.DataFrame]:
    """Return what was found and predicted, and other forms of the law."""
    table = lab.table[~lab.table.experiment.isin(TOGETHER)]
    every = experiments(lab.head.get("scale", 1))
    arms = [arm_name(arm) for experiment in every for arm in experiment.arms()]
    table = table[table.quantity != "limit"]  # what bisection kept to, and nothing that was found
    table = table[table.arm.isin([*arms, *(arm_name(arm) for arm in pools.arms())])]
    # Where no batch that was tried broke the limit, bisection says nothing.
    users = table[(table.quantity == "users") & (table[["found", "predicted"]].max(axis=1) >= Limit.most)]
    table = table[~table.arm.isin(users.arm)]
    found, laws = analysis.summary(table), analysis.alternatives(table)
    return {
        "lab_arms": _rounded(found, ["predicted", "found", "ratio", "low", "high"]),
        "lab_laws": _rounded(laws, ["predicted", "ratio"]),
    }


def _joined(labs: Sequence[Laboratory]) -> Laboratory:
    """Return one laboratory that has each experiment from the last of several that tried it."""
    last = {trial.experiment: lab for lab in labs for trial in lab.trials}
    trials = [trial for lab in labs for trial in lab.trials if last[trial.experiment] is lab]
    costs = [line for lab in labs for line in lab.costs if not line.get("pools") or last["pools"] is lab]
    return replace(labs[0], costs=tuple(costs), trials=tuple(trials))


def _costs(lab: Laboratory) -> pd.DataFrame:
    """Return the coefficients of each look at bare steps, in microseconds."""
    rows = []
    for look, line in enumerate(lab.costs, start=1):
        values = {f"{name}_us": 1e6 * line[name] for name in COEFFICIENTS}
        more = {f"{name}_us": 1e6 * line.get(name, np.nan) for name in MOVES} | {"error": line.get("error", np.nan)}
        rows.append({"look": look, "engines": 2 if line.get("pools") else 1, **values, **more})
    return _rounded(pd.DataFrame(rows), [f"{name}_us" for name in (*COEFFICIENTS, *MOVES)] + ["error"])


def _rounded(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return the table with four significant digits in some columns, as text; NaN is an empty cell."""
    found = table.copy()
    for column in columns:
        found[column] = found[column].map(lambda value: "" if np.isnan(value) else f"{value:.4g}")
    return found


if __name__ == "__main__":
    main()
