"""Measure how fast predictions, plans and the simulator are, how long the import takes, how much is installed.

    python tools/benchmark.py

Each number is the median of several runs. Nothing is asserted: machines differ. Where aiconfigurator-core is installed
its prediction of the same quantity is timed beside ours (python -m pip install ".[derive]").
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import distribution, requires
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from packaging.requirements import Requirement

from inference_math import SLA, Unit
from inference_math.simulate import Aggregated, Chunked, Disaggregated, Run, Scheduler, StepCost, closed_loop, open_loop
from inference_math.workload import Workload
from inference_math_planner import plan

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
    """Print all tables."""
    print("Predictions: Llama-3-70B FP8 on two H100s")
    print(predictions().to_string(index=False), end="\n\n")
    print("Import and size")
    print(weight().to_string(index=False), end="\n\n")
    print(f"Steps per second of the simulator, closed loop, {CONCURRENCY} users, {N_IN} prompt tokens")
    print(closed().to_string(index=False), end="\n\n")
    print(f"Wall time of one hour of traffic, {RATE:g} requests per second, {N_IN} prompt and 170 output tokens")
    print(hour().to_string(index=False))


def predictions() -> pd.DataFrame:
    """Return the time of one prediction of each kind."""
    unit = Unit.of("llama-3-70b", "h100-sxm", tp=2, weights="fp8", kv="fp8")
    work, many = Workload(2200, 170), np.linspace(1, 256, 10**6)
    calls: list[tuple[str, Callable[[], Any], int, int]] = [
        ("step_time, scalar", lambda: unit.step_time(32, 2048), 1, 1000),
        ("step_time, a million at once", lambda: unit.step_time(many, 2048), many.size, 1),
        ("e2e, scalar", lambda: unit.e2e(work, 32), 1, 300),
        ("predict, with interval", lambda: unit.predict("e2e", work, 32), 1, 3),
        ("plan, without intervals", lambda: plan(unit, work, SLA(1.0, 0.04), intervals=False), 1, 3),
        ("plan, with intervals", lambda: plan(unit, work, SLA(1.0, 0.04)), 1, 1),
    ]
    if importlib.util.find_spec("aiconfigurator_core"):
        sys.path.append(str(Path(__file__).parent / "research"))
        import peers

        row = SimpleNamespace(prompt_tokens=2200, output_tokens=170, concurrency=32)
        run = peers.session("fp8")
        calls.append(("aiconfigurator, static, loaded", lambda: run(row, peers.STATIC), 1, 10))
    rows = []
    for name, call, each, repeats in calls:
        seconds = median(_seconds(call, repeats) for _ in range(5)) / each
        rows.append({"what": name, "µs each": float(f"{1e6 * seconds:.3g}"), "per second": float(f"{1 / seconds:.3g}")})
    return pd.DataFrame(rows)


def _seconds(call: Callable[[], Any], repeats: int) -> float:
    call()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def weight() -> pd.DataFrame:
    """Return seconds of a fresh import, and MB of packages with all that they need."""
    imports = [("inference-math", "import inference_math"), ("inference-math", "from inference_math import Unit")]
    if importlib.util.find_spec("aiconfigurator_core"):
        imports.append(("aiconfigurator-core", "import aiconfigurator_core.sdk.models"))
    rows = []
    for name, code in imports:
        seconds = round(_import_time(code), 2)
        rows.append({"package": name, "import": code, "import (s)": seconds, "size (MB)": _size(name)})
    return pd.DataFrame(rows)


def _import_time(code: str) -> float:
    program = f"import time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
    run = partial(subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return median(float(run().stdout) for _ in range(5))


def _size(package: str) -> int:
    """Return the MB of a package's files and of all that it requires, extras left out."""
    needed, seen = [package], set()
    while needed:
        name = needed.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        for line in requires(name) or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed.append(requirement.name)
    files = {file.locate() for name in seen for file in distribution(name).files or []}
    return round(sum(Path(str(f)).stat().st_size for f in files if Path(str(f)).is_file()) / 1e6)


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
