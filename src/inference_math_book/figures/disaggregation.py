"""Disaggregation: simulated gains, DistServe's curves (P13), rates by limit, steps and phases (P18).

What draws does so on given axes, and returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import catalogue, evidence, simulate, theory
from inference_math.optimiser import architectures
from inference_math.unit.costs import WorkloadCosts
from inference_math.unit.operators import Operators
from inference_math.workload import Workload
from inference_math_book.colours import COLOURS, colours_of
from inference_math_planner.laws.closed import pools_in_loop

__all__ = [
    "PoolLayout",
    "distserve",
    "gain_of_pools",
    "goodput",
    "limit_reached",
    "mixed_steps",
    "phase_rates",
    "pool_factors",
    "rates_by_limit",
    "split_in_loop",
    "splits_by_speed",
]

_DASHES = ("-", "--", "-.", ":")


def rates_by_limit(
    ax: Axes, numbers: WorkloadCosts, limits: Sequence[float], sla_ttft: float, quantile: float
) -> pd.DataFrame:
    """Draw requests/s per unit against the limit on the gap: each architecture, aggregated also by the quantile."""
    rows = []
    for limit in limits:
        mean = architectures.compare(numbers, limit, sla_ttft).set_index("architecture").rate
        tail = architectures.compare(numbers, limit, sla_ttft, quantile=quantile).set_index("architecture").rate
        name = f"aggregated, P{100 * quantile:g}"
        rows.append(
            {"limit": limit, "aggregated, mean": mean["aggregated"], name: tail["aggregated"]}
            | {each: mean[each] for each in ("chunked", "disaggregated")}
        )
    frame = pd.DataFrame(rows)
    names = list(frame.columns[1:])
    for name, colour, dash in zip(names, colours_of(names), ("--", ":", "-", "-."), strict=True):
        ax.plot(1e3 * frame.limit, frame[name], dash, color=colour, label=name)
    ax.set(xlabel="limit on the time between tokens (ms)", ylabel="requests/s of one unit", ylim=(0, None))
    ax.legend()
    return frame


def gain_of_pools(t_w: float, prompt: float, delta_h: float, limit: float, work: Workload) -> tuple[float, float]:
    """Simulate the gain of pools over aggregated serving at an equal limit on the mean time between tokens.

    A step takes `t_w`, `prompt` for each prompt in it and `delta_h` for each decode. Pools have whole units, at most 15
    for prefill and 9 for decode, of which the prefill units are just the slower ones. Returns the gain, and the longer
    of the two mean times between tokens.
    """
    cost = simulate.StepCost(t_w=t_w, prompt=prompt, delta_h=delta_h)
    n_out = work.n_out
    users = int(1 + (limit - t_w - delta_h) / (prompt / n_out + (1 - 1 / n_out) * delta_h) + 1e-9)
    whole = simulate.closed_loop(work, cost, concurrency=users, requests=4000, warmup=400, start="steady", seed=1)
    held = int((limit - t_w) / delta_h)
    busy = held * (prompt + t_w) / ((n_out - 1) * limit)  # prefill units that keep a decode unit busy
    sizes = [(n_p, n_d) for n_d in range(1, 10) for n_p in range(1, 16) if n_p <= n_d * busy]
    n_p, n_d = max(sizes, key=lambda size: size[0] / sum(size))
    pools = simulate.closed_loop(
        work,
        cost,
        concurrency=n_d * held + 5 * n_p,
        requests=8 * n_d * held,
        warmup=4 * n_d * held,
        scheduler=simulate.Disaggregated(n_p, n_d, max_batch=held),
        seed=1,
    )
    gain = pools.request_rate / (n_p + n_d) / whole.request_rate
    return gain, max(whole.gaps.mean, pools.gaps.mean)


def goodput(
    cost: Any, rates: Sequence[float], prompt: int, answer: int, kv_capacity: float, requests: int = 3000
) -> pd.DataFrame:
    """Simulate P13: P90 of TTFT and of TPOT against requests/s per GPU, for each way to use GPUs.

    "colocated" does everything on one GPU; "prefill only" and "decode only" do one phase each, the other costing
    nothing; "2 prefill + 1 decode" is three GPUs.
    """

    def decode_only(decodes: int, context: int, prefills: float, tokens: int, pairs: float) -> float:
        return float(cost(decodes, context)) if decodes else 1e-9

    whole, first = Workload(prompt, answer), Workload(prompt, 1)
    one = simulate.Disaggregated(1, 1, kv_capacity=kv_capacity)
    three = simulate.Disaggregated(2, 1, kv_capacity=kv_capacity)
    together = simulate.Aggregated(kv_capacity=kv_capacity)
    frame = pd.concat(
        [
            _p90("colocated", cost, whole, together, 1, rates, requests),
            _p90("prefill only", cost, first, one, 1, rates, requests),
            _p90("decode only", decode_only, whole, one, 1, rates, requests),
            _p90("2 prefill + 1 decode", cost, whole, three, 3, rates, requests),
        ],
        ignore_index=True,
    )
    frame.loc[frame.serves == "prefill only", "tpot_p90"] = np.nan
    frame.loc[frame.serves == "decode only", "ttft_p90"] = np.nan
    return frame


def _p90(
    name: str, cost: Any, work: Workload, scheduler: Any, gpus: int, rates: Sequence[float], requests: int
) -> pd.DataFrame:
    rows = []
    for rate in rates:
        run = simulate.open_loop(
            work, cost, rate=gpus * rate, requests=requests, warmup=200, scheduler=scheduler, seed=1
        )
        p90 = run.requests[["ttft", "tpot"]].quantile(0.9)
        rows.append({"serves": name, "rate": rate, "ttft_p90": p90.ttft, "tpot_p90": p90.tpot})
    return pd.DataFrame(rows)


def distserve(rates: Sequence[float], requests: int = 3000) -> pd.DataFrame:
    """Simulate DistServe's example, LLaMA-13B on A100s with 512 tokens in and 64 out, as `goodput` does.

    Step times are SARATHI's on an A6000, scaled by the datasheets. A prompt has a step of its own, for which all
    decodes wait; in "colocated, one step" it joins their step.
    """
    table = evidence.load("sarathi").frame.set_index(["quantity", "step"])["value"] / 1e3
    a6000, a100 = catalogue.gpu("a6000"), catalogue.gpu("a100-80gb")
    memory, compute = a6000.hbm_bw / a100.hbm_bw, float(a6000.bf16_flops or 0) / float(a100.bf16_flops or 0)
    joined = simulate.StepCost(
        t_w=memory * table["linear_time", "decode"],
        kv_read=memory * table["attention_time", "decode"] / 4 / 1024,
        T=compute * table["linear_time", "prefill"] / 1024,
        pair=compute * table["attention_time", "prefill"] / (1024**2 / 2),
        overlap="serial-kv",
    )

    def separate(decodes: int, context: int, prefills: float = 0, tokens: int = 0, pairs: float = 0) -> float:
        prompts = float(joined(0, 0, prefills, tokens, pairs)) if prefills else 0.0
        return prompts + (float(joined(decodes, context)) if decodes else 0.0)

    model = catalogue.model("llama-13b")
    room = (a100.hbm_bytes - model.weight_bytes("bf16")) / model.kv_token("bf16")
    engine = simulate.Aggregated(kv_capacity=room)
    newer = _p90("colocated, one step", joined, Workload(512, 64), engine, 1, rates, requests)
    return pd.concat([goodput(separate, rates, 512, 64, room, requests), newer], ignore_index=True)


def limit_reached(frame: pd.DataFrame, serves: str, **limits: float) -> float:
    """Return the rate, between those simulated, up to which `serves` meets all of ``ttft_p90=…, tpot_p90=…``.

    0 where the lowest rate misses a limit, NaN where the highest meets all.
    """
    rows = frame[frame.serves == serves]
    reached = [
        np.interp(limit, np.maximum.accumulate(rows[name]), rows.rate, left=0, right=np.inf)
        for name, limit in limits.items()
    ]
    return float(min(reached)) if np.isfinite(min(reached)) else float("nan")


def mixed_steps(ax: Axes, operators: Operators, context: int, prompts: Sequence[int]) -> pd.DataFrame:
    """Draw P18, left: a decode step against its batch, alone and with one prompt, from measured operators.

    The matrices of prompt and decodes are one product, as long as the prompt's; the attentions add.
    """
    steps = operators.steps().query("context == @context").sort_values("batch")
    prefills = operators.prefills().set_index("n_in").total
    frame = pd.DataFrame({"batch": steps.batch, "alone": steps.total})
    for n in prompts:
        frame[f"with {n:,} tokens"] = prefills[n] + steps.attention.to_numpy()
    for name, colour, dash in zip(frame.columns[1:], COLOURS, _DASHES, strict=False):
        ax.plot(frame.batch, 1e3 * frame[name], dash, marker=".", color=colour)
        ax.annotate(name, (1, 1e3 * frame[name].iloc[0]), xytext=(0, 5), textcoords="offset points", color=colour)
    ax.set(xlabel="decodes in the step (requests)", ylabel="time of a step (ms)", xscale="log", ylim=(0, None))
    return frame


def phase_rates(ax: Axes, operators: Operators, contexts: Sequence[int]) -> pd.DataFrame:
    """Draw P18, right: tokens/s of each phase against what runs at once, prompt tokens or decodes."""
    prefills = operators.prefills()
    tables = [pd.DataFrame({"phase": "prefill", "at once": prefills.n_in, "rate": prefills.n_in / prefills.total})]
    for context in contexts:
        steps = operators.steps().query("context == @context").sort_values("batch")
        name = f"decode at {context:,}"
        tables.append(pd.DataFrame({"phase": name, "at once": steps.batch, "rate": steps.batch / steps.total}))
    frame = pd.concat(tables, ignore_index=True)
    phases = frame.phase.unique()
    for phase, colour, dash in zip(phases, colours_of(phases), _DASHES, strict=False):
        rows = frame[frame.phase == phase]
        ax.loglog(rows["at once"], rows.rate, dash, marker=".", color=colour, label=phase)
    ax.set(xlabel="tokens computed at once", ylabel="tokens/s")
    ax.legend()
    return frame


@dataclass(frozen=True)
class PoolLayout:
    """A layout of a unit, and what requests of one kind cost on it: times in seconds.

    `prompt` is net of the weight read, `delta_h` a decode's part of a step; `held` decodes fit, and a prompt's cache
    takes `sent` to move.
    """

    gpus: int
    t_w: float
    prompt: float
    delta_h: float
    n_out: float
    held: float = np.inf
    sent: float = 0.0

    @property
    def prefill(self) -> float:
        """GPU-seconds of a prompt alone, for each token of its answer."""
        return self.gpus * (self.prompt + self.t_w) / self.n_out

    def decode(self, limit: float) -> float:
        """GPU-seconds of a token in a decode pool; infinite where no decode fits under the limit."""
        batch = min((limit - self.t_w) / self.delta_h, self.held)
        return self.gpus * (self._decodes * self.t_w / batch + self._reads) if batch >= 1 else np.inf

    def whole(self, limit: float) -> float:
        """GPU-seconds of a token with its share of a prompt, prompts whole; infinite where no user fits."""
        each = self.prompt / self.n_out + self._reads
        batch = min(self.users(limit), self.held)
        return self.gpus * (self.t_w / batch + each) if batch >= 1 else np.inf

    def users(self, limit: float) -> float:
        """Users of a unit with whole prompts whose mean time between tokens is the limit."""
        return 1 + (limit - self.t_w - self.delta_h) / (self.prompt / self.n_out + self._reads)

    def mixed(self, limit: float) -> float:
        """The same as `whole`, of steps that mix chunks with decodes and hide the weight read."""
        return max(self.prefill + self.gpus * self._reads, self.decode(limit))

    @property
    def _decodes(self) -> float:
        return 1 - 1 / self.n_out  # of a token: the first one of an answer is the prompt's

    @property
    def _reads(self) -> float:
        return self._decodes * self.delta_h


def pool_factors(layouts: Mapping[str, PoolLayout], limit: float, most_gpus: int) -> dict[str, Any]:
    """Return the factors of a split's gain within a limit on TPOT, each layout the best one, and pools of whole units.

    They multiply to `gain`, over whole prompts; `over mixed` is over mixed steps. `units` are of both pools.
    """
    each = list(layouts.values())
    together, prefill = min(each, key=lambda one: one.whole(limit)), min(each, key=lambda one: one.prefill)
    decode = min(each, key=lambda one: one.decode(limit))
    w_a, w_p, w_d = together.whole(limit), prefill.prefill, decode.decode(limit)
    later = decode.decode(limit - prefill.sent / prefill.n_out)  # a token's part of the hand-over
    sizes = [(p, d) for p in range(1, most_gpus + 1) for d in range(1, most_gpus + 1)]
    sizes = [(p, d) for p, d in sizes if p * prefill.gpus + d * decode.gpus <= most_gpus]

    def gain(size: tuple[int, int], decoding: float) -> float:
        share = size[0] * prefill.gpus / (size[0] * prefill.gpus + size[1] * decode.gpus)
        return float(theory.pdd_gain_pools.plain(w_a, w_p, decoding, share))

    best = max(sizes, key=lambda size: gain(size, later))
    names = {id(one): name for name, one in layouts.items()}
    same = together.prefill + together.decode(limit)
    own = w_p + together.decode(limit)
    return {
        "layouts": ", ".join(names[id(one)] for one in (together, prefill, decode)),
        "interference": w_a / same,
        "prefill's layout": same / own,
        "decode's layout": own / (w_p + w_d),
        "units": f"{best[0]} : {best[1]}",
        "whole units": gain(best, w_d) * (w_p + w_d) / w_a,
        "hand-over": gain(best, later) / gain(best, w_d),
        "gain": gain(best, later),
        "over mixed": gain(best, later) * min(one.mixed(limit) for one in each) / w_a,
    }


def split_in_loop(unit: PoolLayout, n_p: int, n_d: int, users: int) -> dict[str, float]:
    """Return what so many users see of a split, and its gain over as many units with whole prompts.

    The other way is as fast for a user; fractions of a user are let in.
    """
    seen = pools_in_loop(
        users, n_p, n_d, prefill=unit.prompt + unit.t_w, n_out=unit.n_out, t_w=unit.t_w, delta_h=unit.delta_h
    )
    users_beside = max(1.0, unit.users(seen.tpot))
    whole = theory.request_rate.plain(users_beside, unit.n_out, unit.t_w, unit.prompt / unit.n_out, unit.delta_h)
    return {
        "users": users, "decoding": seen.decoding, "per_user": 1 / seen.tpot, "rate": seen.rate,
        "gain": seen.rate / ((n_p + n_d) * whole),
    }  # fmt: skip


def splits_by_speed(ax: Axes, unit: PoolLayout, splits: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """Draw the gain of given splits against a user's speed, from one user to 3,000; dashed, the law of full pools."""
    frames = []
    for (n_p, n_d), colour in zip(splits, COLOURS, strict=False):
        seen = [split_in_loop(unit, n_p, n_d, int(users)) for users in np.unique(np.geomspace(1, 3000, 90).round())]
        drawn = pd.DataFrame([row for row in seen if row["decoding"] <= n_d * unit.held])
        ax.plot(drawn["per_user"], drawn["gain"], color=colour, label=f"{n_p} : {n_d}")
        frames.append(drawn.assign(split=f"{n_p} : {n_d}"))
    frame = pd.concat(frames, ignore_index=True)
    law = {"delta_p": unit.prompt / unit.n_out, "delta_h": unit.delta_h, "n_out": unit.n_out, "t_w": unit.t_w}
    limits = np.geomspace(1.001 * (unit.t_w + unit.delta_h), 1 / frame["per_user"].min(), 200)
    ax.plot(1 / limits, theory.pdd_gain_same(**law, sla_tpot=limits), "--", color="black", label="full pools")
    ax.axhline(1, color="gray", linewidth=0.9)
    ax.set(xlabel="tokens/s of a user", ylabel="gain of the split", ylim=(0, 1.4 * ax.dataLim.y1))
    ax.legend(fontsize=9, ncols=2, loc="upper left", title="units: prefill : decode")
    return frame
