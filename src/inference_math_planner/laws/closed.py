"""Users in a closed loop over a prefill pool and a decode pool: a network of two stations [C27, C36]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, Interval, as_number, as_whole

__all__ = ["PoolsInLoop", "pools_in_loop"]

_ANSWER = Interval(1, 1e9, open_low=True)


@dataclass(frozen=True)
class PoolsInLoop:
    """Means of two pools: `rate` in requests/s, `decoding` requests in the decode pool, `ttft` and `tpot` in s."""

    rate: float
    decoding: float
    ttft: float
    tpot: float


def pools_in_loop(
    users: int, prefill_units: int, decode_units: int, *, prefill: float, n_out: float, t_w: float, delta_h: float
) -> PoolsInLoop:
    """Return what users see who send a request as soon as their last one is answered.

    Parameters
    ----------
    users, prefill_units, decode_units
        Whole numbers, >= 1. Prompts wait in one queue; a cache goes to the decode unit that has the fewest.
    prefill
        Seconds of a prompt alone on a prefill unit, its weight read counted.
    n_out
        Tokens of an answer, above 1; the first one is the prompt's.
    t_w, delta_h
        Seconds of a decode step: t_w, and delta_h for each of its requests.

    Raises
    ------
    TypeError, ValueError
        For an argument that is none of these.

    Notes
    -----
    With exponential prefill times it is exact for one decode unit (Gordon and Newell 1967; the same numbers as
    load-dependent mean-value analysis). For several it is right to a per cent: it spreads their requests evenly at
    every moment, and answers that end unbalance them. How answers scatter makes no difference, for decodes share their
    unit. Equal prompts wait less. A request that joins waits for the end of a step, half of one in the mean, which is
    left out, as is moving the cache.

    Examples
    --------
    >>> for users in (8, 80, 800):
    ...     seen = pools_in_loop(users, 7, 2, prefill=0.198, n_out=170, t_w=0.0167, delta_h=0.000166)
    ...     print(f"{seen.rate:.1f} requests/s, {seen.decoding:.0f} decode, {1 / seen.tpot:.0f} tokens/s of a user")
    2.6 requests/s, 7 decode, 58 tokens/s of a user
    19.5 requests/s, 76 decode, 43 tokens/s of a user
    35.4 requests/s, 199 decode, 30 tokens/s of a user
    """
    everyone, units = as_whole("users", users), as_whole("decode_units", decode_units)
    own, read = as_number("t_w", t_w, ANY_POSITIVE), as_number("delta_h", delta_h, AT_LEAST_ZERO)
    alone, steps = as_number("prefill", prefill, ANY_POSITIVE), as_number("n_out", n_out, _ANSWER) - 1
    decoding = np.arange(1, everyone + 1)
    each, more = np.divmod(decoding, units)  # requests of a unit; units that have one more
    tokens = (units - more) * each / (own + read * each) + more * (each + 1) / (own + read * (each + 1))
    begin = np.minimum(everyone + 1 - decoding, as_whole("prefill_units", prefill_units)) / alone
    chances = softmax(np.append(0.0, np.cumsum(np.log(begin) - np.log(tokens / steps))))
    rate, mean = float(chances[1:] @ tokens / steps), float(chances[1:] @ decoding)
    return PoolsInLoop(rate, mean, (everyone - mean) / rate, mean / rate / steps)
