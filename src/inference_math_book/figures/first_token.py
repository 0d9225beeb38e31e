"""The time to first token as benchmarks measure it: requests of each user, arrivals, errors, on given axes.

Every function draws laws as lines and plays of the simulator, or measurements, as dots, and returns what it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import simulate, theory
from inference_math.catalogue.engines import engines
from inference_math.simulate import Chunked, SchedulerPolicy, StepCost
from inference_math.workload import RandomLengths, Requests, Workload
from inference_math_book.colours import COLOURS

__all__ = ["Answers", "benchmark_law", "by_rate", "by_users", "played"]


class Answers:
    """Equal prompts, answers uniform from 1 - `span` to 1 + `span` of their mean."""

    def __init__(self, n_in: int, n_out: int, span: float) -> None:
        self.n_in, self.n_out, self.span = n_in, n_out, span

    @property
    def cv(self) -> float:
        """Coefficient of variation of the answers."""
        return self.span / 3**0.5

    def draw(self, count: int, rng: np.random.Generator) -> Requests:
        """Return so many requests."""
        n_out = RandomLengths(self.n_in, self.n_out, self.span).draw(count, rng).n_out
        return Requests(np.full(count, self.n_in), n_out, np.zeros_like(n_out))


def benchmark_law(costs: Mapping[str, float], B: int, rounds: float, together: int, n_out: int, cv: float) -> float:
    """Return the mean TTFT of a benchmark in seconds, by its formula; `costs` are t_w, ttft_1 and delta_h."""
    burst = theory.ttft_burst(B=B, together=together, **costs)
    steady = theory.expected_ttft_full(B=B, n_out=n_out, **costs)
    met = theory.prompts_met(B=B, rounds=rounds, together=together, n_out=n_out, cv=cv)
    told: float = theory.ttft_benchmark(
        burst=burst, steady=steady, rounds=rounds, met=met, ttft_1=costs["ttft_1"], delta_h=costs["delta_h"]
    )
    return told


def played(
    costs: Mapping[str, float], answers: Answers, B: int, rounds: int, together: int, front: float = 0.0, seed: int = 0
) -> pd.DataFrame:
    """Return the requests of a benchmark of so many users, in the order in which they were sent."""
    cost = StepCost(t_w=costs["t_w"], prompt=costs["ttft_1"], delta_h=costs["delta_h"])
    chunks = Chunked(together * answers.n_in + B, policy=SchedulerPolicy(whole=True))
    run = simulate.benchmark(
        answers, cost, concurrency=B, requests=B * rounds, scheduler=chunks, front=front, seed=seed
    )
    return run.requests.sort_values("arrival", kind="stable").reset_index(drop=True)


def by_rate(ax: Axes, costs: Mapping[str, float], n_in: int, n_out: int, loads: Sequence[float]) -> pd.DataFrame:
    """Draw the mean TTFT of one engine under random arrivals against its load, and the mean step."""
    cost = StepCost(t_w=costs["t_w"], prompt=costs["ttft_1"], delta_h=costs["delta_h"])
    each = theory.engine_load(rate=1, ttft_1=costs["ttft_1"], n_out=n_out, delta_h=costs["delta_h"])
    rows = []
    for load in loads:
        rate = load / each
        run = simulate.open_loop(Workload(n_in, n_out, lengths="geometric"), cost, rate=rate, requests=6000, warmup=800)
        ttft = theory.ttft_open(
            filled=load, on_prompts=rate * costs["ttft_1"], t_w=costs["t_w"], ttft_1=costs["ttft_1"]
        )
        step = theory.open_step(filled=load, t_w=costs["t_w"])
        means = run.requests[["ttft", "tpot"]].mean()
        rows.append(
            {
                "load": load,
                "rate": rate,
                "TTFT": ttft,
                "TTFT simulated": means.ttft,
                "TPOT": step,
                "TPOT simulated": means.tpot,
            }
        )
    table = pd.DataFrame(rows)
    for colour, name in zip(COLOURS, ("TTFT", "TPOT"), strict=False):
        ax.plot(100 * table.load, 1e3 * table[name], color=colour, label=name)
        ax.plot(100 * table.load, 1e3 * table[f"{name} simulated"], "o", color=colour)
    ax.set(xlabel="load of the engine (%)", ylabel="mean (ms)", ylim=(0, None))
    ax.legend()
    return table


def by_users(axes: Sequence[Axes], table: pd.DataFrame) -> pd.DataFrame:
    """Draw predicted over measured TTFT of served points against users: by the law of full slots, and played.

    One panel for either; a colour for each engine. `table` has served points with the columns of `predicted_served`.
    """
    rows = table.assign(law=table["law"] / table["ttft_s"], played=table["ttft"] / table["ttft_s"])
    for ax, name, title in zip(axes, ("law", "played"), ("law of full slots", "as it was run"), strict=True):
        for colour, (engine, record) in zip(COLOURS, engines().items(), strict=False):
            part = rows[rows["engine"] == engine]
            if len(part):
                ax.plot(part["users"], part[name], "o", color=colour, markersize=3.5, alpha=0.6, label=record.title)
        for height in (0.8, 1.0, 1.25):
            ax.axhline(height, color="black", linestyle="-" if height == 1 else ":", linewidth=1)
        ax.set(xlabel="users", title=title, xscale="log", yscale="log", ylim=(0.04, 5))
        ax.set_xticks([4, 16, 64, 256])
    axes[0].set_ylabel("predicted over measured TTFT")
    axes[1].legend()
    return rows[["model", "gpu", "engine", "weights", "n_in", "n_out", "users", "ttft_s", "law", "played"]]
