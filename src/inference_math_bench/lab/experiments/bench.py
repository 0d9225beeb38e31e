"""What an experiment gets: an engine to try something on; and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from inference_math.simulate import StepCost
from inference_math.workload import Source
from inference_math_bench.lab.drive import Ask, Observed, Watched, bare_steps, closed_loop, plain_prompt
from inference_math_bench.lab.engines import Engine, Prompt, Step
from inference_math_bench.lab.machine import Watch

__all__ = ["N_IN", "N_OUT", "Arm", "Bench", "Experiment", "Found", "Values", "alone", "calibration"]

Arm = dict[str, Any]
Values = dict[str, float]

N_IN, N_OUT = 64, 16  # of most closed loops: a prompt costs as much as a step, and many answers fit into a trial


@dataclass
class Bench:
    """An engine to try something on: `seconds` for an arm, `kv_bytes` a token in its `layers`, prompts by blocks."""

    engine: Engine
    rng: np.random.Generator
    seconds: float = 2.5
    kv_bytes: float = 6144.0
    layers: int = 6
    block: int = 32
    repeats: int = 6
    scale: int = 1  # of prompts and contexts: an engine on a GPU computes more tokens while it reads its weights
    scatter: Any = field(default_factory=lambda: np.ones(1))  # of bare steps around their mean: `costs.noise`
    bare: list[Step] = field(default_factory=list)  # the steps that the costs are from
    watch: type[Watch] = Watch
    kept: bool = False  # the store has the prompt of the experiment on it
    copies: list[float] = field(default_factory=list)  # seconds that its loads took beside no wait

    def loop(
        self,
        source: Source,
        users: int,
        share: float = 1.0,
        *,
        ask: Ask = plain_prompt,
        together: bool = False,
        **watched: Any,
    ) -> Observed:
        """Watch a closed loop for `share` of the arm's time."""
        seen = Watched(self.seconds * share, **watched)
        return closed_loop(self.engine, source, users, watched=seen, rng=self.rng, ask=ask, together=together)

    def prefixes(self, n_in: int, cached: int, number: int = 8) -> Ask:
        """Put `number` prefixes of `cached` tokens into the engine's cache; return what asks for one of them at random.

        Users with one prefix read the same KV cache, which a processor's caches then hold: cheaper than one each.
        """
        first = 10 * n_in
        for family in range(first, first + number if cached else first):
            alone(self, Prompt(n_in, family, cached))

        def ask(tokens: int, _: int) -> Prompt:
            return Prompt(tokens, first + int(self.rng.integers(number)), cached) if cached else Prompt(tokens)

        return ask


@dataclass
class Found:
    """What was seen: the numbers that were predicted, and the trial itself for the record."""

    values: Values
    observed: list[Observed]


class Experiment:
    """One experiment, see the module; prompts and contexts are `scale` times those of the laboratory's own model.

    Attributes
    ----------
    name
        Short name, as in files and tables.
    claims
        Claims that it speaks of.
    every
        Rounds from one time that it is tried to the next.
    timed
        Whether seconds matter: counts are the same on a busy machine.
    """

    name: str
    claims: tuple[str, ...]
    every = 1
    timed = True
    n_in = N_IN

    def __init__(self, scale: int = 1) -> None:
        self.scale, self.n_in = scale, scale * self.n_in

    def arms(self) -> list[Arm]:
        """Return the settings that are compared."""
        raise NotImplementedError

    def predict(self, arm: Arm, cost: StepCost, bench: Bench) -> Values:
        """Return what the laws say."""
        raise NotImplementedError

    def run(self, arm: Arm, said: Values, bench: Bench) -> Found:
        """Try it."""
        raise NotImplementedError


def calibration(bench: Bench) -> list[Step]:
    """Return bare steps that tell the costs: prompts alone, decodes alone, both together."""
    steps: list[Step] = []
    for n_in in (16, 32, 64, 128, 256, 512, 1024):
        few, prompt = bench.repeats if n_in < 512 else 2, Prompt(bench.scale * n_in)
        pairs = bare_steps(bench.engine, decodes=0, context=0, prompts=[prompt], repeats=few)
        steps += [beside for _, beside in pairs]
    for decodes, short in ((1, 64), (8, 64), (32, 64), (8, 1024), (16, 512)):
        context, prompt = bench.scale * short, Prompt(bench.scale * 128)
        pairs = bare_steps(bench.engine, decodes=decodes, context=context, prompts=[prompt], repeats=bench.repeats)
        steps += [step for pair in pairs for step in pair]
    return steps


def alone(bench: Bench, prompt: Prompt) -> Step:
    """Return the step that computes a prompt alone; steps that wait for what is loaded of it come before."""
    bench.engine.submit(prompt, 1)
    step = bench.engine.step()
    while step is not None and not step.tokens and not step.decodes:
        step = bench.engine.step()
    if step is None or step.prefills != 1:
        raise RuntimeError(f"a prompt of {prompt.n_in} tokens must be one step of its own, and was {step}")
    return step
