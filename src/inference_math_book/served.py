"""The talks' law on served Llama-3-70B, and the case of the companion that it gives.

TPOT(B) = t₁ + (B − 1)(P/N_out + h·(N_in + N_out/2)): four numbers for each layout, the shortest step t₁, what a prompt
of either served length adds, P, and what a token of context adds to a step, h. `played` asks the simulator for the same
rows, run as their benchmark was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from inference_math import catalogue, evidence, simulate, theory
from inference_math.evidence.fits import rounded
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math.workload import RandomLengths

__all__ = [
    "CASE",
    "Case",
    "Law",
    "beyond",
    "case",
    "errors",
    "fit",
    "interval",
    "kernels",
    "left_out",
    "played",
    "rows",
    "summed",
]

QUEUE = 3.0  # seconds to the first token: above, requests waited outside the batch, and B is not what was served
# As the scripts of these rows have it: see `_vllm` in tools/research/recipes.py.
EACH, SPAN, BUDGET = 10, 1 / 9, 8192  # requests of each user, how far lengths go from their means, tokens of a step


@dataclass(frozen=True)
class Law:
    """The four numbers, of `lengths` served prompts: seconds, seconds of a prompt of each length, seconds a token.

    In another form each decode adds `each` seconds besides, whatever its context.
    """

    t_1: float
    lengths: tuple[float, ...]
    prompts: tuple[float, ...]
    h: float
    each: float = 0.0

    def prompt(self, n_in: Any) -> Any:
        """Return the seconds that a prompt adds to the steps, on a line between the two served lengths."""
        return np.interp(n_in, self.lengths, self.prompts)

    def delta_p(self, n_in: Any, n_out: Any) -> Any:
        """Return ΔP, in seconds."""
        return self.prompt(n_in) / n_out

    def delta_h(self, n_in: Any, n_out: Any) -> Any:
        """Return ΔH, in seconds, at the mean context."""
        return self.each + self.h * (n_in + n_out / 2)

    def tpot(self, users: Any, n_in: Any, n_out: Any) -> Any:
        """Return TPOT(B), in seconds."""
        return self.t_1 + (users - 1) * (self.delta_p(n_in, n_out) + self.delta_h(n_in, n_out))

    def even(self) -> Law:
        """Return the law of another form: every token of a prompt takes the same, and every decode a constant besides.

        Its TPOT is the same for the three pairs of lengths that were served.
        """
        short, long = self.lengths
        pairs = ((short, short), (short, long), (long, short))
        slopes = [self.delta_p(*pair) + self.delta_h(*pair) for pair in pairs]
        columns = [(n_in / n_out, 1, n_in + n_out / 2) for n_in, n_out in pairs]
        T, each, h = rounded(np.linalg.solve(columns, slopes)).tolist()
        return Law(self.t_1, self.lengths, (T * short, T * long), h, each)


def rows(tp: int, queued: bool = False) -> pd.DataFrame:
    """Return the served rows of Llama-3-70B in FP8 on `tp` H100 under vLLM 0.11: n_in, n_out, users, ttft_s, tpot_s.

    Rows with a queue before the engine are left out, unless `queued`.

    Raises
    ------
    ValueError
        For a number of GPUs on which it was not served: 2, 4 and 8 are.
    """
    served = evidence.load("served").frame
    here = (served.model == "llama-3-70b") & (served.gpu == "h100-sxm") & (served.tp == tp)
    if not here.any():
        raise ValueError(f"tp must be 2, 4 or 8, not {tp!r}")
    if not queued:
        here &= served.ttft_s < QUEUE
    columns = ["n_in", "n_out", "users", "ttft_s", "tpot_s"]
    return served.loc[here, columns].sort_values(columns[:3]).reset_index(drop=True)


def fit(of: pd.DataFrame, whole: bool = False) -> Law:
    """Return the law with the least mean square of relative errors on rows like those of `rows`.

    It is fitted to TPOT, or to the latency of `whole` requests: TPOT and the own prompt, over the answer's tokens.
    """
    return _law(of, _numbers(_columns(of, whole)))


def errors(law: Law, of: pd.DataFrame) -> NDArray[np.float64]:
    """Return by how much of each row's TPOT the law is too long."""
    return np.asarray(law.tpot(of.users, of.n_in, of.n_out) / of.tpot_s - 1, dtype=np.float64)


def left_out(of: pd.DataFrame) -> NDArray[np.float64]:
    """Return the errors of laws that are fitted without the row that they are asked for.

    Raises
    ------
    ValueError
        Where a row is needed: the only one of its prompt length beside others.
    """
    found = []
    for one in of.index:
        rest = of.drop(index=one)
        if np.linalg.matrix_rank(_columns(rest)) < len(_columns(of).T):
            raise ValueError(f"without row {one} the rows do not determine the law")
        found.append(errors(fit(rest), of.loc[[one]])[0])
    return np.array(found)


def beyond(of: pd.DataFrame, users: int) -> NDArray[np.float64]:
    """Return the errors for more than so many users of the law that is fitted to the rows of fewer."""
    few = of.users <= users
    return errors(fit(of[few]), of[~few])


def spread(law: Law, of: pd.DataFrame) -> pd.Series[float]:
    """Return the mean TTFT of rows by chapter 3's law, for users who have spread."""
    read = law.delta_h(of.n_in, of.n_out)
    costs_of = {"ttft_1": law.prompt(of.n_in), "delta_h": read, "t_w": law.t_1 - read}
    return pd.Series(theory.expected_ttft_full(B=of.users, n_out=of.n_out, **costs_of), index=of.index)


