"""Steps that let prompts in and steps that do not, round after round: laws of gaps and first tokens (E01 to E03).

A round is N steps, of which the first lets prompts in. Ranks of attention data parallelism step together: each step is
as long as the rank with the most prompts takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from inference_math.evidence.checks import (
    ANY_POSITIVE,
    AT_LEAST_ONE,
    AT_LEAST_ZERO,
    SHARE,
    Interval,
    Numbers,
    as_number,
    as_numbers,
    as_whole,
)
from inference_math.theory.cadence import gap_admits, let_in_share

__all__ = ["ClosedRounds", "OpenRounds", "most_prompts"]

_TAIL = 1e-9  # of a law that is left out
_NONE = 1e-200  # a share that no product with it should become too small for
_CLOSE = 1e-9
_ROUNDS = 300
_MOST = 1024  # prompts of a rank in a step
_ENDLESS = 1e4  # times the weight read: a step so long belongs to a queue without end
_ANSWER = Interval(1, 1e9, open_low=True)


def most_prompts(law: Any, ranks: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return numbers and their chances: the most of `ranks` independent ones of a SciPy law of whole numbers."""
    top = int(law.ppf(1 - _TAIL)) + 1
    numbers = np.arange(top + 1)
    return numbers.astype(float), np.diff(law.cdf(numbers) ** ranks, prepend=0.0)


