"""How long prompts wait for a pool of prefill units fed by one queue, at any quantile [C34].

`theory.pool_wait` and `theory.wait_quantile` are closed, and approximate but in special cases. Here are the laws behind
them, as numbers: for prompts of any length, for any number of units, for arrivals in bursts (gamma-distributed times
between them). Exact up to a grid for one unit and for equal prompts, in between by the rule named in `wait_law`.
"""

from __future__ import annotations

from math import ceil, comb, log2, prod

import numpy as np
from numpy.typing import NDArray
from scipy import fft, optimize, stats

from inference_math.evidence.checks import ANY_POSITIVE, SHARE, Interval, as_number, as_whole
from inference_math_planner.laws.laws import Law

__all__ = ["CV_ARRIVALS", "MOST_LOAD", "busiest", "erlang_c", "ttft_law", "wait_law"]

MOST_LOAD = 0.995
"""The fullest pool whose waits are computed: one fuller has waits of hundreds of prompts."""

CV_ARRIVALS = Interval(0, 4)
"""Coefficients of variation of the times between arrivals: 1 is a Poisson process."""

_LOAD = Interval(0.01, MOST_LOAD)
_CLOCK = 1e-3  # scatter below this is none
_GRID = 2**17  # points at most
_FINEST = 128  # cells in a mean prefill
_DECAYS = 24  # how far the grid goes beyond where the tilted law has fallen by a factor of e


def erlang_c(load: float, prefill_units: int) -> float:
    """Return the share of prompts that wait for a pool, arrivals and prefill times both memoryless (M/M/c).

    Parameters
    ----------
    load
        Share of its time that each unit works, from 0 to 1.
    prefill_units
        Units, a whole number >= 1.

    Raises
    ------
    TypeError, ValueError
        For an argument that is none of these.

    Notes
    -----
    Erlang's second formula (Harchol-Balter 2013, chapter 14), by the recursion of his first one in the number of units.
    It is a function and no `Formula`, because its sum has as many terms as there are units.

    Examples
    --------
    >>> f"{erlang_c(0.77, 1):.2f} {erlang_c(0.77, 6):.2f}"
    '0.77 0.46'
    """
    busy, units = as_number("load", load, SHARE), as_whole("prefill_units", prefill_units)
    lost = 1.0
    for unit in range(1, units + 1):
        lost = units * busy * lost / (unit + units * busy * lost)
    return lost / (1 - busy * (1 - lost)) if busy < 1 else 1.0


def wait_law(load: float, prefills: Law, prefill_units: int = 1, cv_arrivals: float = 1.0) -> Law:
    """Return the law of the wait in the one queue of a pool of prefill units, in seconds.

    Parameters
    ----------
    load
        Share of its time that each unit works, from 0.01 to `MOST_LOAD`.
    prefills
        What a prompt takes on a unit, in seconds; each is drawn independently.
    prefill_units
        Units, a whole number >= 1. Whoever came first is served first, by the unit that is free first.
    cv_arrivals
        Standard deviation of the times between arrivals over their mean, which are gamma-distributed: 1 for arrivals at
        random (Poisson), more for bursts, 0 for a clock. It is 1/√burstiness of ``vllm bench serve --burstiness``.

    Raises
    ------
    TypeError, ValueError
        For an argument that is none of these.

    Notes
    -----
    One unit: Lindley's equation, solved by the Wiener-Hopf factors of its random walk, found by Fourier transforms
    (Grübel, Algorithm AS 265, 1991). Several units, equal prompts: they take turns, so each is a queue of its own that
    gets every c-th arrival. Both are exact; the grid is right to 0.3 % up to a load of 0.99.
    Several units, prompts that vary: quantiles between those of equal prompts and of exponential ones (GI/M/c by
    Takács, exact), in proportion to the squared coefficient of variation c_in² up to 1, as Tijms interpolates M/G/c;
    above 1 the exponential's wait is stretched by (c_a² + c_in²)/(c_a² + 1). Against simulation, with gamma-distributed
    prompts and loads of 0.8 and more, mean and P99 of the TTFT are right to a tenth for c_in up to 2. The rule does not
    see how heavy a tail is.

    Examples
    --------
    >>> alone, pool = (wait_law(0.77, Law.equal(0.150), units) for units in (1, 6))
    >>> f"{alone.mean:.3f} {pool.mean:.3f}"
    '0.251 0.026'
    """
    if not isinstance(prefills, Law):
        raise TypeError(f"prefills must be a Law, not {prefills!r:.80}")
    busy, units = as_number("load", load, _LOAD), as_whole("prefill_units", prefill_units)
    bursts = as_number("cv_arrivals", cv_arrivals, CV_ARRIVALS)
    bursts = 0.0 if bursts < _CLOCK else bursts
    if units == 1:
        return _lindley(busy, prefills, 1, bursts)
    steady = _lindley(busy, Law.equal(prefills.mean), units, bursts)
    varied = prefills.cv**2
    if varied < 1e-12:
        return steady
    waiting, mean = _takacs(busy, prefills.mean, units, bursts)
    mean *= max(1.0, (bursts**2 + varied) / (bursts**2 + 1))
    # Halves of the quantiles from the atom at 0 on, fine enough for P99.99.
    edges = 1 - waiting * np.exp(-np.linspace(0, 30, 6000))
    times = mean * np.linspace(0, 30, 6000)
    exponential = Law((times + np.append(0, times[:-1])) / 2, np.diff(edges, prepend=0))
    return steady.between(exponential, min(1.0, varied))


