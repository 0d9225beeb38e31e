"""Predict the closed loop of data/measured/silybench.csv with NVIDIA's aiconfigurator: data/published/peers.csv.

    python -m pip install aiconfigurator-core==0.12.0
    python tools/peers.py --out data

The core has all that predicts; the package aiconfigurator around it adds a command line and a search. Of its ways of
modelling this is the one with the smallest error here: static batching, all prompts prefilled together, then decoded
together. `--ways` prints the error of that and of its aggregated (continuous) batching, and writes nothing.
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
from tables import write

from inference_math import evidence

CORE, VERSION = "aiconfigurator_core", "0.12.0"
SYSTEM, ENGINE, DATABASE = "h100_sxm", "vllm", "0.24.0"
MODEL = "Qwen/Qwen3-8B"
# vLLM quantises online: one scale per tensor, activations while it serves.
WEIGHTS = {"bf16": "bfloat16", "fp8": "fp8"}
KEY = ["precision", "prompt_tokens", "output_tokens", "concurrency"]
STATIC, AGGREGATED = "static", "aggregated"
STRIDE = 32  # decode steps from one evaluated to the next, aiconfigurator's default
# Prompt tokens in a step that mixes prefill and decode: one prompt's (None, aiconfigurator's default), or so many.
BUDGETS: dict[str, int | None] = {
    f"{AGGREGATED}, prompt tokens": None,
    **{f"{AGGREGATED}, {tokens} tokens": tokens for tokens in (512, 2048, 8192, 16384)},
}


class MissingError(Exception):
    """aiconfigurator-core is not there, or is another version."""


def main() -> int:
    """Write the table, or print the error of each way; return 2 where aiconfigurator is not installed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data"))
    arguments.add_argument("--ways", action="store_true")
    options = arguments.parse_args()
    rows = evidence.load("silybench").frame.query("used")
    try:
        if options.ways:
            print(errors(rows).to_string(float_format="%.1f"))
            return 0
        write(formatted(predict(rows)), options.out / "published" / "peers.csv")
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
    # Imported here and by name: whoever only reads the table needs none of it.
    common, config, models, perf_database, factory = (
        importlib.import_module(f"{CORE}.sdk.{name}")
        for name in ("common", "config", "models", "perf_database", "backends.factory")
    )
    precisions = config.ModelConfig(
        tp_size=1,
        gemm_quant_mode=common.GEMMQuantMode[WEIGHTS[precision]],
        kvcache_quant_mode=common.KVCacheQuantMode.bfloat16,
        fmha_quant_mode=common.FMHAQuantMode.bfloat16,
    )
    model = models.get_model(MODEL, precisions, ENGINE)
    database = perf_database.get_database_view(SYSTEM, ENGINE, DATABASE, database_mode="SILICON")
    backend = factory.get_backend(ENGINE)

    def run(row: Any, way: str) -> tuple[float, float]:
        prompt = int(row.prompt_tokens)
        setting = config.RuntimeConfig(isl=prompt, osl=int(row.output_tokens), batch_size=int(row.concurrency))
        if way == STATIC:
            found = backend.run_static(model, database, setting, mode=STATIC, stride=STRIDE)
            result = found.get_summary_df().iloc[0]
        else:
            result = backend.run_agg(model, database, setting, ctx_tokens=BUDGETS[way] or prompt).get_result_dict()
        return float(result["ttft"]) / 1e3, float(result["tpot"]) / 1e3

    return run


if __name__ == "__main__":
    raise SystemExit(main())
