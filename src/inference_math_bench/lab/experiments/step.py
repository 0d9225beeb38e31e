"""What is in a step, and whether it adds up."""

from __future__ import annotations

import numpy as np

from inference_math.simulate import StepCost
from inference_math_bench.lab import costs as laws
from inference_math_bench.lab.drive import Observed, bare_steps
from inference_math_bench.lab.engines import Prompt
from inference_math_bench.lab.experiments.bench import Arm, Bench, Experiment, Found, Values

__all__ = ["InsideAStep"]


class InsideAStep(Experiment):
    """What is in a step, and whether it adds up."""

    name, claims = "step", ("C02", "C03", "C14", "C18", "C20", "C23", "C24", "C35")

    def arms(self) -> list[Arm]:
        """Prompts alone, two prompts, decodes by context, mixed steps."""
        alone: list[Arm] = [{"prompts": 1, "n_in": n * self.scale} for n in (16, 64, 256, 1024, 2048, 3584)]
        two: list[Arm] = [{"prompts": k, "n_in": 128 * self.scale} for k in (1, 2, 4)]
        decodes: list[Arm] = [{"decodes": d, "context": c * self.scale} for d in (1, 4, 16, 32) for c in (64, 1024)]
        mixed: list[Arm] = [
            {"decodes": d, "context": c * self.scale, "prompts": 1, "n_in": n * self.scale}
            for d, c in ((8, 64), (8, 1024), (32, 64))
            for n in (32, 256)
        ]
        return alone + two + decodes + mixed

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Add the parts up; for mixed steps from unmixed ones alone, under each model of overlap."""
        k, n_in = arm.get("prompts", 0), arm.get("n_in", 0)
        decodes, context = arm.get("decodes", 0), arm.get("decodes", 0) * (arm.get("context", 0) + bench.repeats)
        asked = (decodes, context, float(k), k * n_in, k * n_in**2 / 2)
        said = {"seconds": cost(*asked)}
        if decodes and k and bench.bare:
            models = {"": "none", "@quadrature": "quadrature", "@serial-kv": "serial-kv", "@full": "full"}
            said |= {f"seconds{end}": laws.fit_alone(bench.bare, model)(*asked) for end, model in models.items()}
        return said

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Measure the mean of a few steps."""
        prompts = [Prompt(arm["n_in"])] * arm.get("prompts", 0) if arm.get("prompts") else []
        repeats = bench.repeats if arm.get("n_in", 0) < 1024 * self.scale else 2
        pairs = bare_steps(
            bench.engine, decodes=arm.get("decodes", 0), context=arm.get("context", 0), prompts=prompts, repeats=repeats
        )
        seconds = np.array([beside.seconds for _, beside in pairs])
        found: Values = {"seconds": float(seconds.mean())}
        seen = Observed([beside for _, beside in pairs], [], pairs[0][1].start, pairs[-1][1].start)
        return Found(found, [seen])
