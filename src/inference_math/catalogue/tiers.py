"""Where a KV cache may lie: the tiers of a node by name, how fast each loads, how much reuse its capacity finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from inference_math.evidence import load
from inference_math.evidence.checks import AT_LEAST_ZERO, Interval, as_number, as_numbers, as_one_of
from inference_math.evidence.datapackage import rows

__all__ = ["Tier", "as_tier", "reach", "tier", "tiers"]


@dataclass(frozen=True)
class Tier:
    """One tier of a node of eight H100 [C32]; what its sources do not state is None.

    Attributes
    ----------
    name, title
        How it is called, and in words.
    classification
        The talks' class: S0 tiny, S1 larger and not sharable, S2 and S3 sharable, S3 with more speed.
    shared
        Whether other nodes can read it.
    read_bw
        Bytes per second that one GPU reads.
    latency
        Seconds to the first byte.
    capacity_node
        Bytes of one node.
    price_per_gb
        US dollars per GB, at the time that the table names.
    """

    name: str
    title: str
    classification: str
    shared: bool
    read_bw: float
    latency: float | None = None
    capacity_node: float | None = None
    price_per_gb: float | None = None

    @classmethod
    def of_bandwidth(cls, read_bw: float) -> Tier:
        """Return a store of your own, of which only the bytes per second for each GPU are known.

        >>> Tier.of_bandwidth(12.8e9).title
        'a store of 12.8 GB/s for each GPU'
        """
        speed = as_number("read_bw", read_bw, Interval(1e6, 1e15))
        title = f"a store of {speed / 1e9:g} GB/s for each GPU"
        return cls(title, title, "", False, speed)


@lru_cache
def tiers() -> Mapping[str, Tier]:
    """Return the tiers of `data/published/kv_tiers.csv` by name, the fastest first."""
    frame = load("kv_tiers").frame.sort_values("read_bw", ascending=False)
    return MappingProxyType(rows(frame.rename(columns={"tier": "name"}), Tier))


def tier(name: str) -> Tier:
    """Return the tier `name`; an unknown name raises ValueError with those that would do."""
    return tiers()[as_one_of("tier", name, tiers())]


def as_tier(argument: str, value: Tier | str | None) -> Tier | None:
    """Return a tier, or that of a name; None for HBM of the unit, "hbm". Anything else raises TypeError."""
    if value is None or value == "hbm":
        return None
    if isinstance(value, Tier):
        return value
    if isinstance(value, str):
        return tier(value)
    raise TypeError(f"{argument} must be a Tier or the name of one, not {value!r:.80}")


def reach(trace: str, tokens: ArrayLike) -> float:
    """Return the share of all prompt tokens that an LRU prefix cache of `tokens` finds in a recorded trace.

    Read off `data/measured/traces_reuse.csv`, linear in the logarithm of the capacity between its rows; beyond
    the last row nothing is gained, below the first nothing is found. For a trace of one's own see
    `traces.reuse_curve`.

    Raises
    ------
    ValueError
        For a trace that is not in the table, and for a negative capacity.
    """
    frame = load("traces_reuse").frame
    known = frame[frame.trace == as_one_of("trace", trace, frame.trace.unique())]
    capacity = as_numbers("tokens", tokens, AT_LEAST_ZERO)
    share = np.interp(np.log(np.maximum(capacity, 1)), np.log(known.capacity_tokens), known.token_share, left=0.0)
    return float(share) if not np.shape(share) else share
