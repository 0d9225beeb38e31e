"""A session of the laboratory: rounds of all experiments in random order, each after a look at bare steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inference_math.simulate import StepCost
from inference_math_bench.lab import costs as laws, machine, pools as two_engines
from inference_math_bench.lab.engines import Step
from inference_math_bench.lab.experiments.bench import Bench, Experiment, calibration
from inference_math_bench.lab.pools import Two
from inference_math_bench.lab.record import Book, arm_name

__all__ = ["pools", "rounds"]

_AGAIN = 2  # times that a disturbed trial is repeated
_BLOCKS = 3  # looks at bare steps that a prediction is made from: the last ones


class _Calibrated:
    """The costs of bare steps, from the last few looks at them."""

    def __init__(self, bench: Bench, book: Book) -> None:
        self._bench, self._book = bench, book
        self._looks: list[list[Step]] = []
        calibration(bench)  # the engine's first steps are not its usual ones

    def look(self, number: int) -> StepCost:
        """Run bare steps, again where the machine was busy; return what they and those before them say."""
        for _ in range(_AGAIN + 1):
            watch, look = self._bench.watch(), calibration(self._bench)
            if watch.beside() <= machine.BUSY:
                break
        self._looks = [*self._looks[1 - _BLOCKS :], look]
        steps = [step for look in self._looks for step in look]
        cost = laws.fit(steps)
        self._bench.scatter, self._bench.bare = laws.noise(self._looks), steps
        told = {**laws.coefficients(cost), "error": laws.step_error(cost, steps), "steps": len(steps)}
        self._book.costs(number, told, self._looks[-1])
        return cost


def rounds(
    bench: Bench,
    book: Book,
    experiments: Sequence[Experiment],
    *,
    until: float,
    progress: Any,
    most: float = np.inf,
    thin: int = 1,
) -> int:
    """Run rounds until the machine's clock, as the engine tells it, is at `until`; return how many were begun.

    The experiments of a round, and the arms of each, come in random order. Predictions are written down before a trial.
    `progress` gets a word on what is done; None: nobody listens. Of the arms every `thin`-th is tried.
    """
    calibrated, number = _Calibrated(bench, book), book.round
    first = number
    while bench.engine.now() < until and number - first < most:
        number += 1
        due = [x for x in experiments if (number - 1) % x.every == 0]
        for i in bench.rng.permutation(len(due)):
            cost, experiment = calibrated.look(number), due[i]
            arms = experiment.arms()[::thin]
            for j in bench.rng.permutation(len(arms)):
                if bench.engine.now() >= until:
                    return number - first
                if progress is not None:
                    progress(f"round {number}, {experiment.name}: {arm_name(arms[j])}")
                _trial(bench, book, number, experiment, arms[j], cost)
    return number - first


def _trial(bench: Bench, book: Book, number: int, experiment: Experiment, arm: dict[str, Any], cost: StepCost) -> None:
    """Predict, try, write down; again where the machine was busy with something else."""
    said = experiment.predict(arm, cost, bench)
    for again in range(_AGAIN + 1):
        trial, watch = book.prediction(number, experiment.name, arm, said), bench.watch()
        found = experiment.run(arm, said, bench)
        beside = watch.beside()
        usable = beside <= machine.BUSY or not experiment.timed
        book.outcome(trial, found.values, found.observed, beside, usable)
        if usable or again == _AGAIN:
            return


def pools(two: Two, bench: Bench, book: Book, *, until: float, progress: Any, quick: bool = False) -> None:
    """Run rounds of the experiment with two engines until the clock is at `until`; quick: a glimpse of one."""
    number = 0
    two.calibrate()  # an engine's first steps are not its usual ones
    while bench.engine.now() < until and not (quick and number):
        number += 1
        cost, moves = two.calibrate()
        book.costs(number, {"pools": 1, **laws.coefficients(cost), **moves})
        arms = two_engines.arms()[: 2 if quick else None]
        for j in bench.rng.permutation(len(arms)):
            if bench.engine.now() >= until:
                return
            arm, said = arms[j], two_engines.predict(arms[j], cost, **moves)
            if progress is not None:
                progress(f"round {number}, pools: {arm_name(arm)}")
            trial, watch, used = book.prediction(number, "pools", arm, said), bench.watch(), two.used()
            found, seen = two.run(arm, 2 * bench.seconds, 1.5 * bench.seconds, int(bench.rng.integers(2**31)))
            # The two engines are other processes, and busy.
            beside = max(0.0, watch.beside() - (two.used() - used) / watch.seconds)
            book.outcome(trial, found, seen, beside, beside <= machine.BUSY)