def ttft_law(load: float, prefills: Law, prefill_units: int = 1, cv_arrivals: float = 1.0) -> Law:
    """Return the law of the time to first token of a prefill pool, in seconds: the wait, then one's own prompt.

    The arguments, errors and accuracy are those of `wait_law`; what a first token takes beyond the prefill is left out.

    Examples
    --------
    >>> first = ttft_law(0.77, Law.equal(0.1508))
    >>> f"{first.mean:.2f} {first.quantile(0.9):.2f} {first.quantile(0.99):.2f}"
    '0.40 0.79 1.48'
    """
    waits = wait_law(load, prefills, prefill_units, cv_arrivals)
    if prefills.values.size == 1:
        return Law(waits.values + prefills.values[0], waits.probabilities)
    cell = float(waits.values[-1] + prefills.values[-1]) / (_GRID - 4)
    both = fft.irfft(fft.rfft(_split(waits, cell), _GRID) * fft.rfft(_split(prefills, cell), _GRID), _GRID)
    mass = np.maximum(both, 0)
    return Law(cell * np.arange(_GRID, dtype=np.float64), mass / mass.sum())


def busiest(
    sla_ttft: float, prefills: Law, prefill_units: int = 1, cv_arrivals: float = 1.0, q: float | None = None
) -> float:
    """Return the highest load of a prefill pool whose mean TTFT, or its quantile `q`, meets a limit.

    Parameters
    ----------
    sla_ttft
        Limit in seconds.
    prefills, prefill_units, cv_arrivals
        As in `wait_law`.
    q
        The share of requests that must meet the limit, below 1; None for the mean.

    Returns
    -------
    float
        Load, to 0.0002; `MOST_LOAD` if the limit is met up to there, 0 if it is missed at 0.01 already.

    Examples
    --------
    >>> equal = Law.equal(0.1508)
    >>> f"{busiest(0.4, equal):.2f} {busiest(0.4, equal, 6):.2f} {busiest(0.4, equal, 6, q=0.99):.2f}"
    '0.77 0.96 0.81'
    """
    limit = as_number("sla_ttft", sla_ttft, ANY_POSITIVE)
    share = None if q is None else as_number("q", q, Interval(0, 1 - 1e-6))

    def spare(load: float) -> float:
        if share is None:
            return limit - prefills.mean - wait_law(load, prefills, prefill_units, cv_arrivals).mean
        return limit - ttft_law(load, prefills, prefill_units, cv_arrivals).quantile(share)

    low, high = _LOAD.low, _LOAD.high
    if spare(low) < 0:
        return 0.0
    if spare(high) >= 0:
        return high
    highest = float(optimize.brentq(spare, low, high, xtol=1e-4))
    return highest if spare(highest) >= 0 else highest - 2e-4


def _lindley(load: float, prefills: Law, units: int, cv_arrivals: float) -> Law:
    """Return the wait at one of `units` that take turns: its next prompt comes after that many arrivals.

    W' = max(0, W + X), X a prefill less the time to the next one. With φ the generating function of X,
    1 − φ(z) = (1 − up(z))(1 − down(z)), and that of W is proportional to 1/(1 − up(z)): the part of log(1 − φ) with
    positive powers. Taken on the circle where φ is least, all powers fade fast in both directions.
    """
    mean, cv = prefills.mean, cv_arrivals / float(np.sqrt(units))
    if cv < _CLOCK and prefills.values[-1] <= mean / load:
        return Law(np.zeros(1), np.ones(1))
    tilt = _least(mean / load, cv, prefills)
    room = _DECAYS / tilt + 4 * float(prefills.values[-1])
    cell = mean / max(1, min(_FINEST, int(mean * _GRID / (2 * room))))
    half = 2 ** max(12, ceil(log2(room / cell)))
    if half > _GRID // 2:
        raise ValueError(f"prefills must vary less at a load of {load:g}, not by a cv_in of {prefills.cv:g}")
    tilt = min(tilt, 600 / (cell * half))  # any circle up to there will do, and none overflows
    growth = np.exp(tilt * cell * np.arange(half + 1))
    prompts, between = _split(prefills, cell), _gamma(mean / load, cv, cell, half)
    forward, backward = np.zeros(2 * half), np.zeros(2 * half)
    forward[: prompts.size] = prompts * growth[: prompts.size]
    backward[: between.size] = between / growth[: between.size]
    logs = np.log(1 - fft.rfft(forward) * np.conj(fft.rfft(backward)))
    powers = fft.irfft(logs, 2 * half)
    powers[0] = 0
    powers[half:] = 0
    mass = np.maximum(fft.irfft(np.exp(-fft.rfft(powers)), 2 * half)[:half], 0) / growth[:-1]
    last = min(mass.size, int(np.searchsorted(np.cumsum(mass), (1 - 1e-12) * mass.sum())) + 1)
    return Law(cell * np.arange(last, dtype=np.float64), mass[:last] / mass[:last].sum())


