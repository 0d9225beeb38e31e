"""Derive the tables data/measured/lab_*.csv from a file of the laboratory.

    python tools/research/derive_lab.py lab.jsonl [again.jsonl ...]
    python tools/research/derive_lab.py --add new.jsonl
    python tools/research/derive_lab.py --gpu lab.jsonl host.jsonl

`make laboratory` writes the file; the tables are of one machine, named in datapackage.json. Of an experiment in several
files the last one counts. With --add the laws keep what they have of other experiments, and the tables of bare
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
from inference_math_bench.lab.experiments import Counts, Interference, Limit, experiments
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
    """Return the tables of an engine on a GPU: found and predicted, other forms, bare steps, one prompt in loops."""
    tables = {name.replace("lab_", "lab_gpu_"): table for name, table in judged(_joined(labs)).items()}
    bare, loops = pd.concat([_bare(lab) for lab in labs]), pd.concat([_looped(lab) for lab in labs])
    kind = ["offloading", "round", "decodes", "hundreds", "after", "prompts", "tokens"]
    steps = _timed(bare, kind).drop(columns="hundreds")
    steps.insert(3, "context", steps.pop("context"))
    return {**tables, "lab_gpu_steps": steps, "lab_gpu_loops": _timed(loops, ["round", "tokens", "least", "most"])}


def _bare(lab: Laboratory) -> pd.DataFrame:
    """Return bare steps, a row each: what was in them, and whether decodes alone come right after a prompt.

    What that prompt computed may be on its way to host memory then. Contexts grow by a token a step; what is alike to a
    hundred tokens is of one kind.
    """
    looks = [(line["round"], steps_of(line["rows"])) for line in lab.costs]
    looks += [(t.round, seen.steps) for t in lab.trials if t.experiment == "step" for seen in t.observed]
    offloading, rows = int("kv_offloading_size" in lab.head["engine"]["flags"]), []
    for number, steps in looks:
        for before, s in zip([None, *steps], steps, strict=False):
            after = s.tokens == 0 and before is not None and before.tokens > 0 and before.decodes == s.decodes
            context = s.context / max(1, s.decodes)
            rows.append(
                {
                    "offloading": offloading, "round": number, "decodes": s.decodes, "hundreds": round(context / 100),
                    "context": context, "after": int(after), "prompts": round(s.prefills), "tokens": s.tokens,
                    "step": s.seconds, "model": s.model,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def _looped(lab: Laboratory) -> pd.DataFrame:
    """Return steps of closed loops with one whole prompt of the usual length, by how many decode beside it."""
    n_in, rows = Interference(lab.head.get("scale", 1)).n_in, []
    for trial in lab.trials:
        seen = [s for one in trial.observed for s in one.steps] if trial.experiment == Interference.name else []
        for s in seen:
            least = 0 if s.decodes == 0 else 2 ** int(np.log2(s.decodes))
            if s.prefills == 1 and s.tokens == n_in and not s.cached:
                row = {"round": trial.round, "tokens": n_in, "least": least, "most": max(0, 2 * least - 1)}
                rows.append({**row, "step": s.seconds, "model": s.model})
    whole, times = ["round", "tokens", "least", "most"], ["step", "model"]
    return pd.DataFrame(rows, columns=[*whole, *times]).astype(dict.fromkeys(whole, int) | dict.fromkeys(times, float))


def _timed(steps: pd.DataFrame, kind: list[str]) -> pd.DataFrame:
    """Return steps by kind: medians and quartiles of their time, the median of the model's part, how many."""
    groups = steps.groupby(kind)
    low, high = groups.step.quantile(0.25), groups.step.quantile(0.75)
    times = {"step_ms": groups.step.median(), "low_ms": low, "high_ms": high, "model_ms": groups.model.median()}
    table = pd.DataFrame({name: 1e3 * value for name, value in times.items()})
    if "context" in steps:
        table.insert(0, "context", groups.context.median().round().astype(int))
    return _rounded(table.assign(steps=groups.size()).reset_index(), list(times))


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
