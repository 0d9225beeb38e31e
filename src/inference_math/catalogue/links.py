"""What KV caches travel over from a prefill unit to a decode unit, and what was measured of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from inference_math.catalogue.models import Gpu
from inference_math.evidence import load
from inference_math.evidence.checks import Interval, as_number, as_one_of
from inference_math.evidence.datapackage import rows

__all__ = ["USUAL", "Link", "as_link", "joined", "link", "links"]

USUAL = "rdma"
"""The link between pools where nobody names one: what clusters that serve in pools have, as it was measured."""


_NODE = 8  # GPUs that a node joins
_RACKS = {"gb200": 72, "gb300": 72}  # that the NVLink of a rack does: NVIDIA, GB200 NVL72 and GB300 NVL72


@dataclass(frozen=True)
class Link:
    """A link between two units: its name, in words, bytes/s of one GPU (None: the GPU's own), whether measured."""

    name: str
    title: str
    bw: float | None = None
    measured: bool = False

    @classmethod
    def of_bandwidth(cls, bw: float) -> Link:
        """Return a link of your own, of which the bytes per second for each GPU are known.

        >>> Link.of_bandwidth(12.5e9).title
        'a link of 12.5 GB/s for each GPU'
        """
        speed = as_number("bw", bw, Interval(1e6, 1e15))
        title = f"a link of {speed / 1e9:g} GB/s for each GPU"
        return cls(title, title, speed, True)

    def of(self, gpu: Gpu) -> float:
        """Return the bytes per second of one GPU."""
        return gpu.link_bw if self.bw is None else self.bw


def joined(gpu: Gpu) -> int:
    """Return how many GPUs the links reach that a step is computed over: those of a node, or of a rack.

    >>> from inference_math import catalogue
    >>> joined(catalogue.gpu("h100-sxm")), joined(catalogue.gpu("gb300"))
    (8, 72)
    """
    return _RACKS.get(gpu.name, _NODE)


@lru_cache
def links() -> Mapping[str, Link]:
    """Return the links of `data/published/kv_links.csv` by name."""
    frame = load("kv_links").frame
    frame = frame.rename(columns={"link": "name"}).assign(measured=frame["evidence"] == "measured")
    return MappingProxyType(rows(frame, Link))


def link(name: str) -> Link:
    """Return the link `name`; an unknown name raises ValueError with those that would do."""
    return links()[as_one_of("link", name, links())]


def as_link(argument: str, value: Link | str | None) -> Link:
    """Return a link, or that of a name; None: the usual one. Anything else raises TypeError."""
    if isinstance(value, Link):
        return value
    if value is None or isinstance(value, str):
        return link(USUAL if value is None else value)
    raise TypeError(f"{argument} must be a Link or the name of one, not {value!r:.80}")
