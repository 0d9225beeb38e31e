"""Predict measured closed loops with NVIDIA's aiconfigurator: data/published/{peers,peers_served}.csv.

    python -m pip install aiconfigurator-core==0.12.0
    python tools/research/peers.py --out data

The core has all that predicts; the package aiconfigurator around it adds a command line and a search. Of its ways of
modelling `peers` has the one with the smallest error on silybench: static batching, all prompts prefilled together,
then decoded together. `--ways` prints the error of that and of its aggregated (continuous) batching, and writes
nothing. `peers_served` has both for the validation rows of `served`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import served
from recipes import recipe_of
from tables import write

from inference_math import evidence

Run = Callable[[int, int, int, str], tuple[float, float]]  # prompt, output, requests of a rank, way: TTFT, TPOT

CORE, VERSION = "aiconfigurator_core", "0.12.0"
SYSTEM, ENGINE, DATABASE = "h100_sxm", "vllm", "0.24.0"
MODEL = "Qwen/Qwen3-8B"
# As aiconfigurator names them. vLLM quantises online: one scale per tensor, activations while it serves.
PRECISIONS = {"bf16": "bfloat16", "fp8": "fp8"}
KEY = ["precision", "prompt_tokens", "output_tokens", "concurrency"]
STATIC, AGGREGATED = "static", "aggregated"
STRIDE = 32  # decode steps from one evaluated to the next, aiconfigurator's default
# Prompt tokens in a step that mixes prefill and decode: one prompt's (None, aiconfigurator's default), or so many.
BUDGETS: dict[str, int | None] = {
    AGGREGATED: None,
    **{f"{AGGREGATED}, {tokens} tokens": tokens for tokens in (512, 2048, 8192, 16384)},
}

SYSTEMS = {"b200": "b200_sxm", "h100-sxm": "h100_sxm", "h200-sxm": "h200_sxm"}
LLAMA = "nvidia/Llama-3.1-70B-Instruct-FP8"
# Checkpoints whose configuration aiconfigurator carries; it reads the precision of each kind of matrix from there.
CHECKPOINTS = {
    ("deepseek-v3", "fp8"): "deepseek-ai/DeepSeek-V3", ("deepseek-v3", "nvfp4"): "nvidia/DeepSeek-V3.1-NVFP4",
    ("gpt-oss-120b", "mxfp4"): "openai/gpt-oss-120b", ("kimi-k2", "int4"): "moonshotai/Kimi-K2.5",
    ("llama-3-70b", "fp8"): LLAMA, ("llama-3-70b", "nvfp4"): LLAMA,
}  # fmt: skip
# What a checkpoint does not say: Llama's has eight bits; on Blackwell TensorRT-LLM runs MXFP4 with MXFP8 activations.
MODES = {
    ("llama-3-70b", "nvfp4", "trtllm"): {"gemm_quant_mode": "nvfp4"},
    ("gpt-oss-120b", "mxfp4", "trtllm"): {"moe_quant_mode": "w4a8_mxfp4_mxfp8"},
}
UNIT = ["model", "gpu", "engine", "weights", "tp", "ep", "dp"]
SERVED_KEY = [*UNIT, "n_in", "n_out", "users", "version"]
TIMES = ["ttft_s", "tpot_s", "static_ttft_s", "static_tpot_s"]


class MissingError(Exception):
    """aiconfigurator-core is not there, or is another version."""


def main() -> int:
    """Write the tables, or print the error of each way; return 2 where aiconfigurator is not installed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    arguments.add_argument("--ways", action="store_true")
    options = arguments.parse_args()
    rows = evidence.load("silybench").frame.query("used")
    published = options.out / "published"
    try:
        if options.ways:
            print(errors(rows).to_string(float_format="%.1f"))
            return 0
        write(formatted(predict(rows)), published / "peers.csv")
        write(predict_served(validation()), published / "peers_served.csv", *TIMES)
    except MissingError as error:
        print(error)
        return 2
    return 0


def predict(rows: pd.DataFrame, way: str = STATIC) -> pd.DataFrame:
    """Return aiconfigurator's TTFT, TPOT and end-to-end latency of each row of users, in seconds.

    Raises
    ------
    MissingError
        Where aiconfigurator-core is not installed in the version of the table.
    """
    _require()
    run = {precision: session(precision) for precision in rows["precision"].unique()}
    table = rows[KEY].reset_index(drop=True)
    found = pd.DataFrame([run[row.precision](row, way) for row in table.itertuples()], columns=["ttft_s", "tpot_s"])
    e2e = found["ttft_s"] + (table["output_tokens"] - 1) * found["tpot_s"]
    return pd.concat(
        [pd.DataFrame({"tool": "aiconfigurator", "version": VERSION, "way": way}, table.index), table, found], axis=1
    ).assign(e2e_s=e2e)


def validation() -> pd.DataFrame:
    """Return the served points that are only predicted, those with a queue too."""
    return served.points("validation").query("left_out in ('', 'queue')")


