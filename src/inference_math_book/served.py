"""The talks' law on served Llama-3-70B, and the case of the companion that it gives.

TPOT(B) = t₁ + (B − 1)(P/N_out + h·(N_in + N_out/2)): four numbers for each layout, the shortest step t₁, what a prompt
of either served length adds, P, and what a token of context adds to a step, h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference_math import evidence

__all__ = ["CASE", "Case", "Law", "case", "fit", "rows"]

QUEUE = 3.0  # seconds to the first token: above, requests waited outside the batch, and B is not what was served


@dataclass(frozen=True)
class Law:
    """The four numbers, of `lengths` served prompts: seconds, seconds of a prompt of each length, seconds a token."""

    t_1: float
    lengths: tuple[float, ...]
    prompts: tuple[float, ...]
    h: float

    def prompt(self, n_in: Any) -> Any:
        """Return the seconds that a prompt adds to the steps, on a line between the two served lengths."""
        return np.interp(n_in, self.lengths, self.prompts)

    def delta_p(self, n_in: Any, n_out: Any) -> Any:
        """Return ΔP, in seconds."""
        return self.prompt(n_in) / n_out

    def delta_h(self, n_in: Any, n_out: Any) -> Any:
        """Return ΔH, in seconds, at the mean context."""
        return self.h * (n_in + n_out / 2)

    def tpot(self, users: Any, n_in: Any, n_out: Any) -> Any:
        """Return TPOT(B), in seconds."""
        return self.t_1 + (users - 1) * (self.delta_p(n_in, n_out) + self.delta_h(n_in, n_out))


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


def fit(of: pd.DataFrame) -> Law:
    """Return the law with the least mean square of relative errors on rows like those of `rows`."""
    lengths = np.unique(of.n_in)
    others = (of.users - 1).to_numpy()
    columns = [np.ones(len(of)), *(others / of.n_out * (of.n_in == one) for one in lengths)]
    columns.append(others * (of.n_in + of.n_out / 2))
    seen: NDArray[np.float64] = of.tpot_s.to_numpy()
    t_1, *prompts, h = np.linalg.lstsq(np.column_stack(columns) / seen[:, None], np.ones(len(of)), rcond=None)[0]
    return Law(float(t_1), tuple(map(float, lengths)), tuple(map(float, prompts)), float(h))


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
