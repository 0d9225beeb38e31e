"""How far predictions are from measurements: each public set beside a unit's numbers.

Splitwise, ML.ENERGY and what others published belong to calibration, silybench to validation: nothing in the package
is fitted to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from served import like_ours

from inference_math.evidence import load
from inference_math.simulate import Chunked, Steps, benchmark
from inference_math.unit import Unit
from inference_math.unit.coefficients import Calibration
from inference_math.workload import RandomLengths, Workload
from inference_math_bench.lab.analysis import expanded
from inference_math_bench.lab.experiments.bench import N_IN, N_OUT
from inference_math_planner.calibrate.files import Runs
from inference_math_planner.fleets.benchmarks import policy_of

__all__ = [
    "coverage", "mape", "mlenergy", "published", "qwen", "silybench", "silybench_results",
    "silybench_runs", "silybench_tails", "splitwise", "watched_loops",
    "watched_results",
]  # fmt: skip

SCALE = 8  # of prompts and contexts, in the laboratory's run on an H100
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

    Columns: precision, n_in, n_out, users; measured, predicted, low, high, datasheet (s, the last at datasheet rates).
    """
    tables = []
    for precision, unit in units.items():
        for (n_in, n_out), rows in silybench_runs(precision).table.groupby(["n_in", "n_out"]):
            work = Workload(float(str(n_in)), float(str(n_out)))
            users = rows["concurrency"].to_numpy(float)
            found = unit.predict("e2e", work, users, level, known=[])
            table = {"measured": rows["e2e"].to_numpy(), "predicted": found.value, "low": found.low, "high": found.high}
            table |= {"users": users, "datasheet": unit.at_datasheet.e2e(work, users)}
            tables.append(pd.DataFrame(table).assign(precision=precision, n_in=work.n_in, n_out=work.n_out))
    columns = ["precision", "n_in", "n_out", "users", "measured", "predicted", "low", "high", "datasheet"]
    return pd.concat(tables, ignore_index=True)[columns].astype({"n_in": int, "n_out": int, "users": int})


def silybench_tails(units: Mapping[str, Unit], q: float = 0.95) -> pd.DataFrame:
    """Play every used point as a benchmark; return quantiles over requests. Lengths are exact, users begin together.

    Columns: precision, n_in, n_out, users; ttft, ttft_s, tpot, tpot_s, played and measured, in seconds.
    """
    frame, tables = load("silybench").frame.query("used"), []
    for row in frame.to_dict("records"):
        unit, work = units[row["precision"]], Workload(float(row["prompt_tokens"]), float(row["output_tokens"]))
        run = benchmark(
            RandomLengths(work.n_in, work.n_out),
            Steps(unit),
            concurrency=int(row["concurrency"]),
            requests=max(int(row["requests"]), int(row["concurrency"])),
            scheduler=Chunked(8192, max_batch=unit.places(work), policy=policy_of(unit.engine, version=unit.version)),
            front=unit.front.seconds,
        )
        tables.append(
            {
                "precision": row["precision"],
                "n_in": row["prompt_tokens"],
                "n_out": row["output_tokens"],
                "users": row["concurrency"],
                "ttft": run.requests["ttft"].quantile(q),
                "ttft_s": row["ttft_p95_ms"] / 1e3,
                "tpot": run.requests["tpot"].quantile(q),
                "tpot_s": row["tpot_p95_ms"] / 1e3,
            }
        )
    return pd.DataFrame(tables)


def mlenergy(level: float = 0.9, context: float = _CHAT, calibration: Calibration | None = None) -> pd.DataFrame:
    """Predict the median time between tokens of chat batches [vLLM 0.11, H100], prompts taken as `context` tokens.

    Zero-shot, where no `calibration` is given.

    Columns: model, tp, batch, context, measured, predicted, low, high (s).
    """
    frame = load("mlenergy").frame
    tables = []
    for (model, gpu, tp), points in frame.groupby(["model", "gpu", "tp"]):
        unit = Unit.of(str(model), str(gpu), tp=int(str(tp)), calibration=calibration)
        batch = points["batch"].to_numpy()
        mean = context + points["output_tokens"].to_numpy() / 2
        ask = _asking("step_time", (batch, mean))
        low, high = _interval(unit, ask, level)
        table = {"batch": batch, "context": mean, "measured": points["itl_p50_ms"].to_numpy() / 1e3}
        table |= {"predicted": ask(unit), "low": low, "high": high}
        tables.append(pd.DataFrame(table).assign(model=str(model), tp=unit.tp))
    return pd.concat(tables, ignore_index=True)


def splitwise(level: float | None = None) -> pd.DataFrame:
    """Predict prefills and decode steps of Llama-2-70B in BF16 [vLLM of mid-2023, without CUDA graphs].

    Columns: gpu, tp, phase, batch, n_in, output_tokens, measured, predicted (s); with a `level` low, high (s), too.
    """
    frame = load("splitwise_llama2_70b").frame
    tables = []
    for (gpu, tp), points in frame.groupby(["gpu", "tp"]):
        unit = Unit.of("llama-2-70b", str(gpu), tp=int(str(tp)))
        batch, n_in = points["batch"].to_numpy(float), points["prompt"].to_numpy(float)
        mean = n_in + points["output_tokens"].to_numpy() / 2
        asked = {"prefill": ("prefill_time", n_in, batch), "decode": ("step_time", batch, mean)}
        for phase, (name, *arguments) in asked.items():
            ask = _asking(name, tuple(arguments))
            seconds = points["prefill_ms" if phase == "prefill" else "step_ms"].to_numpy() / 1e3
            table = {"batch": batch, "n_in": n_in, "output_tokens": points["output_tokens"].to_numpy()}
            table |= {"measured": seconds, "predicted": ask(unit)}
            if level is not None:
                table["low"], table["high"] = _interval(unit, ask, level)
            tables.append(pd.DataFrame(table).assign(gpu=str(gpu), tp=unit.tp, phase=phase))
    return pd.concat(tables, ignore_index=True)


