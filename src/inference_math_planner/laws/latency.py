"""Latencies that users see beyond the mean: quantiles of the step from the binomial law of prefills [C12].

Beside a tagged request, each of the B − 1 others is prefilling with probability 1/n_out, independently. Whoever
does not prefill decodes. With equal prompts a step takes one of B values, and its quantiles are those of a binomial
number. With prompts of random length it is a sum of a binomial number of them, a compound law: `gap_law`, `ttft_law`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, stats

from inference_math.evidence.checks import (
    ANY_POSITIVE,
    AT_LEAST_ONE,
    AT_LEAST_ZERO,
    SHARE,
    Numbers,
    as_number,
    as_numbers,
    as_whole,
)
from inference_math_planner.laws.laws import Law

__all__ = [
    "gap_law",
    "gap_quantile",
    "max_batch_law",
    "max_batch_quantile",
    "max_batch_ttft_quantile",
    "prefills_beside",
    "ttft_law",
    "ttft_quantile",
]


def prefills_beside(B: ArrayLike, n_out: ArrayLike) -> Any:
    """Return the law of the number of other requests that prefill in a step: a frozen SciPy distribution.

    Binom(B − 1, 1/n_out); `B` a whole number (or an array of them) >= 1, `n_out` >= 1 the mean output tokens.
    """
    requests = as_numbers("B", B, AT_LEAST_ONE)
    if (requests % 1).any():
        raise ValueError(f"B must be a whole number, not {B!r:.80}")
    return stats.binom(requests - 1, 1 / as_numbers("n_out", n_out, AT_LEAST_ONE))


def gap_quantile(q: float, B: ArrayLike, n_out: ArrayLike, tpot_1: float, delta_p: float, delta_h: float) -> Any:
    """Return the time between two tokens, in seconds, that the share `q` of them does not exceed [C12, C14].

    `tpot_1` is the gap of a request alone; each other request adds its prefill, ``n_out * delta_p``, or
    `delta_h`. Its mean is `theory.expected_tpot_full` with z = 0. `B` and `n_out` broadcast.
    """
    return _step_quantile(q, B, n_out, as_numbers("tpot_1", tpot_1, ANY_POSITIVE), delta_p, delta_h)


def ttft_quantile(q: float, B: ArrayLike, n_out: ArrayLike, ttft_1: float, delta_h: float, t_w: float) -> Any:
    """Return the time to first token, in seconds, that the share `q` of the requests does not exceed [C13].

    The same law beside the request's own prefill; its mean is `theory.expected_ttft_full`.
    """
    own = as_numbers("ttft_1", ttft_1, ANY_POSITIVE) + as_numbers("t_w", t_w, AT_LEAST_ZERO)
    return _step_quantile(q, B, n_out, own, ttft_1 / as_numbers("n_out", n_out, AT_LEAST_ONE), delta_h)


def max_batch_quantile(q: float, sla_tpot: float, n_out: float, tpot_1: float, delta_p: float, delta_h: float) -> int:
    """Return the largest batch of which the share `q` of all gaps meets the limit `sla_tpot`; 0 if none does."""
    limit = as_number("sla_tpot", sla_tpot, ANY_POSITIVE)
    return _largest(lambda B: gap_quantile(q, B, n_out, tpot_1, delta_p, delta_h) <= limit)


def max_batch_ttft_quantile(q: float, sla_ttft: float, n_out: float, ttft_1: float, delta_h: float, t_w: float) -> int:
    """Return the largest batch of which the share `q` of all requests meets the limit `sla_ttft`; 0 if none does."""
    limit = as_number("sla_ttft", sla_ttft, ANY_POSITIVE)
    return _largest(lambda B: ttft_quantile(q, B, n_out, ttft_1, delta_h, t_w) <= limit)


def gap_law(B: int, n_out: float, tpot_1: float, prefills: Law, delta_h: float) -> Law:
    """Return the law of the time between two tokens, in seconds, beside prompts of random length [C12, C14].

    Each of the B − 1 others adds a time drawn from `prefills` with probability 1/n_out, or `delta_h`. Only the mean
    of `prefills` enters the mean, which is `theory.expected_tpot_full` with z = 0; the standard deviation is
    `theory.gap_deviation`. With equal prompts the quantiles are those of `gap_quantile`.

    Parameters
    ----------
    B
        Requests at the same time, a whole number >= 1.
    n_out
        Mean output tokens, >= 1.
    tpot_1
        Gap of a request alone, in seconds.
    prefills
        What a prompt adds to a step, in seconds: its time alone without the weight read.
    delta_h
        KV-cache read of one more request, in seconds.

    Raises
    ------
    TypeError, ValueError
        For an argument that is none of these.

    Notes
    -----
    The generating function of a sum is a power of that of one slot, here on a grid of 2¹⁸ points: a quantile is right
    to about 10⁻⁵ of the longest prompt for each prompt in the sum. Source: this book.

    Examples
    --------
    >>> gaps = gap_law(B=33, n_out=64, tpot_1=0.02, prefills=Law.lognormal(0.05, cv=1.5), delta_h=0.0001)
    >>> f"{gaps.mean:.4f} {gaps.quantile(0.5):.4f} {gaps.quantile(0.9):.3f}"
    '0.0481 0.0232 0.098'
    """
    return _beside(B, n_out, as_number("tpot_1", tpot_1, ANY_POSITIVE), prefills, delta_h)


def ttft_law(B: int, n_out: float, prefills: Law, delta_h: float, t_w: float) -> Law:
    """Return the law of the time to first token, in seconds, when prompts have random lengths [C13].

    The weight read `t_w`, one's own prompt from `prefills`, and beside it what `gap_law` says of the others; see there
    for the arguments and errors. Its mean is `theory.expected_ttft_full`. Source: this book.

    Examples
    --------
    >>> first = ttft_law(B=33, n_out=64, prefills=Law.lognormal(0.05, cv=1.5), delta_h=0.0001, t_w=0.02)
    >>> f"{first.mean:.4f} {first.quantile(0.9):.3f}"
    '0.0981 0.194'
    """
    return _beside(B, n_out, as_number("t_w", t_w, AT_LEAST_ZERO), prefills, delta_h, own=True)


def max_batch_law(q: float, sla_tpot: float, n_out: float, tpot_1: float, prefills: Law, delta_h: float) -> int:
    """Return the largest batch of which the share `q` of all gaps meets `sla_tpot`, by `gap_law`; 0 if none does.

    >>> max_batch_law(0.9, 0.1, n_out=64, tpot_1=0.02, prefills=Law.lognormal(0.05, cv=1.5), delta_h=0.0001)
    33
    """
    limit = as_number("sla_tpot", sla_tpot, ANY_POSITIVE)
    share = as_number("q", q, SHARE)
    return _largest(lambda B: gap_law(B, n_out, tpot_1, prefills, delta_h).quantile(share) <= limit)


_GRID = 2**18
_RARE = 1e-13  # more prompts in a step than this often are not looked at


def _beside(B: int, n_out: float, fixed: float, prefills: Law, delta_h: float, own: bool = False) -> Law:
    """Return the law of `fixed`, the B − 1 others, and with `own` a prompt of one's own."""
    if not isinstance(prefills, Law):
        raise TypeError(f"prefills must be a Law, not {prefills!r:.80}")
    others = as_whole("B", B) - 1
    share = 1 / as_number("n_out", n_out, AT_LEAST_ONE)
    read = as_number("delta_h", delta_h, AT_LEAST_ZERO)
    start = fixed + others * read
    if not others:
        return Law(fixed + prefills.values, prefills.probabilities) if own else Law(np.array([fixed]), np.ones(1))
    more = prefills.values - read  # what a prompt adds in the place of a read
    most = min(others, int(stats.binom.isf(_RARE, others, share)) + 1)
    low, high = min(0.0, most * float(more[0])), max(0.0, most * float(more[-1]))
    reach = float(np.max(np.abs(more)))
    if own:  # its grid must hold it, too
        low, high, reach = low - reach, high + prefills.values[-1], float(prefills.values[-1])
    if not reach or high == low:
        return Law(np.array([start + (prefills.values[0] if own else 0)]), np.ones(1))
    if most > _GRID // 8:
        raise ValueError(f"B must be less than {B}, or n_out more than {n_out}: a step has up to {most} prompts")
    room = _GRID - 2 * most - 4  # rounding moves each prompt by half a cell
    cell = reach / max(1, int(reach / (high - low) * room))  # the longest lies on the grid
    transform = (1 - share + share * fft.rfft(_on_grid(more, prefills.probabilities, cell))) ** others
    if own:
        transform *= fft.rfft(_on_grid(prefills.values, prefills.probabilities, cell))
    mass = np.maximum(fft.irfft(transform, _GRID), 0)
    below = ceil(-low / cell) + most  # the last so many points stand for times below the start
    values = start + cell * np.arange(-below, _GRID - below)
    mass = np.roll(mass, below)
    kept = mass > _NOISE
    return Law(values[kept], mass[kept] / mass[kept].sum())


