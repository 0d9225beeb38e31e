"""Prompts whose KV cache lies in host memory, where the engine's own offloading keeps it."""

from __future__ import annotations

import numpy as np

from inference_math import theory
from inference_math.simulate import StepCost
from inference_math_bench.lab import costs as laws
from inference_math_bench.lab.drive import Observed
from inference_math_bench.lab.engines import Engine, Prompt, Step
from inference_math_bench.lab.experiments.bench import Arm, Bench, Experiment, Found, Values, alone

__all__ = ["Host"]

_BESIDE = Prompt(16)  # who decodes while caches are written: an engine that is idle writes nothing
_WRITTEN = 24  # steps in which they are
_FAMILIES = 100_000  # of prompts that are kept in host memory: the first of their numbers


class Host(Experiment):
    """Prompts whose first part comes from host memory, everything first: what it takes against computing it."""

    name, claims = "host", ("C08", "C10")

    def arms(self) -> list[Arm]:
        """Two lengths of prompts, and shares of them that are kept."""
        lengths, shares = (self.scale * n for n in (512, 2048)), (4, 8, 12, 14, 15)
        return [{"n_in": n, "stored": n * share // 16} for n in lengths for share in shares]

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return seconds from sending to the token, and the speedup; from costs of steps and the link alone."""
        n_in, stored = arm["n_in"], arm["stored"]
        link = bench.engine.link
        load = stored * bench.kv_bytes / link
        whole, rest = (cost.t_w + laws.own_time(cost, n_in, cached) for cached in (0, stored))
        e = laws.own_time(cost, n_in) / n_in * link / bench.kv_bytes
        printed = theory.speedup_whole(alpha=stored / n_in, e=e)
        said = {"seconds": load + rest, "speedup": whole / (load + rest), "link": link}
        return {**said, "speedup@printed": float(printed)}

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Compute and keep prompts, forget them on the GPU, ask again."""
        n_in, stored, engine = arm["n_in"], arm["stored"], bench.engine
        whole: list[float] = []
        seconds: list[float] = []
        steps: list[Step] = []
        for _ in range(3):
            family = _FAMILIES + int(bench.rng.integers(2**31))
            first = alone(bench, Prompt(n_in, family, stored))
            engine.submit(_BESIDE, _WRITTEN)
            _drain(engine)
            engine.forget()
            again = _until_token(engine, Prompt(n_in, family, stored))
            if again[-1].cached != stored:
                raise RuntimeError(f"{stored} tokens must come from host memory, and {again[-1].cached} did")
            whole.append(first.seconds)
            seconds.append(again[-1].start + again[-1].seconds - again[0].start)
            steps += [first, *again]
        found = {"seconds": float(np.mean(seconds)), "speedup": float(np.mean(whole) / np.mean(seconds))}
        return Found(found, [Observed(steps, [], steps[0].start, steps[-1].start)])


def _until_token(engine: Engine, prompt: Prompt) -> list[Step]:
    """Return the steps from sending a prompt to its token; the first begins when it is sent."""
    sent = engine.now()
    steps: list[Step] = []
    engine.submit(prompt, 1)
    while not steps or not steps[-1].emitted:
        step = engine.step()
        if step is None:
            raise RuntimeError("the engine lost a prompt whose KV cache it loads")
        steps.append(step)
    steps[0] = steps[0]._replace(start=sent, seconds=steps[0].seconds + steps[0].start - sent)
    return steps


def _drain(engine: Engine) -> None:
    while engine.step() is not None:
        pass