def published(level: float | None = None) -> pd.DataFrame:
    """Predict what others published: SARATHI's steps of a 13B on an A6000, vLLM's long prefills of an 8B on an H100.

    Columns: what, source, gpu, n_in, measured, predicted (s); with a `level` low, high (s), too.
    """
    sarathi = load("sarathi").frame
    whole = sarathi.query("quantity == 'step_time' and place == 'Table 2'").set_index("step")["value"]
    asked: list[tuple[str, str, float, float, str, tuple[float, ...]]] = [
        ("prefill of 1,024 tokens", "SARATHI, Table 2", 1024, whole["prefill"], "prefill_time", (1024,)),
        ("4 decodes at 1,024", "SARATHI, Table 2", 1024, whole["decode"], "step_time", (4, 1024)),
        ("chunk of 1,021 and 3 decodes", "SARATHI, Table 2", 1024, whole["mixed"], "step_time", (3, 1024, 1021)),
    ]
    for tokens, value in sarathi.query("place == 'Figure 7' and tokens < 257")[["tokens", "value"]].to_numpy().tolist():
        asked.append((f"step of {tokens:g} tokens", "SARATHI, Figure 7", tokens, value, "prefill_time", (tokens,)))
    for tokens, value in load("vllm_kv_offload").frame[["prompt_tokens", "compute_ms"]].to_numpy(float).tolist():
        asked.append((f"prefill of {tokens:,.0f} tokens", "vLLM blog", tokens, value, "prefill_time", (tokens,)))
    units = {"SARATHI": Unit.of("llama-13b", "a6000"), "vLLM": Unit.of("llama-3-8b", "h100-sxm")}
    rows = []
    for what, source, n_in, value, name, arguments in asked:
        unit = units[source.replace(",", " ").split()[0]]
        row = {"what": what, "source": source, "gpu": unit.gpu.name, "n_in": n_in, "measured": value / 1e3}
        ask = _asking(name, arguments)
        row["predicted"] = ask(unit)
        if level is not None:
            row["low"], row["high"] = _interval(unit, ask, level, n_in=n_in)
        rows.append(row)
    return pd.DataFrame(rows)


def watched_loops(level: float = 0.9) -> pd.DataFrame:
    """Predict mean TTFT and TPOT of our own vLLM in closed loops with geometric answers [Llama-3-8B, one H100].

    Nothing is fitted to it: the host of this engine, which plans no step ahead, is that of ML.ENERGY's runs.

    Columns: quantity, users; measured, predicted, low, high (s); law and ratio, what the laboratory's own law said
    before, from bare steps, and what was found over it.
    """
    rows, unit = expanded(load("lab_gpu_arms").frame, "interference"), _watched()
    rows = rows[(rows.lengths == "geometric") & rows.quantity.isin(["ttft", "tpot"])]
    work = Workload(SCALE * N_IN, N_OUT, lengths="geometric")
    tables = []
    for quantity, group in rows.groupby("quantity"):
        said = unit.predict(str(quantity), work, group.users.to_numpy(float), level, known=[])
        table = group[["quantity", "users", "ratio"]].assign(measured=group.found, law=group.predicted)
        tables.append(table.assign(predicted=said.value, low=said.low, high=said.high))
    return pd.concat(tables, ignore_index=True)


def watched_results() -> pd.DataFrame:
    """Return their TPOT as a source of points beside others: rows as `served.external_results` has them."""
    loops, unit = watched_loops().query("quantity == 'tpot'"), _watched()
    rows = loops.rename(columns={"measured": "tpot_s", "predicted": "tpot"})[["users", "tpot_s", "tpot", "low", "high"]]
    return rows.assign(
        source="our own run, watched step by step", model=unit.model.name, gpu=unit.gpu.name, engine=unit.engine,
        weights=unit.weights, kind=unit.kind,
    )  # fmt: skip


def silybench_results() -> pd.DataFrame:
    """Return silybench's latencies as a source of points beside others: rows as `served.external_results` has them."""
    units = {name: like_ours(unit) for name, unit in qwen().items()}
    rows = silybench(units).rename(columns={"measured": "tpot_s", "predicted": "tpot", "precision": "weights"})
    unit = units["bf16"]
    told = {"source": "silybench", "model": unit.model.name, "gpu": unit.gpu.name, "engine": unit.engine}
    return rows[["weights", "users", "tpot_s", "tpot", "low", "high"]].assign(**told, kind=unit.kind)


def _watched() -> Unit:
    """Return the unit of our own run: the laboratory steps it in its process, and it plans no step ahead."""
    return Unit.of("llama-3-8b", "h100-sxm", 1, "bf16", async_scheduling=False)


def _asking(name: str, arguments: tuple[object, ...]) -> Any:
    return lambda unit: getattr(unit, name)(*arguments)


def _interval(unit: Unit, ask: Any, level: float, **sizes: float) -> tuple[Any, Any]:
    """Return the ends of an interval of what is asked of a unit, as wide as it and the sizes of a request need."""
    inputs: dict[str, str | float] = {"engine": unit.engine, "kind": unit.kind, "gpu": unit.gpu.name, "tp": unit.tp}
    wide = unit.calibration.spread_for(**inputs, **sizes) / unit.calibration.spread
    return unit.spread(ask, level, draws=64, wide=wide)