def played(law: Law, of: pd.DataFrame, *, front: float = 0.0, kv_tokens: float = inf, seed: int = 1) -> pd.DataFrame:
    """Return the means of rows, run as their benchmark was by an engine whose steps take what the law says.

    Its users begin together and send ten requests each. A step takes the prompts that fit.

    Parameters
    ----------
    front
        Seconds of a request outside the engine's steps: they count in its TTFT.
    kv_tokens
        Tokens for whose KV caches the engine has room.

    Returns
    -------
    pandas.DataFrame
        The index of `of`; ttft_s and tpot_s, of all requests, and opening_s, the TTFT of each user's first.

    Examples
    --------
    >>> from inference_math_book import served
    >>> rows = served.rows(2).query("users == 8 and n_in < 1000 and n_out < 1000")
    >>> print(served.played(served.fit(served.rows(2)), rows).round(3).to_string(index=False))
     ttft_s  tpot_s  opening_s
      0.169   0.018      0.722
    """
    found = []
    rows: Any = of.itertuples()
    for row in rows:
        cost = simulate.StepCost(
            t_w=law.t_1 - law.delta_h(row.n_in, row.n_out),
            T=law.prompt(row.n_in) / row.n_in,
            delta_h=law.each,
            kv_read=law.h,
        )
        run = simulate.benchmark(
            RandomLengths(row.n_in, row.n_out, SPAN),
            cost,
            concurrency=row.users,
            requests=EACH * row.users,
            scheduler=simulate.Chunked(BUDGET, kv_capacity=kv_tokens, grows=True),
            front=front,
            seed=seed,
        )
        requests = run.requests
        opening = requests.ttft[requests.arrival == requests.arrival.min()]
        found.append({"ttft_s": requests.ttft.mean(), "tpot_s": requests.tpot.mean(), "opening_s": opening.mean()})
    return pd.DataFrame(found, index=of.index)


def interval(
    of: pd.DataFrame, what: Callable[[Law], float], level: float = 0.9, whole: bool = False
) -> tuple[float, float]:
    """Return an interval for a number that the law of these rows gives, such as ΔP; `whole` as in `fit`.

    It is Student's t of least squares, to first order in the four numbers: it holds what scatters from row to row, and
    not what another form of the law would say.

    Raises
    ------
    ValueError
        For no more rows than the law has numbers, and for a `level` outside 0 to 1.
    """
    columns = _columns(of, whole)
    free = len(of) - columns.shape[1]
    if free < 1 or not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level!r}, and rows more than {columns.shape[1]}")
    numbers = _numbers(columns)
    left = columns @ numbers - 1
    covariance = np.linalg.inv(columns.T @ columns) * (left @ left) / free
    middle = what(_law(of, numbers))
    steps = np.diag(1e-2 * np.abs(numbers))  # much more than the last digit of what is rounded
    slope = [(what(_law(of, numbers + one)) - what(_law(of, numbers - one))) / (2 * one.sum()) for one in steps]
    half = stats.t.ppf((1 + level) / 2, free) * np.sqrt(slope @ covariance @ slope)
    low, high = rounded([middle - half, middle + half]).tolist()
    return low, high


def _numbers(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what to multiply columns by, for sums that are nearest to one."""
    return rounded(np.linalg.lstsq(columns, np.ones(len(columns)), rcond=None)[0])


def _columns(of: pd.DataFrame, whole: bool = False) -> NDArray[np.float64]:
    """Return what the four numbers are multiplied by, each over the TPOT of its row, or over its latency a token."""
    others, seconds = (of.users - 1).to_numpy(), of.tpot_s
    if whole:
        seconds = (of.ttft_s + (of.n_out - 1) * of.tpot_s) / of.n_out
    prompts = (others + whole) / of.n_out
    columns = [np.ones(len(of)), *(prompts * (of.n_in == one) for one in np.unique(of.n_in))]
    columns.append(others * (of.n_in + of.n_out / 2))
    return np.asarray(np.column_stack(columns) / seconds.to_numpy()[:, None], dtype=np.float64)


def _law(of: pd.DataFrame, numbers: NDArray[np.floating[Any]]) -> Law:
    t_1, *prompts, h = map(float, numbers)
    return Law(t_1, tuple(map(float, np.unique(of.n_in))), tuple(prompts), h)


def kernels(tp: int = 2, kv: str = "bf16") -> Operators:
    """Return the measured kernels of Llama-3-70B with FP8 weights on `tp` H100."""
    return Operators(catalogue.model("llama-3-70b"), tp, "fp8", kv)


def summed(n_in: Any, n_out: Any, tp: int = 2, kv: str = "bf16") -> costs.WorkloadCosts:
    """Return what a request of these lengths costs by those kernels, added up."""
    return costs.measured(kernels(tp, kv), n_in, n_out)


@dataclass(frozen=True)
class Case:
    """The case: what one request costs, in seconds, as served."""

    n_in: int
    n_out: int
    t_1: float
    prompt: float
    delta_p: float
    delta_h: float

    @property
    def bound(self) -> float:
        """1 + ΔP/ΔH."""
        return 1 + self.delta_p / self.delta_h


@lru_cache
def case(n_in: int = 2200, n_out: int = 170, tp: int = 2) -> Case:
    """Return what a request of these lengths costs by the law of `tp` GPUs."""
    law = fit(rows(tp))
    prompt, delta_p, delta_h = (
        float(of) for of in (law.prompt(n_in), law.delta_p(n_in, n_out), law.delta_h(n_in, n_out))
    )
    return Case(n_in, n_out, law.t_1, prompt, delta_p, delta_h)


CASE = case()
