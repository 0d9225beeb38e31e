"""Figures of routers: how requests spread over units, what a home for each session is worth, what a class costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import simulate
from inference_math.theory import engine_load, reuse_conversation, reuse_local, routed_step, seen_step
from inference_math.workload import Trace
from inference_math_book import explore
from inference_math_planner.laws.routing import spread_of

__all__ = ["ROUTERS", "alone_of", "classes", "load_of", "rates", "routers", "spreads", "two_classes"]

ROUTERS = ("at random", "fewest requests", "home, drawn", "home, filled evenly")


def spreads(ax: Axes, users: int, units: int, t_w: float, added: Sequence[float]) -> pd.DataFrame:
    """Draw how many requests a unit has where each goes to one at random, for some costs of a request."""
    rows, numbers = [], np.arange(0, 4 * users // units + 5)
    for k, each in enumerate(added):
        chance = spread_of(users, units, t_w, each).pmf(numbers)
        label = f"a request adds {each / t_w:.2g} of the weight read"
        ax.plot(numbers, 100 * chance, "osD^"[k] + "-", color=explore.COLOURS[k], mfc="none", label=label)
        rows += [{"added": each, "requests": n, "share": p} for n, p in zip(numbers.tolist(), chance, strict=True)]
    ax.set(xlabel="requests at a unit", ylabel="of the time (%)")
    ax.legend(fontsize=8)
    return pd.DataFrame(rows)


def rates(users: int, units: int, t_w: float, delta_p: float, delta_h: float, turns: float) -> pd.DataFrame:
    """Return what each router finds of a conversation, the mean step, and the requests under way over it.

    `delta_p` is without any hits. A home is drawn once for each session, or given to the unit that has the fewest.
    """
    whole, local = reuse_conversation(turns=turns), reuse_local(turns=turns, units=units)
    even, rows = users / units, []
    for router, found in zip(ROUTERS, (local, local, whole, whole), strict=True):
        each = delta_p * (1 - found) + delta_h
        if router == "at random":
            step = float(routed_step(t_w=t_w, delta_p=each - delta_h, delta_h=delta_h, B=users, units=units))
            rate = users / step
        elif router == "home, drawn":
            many = np.arange(users + 1)
            chance = spread_of(users, units, t_w, 0.0).pmf(many)
            rate = units * float(chance @ (many / (t_w + each * many)))
        else:
            rate = users / (t_w + each * even)
        rows.append({"router": router, "found": float(found), "step": users / rate, "rate": rate})
    return pd.DataFrame(rows)


def routers(axes: Sequence[Axes], units: Sequence[int], each: int, **costs: float) -> pd.DataFrame:
    """Draw what each router finds, and output tokens/s of a unit, for more and more units of `each` users."""
    frame = pd.concat([rates(each * n, n, **costs).assign(units=n) for n in units], ignore_index=True)
    frame["rate"] /= frame["units"]
    for k, router in enumerate(ROUTERS):
        some = frame[frame["router"] == router]
        style = {"color": explore.COLOURS[k], "label": router, "marker": "osD^"[k], "mfc": "none"}
        axes[0].semilogx(some["units"], 100 * some["found"], **style)
        axes[1].semilogx(some["units"], some["rate"], **style)
    axes[0].set(xlabel="units", ylabel="found (%)", ylim=(0, 100))
    axes[1].set(xlabel="units", ylabel="tokens/s of a unit", ylim=(0, None))
    axes[1].legend(fontsize=8)
    return frame


def two_classes(
    first: ClassOf, second: ClassOf, cost: simulate.StepCost, budget: int | None = None
) -> dict[str, float]:
    """Return what a second class does to the mean TPOT and TTFT of the first on one engine.

    A class is (requests/s, prompt tokens, answer tokens), answers geometric; chunks have a `budget` of tokens. The law
    stands beside, for what was sent. A TPOT is the mean over gaps, `each` that over requests.
    """
    sent = _sent((first, second))
    law = seen_step(alone_step=alone_of(first, cost), filled=_work(sent, cost) / _SECONDS)
    return {"law": float(law)} | _served(sent, cost, simulate.Chunked(budget) if budget else _WHOLE)


def classes(axes: Sequence[Axes], frame: pd.DataFrame) -> None:
    """Draw what `two_classes` gives by `rate` of the second class and `engine`, whole prompts or chunks."""
    for k, name in enumerate(("whole prompts", "chunks")):
        some = frame[frame["engine"] == name]
        for ax, column in zip(axes, ("tpot", "ttft"), strict=True):
            ax.plot(some["rate"], 1e3 * some[column], "os"[k], color=explore.COLOURS[k], mfc="none", label=name)
    axes[0].plot(some["rate"], 1e3 * some["law"], color=explore.COLOURS[0], label="law")
    for ax, words in zip(axes, ("mean gap of the first class (ms)", "its mean TTFT (ms)"), strict=True):
        ax.set(xlabel="requests/s of the second class", ylabel=words, ylim=(0, None))
    axes[0].legend(fontsize=8)


ClassOf = tuple[float, int, int]
_WHOLE = simulate.Chunked(10**7, policy=simulate.SchedulerPolicy(whole=True))
_SECONDS = 8000.0


def load_of(one: ClassOf, cost: simulate.StepCost) -> float:
    """Return the share of an engine that a class fills: (requests/s, prompt tokens, answer tokens)."""
    rate, n_in, n_out = one
    return float(engine_load(rate=rate, ttft_1=cost.T * n_in, n_out=n_out, delta_h=_read(one, cost)))


def alone_of(one: ClassOf, cost: simulate.StepCost) -> float:
    """Return the mean step of a request of a class alone, its prompt spread over its answer."""
    _, n_in, n_out = one
    return cost.t_w + cost.T * n_in / n_out + _read(one, cost)


def _read(one: ClassOf, cost: simulate.StepCost) -> float:
    """Return the seconds of a decode's read: of geometric answers, long ones are read most."""
    return cost.delta_h + cost.kv_read * (one[1] + one[2])


def _sent(classes: Sequence[ClassOf]) -> pd.DataFrame:
    """Return requests of all classes in the order of their arrivals; which class each is `of`."""
    rng, parts = np.random.default_rng(1), []
    for number, (rate, n_in, n_out) in enumerate(classes):
        many = rng.poisson(rate * _SECONDS)
        arrival, answers = rng.uniform(0, _SECONDS, many), rng.geometric(1 / n_out, many)
        parts.append(pd.DataFrame({"arrival": arrival, "n_in": n_in, "n_out": answers, "of": number}))
    return pd.concat(parts).sort_values("arrival", ignore_index=True)


def _work(sent: pd.DataFrame, cost: simulate.StepCost) -> float:
    """Return the seconds of an engine that requests take beside its weight reads."""
    reads = cost.delta_h + cost.kv_read * (sent["n_in"] + sent["n_out"] / 2)
    return float((cost.T * sent["n_in"] + (sent["n_out"] - 1) * reads).sum())


def _served(sent: pd.DataFrame, cost: simulate.StepCost, engine: simulate.Chunked) -> dict[str, float]:
    """Return what the first class sees on average, after a tenth of the time."""
    run = simulate.replay(Trace.from_frame(sent), cost, scheduler=engine)
    found = run.requests.merge(sent[["arrival", "of"]], on="arrival")
    ours = found[(found["of"] == 0) & (found["arrival"] > _SECONDS / 10) & (found["n_out"] > 1)]
    gaps = float(np.average(ours["tpot"], weights=ours["n_out"] - 1))
    return {"tpot": gaps, "each": float(ours["tpot"].mean()), "ttft": float(ours["ttft"].mean())}