def predict_served(rows: pd.DataFrame) -> pd.DataFrame:
    """Return aiconfigurator's TTFT and TPOT of rows of `served.points` in two ways, in seconds; or why it has none.

    Rows that differ in what was measured alone are asked once.

    Raises
    ------
    MissingError
        Where aiconfigurator-core is not installed in the version of the table.
    """
    _require()
    points = rows[SERVED_KEY].drop_duplicates().sort_values(SERVED_KEY)
    found = []
    for _, group in points.groupby(UNIT, sort=False):
        run = served_session(group.iloc[0])
        for row in group.itertuples(index=False):
            *own, reason = _asked(run, row, AGGREGATED)
            found.append((*row, *own, *_asked(run, row, STATIC)[:2], reason))
    told = pd.DataFrame(found, columns=[*SERVED_KEY, *TIMES, "reason"])
    table = rows[["row", *SERVED_KEY]].merge(told, on=SERVED_KEY)
    return table[["row", *TIMES, "reason"]].sort_values("row", ignore_index=True)


def errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean absolute error of the end-to-end latency in percent, by way and precision, and of all rows."""
    found = {}
    for way in (STATIC, *BUDGETS):
        error = 100 * (predict(rows, way)["e2e_s"] / rows["e2e_s"].to_numpy() - 1).abs()
        found[way] = {**error.groupby(rows["precision"].to_numpy()).mean(), "all": error.mean()}
    return pd.DataFrame(found).T


def formatted(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with five significant digits in its times."""
    return table.assign(**{column: table[column].map(lambda s: f"{s:.5g}") for column in ("ttft_s", "tpot_s", "e2e_s")})


def _require() -> None:
    install = f"python -m pip install aiconfigurator-core=={VERSION}"
    if importlib.util.find_spec(CORE) is None:
        raise MissingError(f"aiconfigurator-core is not installed; run: {install}")
    if (version := importlib.metadata.version("aiconfigurator-core")) != VERSION:
        raise MissingError(f"aiconfigurator-core must be {VERSION}, not {version}; run: {install}")


def session(precision: str) -> Callable[[Any, str], tuple[float, float]]:
    """Return a function of a row and a way: TTFT and TPOT in seconds, KV cache and attention in BF16."""
    common, config, models = _sdk("common"), _sdk("config"), _sdk("models")
    precisions = config.ModelConfig(
        tp_size=1,
        gemm_quant_mode=common.GEMMQuantMode[PRECISIONS[precision]],
        kvcache_quant_mode=common.KVCacheQuantMode.bfloat16,
        fmha_quant_mode=common.FMHAQuantMode.bfloat16,
    )
    run = _runner(models.get_model(MODEL, precisions, ENGINE), _database(SYSTEM, ENGINE, DATABASE))
    return lambda row, way: run(int(row.prompt_tokens), int(row.output_tokens), int(row.concurrency), way)


def served_session(row: Any) -> Run:
    """Return a function of lengths, requests of a rank and a way for the unit of a served point."""
    models, system, engine = _sdk("models"), SYSTEMS[row["gpu"]], row["engine"]
    tp, ep, dp = (int(row[name]) for name in ("tp", "ep", "dp"))
    setting = _sdk("config_builders").build_model_config(
        tp, 1, dp, tp * dp // ep, ep, kvcache_quant_mode=PRECISIONS[recipe_of(row).kv],
        **MODES.get((row["model"], row["weights"], engine), {}),
    )  # fmt: skip
    checkpoint = CHECKPOINTS[row["model"], row["weights"]]
    database = _database(system, engine, _sdk("perf_database").get_latest_database_version(system, engine))
    # As aiconfigurator's own command line does: attention of a prompt in BF16 where the database has no FP8.
    models.resolve_context_fmha_by_data(setting, checkpoint, database, engine, is_context_role=True)
    return _runner(models.get_model(checkpoint, setting, engine), database)


def _asked(run: Run, row: Any, way: str) -> tuple[float, float, str]:
    # Users spread over the ranks that attend to requests of their own.
    requests = -(-row.users // row.dp)
    try:
        return *run(round(row.n_in), round(row.n_out), requests, way), ""
    except _sdk("errors").PerfDataNotAvailableError as error:
        # "perf database error: MoE data missing for MoeKey { ... } at FILE"
        return float("nan"), float("nan"), str(error).removeprefix("perf database error: ").split(" for ")[0]


def _sdk(name: str) -> Any:
    # Imported here and by name: whoever only reads the tables needs none of it.
    return importlib.import_module(f"{CORE}.sdk.{name}")


def _database(system: str, engine: str, version: str) -> Any:
    return _sdk("perf_database").get_database_view(system, engine, version, database_mode="SILICON")


def _runner(model: Any, database: Any) -> Run:
    config, backend = _sdk("config"), _sdk("backends.factory").get_backend(database.backend)

    def run(prompt: int, output: int, requests: int, way: str) -> tuple[float, float]:
        setting = config.RuntimeConfig(isl=prompt, osl=output, batch_size=requests)
        if way == STATIC:
            found = backend.run_static(model, database, setting, mode=STATIC, stride=STRIDE)
            result = found.get_summary_df().iloc[0]
        else:
            result = backend.run_agg(model, database, setting, ctx_tokens=BUDGETS[way] or prompt).get_result_dict()
        return float(result["ttft"]) / 1e3, float(result["tpot"]) / 1e3

    return run


if __name__ == "__main__":
    raise SystemExit(main())
