"""Token budgets, from small chunks to whole prompts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inference_math import simulate
from inference_math.simulate import StepCost
from inference_math.workload import Workload
from inference_math_bench.lab import costs as laws
from inference_math_bench.lab.engines import ALL_AT_ONCE
from inference_math_bench.lab.experiments.bench import Arm, Bench, Experiment, Found, Values
from inference_math_planner.laws.laws import Law

__all__ = ["Chunks"]


class Chunks(Experiment):
    """Token budgets from small to whole prompts, at equal batch."""

    name, claims = "chunks", ("C22", "C23", "C24", "C25")
    users = 16
    n_in = 128

    def arms(self) -> list[Arm]:
        """Budgets, at three lengths of the answer; a chunk of 128 keeps up at the middle length."""
        *small, fair, large = (self.users + self.scale * chunk for chunk in (64, 96, 128, 192))
        whole = self.scale * ALL_AT_ONCE
        budgets: list[Arm] = [{"budget": b, "n_out": 16} for b in (*small, fair, large, whole)]
        return budgets + [{"budget": b, "n_out": n} for n in (4, 64) for b in (fair, whole)]

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Play the scheduler with the cost, under each model of overlap."""
        said: Values = {}
        for name in ("none", "serial-kv", "full"):
            run = simulate.closed_loop(
                Workload(self.n_in, arm["n_out"], lengths="geometric"),
                replace(cost, overlap=name),
                concurrency=self.users,
                requests=1500,
                warmup=100,
                scheduler=simulate.Chunked(budget=arm["budget"]),
                seed=1,
            )
            end = "" if name == "none" else f"@{name}"
            said[f"tokens_per_s{end}"] = run.gaps.count / run.seconds * (1 + 1 / (arm["n_out"] - 1))
            said[f"tpot{end}"] = run.gaps.mean
            said[f"gap_p99{end}"] = laws.noisy_quantile(_as_law(run.gaps), bench.scatter, 0.99)
            said[f"ttft{end}"] = float(run.requests.ttft.mean())
        return said

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Watch a closed loop under the budget."""
        source = Workload(self.n_in, arm["n_out"], lengths="geometric")
        seen = bench.loop(source, self.users, warmup=bench.seconds, budget=arm["budget"])
        out = sum(len(step.emitted) for step in seen.steps)
        values = {"tokens_per_s": out / (seen.end - seen.start), "tpot": float(seen.gaps.mean())}
        tail = float(np.quantile(seen.gaps, 0.99, method="inverted_cdf"))
        values |= {"gap_p99": tail, "ttft": float(seen.ttfts.mean())}
        return Found(values, [seen])


def _as_law(gaps: simulate.GapHistogram) -> Law:
    frame = gaps.frame()
    return Law.of(frame.gap, frame["count"])
