"""Measure how many steps per second the simulator plays, and how long an hour of traffic takes.

    python tools/benchmark.py

Each number is the median of three runs. Nothing is asserted: machines differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import pandas as pd

from inference_math.simulate import Aggregated, Chunked, Disaggregated, Run, Scheduler, StepCost, closed_loop, open_loop
from inference_math.workload import Workload

COST = StepCost(t_w=0.015, T=2e-5, kv_read=3.5e-8, pair=2e-9)
SCHEDULERS: dict[str, Scheduler] = {
    "aggregated": Aggregated(),
    "chunked (512)": Chunked(512),
    "disaggregated": Disaggregated(),
}
N_IN, CONCURRENCY = 1024, 32
N_OUT = (64, 170, 500)
STEPS = 100_000  # of decoding, about, in one run
RATE, HOUR = 10.0, 3600


def main() -> None:
    """Print both tables."""
    print(f"Steps per second of the simulator, closed loop, {CONCURRENCY} users, {N_IN} prompt tokens")
    print(closed().to_string(index=False), end="\n\n")
    print(f"Wall time of one hour of traffic, {RATE:g} requests per second, {N_IN} prompt and 170 output tokens")
    print(hour().to_string(index=False))


def closed() -> pd.DataFrame:
    """Return thousands of steps per second for each scheduler and output length."""
    rows = []
    for name, scheduler in SCHEDULERS.items():
        for n_out in N_OUT:
            row: dict[str, object] = {"scheduler": name, "n_out": n_out}
            for lengths in ("fixed", "geometric"):
                users = Workload(N_IN, n_out, lengths=lengths)
                requests = STEPS * CONCURRENCY // n_out
                play = partial(
                    closed_loop, users, COST, concurrency=CONCURRENCY, requests=requests, scheduler=scheduler
                )
                run, seconds = timed(play)
                row[f"{lengths} (k steps/s)"] = round(run.steps / seconds / 1e3)
            rows.append(row)
    return pd.DataFrame(rows)


def hour() -> pd.DataFrame:
    """Return the seconds that an hour of traffic takes with each scheduler."""
    users = Workload(N_IN, 170, lengths="geometric")
    rows = []
    for name, scheduler in SCHEDULERS.items():
        run, seconds = timed(partial(open_loop, users, COST, rate=RATE, requests=int(RATE * HOUR), scheduler=scheduler))
        rows.append({
            "scheduler": name, "wall time (s)": round(seconds, 2), "k steps/s": round(run.steps / seconds / 1e3),
            "mean TTFT (s)": round(float(run.requests.ttft.mean()), 3),
        })  # fmt: skip
    return pd.DataFrame(rows)


def timed(play: Callable[[], Run], repeats: int = 3) -> tuple[Run, float]:
    """Return a run and the median of the seconds that it took."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run = play()
        seconds.append(time.perf_counter() - start)
    return run, median(seconds)


if __name__ == "__main__":
    main()
