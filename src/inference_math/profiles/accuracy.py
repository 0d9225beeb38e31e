"""How far predictions are from measurements: each public set beside a unit's numbers, and what each term is worth.

Splitwise and ML.ENERGY belong to calibration, silybench to validation: nothing in the package is fitted to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from inference_math import theory
from inference_math.evidence import load
from inference_math.runs import Runs
from inference_math.unit import Unit
from inference_math.unit.coefficients import Calibration
from inference_math.workload import Workload

__all__ = ["LADDER", "coverage", "ladder", "mape", "mlenergy", "qwen", "silybench", "silybench_runs", "splitwise"]

_CHAT = 512  # tokens of ML.ENERGY's prompts, whose length is not given


def mape(frame: pd.DataFrame) -> float:
    """Return the mean size of the relative errors of `predicted` against `measured`."""
    return float((frame["predicted"] / frame["measured"] - 1).abs().mean())


def coverage(frame: pd.DataFrame) -> float:
    """Return the share of `measured` that lies from `low` to `high`."""
    return float(frame["measured"].between(frame["low"], frame["high"]).mean())


def qwen(calibration: Calibration | None = None) -> dict[str, Unit]:
    """Return silybench's two units by the precision of their weights; both keep the KV cache in BF16."""
    names = ("bf16", "fp8")
    return {n: Unit.of("qwen3-8b", "h100-sxm", weights=n, kv="bf16", calibration=calibration) for n in names}


def silybench_runs(precision: str, count: int | None = None) -> Runs:
    """Return the used points of one precision as runs; `count` of them, spread evenly over the table."""
    rows = load("silybench").frame.query("used and precision == @precision")
    if count is not None:
        rows = rows.iloc[np.linspace(0, len(rows) - 1, count).round().astype(int)]
    names = {"prompt_tokens": "n_in", "output_tokens": "n_out", "e2e_s": "e2e"}
    table = rows.rename(columns=names)[["n_in", "n_out", "concurrency", "e2e", "requests"]]
    table = table.assign(source=[f"silybench#{i + 2}" for i in table.index], ttft=np.nan, tpot=np.nan)
    return Runs(table.reset_index(drop=True), pd.DataFrame({"source": [], "reason": []}, dtype=str))


def silybench(units: Mapping[str, Unit], level: float = 0.9) -> pd.DataFrame:
    """Predict the end-to-end latency of every used point [Qwen3-8B, vLLM 0.30, one H100].

    Columns: precision, n_in, n_out, users, measured, predicted, low, high (s), limit (at datasheet rates).
    """
    tables = []
    for precision, unit in units.items():
        for (n_in, n_out), rows in silybench_runs(precision).table.groupby(["n_in", "n_out"]):
            work = Workload(float(str(n_in)), float(str(n_out)))
            users = rows["concurrency"].to_numpy(float)
            found = unit.predict("e2e", work, users, level)
            table = {"measured": rows["e2e"].to_numpy(), "predicted": found.value, "low": found.low, "high": found.high}
            table |= {"users": users, "limit": unit.limit.e2e(work, users)}
            tables.append(pd.DataFrame(table).assign(precision=precision, n_in=work.n_in, n_out=work.n_out))
    columns = ["precision", "n_in", "n_out", "users", "measured", "predicted", "low", "high", "limit"]
    return pd.concat(tables, ignore_index=True)[columns].astype({"n_in": int, "n_out": int, "users": int})


def mlenergy(level: float = 0.9, context: float = _CHAT) -> pd.DataFrame:
    """Predict the median time between tokens of chat batches [vLLM 0.11, H100], prompts taken as `context` tokens.

    Columns: model, tp, batch, context, measured, predicted, low, high (s).
    """
    frame = load("mlenergy").frame
    tables = []
    for (model, gpu, tp), points in frame.groupby(["model", "gpu", "tp"]):
        unit = Unit.of(str(model), str(gpu), tp=int(str(tp)))
        batch = points["batch"].to_numpy()
        mean = context + points["output_tokens"].to_numpy() / 2
        found, low, high = _interval(unit, "step_time", level, batch, mean)
        table = {"batch": batch, "context": mean, "measured": points["itl_p50_ms"].to_numpy() / 1e3}
        table |= {"predicted": found, "low": low, "high": high}
        tables.append(pd.DataFrame(table).assign(model=str(model), tp=unit.tp))
    return pd.concat(tables, ignore_index=True)