def _least(gap: float, cv: float, prefills: Law) -> float:
    """Return the t at which the mean of exp(tX) is least, X a prefill less a gap, in 1/s."""

    def log_mean(t: float) -> float:
        rising = t * prefills.values
        top = float(np.max(rising))
        prompt = top + float(np.log(np.exp(rising - top) @ prefills.probabilities))
        return prompt - (t * gap if cv < _CLOCK else float(np.log1p(t * gap * cv**2)) / cv**2)

    minimum = optimize.minimize_scalar(log_mean, bounds=(0, 20 / prefills.mean), method="bounded")
    return float(minimum.x)


def _split(law: Law, cell: float) -> NDArray[np.float64]:
    """Return a law's masses on a grid; each value is split between its neighbours, so that means stay."""
    places = law.values / cell
    lower = np.floor(places + 1e-9).astype(np.int64)
    upper = np.clip(places - lower, 0, 1) * law.probabilities
    size = int(lower[-1]) + 2
    mass = np.bincount(lower, law.probabilities - upper, size) + np.bincount(lower + 1, upper, size)
    return mass.astype(np.float64)


def _gamma(mean: float, cv: float, cell: float, points: int) -> NDArray[np.float64]:
    """Return the masses of a gamma distribution on a grid, its mean kept; what lies beyond is left out."""
    edges = cell * np.arange(points + 1)
    if cv >= _CLOCK:
        shape = 1 / cv**2
        scale = mean / shape
        # Mean excess over each edge; its second differences are the masses. It is small where they are.
        longer, beyond = (stats.gamma.sf(edges, k, scale=scale) for k in (shape + 1, shape))
        excess = mean * longer - edges * beyond
    else:
        excess = np.maximum(0, mean - edges)
    above = -np.diff(excess) / cell  # the mean of the survival function in a cell
    mass: NDArray[np.float64] = np.maximum(-np.diff(above, prepend=1), 0)
    return mass


def _takacs(load: float, mean: float, units: int, cv_arrivals: float) -> tuple[float, float]:
    """Return the share of prompts that wait, and their mean wait in seconds, for exponential prefill times (GI/M/c).

    Who waits has an exponential wait; L. Takács, Introduction to the Theory of Queues, 1962, chapter 2.
    """
    period = mean / (units * load)

    def transform(rate: float) -> float:
        """Laplace transform of the times between arrivals."""
        if cv_arrivals:
            return float((1 + rate * period * cv_arrivals**2) ** (-1 / cv_arrivals**2))
        return float(np.exp(-rate * period))

    def free(busy: float) -> float:
        """Share of its time that a unit would be free if the others were always busy."""
        return units * (1 - busy)

    root = float(optimize.brentq(lambda x: transform(free(x) / mean) - x, 0, 1 - (1 - load) * 1e-3))
    if root < 1e-9:
        return 0.0, mean / units  # nobody waits
    # Where free(root) is a whole number below the units, numerator and denominator of a term below are both 0.
    whole = round(free(root))
    if abs(free(root) - whole) < 1e-5 and 1 <= whole < units:
        pairs = [_takacs(load * side, mean, units, cv_arrivals) for side in (1 - 1e-4, 1 + 1e-4)]
        return (pairs[0][0] + pairs[1][0]) / 2, (pairs[0][1] + pairs[1][1]) / 2
    phi = [transform(j / mean) for j in range(1, units + 1)]
    total = 1 / (1 - root)
    for j in range(1, units + 1):
        odds = prod(p / (1 - p) for p in phi[:j])
        rest = 1 - phi[j - 1]
        ratio = (units * rest - j) / (free(root) - j) if j < units else phi[-1] / root
        total += comb(units, j) / (odds * rest) * ratio
    return 1 / total / (1 - root), mean / free(root)
