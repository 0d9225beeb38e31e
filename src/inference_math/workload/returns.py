"""What a store finds, by its size: from when tokens come back.

A store of C tokens that drops what nobody used for longest holds the C tokens used last: what was used within some
time θ. In a stationary stream W(θ) different tokens are used within θ, where W is the integral of the rate of tokens
that were not used within the time before (Denning and Schwartz, 1972): C = W(θ) says θ, and the share of tokens that
come back within θ is found. Whole conversations come back at once; a law that takes each block for independent of all
others (Che, 2002) cannot see that.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inference_math.checks import AT_LEAST_ZERO, as_counts, as_numbers
from inference_math.workload.traces import BLOCK_TOKENS, gains

__all__ = ["Recorded", "Returns", "ladder"]


class Returns(Protocol):
    """What a store finds, by when tokens come back."""

    def found(self, capacity: float) -> float:
        """Return the share of all prompt tokens that a store of so many tokens finds."""
        ...


def ladder(returns: Returns, capacities: Sequence[float]) -> list[float]:
    """Return the share of prompt tokens that each tier of a ladder finds, each of which takes what the one above drops.

    All of them together hold what one store of their joint size would. Tiers that keep copies of what lies above them
    hold less.

    Raises
    ------
    ValueError
        For a capacity below 0.

    Examples
    --------
    >>> from inference_math.workload.returns import ladder
    >>> from inference_math.workload.sessions import Sessions
    >>> agents = Sessions(again=100_000, brought=2_000, gap=30).of(500)
    >>> [f"{share:.2f}" for share in ladder(agents, [5e6, 50e6])]
    ['0.10', '0.88']
    """
    sizes = np.cumsum(as_numbers("capacities", capacities, AT_LEAST_ZERO))
    found = [returns.found(float(size)) for size in sizes]
    return [float(share) for share in np.diff(found, prepend=0.0)]


@dataclass(frozen=True, eq=False)
class Recorded:
    """Returns of a recorded stream of requests.

    Attributes
    ----------
    seconds
        After which each return came, ascending.
    tokens
        Prompt tokens that each of them finds.
    touched
        Tokens that were used in all, those of blocks that came for the first time included; a partial block counts as
        a whole one, as it does in a store.
    prompts
        Tokens of all prompts.
    span
        Seconds of the record.
    block_tokens
        Tokens of a block.
    """

    seconds: NDArray[np.float64]
    tokens: NDArray[np.float64]
    touched: float
    prompts: float
    span: float
    block_tokens: int = BLOCK_TOKENS

    @classmethod
    def of(
        cls, blocks: Sequence[Sequence[Hashable]], arrival: ArrayLike, n_in: ArrayLike, block_tokens: int = BLOCK_TOKENS
    ) -> Recorded:
        """Return them for block ids, arrivals (s) and prompt tokens of requests, as `traces.read` gives them.

        Raises
        ------
        ValueError
            As `traces.reusable`; for fewer than two requests, or such that all arrive at once.
        """
        at = np.asarray(as_numbers("arrival", arrival, AT_LEAST_ZERO), dtype=np.float64)
        gained = gains(blocks, n_in, block_tokens)
        if at.size != len(blocks) or not np.ptp(at):
            raise ValueError(f"arrival must have a time for each of {len(blocks)} requests, not all the same")
        last: dict[Hashable, float] = {}
        ago: list[float] = []
        for now, prompt in zip(at.tolist(), blocks, strict=True):
            ago += [now - last.get(block, -np.inf) for block in prompt]
            last.update(dict.fromkeys(prompt, now))
        seconds = np.array(ago)
        order = np.argsort(seconds, kind="stable")[: int(np.isfinite(seconds).sum())]
        prompts = float(np.sum(as_counts("n_in", n_in)))
        return cls(
            seconds[order],
            gained[order].astype(np.float64),
            float(block_tokens * len(ago)),
            prompts,
            float(np.ptp(at)),
            block_tokens,
        )

    def working_set(self, seconds: ArrayLike) -> NDArray[np.float64]:
        """Return the different tokens that are used within so many seconds."""
        asked = np.asarray(seconds, dtype=np.float64)
        sums = np.concatenate([[0.0], np.cumsum(self.seconds)])
        count = np.searchsorted(self.seconds, asked, side="right")
        # The integral of the share not seen before: all of it, less what was used again meanwhile.
        again = self.block_tokens * (asked * count - sums[count])
        return np.asarray((self.touched * asked - again) / self.span)

    def kept(self, capacity: float) -> float:
        """Return the seconds for which a store of so many tokens keeps what nobody uses; infinite beyond the record."""
        breaks = np.concatenate([[0.0], self.seconds])  # in between the working set is linear
        return float(np.interp(capacity, self.working_set(breaks), breaks, right=np.inf))

    def within(self, seconds: float) -> float:
        """Return the share of all prompt tokens that were used within so many seconds before."""
        count = int(np.searchsorted(self.seconds, seconds, side="right"))
        return float(self.tokens[:count].sum() / self.prompts)

    def found(self, capacity: float) -> float:
        """Return the share of all prompt tokens that a store of so many tokens finds."""
        return self.within(self.kept(capacity)) if capacity > 0 else 0.0