def splitwise(level: float = 0.9) -> pd.DataFrame:
    """Predict prefills and decode steps of Llama-2-70B in BF16 [vLLM of mid-2023, without CUDA graphs].

    Columns: gpu, tp, phase, batch, n_in, measured, predicted, low, high (s).
    """
    frame = load("splitwise_llama2_70b").frame
    tables = []
    for (gpu, tp), points in frame.groupby(["gpu", "tp"]):
        unit = Unit.of("llama-2-70b", str(gpu), tp=int(str(tp)))
        batch, n_in = points["batch"].to_numpy(float), points["prompt"].to_numpy(float)
        mean = n_in + points["output_tokens"].to_numpy() / 2
        asked = {"prefill": ("prefill_time", n_in, batch), "decode": ("step_time", batch, mean)}
        for phase, (name, *arguments) in asked.items():
            found, low, high = _interval(unit, name, level, *arguments)
            seconds = points["prefill_ms" if phase == "prefill" else "step_ms"].to_numpy() / 1e3
            table = {"batch": batch, "n_in": n_in, "measured": seconds, "predicted": found, "low": low, "high": high}
            tables.append(pd.DataFrame(table).assign(gpu=str(gpu), tp=unit.tp, phase=phase))
    return pd.concat(tables, ignore_index=True)


def _interval(unit: Unit, name: str, level: float, *arguments: Any) -> tuple[Any, Any, Any]:
    """Return what the unit's method `name` predicts, and the ends of its interval."""

    def ask(one: Unit) -> Any:
        return getattr(one, name)(*arguments)

    return ask(unit), *unit.spread(ask, level, draws=64)


# From the talk's plain equation to the unit's own, one repair after the other; each keeps those before it.
LADDER = (
    "the talk, datasheet rates",
    "the talk, fitted rates",
    "+ mean context in ΔH",
    "+ ΔP without the weight read",
    "+ a decode's own compute",
    "+ both in quadrature",
)


def ladder(unit: Unit, n_in: float, n_out: float, users: Any) -> dict[str, Any]:
    """Return the end-to-end latency by each form of `LADDER`, in seconds.

    The first form is C13 and C14 as printed, with peak rates and a KV read at the prompt's length; the fifth adds
    what a decode's own compute takes (z = 1); the last is `Unit.e2e`.
    """
    work = Workload(n_in, n_out)
    costs = unit.costs(work)
    at_prompt = costs.delta_h * n_in / theory.mean_context(n_in=n_in, n_out=n_out, cv=0)
    alone = float(unit.prefill_time(n_in))
    bare = float(costs.t_w)
    limit = unit.limit
    peak = limit.costs(work)
    forms = (
        (limit.prefill_time(n_in), peak.t_w, peak.delta_h * n_in / (n_in + n_out / 2), 0.0),
        (alone, bare, at_prompt, 0.0),
        (alone, bare, costs.delta_h, 0.0),
        (alone - bare, bare, costs.delta_h, 0.0),
        (alone - bare, bare, costs.delta_h, costs.T_decode),
    )
    found = {}
    for name, (prefill, t_w, read, own) in zip(LADDER, forms, strict=False):
        ttft = alone if name != LADDER[0] else limit.prefill_time(n_in)
        step = t_w + read + own
        increment = theory.delta_p(ttft_1=prefill, n_out=n_out) + read + own
        mean = theory.expected_ttft(B=users, n_out=n_out, ttft_1=ttft)
        found[name] = mean + (n_out - 1) * (step + (np.asarray(users) - 1) * increment)
    return found | {LADDER[-1]: unit.e2e(work, users)}
