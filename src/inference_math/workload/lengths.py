"""How answers scatter, and what recorded requests are in the mean. The planner's page asks with the same."""

from __future__ import annotations

from math import sqrt

__all__ = ["geometric_cv", "trace_means"]


def geometric_cv(n_out: float) -> float:
    """Return the coefficient of variation of geometric lengths with a mean of `n_out` tokens.

    >>> geometric_cv(4 / 3)
    0.5
    """
    return sqrt(1 - 1 / n_out)


def trace_means(rows: list[list[float]]) -> dict[str, float]:
    """Return what `Workload` names of recorded requests, each [prompt, answer, stored tokens of the prompt].

    >>> trace_means([[100, 10, 50], [300, 30, 50]])
    {'n_in': 200.0, 'n_out': 20.0, 'alpha': 0.25, 'longest': 330, 'pairing': 1.25}
    """
    count, prompts, answers, stored, together, longest = len(rows), 0.0, 0.0, 0.0, 0.0, 0.0
    for n_in, n_out, cached in rows:
        prompts += n_in
        answers += n_out
        stored += cached
        together += n_in * n_out
        longest = max(longest, n_in + n_out)
    n_in, n_out = prompts / count, answers / count
    return {
        "n_in": n_in, "n_out": n_out, "alpha": stored / prompts, "longest": longest,
        "pairing": together / count / n_in / n_out,
    }  # fmt: skip