_NOISE = 1e-15  # of a transform's 2¹⁸ points


def _on_grid(times: NDArray[np.float64], mass: NDArray[np.float64], cell: float) -> NDArray[np.float64]:
    """Return the masses of the grid's points; those below 0 stand at its end."""
    places = np.rint(times / cell).astype(np.int64) % _GRID
    return np.bincount(places, mass, _GRID).astype(np.float64)


def _step_quantile(
    q: float, B: ArrayLike, n_out: ArrayLike, own: Numbers, delta_p: ArrayLike, delta_h: ArrayLike
) -> float:
    share = as_number("q", q, SHARE)
    prefill = as_numbers("delta_p", delta_p, AT_LEAST_ZERO) * as_numbers("n_out", n_out, AT_LEAST_ONE)
    read = as_numbers("delta_h", delta_h, AT_LEAST_ZERO)
    law = prefills_beside(B, n_out)
    # A prefill shorter than a read would turn the order of the steps round.
    count = np.where(prefill >= read, law.ppf(share), law.isf(share))
    others = np.asarray(B, dtype=np.float64) - 1
    result = own + others * read + np.maximum(count, 0) * (prefill - read)
    return float(result) if not np.shape(result) else result


_MOST = 2**20  # nobody runs a batch of a million


def _largest(meets: Callable[[int], bool]) -> int:
    """Return the largest B that meets a limit; meeting it must not become easier with B."""
    top = 1
    while top < _MOST and meets(top):
        top *= 2
    largest = bisect_left(range(1, top + 1), True, key=lambda batch: not meets(batch))
    if largest == _MOST:
        raise ValueError(f"delta_p and delta_h must limit the batch; {_MOST} requests still meet the limit")
    return largest
