"""Disaggregation: simulated gains, DistServe's curves (P13), rates by limit, steps and phases (P18).

What draws does so on given axes, and returns the numbers it drew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from inference_math import catalogue, evidence, simulate
from inference_math.optimiser import architectures
from inference_math.unit.costs import WorkloadCosts
from inference_math.unit.operators import Operators
from inference_math.workload import Workload
from inference_math_book.colours import COLOURS, colours_of

__all__ = ["distserve", "gain_of_pools", "goodput", "limit_reached", "mixed_steps", "phase_rates", "rates_by_limit"]

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
    users = int(1 + (limit - t_w - delta_h) / (prompt / n_out + delta_h) + 1e-9)
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
