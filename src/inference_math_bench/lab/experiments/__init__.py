"""The experiments: what is tried, what the law says before, what is seen.

Each has arms, which are tried in random order. `predict` turns the costs of bare steps into numbers, before the trial;
`run` finds the same numbers on the engine. Names are "quantity", or "quantity@law" for what another form of the law
says of it: `printed`, where the talks' form differs, or the model of overlap.
"""

from __future__ import annotations

from inference_math_bench.lab.experiments.bench import Experiment
from inference_math_bench.lab.experiments.cadence import Cadence
from inference_math_bench.lab.experiments.chunks import Chunks
from inference_math_bench.lab.experiments.cold import ColdStart
from inference_math_bench.lab.experiments.host import Host
from inference_math_bench.lab.experiments.interference import Counts, Interference
from inference_math_bench.lab.experiments.limit import Limit
from inference_math_bench.lab.experiments.queues import OpenLoop
from inference_math_bench.lab.experiments.reuse import Reuse
from inference_math_bench.lab.experiments.step import InsideAStep
from inference_math_bench.lab.experiments.stores import Store

__all__ = [
    "EXPERIMENTS",
    "Cadence",
    "Chunks",
    "ColdStart",
    "Counts",
    "Host",
    "InsideAStep",
    "Interference",
    "Limit",
    "OpenLoop",
    "Reuse",
    "Store",
    "experiments",
]

_ALL = (InsideAStep, Interference, ColdStart, Cadence, Counts, Limit, Reuse, Store, Host, Chunks, OpenLoop)


def experiments(scale: int = 1) -> tuple[Experiment, ...]:
    """Return all experiments, with prompts and contexts `scale` times those of the laboratory's own model."""
    return tuple(kind(scale) for kind in _ALL)


EXPERIMENTS = experiments()
