"""Prefixes from the engine's own cache."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inference_math.simulate import StepCost
from inference_math.workload import Workload
from inference_math.workload.lengths import geometric_cv
from inference_math_bench.lab import costs as laws
from inference_math_bench.lab.drive import Observed
from inference_math_bench.lab.engines import Prompt
from inference_math_bench.lab.experiments.bench import N_OUT, Arm, Bench, Experiment, Found, Values, alone

__all__ = ["Reuse"]


class Reuse(Experiment):
    """Prefixes from the engine's own cache: how much faster a prefill gets, how much less a user weighs."""

    name, claims = "reuse", ("C05", "C16", "C17")
    n_in = 1024

    def arms(self) -> list[Arm]:
        """Cached tokens of a prompt; alone, and in a closed loop whose users have a few prefixes or all the same."""
        single: list[Arm] = [{"what": "prefill", "cached": c * self.scale} for c in (256, 512, 768, 896, 992)]
        users: list[Arm] = [{"what": "users", "cached": c * self.scale, "prefixes": 8} for c in (0, 512, 768, 896, 992)]
        return [*single, *users, {"what": "users", "cached": 992 * self.scale, "prefixes": 1}]

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return the speedup of a prefill alone, or what a further user adds to a gap."""
        share = arm["cached"] / self.n_in
        if arm["what"] == "prefill":
            whole, rest = (cost.t_w + laws.own_time(cost, self.n_in, c) for c in (0, arm["cached"]))
            net = laws.own_time(cost, self.n_in) / laws.own_time(cost, self.n_in, arm["cached"])
            return {"speedup": whole / rest, "speedup@printed": 1 / (1 - share), "speedup@causal": net}
        cv = geometric_cv(N_OUT)
        eight, one = (laws.means(cost, self.n_in, N_OUT, b, cv, arm["cached"]) for b in (8, 1))
        plain = laws.means(cost, self.n_in, N_OUT, 8, cv)
        return {
            "per_user": (eight["tpot"] - one["tpot"]) / 7,
            "per_user@bound": plain["delta_h"],
            "tpot": eight["tpot"],
        }

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Measure pairs of prefills, or closed loops of one and of eight users."""
        prompt = Prompt(self.n_in, 700, arm["cached"])
        if arm["what"] == "prefill":
            alone(bench, replace(prompt, shared=992 * self.scale))  # into the cache
            ratios, steps = [], []
            for _ in range(3):
                whole, rest = alone(bench, Prompt(self.n_in)), alone(bench, prompt)
                ratios.append(whole.seconds / rest.seconds)
                steps += [whole, rest]
            return Found({"speedup": float(np.mean(ratios))}, [Observed(steps, [], steps[0].start, steps[-1].start)])
        source = Workload(self.n_in, N_OUT, lengths="geometric")

        ask = bench.prefixes(self.n_in, arm["cached"], arm["prefixes"])
        one, eight = bench.loop(source, 1, share=0.5, ask=ask), bench.loop(source, 8, ask=ask)
        tpot = float(eight.gaps.mean())
        return Found({"per_user": (tpot - float(one.gaps.mean())) / 7, "tpot": tpot}, [one, eight])
