"""What the trials say: how far found and predicted are apart, how sure that is, whether counts follow a law.

The same functions serve a file of the laboratory, the recorded tables of the book, and runs of the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from inference_math.evidence.checks import AT_LEAST_ZERO, as_number, as_whole
from inference_math_bench.lab.record import Trial, value_of

__all__ = [
    "FEWEST",
    "CountTest",
    "alternatives",
    "count_test",
    "counts",
    "expanded",
    "gaps",
    "multiplicity",
    "summary",
    "value_of",
]

_KEY = ["experiment", "arm", "quantity"]
FEWEST = 3  # trials of which an interval is made
_LEVEL = 0.90  # of the intervals
_DRAWS = 400  # systems that are played for a p-value


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each experiment, arm and quantity: what was predicted, what was found, and their ratio.

    `predicted` and `found` are means over the usable trials, `ratio` is that of the two means: a rare thing that did
    not happen in a trial counts as 0. Its 90 % interval `low` to `high` is Student's, of found less ratio times
    predicted over the trials, each with its own prediction: NaN for fewer than `FEWEST`, which tell no scatter.
    """
    usable = table[table.usable & table.predicted.notna()]
    rows = []
    for key, group in usable.groupby(_KEY, sort=True):
        predicted, found = group.predicted.to_numpy(), group.found.to_numpy()
        if predicted.mean() > 0:
            ratio, half = _ratio(predicted, found)
            means = {"predicted": predicted.mean(), "found": found.mean(), "ratio": ratio}
            ends = {"low": max(ratio - half, 0.0) if half == half else half, "high": ratio + half}
            rows.append({**dict(zip(_KEY, key, strict=True)), **means, **ends, "trials": found.size})
    return pd.DataFrame(rows)


