"""What a step costs on the engine at hand, from bare steps alone, and what the book's formulas make of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from inference_math import theory
from inference_math.evidence.fits import rounded
from inference_math.simulate import StepCost
from inference_math_bench.lab.engines import Step
from inference_math_planner.laws import latency
from inference_math_planner.laws.laws import Law

__all__ = ["coefficients", "fit", "fit_alone", "gap_law", "means", "noise", "noisy_quantile", "own_time", "step_error"]

_STARTS = 12  # besides the additive fit
_TERMS = ("t_w", "T_decode", "kv_read", "prompt", "T", "pair")


def fit(steps: Sequence[Step]) -> StepCost:
    """Return the additive cost that bare steps tell: least squares of the relative error, no coefficient below zero.

    Steps of one kind are averaged first: the relative error of single ones would be least below their mean.

    Raises
    ------
    ValueError
        For fewer than a dozen steps.
    """
    if len(steps) < 12:
        raise ValueError(f"steps must be at least 12 bare steps, not {len(steps)}")
    rows, seconds, counts = _middles(steps)
    weights = np.sqrt(counts)
    scale = rows.max(axis=0)
    scale[scale == 0] = 1.0
    found, _ = optimize.nnls(rows / scale / seconds[:, None] * weights[:, None], weights)
    return StepCost(**dict(zip(_TERMS, rounded(found / scale).tolist(), strict=True)))


def step_error(cost: StepCost, steps: Sequence[Step]) -> float:
    """Return the mean relative error of `cost` on `steps`."""
    asked = asdict(cost)
    predicted = _rows(steps) @ np.array([asked[name] for name in _TERMS])
    return float(np.mean(np.abs(predicted / np.array([step.seconds for step in steps]) - 1)))


def coefficients(cost: StepCost) -> dict[str, float]:
    """Return the coefficients of a cost by name, in seconds."""
    return {name: value for name, value in asdict(cost).items() if name != "overlap"}


def fit_alone(steps: Sequence[Step], overlap: str) -> StepCost:
    """Return the cost under a model of overlap that the unmixed steps tell: prompts alone, and decodes alone.

    Each model has coefficients of its own, so that a mixed step judges the models and not the fit of one of them.
    """
    unmixed = [step for step in steps if not (step.decodes and step.tokens)]
    rows, seconds, _ = _middles(unmixed)
    # A term that the additive fit has at nought gets a size, too: the share of a middling step in its largest row.
    sizes = np.median(seconds) / np.where(rows.max(axis=0) > 0, rows.max(axis=0), 1.0)
    start = fit(unmixed)
    scale = np.maximum([getattr(start, name) for name in _TERMS], 0.1 * sizes)

    def of(terms: NDArray[np.float64]) -> StepCost:
        return StepCost(**dict(zip(_TERMS, terms.tolist(), strict=True)), overlap=overlap)

    def off(x: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        cost = of(x * scale)
        said = [cost(*(row[1], row[2], row[3], row[4], row[5])) for row in rows]
        return np.asarray(np.array(said) / seconds - 1)

    # The longer of two terms is flat in the shorter one, so that a single start may stay where it is.
    starts = [np.ones(len(_TERMS)), *np.random.default_rng(0).lognormal(0, 1, (_STARTS, len(_TERMS)))]
    ends = [optimize.least_squares(off, one, bounds=(0, np.inf)) for one in starts]
    return of(rounded(min(ends, key=lambda end: end.cost).x * scale))


def _middles(steps: Sequence[Step]) -> tuple[NDArray[np.float64], NDArray[np.float64], list[int]]:
    """Return of each kind of steps the mean of its rows and seconds, and how many they are."""
    kinds = list(_kinds(steps).values())
    rows = np.array([_rows(kind).mean(axis=0) for kind in kinds])
    seconds = np.array([np.mean([step.seconds for step in kind]) for kind in kinds])
    return rows, seconds, [len(kind) for kind in kinds]


def _kinds(steps: Sequence[Step]) -> dict[tuple[int, int, float, int], list[Step]]:
    """Return steps of one kind together; a context grows by a token a step, and what is alike to a tenth is of one."""
    found: dict[tuple[int, int, float, int], list[Step]] = {}
    for step in steps:
        context = round(10 * np.log(step.context)) if step.decodes else 0
        found.setdefault((step.decodes, context, step.prefills, step.tokens), []).append(step)
    return found


def _rows(steps: Sequence[Step]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rows = [(1.0, s.decodes, s.context, s.prefills, s.tokens, s.pairs) for s in steps]
    return np.array(rows, dtype=np.float64)


def own_time(cost: StepCost, n_in: float, cached: float = 0.0) -> float:
    """Return what a prompt adds to a step, in seconds: TTFT(1), without the weight read.

    What is cached is read by the attention of the rest, as a decode would.
    """
    return cost.prompt + cost.T * (n_in - cached) + cost.pair * (n_in**2 - cached**2) / 2 + cost.kv_read * cached


def means(
    cost: StepCost, n_in: float, n_out: float, users: int, cv: float = 0.0, cached: float = 0.0
) -> dict[str, float]:
    """Return the means of `users` in a closed loop, in seconds: ttft, tpot, increment, t_w, delta_p, delta_h.

    `delta_h` is what a decode adds to a step: its read at the mean context and its rows in the matrices.
    """
    own = own_time(cost, n_in, cached)
    context = theory.mean_context(n_in=n_in, n_out=n_out, cv=cv) if n_out > 1 else n_in
    decode = cost.kv_read * float(context) + cost.delta_h + cost.T_decode
    one = cost.t_w + decode
    asked = {"B": users, "n_out": n_out, "delta_h": decode}
    tpot = float(theory.expected_tpot_full(**asked, tpot_1=one, delta_p=own / n_out, z=0, T=1))
    ttft = float(theory.expected_ttft_full(**asked, ttft_1=own, t_w=cost.t_w))
    terms = {"t_w": cost.t_w, "delta_p": own / n_out, "delta_h": decode}
    return {"ttft": ttft, "tpot": tpot, "increment": tpot - one, **terms}


def gap_law(
    cost: StepCost, n_in: Sequence[float], n_out: float, users: int, cv: float = 0.0, cached: float = 0.0
) -> Law:
    """Return the law of the gap between two tokens, for prompts that are equally often each of `n_in`."""
    mean = means(cost, float(np.mean(n_in)), n_out, users, cv, cached)
    prompts = Law.of([own_time(cost, n, cached) for n in n_in])
    return latency.gap_law(users, n_out, mean["t_w"] + mean["delta_h"], prompts, mean["delta_h"])


def noise(looks: Sequence[Sequence[Step]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return how steps of the same kind scatter: seconds over their mean, for the steps of decodes in each look."""
    found: list[float] = []
    for steps in looks:
        for kind in _kinds(steps).values():
            if not kind[0].decodes or len(kind) < 3:
                continue
            seconds = np.array([step.seconds for step in kind])
            # The mean of a few is nearer to them than the true one is.
            spread = np.sqrt(seconds.size / (seconds.size - 1))
            found += (1 + (seconds / seconds.mean() - 1) * spread).tolist()
    return np.array(found or [1.0])


def noisy_quantile(law: Law, scatter: np.ndarray[tuple[int], np.dtype[np.float64]], q: float) -> float:
    """Return the quantile of a step that has this law and, independently, this scatter."""
    rng = np.random.default_rng(0)
    drawn = rng.choice(law.values, 50_000, p=law.probabilities / law.probabilities.sum())
    return float(np.quantile(drawn * rng.choice(scatter, drawn.size), q))
