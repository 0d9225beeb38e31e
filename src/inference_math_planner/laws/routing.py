"""Requests that a router sends to one of several equal units: how they spread (E10)."""

from typing import Any

from inference_math.evidence.checks import ANY_POSITIVE, AT_LEAST_ZERO, as_number, as_whole


def spread_of(B: int, units: int, t_w: float, added: float) -> Any:
    """Return the number of requests at one of the units as a distribution of SciPy, each sent to one at random [E10].

    Parameters
    ----------
    B
        Requests in all: who gets an answer sends the next one.
    units
        Equal ones.
    t_w, added
        Seconds of a step without requests, and what each adds, ΔP + ΔH.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range.

    Examples
    --------
    >>> from inference_math_planner.laws.routing import spread_of
    >>> for added in (1e-9, 0.001, 1e3):
    ...     print(f"{spread_of(B=16, units=16, t_w=0.01, added=added).pmf(0):.2f} idle")
    0.36 idle
    0.37 idle
    0.48 idle
    """
    from scipy.stats import betabinom, binom  # slow to import, and the formulas do without

    count, each = as_whole("B", B), as_whole("units", units)
    apart, together = as_number("t_w", t_w, ANY_POSITIVE), as_number("added", added, AT_LEAST_ZERO)
    if each == 1 or together < 1e-12 * apart:
        return binom(count, 1 / each)
    weight = 1 + apart / together
    return betabinom(count, weight, (each - 1) * weight)
