"""Measured tables with what a release predicts for them beside, as pages show them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize

from inference_math.evidence import load

__all__ = ["beside", "by_source", "chance_by", "difference", "served_both_ways"]

_FIRST = 2  # the line of a file's first point, as a spreadsheet counts


def beside(measured: str) -> pd.DataFrame:
    """Return the rows of a measured table that are predicted, with the columns of `predicted_NAME` beside them.

    Examples
    --------
    >>> from inference_math_book.predicted import beside
    >>> points = beside("mlenergy")
    >>> bool((points["step"] / (points["itl_p50_ms"] / 1e3)).between(0.4, 1.6).all())
    True
    """
    said = load(f"predicted_{measured}").frame.set_index("row")
    rows = load(measured).frame.set_axis(range(_FIRST, _FIRST + len(load(measured).frame)))
    return said.join(rows)[[*rows.columns, *said.columns]].reset_index(drop=True)


def served_both_ways() -> pd.DataFrame:
    """Return the pairs of a split and its aggregated rival, table `predicted_split_gains`, with what pages say of them.

    More columns: layouts, the factor of both pools' own; crowd, users on a GPU; later, by how many times the split's
    first token comes later, both as measured medians; x and y, their place on the map of chapter 9 (`explore.plane`),
    with x below 1 where the limit leaves no decode; steps of an answer.

    Examples
    --------
    >>> from inference_math_book.predicted import served_both_ways
    >>> bool((served_both_ways()["later"] > 0).all())
    True
    """
    pairs, first = load("predicted_split_gains").frame, load("served_splits").frame["ttft_s"].to_numpy()
    later = first[pairs["row"] - _FIRST] / first[pairs["rival"] - _FIRST]
    layouts = pairs["prefill_layout"] * pairs["decode_layout"]
    places = load("predicted_split_places").frame.set_index("row").loc[pairs["row"]].reset_index(drop=True)
    return pairs.assign(
        layouts=layouts,
        crowd=pairs["users"] / pairs["gpus"],
        later=later,
        x=places["fits"],
        y=places["prompt"],
        steps=places["steps"],
    )


def chance_by(name: str, pairs: pd.DataFrame) -> pd.Series[float]:
    """Return the chance that each split gains as one column alone tells it: the baseline of a verdict.

    A logistic curve in the column's logarithm, fitted to the pairs of the part that chooses; `pairs` as of
    `served_both_ways`.

    Examples
    --------
    >>> from inference_math_book.predicted import chance_by, served_both_ways
    >>> pairs = served_both_ways().sort_values("crowd")
    >>> bool(chance_by("crowd", pairs).is_monotonic_increasing)
    True
    """
    x, signs = np.log(pairs[name].to_numpy(float)), np.where(pairs["gain"] > 1, 1, -1)
    chooses = (pairs["part"] == "choose").to_numpy()

    def surprise(line: NDArray[np.float64]) -> float:
        return float(np.logaddexp(0, -signs * (line[0] + line[1] * x))[chooses].sum())

    start, slope = minimize(surprise, np.zeros(2)).x
    return pd.Series(1 / (1 + np.exp(-(start + slope * x))), pairs.index).round(6)  # more digits a fit does not have


def difference(errors: pd.Series[float], others: pd.Series[float], of: pd.Series[int]) -> tuple[float, float, float]:
    """Return by how much the mean of some errors is above that of others of the same pairs, and its 90 % interval.

    Pairs of one rival, as `of` has them, are drawn together: a bootstrap of ten thousand draws.

    Examples
    --------
    >>> import pandas as pd
    >>> from inference_math_book.predicted import difference
    >>> one = pd.Series([0.1, 0.2, 0.3])
    >>> [f"{end:.1f}" for end in difference(one, one + 0.1, pd.Series([1, 1, 2]))]
    ['-0.1', '-0.1', '-0.1']
    """
    groups = (errors - others).groupby(of).agg(["sum", "size"]).to_numpy(float)
    drawn = groups[np.random.default_rng(1).integers(0, len(groups), (10_000, len(groups)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], (0.05, 0.95))
    return float((errors - others).mean()), float(low), float(high)


def by_source() -> pd.DataFrame:
    """Return how far predictions are off for each source to which nothing was fitted, and what their intervals hold.

    Columns: source, points, mean (of log(measured / predicted)), inside (the share of points within the interval of
    90 %). Latency of silybench, means of closed loops of our own run, TPOT of all others.

    Examples
    --------
    >>> from inference_math_book.predicted import by_source
    >>> found = by_source()
    >>> f"between sources: {found['mean'].std():.2f}"
    'between sources: 0.23'
    """
    tails, others, loops = beside("silybench"), beside("served_elsewhere"), load("predicted_loops").frame
    held = tails["e2e_s"].between(tails["e2e_low"], tails["e2e_high"])
    own = loops["measured"].between(loops["low"], loops["high"])
    parts = [
        tails.assign(source="silybench", ratio=tails["e2e_s"] / tails["e2e"], inside=held),
        others.assign(ratio=others["tpot_s"] / others["tpot"]),
        loops.assign(source="our own", ratio=loops["measured"] / loops["predicted"], inside=own),
    ]
    rows = pd.concat([part[["source", "ratio", "inside"]] for part in parts], ignore_index=True)
    rows = rows.assign(mean=np.log(rows["ratio"].astype(float)), inside=rows["inside"].astype(float), points=1)
    grouped = rows.groupby("source", sort=False).agg({"points": "size", "mean": "mean", "inside": "mean"})
    return grouped.reset_index()
