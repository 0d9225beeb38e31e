"""Figures of agents that fan out: a task sends several requests at once, and goes on when all are answered.

The law is for a step whose parts add: weights once, what each prompt token computes, what each decode reads. The
handbook derives it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import simulate
from inference_math.simulate.cost import timed
from inference_math.simulate.engine import Request
from inference_math.simulate.record import Record
from inference_math.simulate.schedulers import system_of
from inference_math.simulate.systems import engine_of, run_engine
from inference_math_book import explore

__all__ = ["Fan", "draw", "law", "play", "slowest"]


@dataclass(frozen=True)
class Fan:
    """What a task sends at once: so many requests, the tokens that all begin with, each one's own, mean answer.

    `equal` answers are all as long as the mean; others are geometric.
    """

    requests: int
    shared: int
    own: int
    answer: int
    equal: bool = False

    def work(self, cost: simulate.StepCost, copies: int = 1) -> float:
        """Return the engine's seconds beside weight reads: prompts, the shared part in `copies`, and reads."""
        prompts = cost.T * (copies * self.shared + self.requests * self.own)
        held = self.shared + self.own + self.answer * (0.5 if self.equal else 1.0)
        return prompts + self.requests * self.answer * cost.kv_read * held


def slowest(fan: Fan) -> float:
    """Return the mean tokens of the longest of its answers: that of so many exponential ones, or the mean.

    >>> f"{slowest(Fan(8, 2000, 200, 170)) / 170:.2f}"
    '2.72'
    """
    return fan.answer if fan.equal else fan.answer * sum(1 / j for j in range(1, fan.requests + 1))


def law(fan: Fan, cost: simulate.StepCost, tasks: int) -> dict[str, float]:
    """Return the mean step, the time from sending to the last answer, and the answers under way of each task."""
    steps = slowest(fan)
    step = cost.t_w + tasks * fan.work(cost) / steps
    return {"step": step, "round": steps * step, "alive": fan.requests * fan.answer / steps}


class _Tasks:
    """Tasks in a closed loop: each sends all its requests at once, and again as soon as the last one is answered."""

    def __init__(self, fan: Fan, tasks: int, done: deque[int], rng: np.random.Generator) -> None:
        self._fan, self._tasks, self._done, self._rng = fan, tasks, done, rng
        self._of: dict[int, int] = {}  # task of a request
        self._open = [0] * tasks
        self._began = [0.0] * tasks
        self._number = 0
        self.rounds: list[tuple[float, float]] = []  # when each began and ended

    def first(self) -> list[tuple[float, Request]]:
        return [pair for task in range(self._tasks) for pair in self._send(task, 0.0)]

    def after_arrival(self) -> list[tuple[float, Request]]:
        return []

    def after_finish(self, now: float) -> list[tuple[float, Request]]:
        task = self._of.pop(self._done.popleft())
        self._open[task] -= 1
        if self._open[task]:
            return []
        self.rounds.append((self._began[task], now))
        return self._send(task, now)

    def _send(self, task: int, now: float) -> list[tuple[float, Request]]:
        fan, sent = self._fan, []
        for k in range(fan.requests):
            self._number += 1
            self._of[self._number] = task
            answer = fan.answer if fan.equal else int(self._rng.geometric(1 / fan.answer))
            # The first of them computes what all begin with; the others find it.
            cached = fan.shared if k else 0
            sent.append((now, Request(self._number, now, fan.shared + fan.own, answer, cached)))
        self._open[task], self._began[task] = fan.requests, now
        return sent


class _Noted(Record):
    """A record that notes which request has finished, for whoever waits for it."""

    def __init__(self, done: deque[int]) -> None:
        super().__init__(0, every_gap=False, log=True)
        self._done = done

    def request(self, request: Request, admitted: float, first_token: float, finished: float) -> None:
        """Note a request that has finished."""
        self._done.append(request.number)
        super().request(request, admitted, first_token, finished)


def play(fan: Fan, cost: simulate.StepCost, tasks: int, rounds: int, seed: int = 0) -> dict[str, float]:
    """Simulate `tasks` until so many rounds have ended in all; return what `law` does, of the second half of the time.

    An engine that computes prompts whole, with room for all.
    """
    done: deque[int] = deque()
    record, users = _Noted(done), _Tasks(fan, tasks, done, np.random.default_rng(seed))
    system = system_of(simulate.Aggregated(), None, 1, 1)
    end = run_engine(engine_of(system, timed(cost), record), users, record, rounds * fan.requests)
    log = record.result(end).log
    assert log is not None
    later = log[log["start"] >= end / 2]
    took = [until - since for since, until in users.rounds if since >= end / 2 and until < inf]
    under_way = (later["decodes"] + later["prefills"]).mean()  # a prompt's step gives its first token
    return {"step": later["seconds"].mean(), "round": float(np.mean(took)), "alive": under_way / tasks}


def draw(axes: Sequence[Axes], cost: simulate.StepCost, fans: Sequence[Fan], played: pd.DataFrame) -> pd.DataFrame:
    """Draw the answers under way of a task, and the time of a round, against its requests: law and simulated.

    `played` has what `play` gives of each fan, by tasks and requests.
    """
    rows, numbers = [], [fan.requests for fan in fans]
    for k, (many, some) in enumerate(played.groupby("tasks")):
        said = pd.DataFrame([law(fan, cost, int(many)) for fan in fans], index=some.index)
        for ax, name in zip(axes, ("alive", "round"), strict=True):
            label = f"{many} task{'s' if many > 1 else ''}"
            ax.plot(numbers, said[name], "-", color=explore.COLOURS[k], label=f"{label}, law")
            ax.plot(numbers, some[name], "osD"[k], color=explore.COLOURS[k], mfc="none")
        rows.append(pd.concat([some[["tasks", "requests"]], said.add_suffix("_law"), some[[*said]]], axis=1))
    axes[0].plot(numbers, numbers, ":", color="0.5", label="all that were sent")
    axes[0].set(xlabel="requests that a task sends at once", ylabel="answers under way of a task", ylim=(0, 12))
    axes[1].set(xlabel="requests that a task sends at once", ylabel="from sending to the last answer (s)")
    axes[1].set_ylim(bottom=0)
    axes[0].legend(fontsize=8)
    return pd.concat(rows, ignore_index=True)
