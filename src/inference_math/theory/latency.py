"""Latencies that users see beyond the mean: quantiles of the step from the binomial law of prefills [C12].

Beside a tagged request, each of the B − 1 others is prefilling with probability 1/n_out, independently. Whoever
does not prefill decodes. So a step takes one of B values, and its quantiles are those of a binomial number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from inference_math.checks import ANY_POSITIVE, AT_LEAST_ONE, AT_LEAST_ZERO, SHARE, as_number, as_numbers

__all__ = ["gap_quantile", "max_batch_quantile", "max_batch_ttft_quantile", "prefills_beside", "ttft_quantile"]


def prefills_beside(B: Any, n_out: Any) -> Any:
    """Return the law of the number of other requests that prefill in a step: a frozen SciPy distribution.

    Binom(B − 1, 1/n_out); `B` a whole number (or an array of them) >= 1, `n_out` >= 1 the mean output tokens.
    """
    requests = as_numbers("B", B, AT_LEAST_ONE)
    if (requests % 1).any():
        raise ValueError(f"B must be a whole number, not {B!r:.80}")
    return stats.binom(requests - 1, 1 / as_numbers("n_out", n_out, AT_LEAST_ONE))


def gap_quantile(q: float, B: Any, n_out: Any, tpot_1: float, delta_p: float, delta_h: float) -> Any:
    """Return the time between two tokens, in seconds, that the share `q` of them does not exceed [C12, C14].

    `tpot_1` is the gap of a request alone; each other request adds its prefill, ``n_out * delta_p``, or
    `delta_h`. Its mean is `theory.expected_tpot_full` with z = 0. `B` and `n_out` broadcast.
    """
    return _step_quantile(q, B, n_out, as_numbers("tpot_1", tpot_1, ANY_POSITIVE), delta_p, delta_h)


def ttft_quantile(q: float, B: Any, n_out: Any, ttft_1: float, delta_h: float, t_w: float) -> Any:
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


def _step_quantile(q: float, B: Any, n_out: Any, own: Any, delta_p: Any, delta_h: Any) -> Any:
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


def _largest(meets: Callable[[int], Any]) -> int:
    """Return the largest B that meets a limit; meeting it must not become easier with B."""
    if not meets(1):
        return 0
    good, bad = 1, 2
    while meets(bad):
        good, bad = bad, 2 * bad
        if bad > _MOST:
            raise ValueError(f"delta_p and delta_h must limit the batch; {_MOST} requests still meet the limit")
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    return good
