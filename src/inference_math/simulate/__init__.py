"""A simulator of serving, step by step: what closed forms assume, played out.

`closed_loop` keeps a fixed number of users busy, `benchmark` lets them begin together and end, `open_loop` lets
requests arrive at random, `replay` plays a trace. A scheduler says who is computed when, a cost what a step takes,
`Reuse` how stored KV caches are loaded.

>>> from inference_math import simulate
>>> from inference_math.workload import Workload
>>> cost = simulate.StepCost(t_w=0.020, prompt=0.2, delta_h=0.0001)
>>> run = simulate.closed_loop(Workload(2048, 170), cost, concurrency=1, requests=10)
>>> print(f"{run.requests.tpot.mean():.4f}")
0.0201
"""

from __future__ import annotations

from inference_math.simulate.cost import Cost, Steps
from inference_math.simulate.record import GapHistogram, Run
from inference_math.simulate.schedulers import Aggregated, Chunked, Disaggregated, Reuse, Scheduler, SchedulerPolicy
from inference_math.simulate.serve import benchmark, closed_loop, open_loop, replay
from inference_math.simulate.sweep import sweep
from inference_math.unit.affine import StepCost
from inference_math.unit.overlap import OVERLAPS

__all__ = [
    "OVERLAPS",
    "Aggregated",
    "Chunked",
    "Cost",
    "Disaggregated",
    "GapHistogram",
    "Reuse",
    "Run",
    "Scheduler",
    "SchedulerPolicy",
    "StepCost",
    "Steps",
    "benchmark",
    "closed_loop",
    "open_loop",
    "replay",
    "sweep",
]
