"""The laboratory on an engine that plays a known cost."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy import stats

from inference_math.simulate import StepCost
from inference_math_bench.lab import session
from inference_math_bench.lab.engines import Played
from inference_math_bench.lab.experiments import EXPERIMENTS
from inference_math_bench.lab.experiments.bench import Bench
from inference_math_bench.lab.machine import Alone
from inference_math_bench.lab.record import Book

__all__ = ["COST", "HEAD", "LENGTHS", "bench", "one_round"]

COST = StepCost(t_w=0.007, T=0.0002, T_decode=0.0003, kv_read=6e-7)
HEAD = {"model": "played", "engine": {"engine": "played"}, "machine": {"cores": 2}, "seed": 5}
# Every law of lengths that `Counts` draws from, as equally likely answers.
LENGTHS = {
    "geometric": stats.geom.ppf((np.arange(20_000) + 0.5) / 20_000, 1 / 8).astype(int),
    "uniform": np.arange(1, 16),
    "two lengths": np.array([2, 14]),
    "fixed": np.array([8]),
}


def bench() -> Bench:
    """Return a bench that looks at few steps."""
    return Bench(Played(COST), np.random.default_rng(5), seconds=1.0, repeats=3, watch=Alone)


@cache
def one_round() -> str:
    """Return the lines of one round of every experiment, which is played once for all tests of a process."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "lab.jsonl"
        assert session.rounds(bench(), Book(file, HEAD), EXPERIMENTS, until=1e9, progress=None, most=1) == 1
        return file.read_text(encoding="utf-8")
