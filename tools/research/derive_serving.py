"""Derive three tables of disaggregated and tiered serving: data/measured/{kv_transfer,tiered_cache,pd_ratio}.csv.

    python tools/research/derive_serving.py vllm_v1_pd_qwen3_8b_h800.csv tiered_prefix_cache.csv results.csv

The first two arguments are tables of documentation pages, one line a row:
docs/source/performance/vllm/vllm-v1-pd-performance.md of github.com/kvcache-ai/Mooncake at 3b5a5941 (Apache-2.0), as
prompt_len, mean_ttft_ms, kv_size_MB, transfer_ms, bw_GBps; and guides/tiered-prefix-cache/{cpu,storage}/README.md of
github.com/llm-d/llm-d at 35b5cfb8 and 105e3bc3 (Apache-2.0), a heading there being a scenario, a line a config here.
The third is comparison/pd_ratio/csv_data/results.csv of github.com/dstackai/benchmarks at 06c957ab (Apache-2.0).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from tables import write

# Mooncake's page writes MB and GB for the binary units: 32,768 tokens of Qwen3-8B in BF16 are 4608 MiB, its "4.50 GB",
# and its bandwidth is that size (with one more block of 16 tokens) in GiB over the time.
MIB, GIB = 2**20, 2**30
# The models of data/models.csv whose shapes these have.
MODEL = {"Qwen3-32B": "qwen3-32b", "Llama-3.3-70B": "llama-3-70b"}
FITS = {"KV<HBM": "HBM", "HBM<KV<HBM+CPU": "HBM and host", "KV>HBM+CPU": "neither", "KV>>HBM+CPU": "neither"}
# The tier that each line of llm-d's guides adds, and its size in GB.
TIER: dict[str, tuple[str, int | None]] = {
    "baseline": ("hbm", None),
    "cpu_offload_100GB": ("host", 100),
    "cpu_offload_320GB": ("host", 320),
    "cpu+lustre_18TB": ("host and shared store", 18000),
}
KV_TRANSFER = ["ttft_ms", "kv_bytes", "transfer_ms", "bandwidth"]
TIERED_KEY = ["model", "prefix_tokens", "tier"]
TIERED_CACHE = ["ttft_mean_s", "e2e_mean_s", "tokens_per_s"]
PD_KEY = ["prefill_workers", "decode_workers", "prompt_tokens", "output_tokens", "concurrency"]
PD_RATIO = ["requests_per_s", "output_tokens_made", "ttft_mean_ms", "tpot_mean_ms"]


def main() -> None:
    """Write the three tables; print what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("transfer", type=Path, help="vllm_v1_pd_qwen3_8b_h800.csv")
    arguments.add_argument("tiers", type=Path, help="tiered_prefix_cache.csv")
    arguments.add_argument("ratios", type=Path, help="results.csv")
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    options = arguments.parse_args()
    # All of them before any is written.
    transfer = kv_transfer(pd.read_csv(options.transfer))
    tiers = tiered_cache(pd.read_csv(options.tiers))
    ratios = pd_ratio(pd.read_csv(options.ratios))
    write(transfer, options.out / "kv_transfer.csv", *KV_TRANSFER)
    write(tiers, options.out / "tiered_cache.csv", *TIERED_CACHE)
    write(ratios, options.out / "pd_ratio.csv", *PD_RATIO)


def kv_transfer(raw: pd.DataFrame) -> pd.DataFrame:
    """Return time, bytes and bandwidth (byte/s) of moving a prompt's KV cache, shortest prompt first.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    _require(raw, "prompt_len", "mean_ttft_ms", "kv_size_MB", "transfer_ms", "bw_GBps")
    table = pd.DataFrame({"prompt_tokens": raw.prompt_len, "ttft_ms": raw.mean_ttft_ms,
                          "kv_bytes": raw.kv_size_MB * MIB, "transfer_ms": raw.transfer_ms,
                          "bandwidth": raw.bw_GBps * GIB})  # fmt: skip
    return table.sort_values("prompt_tokens", ignore_index=True)


def tiered_cache(raw: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with their names turned into columns, sorted by `TIERED_KEY`.

    Raises
    ------
    ValueError
        If a column is missing, and for a model, scenario, configuration or hardware that is not known.
    """
    _require(raw, "scenario", "model", "hw", "sys_prompt", "question", "output", "concurrency", "config",
             "mean_ttft_s", "mean_e2e_s", "total_tok_s")  # fmt: skip
    heading = raw.scenario.str.split().str[0]
    _among("model", raw.model, MODEL)
    _among("scenario", heading, FITS)
    _among("config", raw.config, TIER)
    engines = raw.hw.str.extract(r"\((?P<engines>\d+) engines TP(?P<tp>\d+)")
    if engines.isna().to_numpy().any():
        raise ValueError("hw must say '(8 engines TP2'")
    tier = raw.config.map(lambda name: TIER[name][0])
    size = pd.array([TIER[name][1] for name in raw.config], dtype="Int64")
    table = pd.DataFrame({"model": raw.model.map(MODEL), "gpus_per_engine": engines.tp.astype(int),
                          "engines": engines.engines.astype(int), "fits": heading.map(FITS),
                          "prefix_tokens": raw.sys_prompt, "question_tokens": raw.question,
                          "output_tokens": raw.output, "concurrency": raw.concurrency, "tier": tier,
                          "store_gb": size, "ttft_mean_s": raw.mean_ttft_s, "e2e_mean_s": raw.mean_e2e_s,
                          "tokens_per_s": raw.total_tok_s})  # fmt: skip
    return table.sort_values(TIERED_KEY, ignore_index=True)


def pd_ratio(raw: pd.DataFrame) -> pd.DataFrame:
    """Return every run, sorted by `PD_KEY`.

    Raises
    ------
    ValueError
        If a column is missing, and if a setting was run twice.
    """
    _require(raw, "prefill", "decode", "conc", "isl", "osl", "completed", "total_output_tokens",
             "request_throughput", "mean_ttft_ms", "mean_tpot_ms")  # fmt: skip
    table = pd.DataFrame({"prefill_workers": raw.prefill, "decode_workers": raw.decode, "concurrency": raw.conc,
                          "prompt_tokens": raw.isl, "output_tokens": raw.osl, "completed": raw.completed,
                          "requests_per_s": raw.request_throughput,
                          "output_tokens_made": raw.total_output_tokens / raw.completed,
                          "ttft_mean_ms": raw.mean_ttft_ms, "tpot_mean_ms": raw.mean_tpot_ms})  # fmt: skip
    if table.duplicated(PD_KEY).any():
        raise ValueError(f"more than one run per {', '.join(PD_KEY)}")
    return table.sort_values(PD_KEY, ignore_index=True)


def _require(raw: pd.DataFrame, *columns: str) -> None:
    if missing := [column for column in columns if column not in raw]:
        raise ValueError(f"the raw file lacks the columns {', '.join(missing)}")


def _among(column: str, values: pd.Series[str], known: Iterable[str]) -> None:
    if unknown := sorted(set(values) - set(known)):
        raise ValueError(f"{column} must be one of {', '.join(known)}, not {', '.join(unknown)}")


if __name__ == "__main__":
    main()
