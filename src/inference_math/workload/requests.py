"""What users send: prompt and output lengths, the reusable share of the prompt, arrivals; and what they expect.

A `Workload` has given means; a `Trace` repeats recorded requests. Both draw requests for the simulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from msgspec.structs import force_setattr
from numpy.typing import NDArray

from inference_math.evidence.checks import (
    AT_LEAST_ZERO,
    SHARE,
    Interval,
    Numbers,
    as_counts,
    as_number,
    as_numbers,
    as_one_of,
    as_whole,
)
from inference_math.evidence.records import Record
from inference_math.workload.lengths import geometric_cv, trace_means

__all__ = ["LENGTHS", "SLA", "RandomLengths", "Requests", "Source", "Trace", "Workload"]


class Requests(NamedTuple):
    """Requests drawn: prompt tokens, output tokens, and those prompt tokens whose KV cache is stored."""

    n_in: NDArray[np.int64]
    n_out: NDArray[np.int64]
    cached: NDArray[np.int64]


@runtime_checkable
class Source(Protocol):
    """Anything that draws requests."""

    def draw(self, count: int, rng: np.random.Generator) -> Requests:
        """Return `count` requests, independent of each other."""
        ...


_SECONDS = Interval(0, 1e6, open_low=True)
LENGTHS = ("fixed", "geometric")
"""How output lengths may be distributed where only their mean is known."""
_PAIRING = Interval(0, 1e6, open_low=True)
_TOKENS = Interval(1, 1e9)  # of a request: a thousand times the longest there are


class Workload(Record):
    """Requests of `n_in` prompt tokens and `n_out` output tokens on average.

    Parameters
    ----------
    n_in, n_out
        Tokens, at least one.
    alpha
        Share of the prompt whose KV cache is stored; at least the last token is computed.
    lengths
        Output lengths: "fixed", all `n_out`; "geometric", of mean `n_out`, as if each token could be the last; "",
        where only their `cv` is known.
    longest
        Tokens of the longest request, prompt and output, where that is known: what engines must take.
    pairing
        Mean of prompt times answer, over the product of their means: 1 where they do not hang together, more where long
        prompts have long answers. Steps of decodes meet prompts that are so many times the mean.
    cv
        Coefficient of variation of the output lengths; that of `lengths`, where these are named.

    Raises
    ------
    ValueError
        For a length below 1, an alpha outside [0, 1], another name of `lengths`, a pairing that is not positive.
    """

    n_in: float
    n_out: float
    alpha: float = 0.0
    lengths: str = "fixed"
    longest: float = 0.0
    pairing: float = 1.0
    cv: float = 0.0

    def __post_init__(self) -> None:
        as_number("n_in", self.n_in, _TOKENS)
        as_number("n_out", self.n_out, _TOKENS)
        as_number("alpha", self.alpha, SHARE)
        if self.lengths != "":
            cv = 0.0 if as_one_of("lengths", self.lengths, LENGTHS) == "fixed" else geometric_cv(self.n_out)
            force_setattr(self, "cv", cv)
        as_number("longest", self.longest, Interval(0, 2e9))
        as_number("pairing", self.pairing, _PAIRING)

    @classmethod
    def from_trace(cls, trace: Trace) -> Workload:
        """Return the means of a trace, the stored share of its prompt tokens, geometric outputs, longest and pairing.

        Real answers vary about as much as geometric ones; `Trace.cv` tells how much those of `trace` do.
        """
        requests = trace.rows()
        return cls(lengths="geometric", **trace_means(np.stack(requests, axis=1).tolist()))

    def draw(self, count: int, rng: np.random.Generator) -> Requests:
        """Return `count` requests; prompt lengths, and fixed output lengths, must be whole numbers."""
        n_in = np.full(as_whole("count", count, 0), as_whole("n_in", self.n_in))
        as_one_of("lengths", self.lengths, LENGTHS)
        if self.lengths == "fixed":
            n_out = np.full(n_in.size, as_whole("n_out", self.n_out))
        else:
            n_out = rng.geometric(1 / self.n_out, n_in.size)
        stored = np.round(self.alpha * n_in, 6)
        if stored.size and stored[0] % 1:  # a whole number above or below it, so that the mean is kept
            stored = np.floor(stored + rng.random(n_in.size))
        return Requests(n_in, n_out, np.minimum(stored.astype(np.int64), n_in - 1))


_SPAN = Interval(0, 0.999)


@dataclass(frozen=True)
class RandomLengths:
    """Lengths as the clients of benchmarks draw them: uniform, those of a prompt and of its answer apart.

    ``vllm bench serve --random-range-ratio r`` draws from 1 - r to 1 + r of what it is given: that is a span of r.
    Others draw from r to 1 of it: their mean is (1 + r)/2 of it, and the span (1 - r)/(1 + r).

    Parameters
    ----------
    n_in, n_out
        Mean tokens, at least one.
    span
        How far lengths go from their means at most, as a share of these, from 0 to 0.999.

    Raises
    ------
    ValueError
        For a length below 1, a span outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> RandomLengths(900, 100, span=0.1).draw(4, np.random.default_rng(0)).n_in.tolist()
    [963, 925, 902, 858]
    """

    n_in: float
    n_out: float
    span: float = 0.0

    def __post_init__(self) -> None:
        as_number("n_in", self.n_in, _TOKENS)
        as_number("n_out", self.n_out, _TOKENS)
        as_number("span", self.span, _SPAN)

    def draw(self, count: int, rng: np.random.Generator) -> Requests:
        """Return `count` requests."""
        size = as_whole("count", count, 0)
        n_in, n_out = (
            rng.integers(max(1, round(mean * (1 - self.span))), round(mean * (1 + self.span)) + 1, size)
            for mean in (self.n_in, self.n_out)
        )
        return Requests(n_in, n_out, np.zeros_like(n_in))


@dataclass(frozen=True)
class SLA:
    """Limits on the time to first token and per output token, in seconds.

    `quantile` is the share of the requests' TTFTs, and of the gaps between tokens, that must be within; None: the
    means must.

    Raises
    ------
    ValueError
        For a limit that is not positive, a quantile outside (0, 1).
    """

    ttft: float
    tpot: float
    quantile: float | None = None

    def __post_init__(self) -> None:
        as_number("ttft", self.ttft, _SECONDS)
        as_number("tpot", self.tpot, _SECONDS)
        if self.quantile is not None and not 0 < as_number("quantile", self.quantile, SHARE) < 1:
            raise ValueError(f"quantile must be a number between 0 and 1, not {self.quantile!r}")


@dataclass(frozen=True, eq=False)
class Trace:
    """Recorded requests.

    `draw` takes rows at random, with replacement; `simulate.replay` plays them at their own arrival times. The columns
    are copies that cannot be written to.

    Parameters
    ----------
    n_in, n_out
        Tokens of each request, whole numbers.
    arrival
        Seconds since the start, not decreasing; may be left out where only lengths matter.
    alpha
        Share of each prompt whose KV cache is stored; one number for all, or one for each.

    Raises
    ------
    ValueError
        For no requests, columns of unequal length, values out of range, arrivals that go back in time.
    """

    n_in: Any
    n_out: Any
    arrival: Any = None
    alpha: Any = 0.0

    def __post_init__(self) -> None:
        for name in ("n_in", "n_out"):
            object.__setattr__(self, name, as_counts(name, getattr(self, name)))
        alpha = as_numbers("alpha", self.alpha, SHARE)
        object.__setattr__(self, "alpha", alpha if alpha.ndim else np.full(self.n_in.shape, alpha))
        columns = ["n_in", "n_out", "alpha"]
        if self.arrival is not None:
            object.__setattr__(self, "arrival", as_numbers("arrival", self.arrival, AT_LEAST_ZERO))
            columns.append("arrival")
        shapes = {name: getattr(self, name).shape for name in columns}
        if len(set(shapes.values())) > 1:
            raise ValueError(f"{', '.join(columns)} must have the same length, not {shapes}")
        if self.arrival is not None and (np.diff(self.arrival) < 0).any():
            raise ValueError("arrival must not decrease")
        for name in columns:  # answers are kept by the trace that they are of
            own = np.array(getattr(self, name))
            own.setflags(write=False)
            object.__setattr__(self, name, own)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Trace:
        """Return the trace of a table with the columns n_in, n_out and, if known, arrival and alpha."""
        missing = [name for name in ("n_in", "n_out") if name not in frame]
        if missing:
            raise ValueError(f"frame must have the columns n_in and n_out; missing: {', '.join(missing)}")
        known = {name: frame[name].to_numpy() for name in ("n_in", "n_out", "arrival", "alpha") if name in frame}
        return cls(**known)

    @property
    def cv(self) -> float:
        """Coefficient of variation of the output lengths."""
        return float(np.std(self.n_out) / np.mean(self.n_out))

    def rows(self) -> Requests:
        """Return all requests in their order."""
        return Requests(self.n_in, self.n_out, _cached(self.n_in, self.alpha))

    def draw(self, count: int, rng: np.random.Generator) -> Requests:
        """Return `count` of the requests, each drawn at random."""
        chosen = rng.integers(len(self.n_in), size=as_whole("count", count, 0))
        return Requests(*(column[chosen] for column in self.rows()))


def _cached(n_in: NDArray[np.int64], alpha: Numbers) -> NDArray[np.int64]:
    """Return the stored tokens of prompts, of which the last one is always computed."""
    return np.asarray(np.minimum(np.floor(alpha * n_in + 0.5).astype(np.int64), n_in - 1))
