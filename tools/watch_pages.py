"""Write book/handbook/metrics/*.txt: pages of metrics of simulated engines, each with one fault but for the first.

    python tools/watch_pages.py

Names and buckets are those of vLLM 0.32's /metrics. What is served is simulated, and each page says so. Its name does
not say which fault it has: `ENGINES` does, and the handbook's page about `inference-math watch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from inference_math import Unit, Workload, simulate

FOLDER = Path(__file__).parents[1] / "book/handbook/metrics"
UNIT = Unit.of("llama-3-70b", "h100-sxm", 2, weights="fp8", kv="bf16", drafts=3, accepted=0.8)
WORK = Workload(2200, 170, lengths="geometric")
BUDGET, RATE, REQUESTS = 2048, 1.3, 800
# What was planned, as `watch` is told it.
PLANNED = ["--model", "llama-3-70b", "--gpu", "h100-sxm", "--tp", "2", "--weights", "fp8", "--kv", "bf16"]
PLANNED += ["--prompt", "2200", "--output", "170", "--drafts", "3", "--accepted", "0.8", "--budget", f"{BUDGET}"]

_SAID = "# A simulated engine (inference-math, tools/watch_pages.py), in the names of vLLM 0.32. Nothing was measured."
# The ends of vLLM's buckets, as its own page has them.
_LENGTHS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
_STEPS = [1, *(2**k for k in range(3, 15))]
_FIRST = [
    1e-3,
    5e-3,
    1e-2,
    2e-2,
    4e-2,
    6e-2,
    8e-2,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
    160,
    640,
    2560,
]
_GAPS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]
_WAITS = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
_LATE = 100  # requests after the last one counted: those who wait when the page is taken


@dataclass(frozen=True)
class Engine:
    """An engine as it runs: the unit, mean prompt tokens, tokens of a step, tokens of KV cache."""

    unit: Unit = UNIT
    n_in: float = WORK.n_in
    budget: int = BUDGET
    cache: float = UNIT.kv_tokens(WORK.n_in)

    def run(self, requests: int) -> simulate.Run:
        """Simulate so many requests, which come at random."""
        chunks = simulate.Chunked(self.budget, max_batch=256, kv_capacity=self.cache, grows=True)
        work = structs.replace(WORK, n_in=self.n_in)
        return simulate.open_loop(
            work, simulate.Steps(self.unit), rate=RATE, requests=requests, scheduler=chunks, seed=1, every_gap=True,
            log=True,
        )  # fmt: skip


def _slow() -> Unit:
    """Return the unit if one of its GPUs computes half as fast: the other waits for it in each layer."""
    found = UNIT.calibration
    half = replace(found.coefficients, fp8=found.coefficients.fp8 / 2)
    return UNIT.calibrated(replace(found, coefficients=half))


ENGINES: dict[str, tuple[str, Engine]] = {
    "as-planned": ("nothing", Engine()),
    "engine-a": ("drafts refused", Engine(UNIT.resized(accepted=0.25))),
    "engine-b": ("a token budget too large", Engine(budget=8192)),
    "engine-c": ("long prompts", Engine(n_in=4400)),
    "engine-d": ("one slow GPU", Engine(_slow())),
    "engine-e": ("a cache too small", Engine(cache=12_000)),
}


class _Page:
    """Metrics in the names of vLLM, written by Prometheus' own client."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry

        self._registry = CollectorRegistry()
        self._kept: dict[str, Any] = {"registry": self._registry, "labelnames": ["engine", "model_name"]}
        self._labels = "0", UNIT.model.name

    def timed(self, name: str, values: Iterable[float], ends: Sequence[float]) -> None:
        """Put a histogram of values in."""
        from prometheus_client import Histogram

        histogram = Histogram(f"vllm:{name}", name, buckets=ends, **self._kept).labels(*self._labels)
        for value in values:
            histogram.observe(value)

    def counted(self, name: str, value: float) -> None:
        """Put a counter in."""
        from prometheus_client import Counter

        Counter(f"vllm:{name}", name, **self._kept).labels(*self._labels).inc(value)

    def shown(self, name: str, value: float) -> None:
        """Put in what is so at the moment."""
        from prometheus_client import Gauge

        Gauge(f"vllm:{name}", name, **self._kept).labels(*self._labels).set(value)

    def text(self) -> str:
        """Return the page."""
        from prometheus_client import generate_latest

        lines = [line for line in generate_latest(self._registry).decode().splitlines() if "_created" not in line]
        return "\n".join([_SAID, *(line for line in lines if not line.startswith("# HELP"))]) + "\n"


def page(engine: Engine) -> str:
    """Return what the engine's /metrics would show after its requests."""
    new, run, rows = _Page(), engine.run(REQUESTS), engine.run(REQUESTS + _LATE).requests
    assert run.log is not None
    assert run.every_gap is not None
    done, steps, last = run.requests, run.log, run.log.iloc[-1]
    now = float(last["start"] + last["seconds"])
    new.timed("request_prompt_tokens", done["n_in"], _LENGTHS)
    new.timed("request_generation_tokens", done["n_out"], _LENGTHS)
    new.timed("time_to_first_token_seconds", done["ttft"], _FIRST)
    new.timed("inter_token_latency_seconds", run.every_gap, _GAPS)
    new.timed("request_time_per_output_token_seconds", done["tpot"].dropna(), _GAPS)
    new.timed("request_queue_time_seconds", done["admitted"] - done["arrival"], _WAITS)
    new.timed("request_prefill_time_seconds", done["first_token"] - done["admitted"], _WAITS)
    # vLLM counts a prompt in the step that ends it, whole, and the tokens that requests get.
    ends = np.searchsorted((steps["start"] + steps["seconds"]).to_numpy(), done["first_token"] - 1e-9)
    prompts = np.bincount(ends, done["n_in"], len(steps))
    new.timed("iteration_tokens_total", prompts + engine.unit.tokens_a_step * steps["decodes"], _STEPS)
    decodes = float(steps["decodes"].sum())
    new.counted("prompt_tokens", float(done["n_in"].sum()))
    new.counted("prompt_tokens_cached", 0)
    new.counted("num_preemptions", run.preempted)
    new.counted("spec_decode_num_drafts", decodes)
    new.counted("spec_decode_num_draft_tokens", decodes * UNIT.drafts)
    new.counted("spec_decode_num_accepted_tokens", round(decodes * (engine.unit.tokens_a_step - 1)))
    new.shown("num_requests_running", float(last["decodes"]))
    new.shown("num_requests_waiting", float(((rows["arrival"] <= now) & (rows["admitted"] > now)).sum()))
    new.shown("kv_cache_usage_perc", round(float(last["context"]) / engine.cache, 4))
    return new.text()


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (_, engine) in ENGINES.items():
        (FOLDER / f"{name}.txt").write_text(page(engine), encoding="utf-8")


if __name__ == "__main__":
    main()
