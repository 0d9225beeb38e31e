"""A benchmark from a cold start: the opening burst, and how fast users who began together spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from inference_math import theory
from inference_math.simulate import StepCost
from inference_math.workload import Requests, Source, Workload
from inference_math_bench.lab import costs as laws
from inference_math_bench.lab.drive import benchmark
from inference_math_bench.lab.experiments.bench import Arm, Bench, Experiment, Found, Values

__all__ = ["ColdStart", "Spread"]


@dataclass(frozen=True)
class Spread:
    """Equal prompts, answers uniform within `far` tokens of their mean."""

    n_in: int
    n_out: int
    far: int

    @property
    def cv(self) -> float:
        """Coefficient of variation of the answers."""
        return float(np.sqrt(((2 * self.far + 1) ** 2 - 1) / 12) / self.n_out)

    def draw(self, count: int, rng: np.random.Generator) -> Any:
        """Return `count` requests."""
        n_out = rng.integers(self.n_out - self.far, self.n_out + self.far + 1, count)
        return Requests(np.full(count, self.n_in), n_out, np.zeros_like(n_out))


class ColdStart(Experiment):
    """All users begin together, so that no phase is drawn from the law: TTFT of the burst, and of what follows."""

    name, claims = "cold", ("C12", "C13")
    users, rounds, n_out = 16, 10, 32

    def arms(self) -> list[Arm]:
        """How far answers differ, and how many prompts the tokens of a step have room for."""
        return [{"lengths": name, "together": k} for name in ("equal", "near", "geometric") for k in (4, self.users)]

    def source(self, lengths: str) -> Source:
        """Return who sends: equal answers, some that differ by a fifth at most, geometric ones."""
        if lengths == "geometric":
            return Workload(self.n_in, self.n_out, lengths="geometric")
        return Spread(self.n_in, self.n_out, 0 if lengths == "equal" else self.n_out // 5)

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return the mean TTFT of the burst, of all requests, and of all after the first of each user."""
        cv = self.source(arm["lengths"]).cv  # type: ignore[attr-defined]
        one = laws.means(cost, self.n_in, self.n_out, self.users, cv)
        parts = {"t_w": cost.t_w, "ttft_1": laws.own_time(cost, self.n_in), "delta_h": one["delta_h"]}
        burst = theory.ttft_burst(B=self.users, together=arm["together"], **parts)
        steady = theory.expected_ttft_full(B=self.users, n_out=self.n_out, **parts)
        asked = {"B": self.users, "rounds": self.rounds, "together": arm["together"], "n_out": self.n_out, "cv": cv}
        met = theory.prompts_met(**asked)
        told = {"burst": burst, "steady": steady, "rounds": self.rounds, "met": met}
        whole = theory.ttft_benchmark(**told, ttft_1=parts["ttft_1"], delta_h=parts["delta_h"])
        later = (self.rounds * whole - burst) / (self.rounds - 1)
        return {"burst": burst, "ttft": whole, "later": later, "ttft@steady": steady, "later@steady": steady}

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Run the benchmark; the budget of a step has room for the decodes besides."""
        budget = arm["together"] * self.n_in + self.users
        source = self.source(arm["lengths"])
        seen, waves = benchmark(bench.engine, source, self.users, self.rounds, rng=bench.rng, budget=budget)
        times = seen.ttfts
        found = {"burst": times[waves == 0].mean(), "ttft": times.mean(), "later": times[waves > 0].mean()}
        return Found({name: float(value) for name, value in found.items()}, [seen])
