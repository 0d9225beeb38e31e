"""Prompts at every N-th step alone: how many gaps are clean, how long gaps are, what is served."""

from __future__ import annotations

import numpy as np

from inference_math import theory
from inference_math.simulate import StepCost
from inference_math.workload import Workload
from inference_math.workload.lengths import geometric_cv
from inference_math_bench.lab import costs as laws
from inference_math_bench.lab.experiments.bench import Arm, Bench, Experiment, Found, Values
from inference_math_planner.laws.laws import Law
from inference_math_planner.laws.rounds import ClosedRounds

__all__ = ["Cadence"]


class Cadence(Experiment):
    """Users in a closed loop whose prompts wait for every N-th step."""

    name, claims = "cadence", ("E01",)
    users, n_out = 16, 32

    def arms(self) -> list[Arm]:
        """Steps from prompts to prompts."""
        return [{"cadence": every} for every in (1, 2, 4, 10, 32)]

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return the share of clean gaps, mean and quantiles of the gaps, requests/s."""
        one = laws.means(cost, self.n_in, self.n_out, self.users, cv=geometric_cv(self.n_out))
        ttft_1, every = laws.own_time(cost, self.n_in), arm["cadence"]
        law = ClosedRounds(self.users, self.n_out, t_w=cost.t_w, ttft_1=ttft_1, delta_h=one["delta_h"], every=every)
        gaps = Law(*law.gaps)
        return {
            "clean": theory.clean_gaps(B=self.users, ranks=1, n_out=self.n_out, let_in=law.let_in),
            "gap": law.mean_gap,
            "p50": laws.noisy_quantile(gaps, bench.scatter, 0.5),
            "p90": laws.noisy_quantile(gaps, bench.scatter, 0.9),
            "rate": law.rate,
        }

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Run the loop; a gap is clean where its step has no prompt."""
        source = Workload(self.n_in, self.n_out, lengths="geometric")
        seen = bench.loop(source, self.users, cadence=arm["cadence"], warmup=0.1 * bench.seconds)
        log = seen.log
        clean = log.decodes[log.tokens == 0].sum() / log.decodes.sum()
        p50, p90 = np.quantile(seen.gaps, [0.5, 0.9])
        rate = sum(r.finished == r.finished for r in seen.requests) / (seen.end - seen.start)
        found = {"clean": clean, "gap": seen.gaps.mean(), "p50": p50, "p90": p90, "rate": rate}
        return Found({name: float(value) for name, value in found.items()}, [seen])
