"""Means, quantiles and counts of users who share an engine."""

from __future__ import annotations

import numpy as np
from scipy import stats

from inference_math import theory
from inference_math.simulate import StepCost
from inference_math_bench.lab import costs as laws
from inference_math_bench.lab.drive import Watched, closed_loop
from inference_math_bench.lab.experiments.bench import N_OUT, Arm, Bench, Experiment, Found, Values
from inference_math_bench.lab.experiments.sources import SOURCES, Geometric

__all__ = ["Counts", "Interference"]


class Interference(Experiment):
    """Means and quantiles from 1 to 64 users, and for other lengths."""

    name, claims = "interference", ("C12", "C13", "C14", "C21", "C30")

    def arms(self) -> list[Arm]:
        """Users with geometric answers; other lengths at 16 users."""
        users: list[Arm] = [{"users": b, "lengths": "geometric"} for b in (1, 2, 4, 8, 16, 32, 64)]
        others: list[Arm] = [{"users": 16, "lengths": name} for name in ("uniform", "two lengths", "two prompts")]
        return [*users, *others, {"users": 8, "lengths": "locked"}]

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return means, quantiles of the gap, and shares of time and steps."""
        if arm["lengths"] == "locked":
            return self._locked(arm, cost)
        source, users = SOURCES[arm["lengths"]](self.n_in, N_OUT), arm["users"]
        prompts, cv = (source.prompts if isinstance(source, Geometric) else (self.n_in,)), source.cv
        mean, gaps = laws.means(cost, self.n_in, N_OUT, users, cv), laws.gap_law(cost, prompts, N_OUT, users, cv)
        share = theory.prefill_share(B=users, n_out=N_OUT, **{k: mean[k] for k in ("t_w", "delta_p", "delta_h")})
        printed = theory.expected_ttft(B=users, n_out=N_OUT, ttft_alone=mean["delta_p"] * N_OUT)
        said = {name: mean[name] for name in ("ttft", "tpot")}
        said |= {f"gap_p{q}": laws.noisy_quantile(gaps, bench.scatter, q / 100) for q in (50, 90, 99)}
        said |= {f"gap_p{q}@noiseless": gaps.quantile(q / 100) for q in (50, 90, 99)}
        said |= {"ttft@printed": float(printed), "prefill_share": float(share)}
        return said | {
            "undisturbed": float(theory.undisturbed_share(B=users, n_out=N_OUT)),
            "no_prompt": float((1 - 1 / N_OUT) ** users),
            "context": float(theory.mean_context(n_in=self.n_in, n_out=N_OUT, cv=cv)),
        }

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Watch a closed loop."""
        locked = arm["lengths"] == "locked"
        source = SOURCES["fixed" if locked else arm["lengths"]](self.n_in, N_OUT)
        share = 4.0 if arm["users"] in (8, 16, 32) and arm["lengths"] == "geometric" else 2.0
        seen = bench.loop(source, arm["users"], share=share, together=locked)
        log, gaps = seen.log, seen.gaps
        alone = log[log.tokens == 0].seconds.mean()
        mixed = log[log.tokens > 0]
        return Found(
            {
                "ttft": float(seen.ttfts.mean()),
                "tpot": float(gaps.mean()),
                **{f"gap_p{q}": float(np.quantile(gaps, q / 100, method="inverted_cdf")) for q in (50, 90, 99)},
                "prefill_share": float((mixed.seconds - alone).sum() / log.seconds.sum()),
                "undisturbed": float(log.decodes[log.prefills == 0].sum() / log.decodes.sum()),
                "no_prompt": float((log.prefills == 0).mean()),
                "context": float(log.context.sum() / log.decodes.sum()),
            },
            [seen],
        )

    def _locked(self, arm: Arm, cost: StepCost) -> Values:
        """Return the law of equal answers that begin together: they end together, too, and no gap has a prompt."""
        users, one = arm["users"], laws.means(cost, self.n_in, N_OUT, 1)
        return {
            "tpot": cost.t_w + users * one["delta_h"],
            "ttft": cost.t_w + users * laws.own_time(cost, self.n_in),
            "undisturbed": 1.0,
            "no_prompt": 1 - 1 / N_OUT,
            "tpot@printed": laws.means(cost, self.n_in, N_OUT, users)["tpot"],
        }


class Counts(Experiment):
    """How many prompts are in a step, for four laws of the answers' lengths: many short runs with fresh phases."""

    name, claims = "counts", ("C12",)
    timed = False
    users, n_in, n_out, window = 8, 16, 8, 24
    most = 5  # this many prompts or more are one cell

    def arms(self) -> list[Arm]:
        """Laws of the lengths."""
        return [{"lengths": name} for name in ("geometric", "uniform", "two lengths", "fixed")]

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return the binomial laws: of all prompts in a step, and of those beside a request that decodes."""
        every, beside = (stats.binom(n, 1 / self.n_out) for n in (self.users, self.users - 1))
        k = np.arange(self.most)
        said = {f"all_{i}": float(p) for i, p in zip(k, every.pmf(k), strict=True)}
        said[f"all_{self.most}"] = float(every.sf(self.most - 1))
        said |= {f"beside_{i}": float(p) for i, p in zip(k, beside.pmf(k), strict=True)}
        return said | {f"beside_{self.most}": float(beside.sf(self.most - 1))}

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Count, in steps: windows are as many steps long, whatever those last."""
        source, end, seen = SOURCES[arm["lengths"]](self.n_in, self.n_out), bench.engine.now() + 2 * bench.seconds, []
        window = Watched(steps=self.window)
        while bench.engine.now() < end:
            seen.append(closed_loop(bench.engine, source, self.users, watched=window, rng=bench.rng))
        prompts = np.minimum(np.concatenate([one.log.prefills.round().astype(int) for one in seen]), self.most)
        decodes = np.concatenate([one.log.decodes for one in seen])
        found = {f"all_{k}": float((prompts == k).mean()) for k in range(self.most + 1)}
        found |= {f"beside_{k}": float(decodes[prompts == k].sum() / decodes.sum()) for k in range(self.most + 1)}
        return Found({**found, "steps": float(prompts.size), "windows": float(len(seen))}, seen)
