"""The time to first token as benchmarks measure it: waves, requests of each user, arrivals, errors, on given axes.

Every function draws laws as lines and plays of the simulator, or measurements, as dots, and returns what it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import simulate, theory
from inference_math.catalogue.engines import engines
from inference_math.simulate import Chunked, Habits, StepCost
from inference_math.workload import RandomLengths, Requests, Workload
from inference_math_book.colours import COLOURS

__all__ = ["Answers", "benchmark_law", "by_rate", "by_requests", "by_users", "played", "waves"]


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
    chunks = Chunked(together * answers.n_in + B, habits=Habits(whole=True))
    run = simulate.benchmark(
        answers, cost, concurrency=B, requests=B * rounds, scheduler=chunks, front=front, seed=seed
    )
    return run.requests.sort_values("arrival", kind="stable").reset_index(drop=True)


def waves(
    ax: Axes, costs: Mapping[str, float], n_in: int, n_out: int, spans: Sequence[float], B: int, seeds: int = 12
) -> pd.DataFrame:
    """Draw how many others' prompts share the step of one's own, wave by wave, for answers that differ so much."""
    rows = []
    count = 24
    for colour, span in zip(COLOURS, spans, strict=False):
        answers = Answers(n_in, n_out, span)
        seen = np.zeros(count)
        for seed in range(seeds):
            ttft = played(costs, answers, B, count, B, seed=seed).ttft.to_numpy()
            seen += ttft.reshape(count, B).mean(axis=1) / seeds
        # What a TTFT holds beyond one's own prompt and everybody's reads, in prompts less the read that each saves.
        bare = costs["t_w"] + costs["ttft_1"] + costs["delta_h"] * (B - 1)
        beside = (seen - bare) / (costs["ttft_1"] - costs["delta_h"])
        beside[0] += costs["delta_h"] * (B - 1) / (costs["ttft_1"] - costs["delta_h"])  # nobody decodes yet
        places = np.arange(1, count)
        law = [theory.prompts_beside_wave(B=B, n_out=n_out, cv=answers.cv, wave=wave) for wave in places]
        ax.plot(places, law, color=colour, label=f"± {100 * span:.0f} % of the answer")
        ax.plot(places, beside[1:], "o", color=colour, markersize=4)
        rows += [
            {"span": span, "wave": wave, "law": told, "simulated": found}
            for wave, told, found in zip(places, law, beside[1:], strict=True)
        ]
    ax.axhline((B - 1) / n_out, color="black", linestyle=":", linewidth=1.2)
    ax.set(xlabel="answers that each user has had", ylabel="others' prompts in the step of one's own", yscale="log")
    ax.legend()
    return pd.DataFrame(rows)


def by_requests(
    ax: Axes, costs: Mapping[str, float], answers: Answers, B: int, together: int, rounds: Sequence[int]
) -> pd.DataFrame:
    """Draw the mean TTFT of a benchmark against the requests of each user, and that of a closed loop."""
    steady = theory.expected_ttft_full(B=B, n_out=answers.n_out, **costs)
    rows = []
    for each in rounds:
        runs = [played(costs, answers, B, each, together, seed=seed).ttft.mean() for seed in range(3)]
        law = benchmark_law(costs, B, each, together, answers.n_out, answers.cv)
        rows.append({"requests of each user": each, "law": law, "simulated": float(np.mean(runs)), "steady": steady})
    table = pd.DataFrame(rows)
    ax.plot(table["requests of each user"], 1e3 * table["law"], color=COLOURS[0], label="benchmark, by the formula")
    ax.plot(table["requests of each user"], 1e3 * table["simulated"], "o", color=COLOURS[0], label="simulated")
    ax.axhline(1e3 * steady, color=COLOURS[1], linestyle="--", label="closed loop, users spread")
    ax.set(xlabel="requests of each user", ylabel="mean TTFT (ms)", xscale="log", ylim=(0, None))
    ax.set_xticks([1, 3, 10, 30, 100])
    ax.legend()
    return table


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
