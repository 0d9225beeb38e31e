"""Figures of what a store brings: said and measured, turns in flight. Each returns the numbers that it drew."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import Unit, simulate
from inference_math.catalogue.tiers import tier
from inference_math.evidence import load
from inference_math.theory import held_share, prefill_left, store_gain, turn_rate
from inference_math.theory.formula import to_vega
from inference_math.unit.steps import kv_sent
from inference_math.workload import Workload
from inference_math_book import explore
from inference_math_book.figures.stores import compared
from inference_math_planner.fleets import stored
from inference_math_planner.fleets.loops import loop
from inference_math_planner.fleets.turns import Turns

__all__ = ["crowd", "crowded", "crowded_live", "gains", "said_and_measured", "token_times"]

_CLOSE = 0.25  # of the size of a gain
_DATUM = re.compile(r"datum\.(\w+)")
_ROUNDS, _DAMPED = 24, 0.6  # of the loop of hits and turns on the page


class _Times(NamedTuple):
    """Two runs of one engine with as many users, of whose prompts unlike shares are computed."""

    name: str
    one: str
    other: str


_TOLD = (
    _Times("GLM-5.3", "glm53_pool8192_off", "glm53_c8_off_steady"),
    _Times("GLM-5.2", "glm52_early_64_off", "glm52_early_16_off"),
    _Times("Kimi-K3, 16 users", "kimik3_c16_off", "kimik3_c16_on"),
    _Times("Kimi-K3, 32 users", "kimik3_c32_off", "kimik3_c32_on"),
)
_ALONE = ("MiniMax-M3", "mm3_mi355x_c2_off")  # a TTFT of two users, of prompts that take nearly all of it
# Pair, the run without and the one with what it adds, and where the time of a token is from: no run with what is said.
_PAIRS = (
    ("glm53_c8_steady", "glm53_c8_off_steady", "glm53_c8_on_steady", "GLM-5.3"),
    ("glm53_c32_steady", "glm53_c32_off_steady", "glm53_c32_on_steady", "GLM-5.3"),
    ("glm53_c8", "glm53_c8_off", "glm53_c8_on", "GLM-5.3"),
    ("glm53_c32", "glm53_c32_off", "glm53_c32_on", "GLM-5.3"),
    ("glm53_pool8192_c8", "glm53_pool8192_off", "glm53_pool8192_on", "GLM-5.3"),
    ("kimik3_c16", "kimik3_c16_off", "kimik3_c16_on", "Kimi-K3, 32 users"),
    ("kimik3_c32", "kimik3_c32_off", "kimik3_c32_on", "Kimi-K3, 16 users"),
    ("kimik3_c16_process", "kimik3_mp_off", "kimik3_mp_multiproc", "Kimi-K3, 32 users"),
    ("mm3_mi355x_lookup", "mm3_lookup_rank0", "mm3_lookup_all", "MiniMax-M3"),
    ("glm52_early_64", "glm52_early_64_off", "glm52_early_64_on", "GLM-5.2"),
    ("glm52_early_16", "glm52_early_16_off", "glm52_early_16_on", "GLM-5.2"),
)
_WHAT = {
    "glm53_c8_steady": "GLM-5.3, tier full", "glm53_c32_steady": "GLM-5.3, tier full",
    "glm53_c8": "GLM-5.3, tier filling", "glm53_c32": "GLM-5.3, tier filling",
    "glm53_pool8192_c8": "GLM-5.3, small HBM, tier filling",
    "kimik3_c16": "Kimi-K3", "kimik3_c32": "Kimi-K3", "kimik3_c16_process": "Kimi-K3, tier in another process",
    "mm3_mi355x_lookup": "MiniMax-M3, all ranks asked", "glm52_early_64": "GLM-5.2, slow connector",
    "glm52_early_16": "GLM-5.2, slow connector, small pool",
}  # fmt: skip
_SLOW = "glm52_early"  # pairs whose connector was slow; one run's counters tell how much


def token_times() -> pd.Series[float]:
    """Return the seconds that a computed token takes of an engine, by where that is read off."""
    runs = load("agent_stores").frame.set_index("run")
    fresh = (1 - runs["found"]) * runs["n_in"]
    times = {
        told.name: (1 / runs["rate"][told.one] - 1 / runs["rate"][told.other]) / (fresh[told.one] - fresh[told.other])
        for told in _TOLD
    }
    name, run = _ALONE
    return pd.Series(times | {name: runs["ttft_s"][run] / fresh[run]})


def gains() -> pd.DataFrame:
    """Return a row for each measured pair: hits, share of the engine's time, what is said and what was measured.

    `free` takes loads and writes for nothing. `path` and `beside` count what a slow connector's own counters say, if
    the engine waits for it, and if it goes on and prompts wait for the one link: of a pair whose path is not known they
    are NaN. `decodes` are requests that decode at once, over those without it, by Little's law.
    """
    runs, times = load("agent_stores").frame.set_index("run"), token_times()
    path = runs.loc["glm52_early_64_on"]
    rows = []
    for pair, without, with_, source in _PAIRS:
        plain, stored = (runs.loc[name].to_dict() for name in (without, with_))
        seconds = float(times[source])
        missed, before = 1 - stored["found"], 1 - plain["found"]
        tokens = plain["prompts_s"] if pd.isna(plain["rate"]) else plain["rate"] * plain["n_in"]
        share = tokens * before * seconds
        each = stored["prompts_s"] / plain["prompts_s"] if pd.isna(plain["rate"]) else stored["rate"] / plain["rate"]
        row = {"pair": pair, "what": _WHAT[pair], "model": plain["model"], "users": plain["users"], "share": share}
        row |= {"before": plain["found"], "after": stored["found"], "token_us": 1e6 * seconds}
        row["free"] = float(store_gain(prompt_share=share, left=missed / before)) - 1
        row["path"] = row["beside"] = np.nan
        if pair.startswith(_SLOW):
            from_tier = stored["found"] - (stored["found_hbm"] if pd.notna(stored["found_hbm"]) else plain["found"])
            left = prefill_left(
                missed=missed,
                missed_without=before,
                loaded=from_tier,
                e=1e6 * seconds / path["load_us"],
                write=path["write_us"] / (1e6 * seconds),
            )
            row["path"] = float(store_gain(prompt_share=share, left=left)) - 1
            link = 1e-6 * plain["n_in"] * (from_tier * path["load_us"] + missed * path["write_us"])
            away = plain["users"] / plain["rate"] / (1 + row["free"])
            row["beside"] = _behind_a_link(int(plain["users"]), away, link) / plain["rate"] - 1
        row["said"] = row["free"] if np.isnan(row["beside"]) else row["beside"]
        row["measured"] = each - 1
        row["gap"] = stored["gap_s"] / plain["gap_s"] - 1
        row["decodes"] = each * stored["gap_s"] / plain["gap_s"]
        rows.append(row)
    frame = pd.DataFrame(rows)
    off = (frame["said"] - frame["measured"]).abs()
    return frame.assign(close=off <= _CLOSE * frame["measured"].abs(), sign=frame["said"] * frame["measured"] > 0)


def _behind_a_link(users: int, away: float, seconds: float) -> float:
    """Return the requests per second of users who are away for so long, and served in turn by one link between.

    The mean value analysis of Reiser and Lavenberg (1980), user by user: who comes finds what one user fewer leaves.
    """
    waiting = rate = 0.0
    for some in range(1, users + 1):
        stay = seconds * (1 + waiting)
        rate = some / (away + stay)
        waiting = rate * stay
    return rate


def said_and_measured(ax: Axes) -> pd.DataFrame:
    """Draw what the law says of each pair against what was measured, with the band of a quarter."""
    frame = gains()
    ends = np.array([-0.7, 1.15])
    ax.plot(100 * ends, 100 * ends, color="0.5", lw=1)
    for sign in (1 - _CLOSE, 1 + _CLOSE):
        ax.plot(100 * ends, 100 * sign * ends, ":", color="0.6", lw=1)
    for k, (model, rows) in enumerate(frame.groupby("model", sort=False)):
        ax.plot(100 * rows["measured"], 100 * rows["said"], "os^Dv"[k], color=explore.COLOURS[k], label=str(model))
    ax.axhline(0, color="0.8", lw=0.8)
    ax.axvline(0, color="0.8", lw=0.8)
    ax.set(xlabel="measured: more requests (%)", ylabel="said (%)", xlim=(-70, 115), ylim=(-70, 115))
    ax.legend(fontsize=8, loc="upper left")
    return frame


def crowd(unit: Unit, turns: Turns, users: int, host: float = 0.0, seed: int | None = None) -> dict[str, float]:
    """Return what so many users of a unit find and see, with HBM alone or with `host` tokens below it.

    It is the law, or with a `seed` a simulated engine. Loads go at the datasheet rate.
    """
    means = turns.sessions(1.0)
    cost = simulate.Steps(unit.near(Workload(means.prompt, turns.answer)))
    hbm, each_token = unit.kv_tokens(means.prompt), kv_sent(unit.numbers, means.prompt) / means.prompt
    seconds, below = each_token / (unit.gpus * tier("dram").read_bw), [host] * bool(host)
    if seed is None:
        seen = loop(turns, users, cost, tokens=[hbm, *below], loads=[seconds] * len(below))
        return {"found": seen.together, "rate": seen.rate, "ttft": seen.ttft, "gap": seen.tpot}
    engine, tiers = simulate.Chunked(8192, kv_capacity=hbm), [stored.StoreTier(size, seconds) for size in below]
    asked = {"users": users, "requests": 15 * users, "warmup": 20 * users, "seed": seed}
    run = stored.with_stores(turns, cost, scheduler=engine, tiers=tiers, **asked).summary()
    found = sum(share for name, share in run.items() if name.startswith("found_"))
    return {"found": found, "rate": run["request_rate"], "ttft": run["ttft_mean"], "gap": run["tpot_mean"]}


def crowded(axes: Sequence[Axes], frame: pd.DataFrame) -> None:
    """Draw what `crowd` gives by tier, users and source, law or simulated: lines and marks."""
    panels = {"found": (100.0, "found (%)"), "rate": (1.0, "turns/s")}
    panels |= {"ttft": (1.0, "TTFT (s)"), "gap": (1e3, "TPOT (ms)")}
    for ax, (column, (scale, label)) in zip(axes, panels.items(), strict=True):
        for k, (name, mark) in enumerate((("HBM", "o"), ("HBM and host", "s"))):
            for source, style in (("law", "-"), ("simulated", mark)):
                some = frame[(frame["tier"] == name) & (frame["source"] == source)]
                ax.plot(
                    some["users"],
                    scale * some[column],
                    style,
                    color=explore.COLOURS[k],
                    mfc="none",
                    label=f"{name}, {source}",
                )
        ax.set(xlabel="users of a unit", ylabel=label)
    axes[2].set_yscale("log")
    axes[0].legend(fontsize=7)


def crowded_live(costs: Mapping[str, float]) -> Any:
    """Return the live chart of users in a closed loop with HBM, and with host memory below it, by two formulas in turn.

    `costs` are the first values of its sliders: hbm and host (million tokens), again and brought (thousand tokens),
    token_us, weights_ms and read_ms.
    """
    names = {symbol.name for symbol in (*turn_rate.arguments, *held_share.arguments)}
    rate, held = to_vega(turn_rate.expr, datum=names), to_vega(held_share.expr, datum=names)

    def put(formula: str, **values: str) -> str:
        """Put expressions into a formula's places."""
        return _DATUM.sub(lambda match: f"({values[match[1]]})" if match[1] in values else match[0], formula)

    engine = {"n_out": "answer", "t_w": "weights / 1000", "turn_busy": "datum.P + answer * read / 1000"}
    room = {"users": "datum.users", "again": "1000 * again", "brought": "1000 * brought"}
    chart = alt.Chart(alt.sequence(0, 161, 1, as_="i")).transform_calculate(users="pow(10, datum.i / 80)")
    chart = chart.transform_calculate(places="max(1, 1000 * hbm / (again + brought))")
    for tier_, capacity in (("hbm", "1e6 * hbm"), ("both", "1e6 * (hbm + host)")):
        chart = chart.transform_calculate(**{f"G_{tier_}": "0"})
        for _ in range(_ROUNDS):
            chart = chart.transform_calculate(P=f"token / 1000 * (brought + again * (1 - datum.G_{tier_}))")
            free = put(rate, turn_away="think + datum.P", **engine)
            full = put(rate, users="datum.places", turn_away="datum.P", **engine)
            chart = chart.transform_calculate(**{f"X_{tier_}": f"min({free}, {full})"})
            # Who waits for room in HBM thinks no less for that: both are time between two answers.
            found = put(
                held, kv_capacity=capacity, served=f"datum.users / datum.X_{tier_} - think", think="think", **room
            )
            step = f"datum.G_{tier_} + {_DAMPED} * ({found} - datum.G_{tier_})"
            chart = chart.transform_calculate(**{f"G_{tier_}": step})
    labels: list[Any] = ["HBM alone", "HBM and host memory"]
    shown = ("turns per second", "past that is found (%)", "seconds of a turn")
    for label, tier_ in zip(labels, ("hbm", "both"), strict=True):
        seen = f"show == '{shown[0]}' ? datum.X_{tier_} : show == '{shown[1]}' ? 100 * datum.G_{tier_} : "
        chart = chart.transform_calculate(**{label: f"{seen}datum.users / datum.X_{tier_} - think"})
    x = alt.X("users:Q", scale=explore.log_scale(1, 100), title="users of a unit")
    y = alt.Y("value:Q", title=None)  # its title is what is chosen to be shown
    above = alt.Title(text=alt.ExprRef("show"), anchor="start", fontSize=12)
    return (
        compared(chart, labels, "tier", x, y)
        .properties(title=above)
        .add_params(
            explore.choice("show", "show", shown, shown[0]),
            explore.named_slider("hbm", "million tokens of HBM for caches", costs["hbm"], 0.1, 10, 0.01),
            explore.named_slider("host", "million tokens of host memory", costs["host"], 0, 50, 0.1),
            explore.named_slider("again", "thousand tokens read again", costs["again"], 1, 200, 0.5),
            explore.named_slider("brought", "thousand tokens brought", costs["brought"], 0.5, 20, 0.05),
            explore.named_slider("answer", "tokens of an answer", costs["answer"], 50, 4000, 50),
            explore.named_slider("think", "seconds of thinking", costs["think"], 1, 120, 1),
            explore.named_slider("token", "computing a token (µs)", costs["token_us"], 1, 300, 0.5),
            explore.named_slider("weights", "reading the weights (ms)", costs["weights_ms"], 1, 50, 0.1),
            explore.named_slider("read", "a session in each step, ΔH (ms)", costs["read_ms"], 0.01, 5, 0.01),
        )
    )