class _Gaps:
    """Gaps between tokens: the seconds of each kind of step, and how often a decode meets it."""

    @property
    def gaps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds of gaps in order, and the share of each."""
        raise NotImplementedError

    @property
    def mean_gap(self) -> float:
        """Mean seconds between two tokens, TPOT."""
        seconds, shares = self.gaps
        return float(seconds @ shares)

    def quantile(self, level: ArrayLike) -> Any:
        """Return the seconds that the share `level` of the gaps does not exceed."""
        asked = as_numbers("level", level, SHARE)
        seconds, shares = self.gaps
        gap = seconds[np.minimum(np.searchsorted(np.cumsum(shares), asked - 1e-12), seconds.size - 1)]
        return float(gap) if np.ndim(gap) == 0 else gap

    def share_within(self, limit: ArrayLike) -> Numbers:
        """Return the share of the gaps that are no longer than `limit` seconds."""
        seconds, shares = self.gaps
        asked = as_numbers("limit", limit, AT_LEAST_ZERO)
        share = np.concatenate([[0.0], np.cumsum(shares)])[np.searchsorted(seconds, asked * (1 + 1e-12), side="right")]
        return float(share) if np.ndim(share) == 0 else share


@dataclass(frozen=True)
class ClosedRounds(_Gaps):
    """Places that always have a prompt waiting, and geometric answers [E01, E03].

    Parameters
    ----------
    B
        Places of each rank, a whole number.
    n_out
        Mean output tokens, above 1.
    t_w, ttft_1, delta_h
        Seconds of a step's weights, of a prompt net of them, of a decode's read; each on one rank.
    every
        Prompts are let in at every so many steps.
    ranks
        That step together.

    Raises
    ------
    TypeError, ValueError
        For an argument that is none of these.

    Examples
    --------
    >>> for every in (1, 2, 8):
    ...     law = ClosedRounds(32, 200, t_w=0.02, ttft_1=0.1, delta_h=1e-4, every=every, ranks=8)
    ...     print(f"{1e3 * law.mean_gap:.0f} ms in the mean, {1e3 * law.quantile(0.5):.0f} in the median")
    104 ms in the mean, 123 in the median
    85 ms in the mean, 23 in the median
    59 ms in the mean, 23 in the median
    """

    B: int
    n_out: float
    t_w: float
    ttft_1: float
    delta_h: float
    every: int = 1
    ranks: int = 1

    def __post_init__(self) -> None:
        for name in ("B", "every", "ranks"):
            as_whole(name, getattr(self, name))
        as_number("n_out", self.n_out, _ANSWER)
        for name in ("t_w", "ttft_1"):
            as_number(name, getattr(self, name), ANY_POSITIVE)
        as_number("delta_h", self.delta_h, AT_LEAST_ZERO)

    @property
    def let_in(self) -> float:
        """Chance that a place gets a prompt when prompts are let in."""
        return float(let_in_share(every=self.every, n_out=self.n_out))

    @cached_property
    def gaps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds of gaps in order, and the share of each."""
        stays, others = 1 - 1 / self.n_out, self.B * self.ranks - 1
        weights = stays ** np.arange(1, self.every + 1)  # of the places decode so many, step by step; the last admits
        weights /= weights.sum()
        seconds, shares = [], []
        for place, weight in zip(range(1, self.every), weights[:-1], strict=True):
            law = stats.binom(others, stays**place if weight > _NONE else 0.0)
            decodes = np.arange(law.ppf(_TAIL), law.ppf(1 - _TAIL) + 1)
            seconds.append(self.t_w + self.delta_h * (1 + decodes) / self.ranks)
            shares.append(weight * law.pmf(decodes))
        admitted, chances = self._let_in_beside()
        # The decodes that make room for prompts: exact on one rank, their mean on several.
        gone = admitted if self.ranks == 1 else np.full(admitted.size, others * self.let_in)
        seconds.append(self.t_w + self.delta_h * (1 + others - gone) / self.ranks + self.ttft_1 * admitted)
        shares.append(weights[-1] * chances)
        return _ordered(np.concatenate(seconds), np.concatenate(shares))

    def _let_in_beside(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the most prompts that a rank lets in beside a request that decodes, and their chances."""
        own, other = stats.binom(self.B - 1, self.let_in), stats.binom(self.B, self.let_in)
        numbers = np.arange(int(other.ppf(1 - _TAIL / self.ranks)) + 2)
        within = own.cdf(numbers) * other.cdf(numbers) ** (self.ranks - 1)
        return numbers.astype(float), np.diff(within, prepend=0.0)

    @cached_property
    def round(self) -> float:
        """Mean seconds of a round."""
        numbers, chances = most_prompts(stats.binom(self.B, self.let_in), self.ranks)
        read = self.B * (self.n_out - 1) * self.let_in * self.delta_h  # of all decodes of a round, on each rank
        return float(self.every * self.t_w + read + self.ttft_1 * (numbers @ chances))

    @property
    def rate(self) -> float:
        """Requests per second of all ranks."""
        return self.B * self.ranks * self.let_in / self.round


@dataclass(frozen=True)
class OpenRounds(_Gaps):
    """Requests that arrive at random, at ranks that are never idle [E02, E03].

    Gaps are those of steps, each counted as often. More decodes meet long rounds than short ones, which lengthens the
    mean gap: by 4 % at a third of what the ranks serve at most, by 15 % at 80 %, more for short answers.

    Parameters
    ----------
    rate
        Requests per second of all ranks together; each goes to one by chance.
    n_out, t_w, ttft_1, delta_h, every, ranks
        As of `ClosedRounds`.

    Raises
    ------
    TypeError, ValueError
        For an argument that is none of these; for more requests than the ranks can serve.

    Examples
    --------
    >>> for every in (1, 2, 8):
    ...     law = OpenRounds(24, 200, t_w=0.02, ttft_1=0.08, delta_h=1e-4, every=every, ranks=8)
    ...     print(f"{1e3 * law.mean_gap:.0f} ms, first token {1e3 * law.ttft:.0f}")
    148 ms, first token 274
    97 ms, first token 311
    53 ms, first token 516
    """

    rate: float
    n_out: float
    t_w: float
    ttft_1: float
    delta_h: float
    every: int = 1
    ranks: int = 1

    def __post_init__(self) -> None:
        for name in ("every", "ranks"):
            as_whole(name, getattr(self, name))
        as_number("n_out", self.n_out, AT_LEAST_ONE)
        for name in ("rate", "t_w", "ttft_1"):
            as_number(name, getattr(self, name), ANY_POSITIVE)
        as_number("delta_h", self.delta_h, AT_LEAST_ZERO)
        each = self.rate / self.ranks
        load = each * (self.ttft_1 + (self.n_out - 1) * self.delta_h)
        if load >= 1:
            raise ValueError(f"rate must be below {self.rate / load:.4g}, what the ranks serve, not {self.rate:g}")
        if self._settled is None:
            raise ValueError(f"rate must be what the ranks serve every {self.every} steps, not {self.rate:g}")

    @cached_property
    def _settled(self) -> tuple[float, NDArray[np.float64], NDArray[np.float64]] | None:
        """Seconds of a clean step; the most prompts of a rank in a step that lets them in, and the chances of these."""
        each = self.rate / self.ranks
        read = each * (self.n_out - 1) * self.delta_h  # seconds of each second that decodes read, on a rank
        most, clean = 32, self.t_w / (1 - read)
        while most <= _MOST:
            numbers = np.arange(most, dtype=float)
            for _ in range(_ROUNDS):
                rounds = self.every * clean + self.ttft_1 * numbers
                # Each number leads to a round of its own, and that to the next number: the most of all ranks.
                within = stats.poisson.cdf(numbers[:, None], each * rounds[None, :]) ** self.ranks
                chances = _kept(np.diff(within, axis=0, prepend=0.0))
                before, clean = clean, self.t_w + read * float(rounds @ chances) / self.every
                if abs(clean / before - 1) < _CLOSE or not clean < _ENDLESS * self.t_w:
                    break
            if chances[-1] < _TAIL and abs(clean / before - 1) < _CLOSE:
                return clean, numbers, chances
            most, clean = 2 * most, min(clean, _ENDLESS * self.t_w)
        return None

    @property
    def clean(self) -> float:
        """Seconds of a step of decodes alone."""
        assert self._settled is not None
        return self._settled[0]

    @property
    def round(self) -> float:
        """Mean seconds of a round."""
        assert self._settled is not None
        clean, numbers, chances = self._settled
        return float(self.every * clean + self.ttft_1 * (numbers @ chances))

    @cached_property
    def gaps(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds of gaps in order, and the share of each."""
        assert self._settled is not None
        clean, numbers, chances = self._settled
        # Answers end while a round goes on, so its first step has fewer decodes than a mean one.
        admits = 1 / self.every
        if self.n_out > 1:
            admits = float(gap_admits(n_out=self.n_out, let_in=let_in_share(every=self.every, n_out=self.n_out)))
        shares = chances * admits
        shares[0] += 1 - admits
        return _ordered(clean + self.ttft_1 * numbers, shares)

    @cached_property
    def ttft(self) -> float:
        """Mean seconds to the first token, without a front, of an engine that plans a step when it begins."""
        assert self._settled is not None
        clean, numbers, chances = self._settled
        rounds = self.every * clean + self.ttft_1 * numbers
        met = rounds * chances / (rounds @ chances)  # who arrives at random falls into a long round rather
        each = self.rate / self.ranks
        own = stats.poisson.cdf(numbers[:, None] - 1, each * rounds[None, :])  # others on one's own rank, and oneself
        within = own * stats.poisson.cdf(numbers[:, None], each * rounds[None, :]) ** (self.ranks - 1)
        most = numbers @ np.diff(within, axis=0, prepend=0.0)
        return float(met @ (rounds / 2 + clean + self.ttft_1 * most))

    @property
    def ttft_ahead(self) -> float:
        """The same of one that plans each step while the one before it runs: by that step longer.

        Without a cadence that is a mean step; with one it is a clean step, for prompts were let in long before.
        """
        return self.ttft + (self.round if self.every == 1 else self.clean)


def _kept(moves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chances that a step of a Markov chain leaves as they are; its columns are where it goes from each."""
    size = len(moves)
    lost = moves / moves.sum(axis=0)  # what lies beyond the last number counts nowhere
    system = np.vstack([(lost - np.eye(size))[:-1], np.ones(size)])
    solution: NDArray[np.float64] = np.linalg.solve(system, np.eye(size)[-1])
    chances = np.maximum(solution, 0)
    return np.asarray(chances / chances.sum())


def _ordered(
    seconds: NDArray[np.float64], shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    order = np.argsort(seconds, kind="stable")
    return seconds[order], shares[order] / shares.sum()
