"""The largest number of users under a limit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inference_math import theory
from inference_math.simulate import StepCost
from inference_math.workload import Workload
from inference_math.workload.lengths import geometric_cv
from inference_math_bench.lab import costs as laws
from inference_math_bench.lab.experiments.bench import N_OUT, Arm, Bench, Experiment, Found, Values

__all__ = ["Limit"]


class Limit(Experiment):
    """The largest number of users whose mean, or whose P99, keeps a limit on TPOT: found by bisection."""

    name, claims, every = "limit", ("C15", "C16", "C17"), 2
    most = 32

    def arms(self) -> list[Arm]:
        """Limits in weight reads; a mean with and without most of the prompt in the cache."""
        short, long, cached = self.n_in, self.scale * 512, self.scale * 448
        return [
            {"of": "mean", "times": 2.5, "n_in": short, "cached": 0},
            {"of": "p99", "times": 6.0, "n_in": short, "cached": 0},
            {"of": "mean", "times": 3.0, "n_in": long, "cached": 0},
            {"of": "mean", "times": 3.0, "n_in": long, "cached": cached, "prefixes": 8},
        ]

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return the largest batch by the formulas, and the limit itself."""
        cv = geometric_cv(N_OUT)
        limit = arm["times"] * cost.t_w
        if arm["of"] != "mean":
            users = self._largest(lambda b: self._p99(arm, cost, bench, b, cv) <= limit)
            return {"users": float(users), "limit": limit}
        users = self._largest(lambda b: laws.means(cost, arm["n_in"], N_OUT, b, cv, arm["cached"])["tpot"] <= limit)
        one = laws.means(cost, arm["n_in"], N_OUT, 1, cv, arm["cached"])
        asked = {"sla_tpot": limit, "tpot_1": one["tpot"], "delta_p": one["delta_p"], "delta_h": one["delta_h"]}
        printed = theory.max_batch_printed(**asked)
        return {"users": float(users), "limit": limit, "users@printed": float(printed)}

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Bisect."""
        source = Workload(arm["n_in"], N_OUT, lengths="geometric")
        limit, seen = said["limit"], []

        ask = bench.prefixes(arm["n_in"], arm["cached"])
        low, high = 0, self.most  # low keeps the limit, high + 1 does not
        while low < high:
            users = (low + high + 1) // 2
            one = bench.loop(source, users, share=1.3, ask=ask)
            seen.append(one)
            value = one.gaps.mean() if arm["of"] == "mean" else np.quantile(one.gaps, 0.99, method="inverted_cdf")
            low, high = (users, high) if value <= limit else (low, users - 1)
        return Found({"users": float(low)}, seen)

    def _p99(self, arm: Arm, cost: StepCost, bench: Bench, users: int, cv: float) -> float:
        return laws.noisy_quantile(laws.gap_law(cost, [arm["n_in"]], N_OUT, users, cv), bench.scatter, 0.99)

    def _largest(self, keeps: Callable[[int], bool]) -> int:
        return next((b - 1 for b in range(1, self.most + 1) if not keeps(b)), self.most)
