"""Requests that come at random: queues before the first token, and Little's law."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inference_math.simulate import StepCost
from inference_math.workload import Workload
from inference_math_bench.lab.drive import Observed, open_loop
from inference_math_bench.lab.engines import Prompt
from inference_math_bench.lab.experiments.bench import Arm, Bench, Experiment, Found, Values, alone
from inference_math_planner.laws import waiting
from inference_math_planner.laws.laws import Law

__all__ = ["OpenLoop"]


class OpenLoop(Experiment):
    """Requests that come at random: queues before the first token, and Little's law."""

    name, claims = "open", ("C36",)
    n_in = 16

    def arms(self) -> list[Arm]:
        """Loads and burstiness of prompts one after the other; requests with answers."""
        loads = ((0.3, 1), (0.6, 1), (0.6, 2), (0.8, 1))
        queue: list[Arm] = [{"load": load, "cv": cv, "n_out": 1} for load, cv in loads]
        return [*queue, {"load": 0.5, "cv": 1, "n_out": 8}]

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return TTFTs of the queue's law; with answers only Little's law speaks."""
        services = self._services(bench)
        service = float(services.mean())
        if arm["n_out"] > 1:
            return {"little": 1.0, "service": service}
        law = waiting.ttft_law(arm["load"], Law.of(services), 1, float(arm["cv"]))
        return {"ttft": law.mean, "ttft_p90": law.quantile(0.9), "service": service}

    def _services(self, bench: Bench) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return what prompts alone take, from sending to the token: a queue near its limit asks for it exactly."""
        seconds = []
        for _ in range(4 * bench.repeats):
            start = bench.engine.now()
            alone(bench, Prompt(self.n_in))
            seconds.append(bench.engine.now() - start)
        return np.array(seconds)

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Send at random; one prompt in a step."""
        service = said["service"]
        rate = arm["load"] / service / (1 if arm["n_out"] == 1 else 2)
        before = bench.engine.budget
        bench.engine.budget = self.n_in if arm["n_out"] == 1 else before
        try:
            seen = open_loop(
                bench.engine,
                Workload(self.n_in, arm["n_out"]),
                _arrivals(rate, arm["cv"], bench.rng),
                seconds=2.2 * bench.seconds,
                warmup=0.4 * bench.seconds,
                rng=bench.rng,
            )
        finally:
            bench.engine.budget = before
        ttfts = seen.ttfts
        if arm["n_out"] > 1:
            return Found({"little": _little(seen)}, [seen])
        return Found({"ttft": float(ttfts.mean()), "ttft_p90": float(np.quantile(ttfts, 0.9))}, [seen])


def _little(seen: Observed) -> float:
    """Return the mean number in the system, counted step by step, over rate times mean latency.

    Counted are the requests that a step has or that wait; a stay begins when the engine gets the request.
    """
    log = seen.log
    counted = float(((log.decodes + np.ceil(log.prefills) + log.queue) * log.seconds).sum()) / (seen.end - seen.start)
    stays = [min(r.finished, seen.end) - max(r.sent, seen.start) for r in seen.requests if r.finished == r.finished]
    return counted / (float(np.sum(stays)) / (seen.end - seen.start))


def _arrivals(rate: float, cv: float, rng: np.random.Generator) -> Iterator[float]:
    time = 0.0
    while True:
        time += float(rng.gamma(1 / cv**2, cv**2 / rate))
        yield time