def _ratio(predicted: NDArray[np.float64], found: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ratio of the means, and half of its interval: NaN for too few trials."""
    ratio = float(found.mean() / predicted.mean())
    if found.size < FEWEST:
        return ratio, np.nan
    error = float((found - ratio * predicted).std(ddof=1) / np.sqrt(found.size) / predicted.mean())
    return ratio, float(stats.t.ppf((1 + _LEVEL) / 2, found.size - 1)) * error


def multiplicity(table: pd.DataFrame) -> pd.DataFrame:
    """Return by law of how many intervals of `summary` exclude 1, and of how many more than chance would.

    Of intervals of 90 % a tenth excludes 1 although the law holds. `significant` are those that stay where the false
    ones among them may be a tenth (Benjamini and Hochberg, over all rows of the table); `ratio` is the mean of found
    over predicted. Rows without an interval are left out.
    """
    told = table.dropna(subset=["low", "high"])
    free = told["trials"] - 1
    error = (told["high"] - told["ratio"]) / stats.t.ppf((1 + _LEVEL) / 2, free)
    far = (told["ratio"] - 1).abs() / error.clip(lower=np.finfo(float).tiny)
    chance = pd.Series(2 * stats.t.sf(far, free), index=told.index)
    clear = stats.false_discovery_control(chance.to_numpy()) <= 1 - _LEVEL
    # By the chance, as below: an end that is printed as 1 may lie on either side of it.
    marked = told.assign(excludes=chance <= 1 - _LEVEL, significant=clear)
    groups = marked.groupby(["experiment", "quantity"])
    return groups.agg(
        intervals=("ratio", "size"),
        excludes=("excludes", "sum"),
        significant=("significant", "sum"),
        ratio=("ratio", "mean"),
    ).reset_index()


def alternatives(table: pd.DataFrame) -> pd.DataFrame:
    """Return what other forms of the law predicted: experiment, arm, quantity, law, predicted, and found over it."""
    known = {"round", *_KEY, "predicted", "found", "usable"}
    rows = []
    for law in [name for name in table.columns if name not in known]:
        said = table[table.usable & table[law].notna()]
        for key, group in said.groupby(_KEY, sort=True):
            if (predicted := float(group[law].mean())) > 0:
                named = dict(zip(_KEY, key, strict=True))
                rows.append({**named, "law": law, "predicted": predicted, "ratio": group.found.mean() / predicted})
    return pd.DataFrame(rows, columns=[*_KEY, "law", "predicted", "ratio"])


def counts(trials: Sequence[Trial], most: int) -> pd.DataFrame:
    """Return how many steps had k prompts, and how many decodes had k beside them, in the trials of `Counts`.

    One row for each law of the lengths and each k from 0 to `most` (that many or more): `steps`, `decodes`; in how many
    `windows`, of how many `users`.
    """
    rows = []
    usable = [trial for trial in trials if trial.usable]
    for name in sorted({str(trial.arm["lengths"]) for trial in usable}):
        seen = [one for trial in usable if trial.arm["lengths"] == name for one in trial.observed]
        prompts = np.concatenate([one.log.prefills.round().astype(int) for one in seen])
        decodes = np.concatenate([one.log.decodes for one in seen])
        watched = {"windows": len(seen), "users": int((prompts + decodes).max())}
        for k in range(most + 1):
            here = prompts == k if k < most else prompts >= most
            rows.append(
                {"lengths": name, "k": k, "steps": int(here.sum()), "decodes": int(decodes[here].sum()), **watched}
            )
    return pd.DataFrame(rows)


def expanded(table: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Return the rows of one experiment with what is in `arm` as columns: "users 8, lengths fixed" becomes two.

    >>> table = pd.DataFrame({"experiment": ["x"], "arm": ["users 8, lengths two prompts"], "found": [1.0]})
    >>> expanded(table, "x").to_dict("records")
    [{'experiment': 'x', 'arm': 'users 8, lengths two prompts', 'found': 1.0, 'users': 8, 'lengths': 'two prompts'}]
    """
    rows = table[table.experiment == experiment].reset_index(drop=True)
    parts = [dict(part.split(" ", 1) for part in arm.split(", ")) for arm in rows.arm]
    columns = pd.DataFrame([{name: value_of(text) for name, text in part.items()} for part in parts])
    return rows.join(columns)


class CountTest(NamedTuple):
    """χ² of counts against a law, `p` the share of the systems, played under the law, whose χ² is at least as large."""

    statistic: float
    p: float


def count_test(
    seen: Sequence[float],
    n_out: NDArray[np.int64],
    *,
    users: int,
    watched: tuple[int, int],
    beside: bool = False,
    tagged: int | None = None,
    seed: int = 0,
) -> CountTest:
    """Test counts of prompts in a step against the binomial law.

    Steps that follow each other are not independent: who has just begun will not begin again for a while. So the
    distribution of χ² under the law is not that of the textbook; it is found by playing slots, each with answers
    drawn from `n_out`, in as many windows of as many steps.

    Parameters
    ----------
    seen
        Steps with 0, 1, 2, … prompts, the last count for all larger numbers; with `beside`, decodes in such steps.
    n_out
        Lengths that answers have, equally often each.
    users, watched
        Slots, and how many windows of how many steps were watched.
    beside
        Whether what is counted is the prompts beside a request that decodes.
    tagged
        Slots that the law takes: `users` for all, `users` − 1 beside one, where nothing else is said. Another number is
        a wrong law, and p is small if the counts tell.

    Raises
    ------
    ValueError
        For counts below zero, and sizes below one.
    """
    observed = np.array([as_number("seen", value, AT_LEAST_ZERO) for value in seen])
    windows, window = watched
    for name, value in (("users", users), ("windows", windows), ("steps of a window", window)):
        as_whole(name, value)
    slots = (users - 1 if beside else users) if tagged is None else tagged
    law = stats.binom(slots, 1 / float(np.mean(n_out)))
    share = np.append(law.pmf(np.arange(observed.size - 1)), law.sf(observed.size - 2))
    rng, playing = np.random.default_rng(seed), slots + 1 if beside else slots
    far = _chi2(observed, share)
    played = [_counted(n_out, playing, windows, window, beside, observed.size - 1, rng) for _ in range(_DRAWS)]
    further = sum(_chi2(one * observed.sum() / one.sum(), share) >= far for one in played)
    return CountTest(far, (further + 1) / (len(played) + 1))


def _chi2(counted: NDArray[np.float64], share: NDArray[np.float64]) -> float:
    expected = share * counted.sum()
    few = expected < 5
    if few.any():  # cells with little in them are one
        expected = np.append(expected[~few], expected[few].sum())
        counted = np.append(counted[~few], counted[few].sum())
    return float(((counted - expected) ** 2 / np.maximum(expected, 1e-12)).sum())


def _counted(
    n_out: NDArray[np.int64], users: int, windows: int, window: int, beside: bool, most: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Play windows of slots that are under way; return the counts."""
    slots = windows * users
    # A slot met at random: its answer by length, and how many steps it has left.
    chosen = rng.choice(n_out, size=slots, p=n_out / n_out.sum())
    next_prompt = chosen - rng.integers(0, chosen)  # steps until the next prompt, from the first step on: 1, 2, …
    prompts = np.zeros((windows, window), dtype=np.int64)
    while (due := next_prompt <= window).any():
        at = np.flatnonzero(due)
        np.add.at(prompts, (at // users, next_prompt[at] - 1), 1)
        next_prompt[at] += rng.choice(n_out, size=at.size)
    weights = (users - prompts).ravel() if beside else None
    return np.bincount(np.minimum(prompts, most).ravel(), weights, minlength=most + 1).astype(np.float64)


def gaps(trials: Sequence[Trial], arms: Sequence[Mapping[str, Any]], points: int = 60) -> pd.DataFrame:
    """Return the distribution of the gap between two tokens in some arms: the gap that a share of all exceeds."""
    rows = []
    above = np.geomspace(1, 1e-3, points)
    for arm in arms:
        found = [trial.observed[0].gaps for trial in trials if trial.usable and trial.arm == arm]
        if found:
            values = np.quantile(np.concatenate(found), 1 - above)
            rows += [{**arm, "above": share, "gap": gap} for share, gap in zip(above, values, strict=True)]
    return pd.DataFrame(rows)
