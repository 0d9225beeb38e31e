"""How far set-ups are off that nobody fitted or scored: the second width, and what one run narrows it to.

A set-up is a generation of an engine, a model, a GPU and a precision. Those of the calibration hold what their
intervals say wherever somebody else ran them; others need `another`, whatever their source. Points are those of sources
that set no coefficient: silybench, our own run, `served_elsewhere`, and rows of `served_halves` that choose and were
not fitted.

    python tools/research/between.py
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import accuracy
import halves
import numpy as np
import pandas as pd
import served

from inference_math.evidence import load
from inference_math.unit.coefficients import ENGINES
from inference_math.unit.nearest import engine_generation

__all__ = ["another", "by_level", "held", "left_out", "narrowed", "points"]

LEVEL = 0.9
_SDS = NormalDist().inv_cdf((1 + LEVEL) / 2)
_WIDEST, _STEP = 2.0, 0.005
_MANY = 5  # points of a set-up, from which one run of it is tried
_NAMES = ["engine", "version", "model", "gpu", "weights"]
_OWN = {"engine": "vllm", "version": "0.24", "model": "llama-3-8b", "gpu": "h100-sxm", "weights": "bf16"}


def points() -> pd.DataFrame:
    """Return points of what set no coefficient: `source`, `set_up`, `served`, `off`, and `down` and `up`.

    `off` is log(measured / predicted) of TPOT, of silybench of the latency; the interval of an engine like ours ends
    `down` below and `up` above it. `served`: whether the set-up is one of the calibration. Nights of one
    set-up are one point. GPUStack counts as a source for each of its engines, for its pages are of different people's
    making.
    """
    tails = accuracy.silybench({name: served.like_ours(unit) for name, unit in accuracy.qwen().items()}, LEVEL).assign(
        model="qwen3-8b", gpu="h100-sxm", engine="vllm"
    )
    tails = tails.assign(source="silybench", version="0.30", weights=tails["precision"])
    own = load("predicted_loops").frame.query("quantity == 'tpot'").assign(source="our own", **_OWN)
    others = served.external_results(LEVEL, served.like_ours, foreign=False)
    others = others.assign(measured=others["tpot_s"], predicted=others["tpot"])
    frame = halves.choosing()
    chosen = halves.fitted(frame)
    columns = ["source", *_NAMES, "measured", "predicted", "low", "high"]
    table = pd.concat(
        [part[columns] for part in (tails, own, others, _nights(halves.predicted(frame[~chosen], LEVEL)))]
    )
    at = [_set_up(row) for row in table[_NAMES].to_dict("records")]
    known = load("served").frame.query("use == 'calibration'").fillna({"version": ""})
    fitted = {_set_up(row) for row in pd.concat([known[_NAMES], frame.loc[chosen, _NAMES]]).to_dict("records")}
    logs = {name: np.log(table[name] / table["predicted"]) for name in ("measured", "low", "high")}
    told = pd.DataFrame({"source": table["source"], "off": logs["measured"], "down": -logs["low"], "up": logs["high"]})
    return told.assign(set_up=[" ".join(one) for one in at], served=[one in fitted for one in at]).reset_index(
        drop=True
    )


def _nights(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `halves.predicted`, each set-up once: the middle of its nights."""
    rows = rows.assign(measured=np.log(rows["tpot_s"].fillna(rows["tpot_p50_s"])), predicted=rows["tpot"])
    once = dict.fromkeys((*_NAMES, "source", "predicted", "low", "high"), "first") | {"measured": "mean"}
    found = rows.groupby(halves.SAME, dropna=False, sort=False).agg(once).reset_index(drop=True)
    apart = found["source"].where(found["source"] != "GPUStack", "GPUStack, " + found["engine"])
    apart = apart.where(apart != "InferenceX", "InferenceX later, " + found["gpu"])
    apart = apart.where(apart != "SGLang cookbook", "SGLang cookbook of 2026")
    return found.assign(measured=np.exp(found["measured"]), source=apart)


def _set_up(row: dict[Any, Any]) -> tuple[str, ...]:
    """Return what a set-up is named by; generations of an engine that is not ours are not known apart."""
    ours = row["engine"] in ENGINES
    engine = engine_generation(row["engine"], row["version"]) if ours else str(row["engine"])
    return engine, str(row["model"]), str(row["gpu"]), str(row["weights"])


def held(table: pd.DataFrame, width: float) -> pd.Series[float]:
    """Return the share of its points that each source has inside of intervals, those of its set-ups counted alike.

    Set-ups of no calibration have them wider by `width`, in quadrature.
    """
    more = np.where(table["served"], 0.0, _SDS * width)
    inside = table["off"].between(-np.hypot(table["down"], more), np.hypot(table["up"], more)).astype(float)
    return inside.groupby([table["source"], table["set_up"]]).mean().groupby(level=0).mean()


def another(table: pd.DataFrame, level: float = LEVEL) -> float:
    """Return the least width with which the share `level` of points of set-ups is inside that no calibration has.

    Sources count alike, and within one its set-ups.
    """
    unseen = table[~table["served"]]
    return next(w for w in np.arange(0, _WIDEST, _STEP) if held(unseen, w).mean() >= level)


def left_out(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each source left out what intervals hold of it: with one width, `one`, and with the others' `two`."""
    rows = []
    for source, own in table.groupby("source"):
        width = another(table[table["source"] != source])
        told = {"source": source, "points": len(own), "set_ups": own["set_up"].nunique(), "mean": own["off"].mean()}
        rows.append(told | {"one": held(own, 0.0).iloc[0], "two": held(own, width).iloc[0], "width": width})
    return pd.DataFrame(rows)


def by_level(table: pd.DataFrame) -> pd.Series[float]:
    """Return sums of squares about the mean of all, by what differs: sources, set-ups within, points within; shares."""
    off, means = table["off"], {}
    for name, by in (("source", ["source"]), ("set_up", ["source", "set_up"])):
        means[name] = off.groupby([table[one] for one in by]).transform("mean")
    parts = [means["source"] - off.mean(), means["set_up"] - means["source"], off - means["set_up"]]
    sums = pd.Series([float((part**2).sum()) for part in parts], ["sources", "set-ups", "points"])
    return sums / sums.sum()


def narrowed(table: pd.DataFrame) -> pd.Series[float]:
    """Return what `another` is once a set-up was run: as it is, with one of its points as an anchor, with all others.

    Of set-ups of `_MANY` points or more; a level is moved, no coefficient is fitted. The anchor is the first point.
    """
    groups = table[~table["served"]].groupby(["source", "set_up"])["off"]
    many = groups.transform("size") >= _MANY
    some = table[~table["served"]][many]
    each = some.groupby(["source", "set_up"])["off"]
    size = each.transform("size")
    tried = {
        "as it is": some,
        "one anchor": some.assign(off=some["off"] - each.transform("first"))[each.cumcount() > 0],
        "all others": some.assign(off=(some["off"] - each.transform("mean")) * size / (size - 1)),
    }
    return pd.Series({name: another(rows) for name, rows in tried.items()})


def main() -> None:
    """Print it."""
    table = points()
    print(by_level(table).round(3).to_string())
    print(left_out(table).round(3).to_string(index=False))
    print(held(table[table["served"]], 0.0).round(3).to_string())
    print(f"another set-up: {another(table):.3f}")
    print(narrowed(table).round(3).to_string())


if __name__ == "__main__":
    main()
