"""Every error of predictions of served points in one place, by group, and an alarm where one grows.

Table `accuracy` has what `score_served.py` found last, by model, GPU, engine, precision, drafts and part of the
validation rows. The part "blind" chose nothing: neither a term nor a width; see `served.parts`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import served

__all__ = ["BY", "alarms", "by_group", "noise", "shapes"]

BY = [*served.GROUP, "drafts", "part"]
_CURVE = ["model", "gpu", "engine", "weights", "tp", "ep", "dp", "version", "n_in", "n_out", "drafts"]
_ERRORS = ["ttft", "tpot", "e2e"]


def shapes(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each row of `served.scored` how far the *shape* of its curve is off: columns as `_ERRORS`, shares.

    That is predicted over measured, each divided by its own value at the fewest users of the curve: fair where an
    engine has a constant of its own. NaN for that row itself and for curves of one.
    """
    ratios = pd.DataFrame({name: table[name] / table[f"{name}_s"] for name in _ERRORS})
    first = table.groupby(_CURVE)["users"].transform("min") == table["users"]
    at_first = ratios.where(first).groupby([table[name] for name in _CURVE]).transform("mean")
    return (ratios / at_first - 1).abs().where(~first)


def by_group(table: pd.DataFrame) -> pd.DataFrame:
    """Return `served.score` of rows of `served.scored` by `BY`, with shape errors beside: `ttft_shape`, `e2e_shape`."""
    found = served.score(served.beside_peer(table), BY)
    off = shapes(table)
    mean = off.groupby([table[name] for name in BY]).mean().reset_index()[[*BY, "ttft", "e2e"]]
    return found.merge(mean.rename(columns={"ttft": "ttft_shape", "e2e": "e2e_shape"}), on=BY, how="left")


def noise(frame: pd.DataFrame) -> pd.Series[float]:
    """Return by how much a measurement that was repeated differs: of TTFT, TPOT and e2e the median share.

    That is the standard deviation of the logarithm among rows of one set-up, version and load.
    """
    groups = frame.groupby([*_CURVE, "users"])
    logs = pd.DataFrame({name: np.log(frame[f"{name}_s"]) for name in _ERRORS})
    sizes = groups["users"].transform("size")
    apart = logs.groupby([frame[name] for name in [*_CURVE, "users"]]).transform("std")
    return apart[sizes > 1].median()


def alarms(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Return the groups of which an error has grown by two points and a tenth, or is gone: tables as of `by_group`."""
    both = before.merge(after, how="left", on=BY, suffixes=("_before", "_after"))
    rows = []
    for name in _ERRORS:
        old, new = both[f"{name}_before"], both[f"{name}_after"]
        grown = both[((new > old + 0.02) & (new > 1.1 * old)) | (old.notna() & new.isna())]
        rows.append(grown[BY].assign(error=name, before=old[grown.index], after=new[grown.index]))
    return pd.concat(rows, ignore_index=True)
