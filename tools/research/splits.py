"""What served prefill-decode splits give per GPU beside aggregated serving at the same speed for a user [C26, C27].

Both are closed loops of table `served` and `served_splits`. A point's *interactivity* is 1/TPOT, its *throughput* the
output tokens per second of one GPU.
"""

from __future__ import annotations

import pandas as pd

from inference_math.evidence import load

__all__ = ["beside", "gains"]

_ABOUT, _NEAR = 1.05, 1.5  # of a speed: the same, and still comparable
SAME = ["model", "gpu", "weights", "n_in", "n_out"]


def beside() -> pd.DataFrame:
    """Return the splits of set-ups that were served aggregated, too, and these; drafts unknown count as they are.

    Columns: those of `SAME`, engine, drafts, gpus, users, per_user and per_gpu (token/s), split (whether it is one).
    """
    whole = load("served").frame.fillna({"left_out": "", "version": ""}).query("left_out == ''")
    parts = load("served_splits").frame
    pools = ("prefill", "decode")
    size = sum(parts[f"{p}_workers"] * parts[f"{p}_tp"] * parts[f"{p}_dp"] for p in pools)
    both = pd.concat([whole.assign(split=False), parts.assign(split=True, gpus=size)], ignore_index=True)
    both["per_user"] = 1 / both["tpot_s"]
    e2e = both["ttft_s"] + (both["n_out"] - 1) * both["tpot_s"]
    both["per_gpu"] = both["users"] * both["n_out"] / e2e / both["gpus"]
    kinds = both.groupby(SAME)["split"].transform("nunique")
    columns = [*SAME, "engine", "drafts", "gpus", "users", "per_user", "per_gpu", "split"]
    return both.loc[kinds == 2, columns].reset_index(drop=True)


def gains(points: pd.DataFrame) -> pd.DataFrame:
    """Return what the best splits give over the best aggregated serving that is as fast for a user.

    One row for each split that no other one beats in both: columns of `SAME`, per_user, per_gpu, aggregated (token/s
    of a GPU, NaN where none is as fast), gain, their ratio, and `near`, whether the aggregated point is of about that
    speed. Where it is much faster it was not measured with as many users, and the gain says more than it should.
    """
    tables = []
    for _, rows in points.groupby(SAME):
        parts, whole = rows[rows["split"]], rows[~rows["split"]]
        best = parts[[_undominated(one, parts) for one in parts.itertuples()]].sort_values("per_user")
        rivals = [_rival(speed, whole) for speed in best["per_user"]]
        tables.append(best.assign(aggregated=[rate for rate, _ in rivals], near=[near for _, near in rivals]))
    found = pd.concat(tables, ignore_index=True)
    columns = [*SAME, "per_user", "per_gpu", "aggregated", "gain", "near"]
    return found.assign(gain=found["per_gpu"] / found["aggregated"])[columns]


def _rival(speed: float, whole: pd.DataFrame) -> tuple[float, bool]:
    """Return the most of a GPU at about a speed or a higher one, and whether that point is of about that speed."""
    fast = whole[whole["per_user"] >= speed / _ABOUT]
    if fast.empty:
        return float("nan"), False
    best = fast.iloc[int(fast["per_gpu"].to_numpy().argmax())]
    return float(best["per_gpu"]), bool(best["per_user"] <= _NEAR * speed)


def _undominated(one: object, rows: pd.DataFrame) -> bool:
    speed, rate = one.per_user, one.per_gpu  # type: ignore[attr-defined]
    return not ((rows["per_user"] >= speed) & (rows["per_gpu"] > rate)).any()
