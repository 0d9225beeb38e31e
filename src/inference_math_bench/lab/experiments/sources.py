"""Requests by the law of their lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inference_math.workload import Trace, Workload
from inference_math.workload.lengths import geometric_cv

__all__ = ["SOURCES", "Geometric"]


@dataclass(frozen=True)
class Geometric:
    """Requests whose prompts are equally often each of `prompts`, with answers of geometric length."""

    prompts: tuple[int, ...]
    n_out: int

    @property
    def cv(self) -> float:
        """Coefficient of variation of the answers' lengths."""
        return geometric_cv(self.n_out)

    def draw(self, count: int, rng: np.random.Generator) -> Any:
        """Return `count` requests."""
        drawn = Workload(1, self.n_out, lengths="geometric").draw(count, rng)
        return drawn._replace(n_in=rng.choice(np.array(self.prompts), count))


SOURCES: dict[str, Callable[[int, int], Workload | Trace | Geometric]] = {
    "geometric": lambda n_in, n_out: Workload(n_in, n_out, lengths="geometric"),
    "uniform": lambda n_in, n_out: Trace(n_in=np.full(2 * n_out - 1, n_in), n_out=np.arange(1, 2 * n_out)),
    "two lengths": lambda n_in, n_out: Trace(n_in=[n_in, n_in], n_out=[n_out // 4, 2 * n_out - n_out // 4]),
    "fixed": lambda n_in, n_out: Workload(n_in, n_out),
    "two prompts": lambda n_in, n_out: Geometric((n_in // 4, 2 * n_in - n_in // 4), n_out),
}
