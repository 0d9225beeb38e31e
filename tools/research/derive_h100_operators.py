"""Derive the small H100 operator tables of data/measured from NVIDIA's aiconfigurator-core.

    python -m pip install ".[derive]"
    python tools/research/derive_h100_operators.py

The package carries Parquet tables of kernel times. Kept are the sizes of the catalogue's models, in
microseconds and this project's schema. `--check-interpolation` prints how well the GEMM times that were
not measured would have been guessed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tables import write

from inference_math.catalogue import GPUS, MODELS, bytes_per_value

VERSION = "0.12.0"
ENGINES = {"vllm": "0.24.0", "trtllm": "1.3.0rc20"}
PRECISION = {"bfloat16": "bf16", "fp8": "fp8"}
# Models and the numbers of GPUs that they are looked at on.
DEPLOYMENTS = {
    "llama-3-8b": (1, 2, 4, 8),
    "llama-3-70b": (1, 2, 4, 8),
    "llama-2-70b": (1, 2, 4, 8),
    "llama-3-405b": (8,),
    "qwen3-8b": (1, 2, 4, 8),
    "qwen3-14b": (1, 2, 4, 8),
    "qwen3-32b": (1, 2, 4, 8),
}
# 129 and 257 are one more than a whole number of tiles.
TOKENS = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 129, 192, 256, 257, 512, 768, 1024, 1536, 2048, 3072, 4096,
          8192, 16384)  # fmt: skip
MAX_DECODES, MIN_CONTEXT = 512, 128
MAX_PREFILLS, MIN_LENGTH = 16, 64

Floats = NDArray[np.float64]


def main() -> None:
    """Write the four tables, or print the check of the interpolation."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    arguments.add_argument("--check-interpolation", action="store_true")
    options = arguments.parse_args()
    if options.check_interpolation:
        print(check_interpolation().to_string(index=False))
        return
    for name, derive in DERIVATIONS.items():
        write(derive(), options.out / f"{name}.csv", "time_us")
    print(
        f"Left out: head sizes other than 128, sliding windows, batches above {MAX_DECODES} (decode) and"
        f" {MAX_PREFILLS} (prefill),\ncontexts below {MIN_CONTEXT} and prompts below {MIN_LENGTH} tokens,"
        " block-scaled FP8, eager all-reduce, SGLang,\nand every size that no deployment has."
    )


def decode_attention() -> pd.DataFrame:
    """Return the time of decode attention in one layer; `context` counts the token being decoded."""
    table = _attention("generation")
    table["context"] = table.step + 1  # the raw `step` is the number of tokens before it
    table = table[(table.batch <= MAX_DECODES) & (table.context >= MIN_CONTEXT)]
    return _finish(table, "engine kv_dtype heads kv_heads head_size batch context")


def prefill_attention() -> pd.DataFrame:
    """Return the time of causal attention over `batch` whole prompts in one layer, nothing cached."""
    table = _attention("context")
    table = table.rename(columns={"isl": "length"})
    table = table[(table.batch <= MAX_PREFILLS) & (table.length >= MIN_LENGTH)]
    return _finish(table, "engine kv_dtype attn_dtype heads kv_heads head_size batch length")


def allreduce() -> pd.DataFrame:
    """Return the time of one BF16 all-reduce, as it runs inside a CUDA graph."""
    table = _read("comm", "custom_allreduce")
    table = table[(table.allreduce_dtype == "bfloat16") & (table.get("backend") != "vllm_eager")]
    # The collector counts the elements of the tensor, 2 bytes each.
    table = table.assign(gpus=table.num_gpus, bytes=table.message_size * bytes_per_value("bf16"))
    return _finish(table, "engine gpus bytes")


def gemm() -> pd.DataFrame:
    """Return the time of the matrix products (tokens × k)·(k × n) of all deployments.

    Times of sizes that were not measured come from the efficiency against the hardware's floor, interpolated
    between the four neighbours.
    """
    raw, parts = _gemm_grid(), []
    for (engine, dtype), grid in raw.groupby(["engine", "dtype"]):
        n_grid, k_grid, efficiency = _efficiency(str(dtype), grid)
        for n, k in sorted(gemm_shapes()):
            measured = n in n_grid and k in k_grid
            share = interpolate(n_grid, k_grid, efficiency, n, k)
            parts.append(
                pd.DataFrame({
                    "engine": engine, "dtype": dtype, "n": n, "k": k, "tokens": TOKENS,
                    "time_us": gemm_floor(str(dtype), n, k, np.array(TOKENS))
                    / (share if measured else np.minimum(share, 1)),
                    "obtained": "measured" if measured
                    else "interpolated" if n <= max(n_grid) else "extrapolated",
                })
            )  # fmt: skip
    return _finish(pd.concat(parts), "engine dtype n k tokens", "obtained")


DERIVATIONS = {
    "h100_decode_attention": decode_attention,
    "h100_prefill_attention": prefill_attention,
    "h100_gemm": gemm,
    "h100_allreduce": allreduce,
}


def gemm_floor(dtype: str, n: Any, k: Any, tokens: Any) -> Floats:
    """Return the least microseconds in which an H100 can multiply: FLOP at peak, or bytes at peak bandwidth.

    Operands have the width of `dtype`, results that of bf16.
    """
    gpu = GPUS["h100-sxm"]
    operands = bytes_per_value(dtype) * (tokens * k + n * k)
    results = bytes_per_value("bf16") * tokens * n
    compute, traffic = 2.0 * tokens * n * k / gpu.flops(dtype), (operands + results) / gpu.hbm_bw
    return np.asarray(np.maximum(compute, traffic) * 1e6)


def interpolate(n_grid: Floats, k_grid: Floats, values: Floats, n: float, k: float) -> Floats:
    """Return `values[..., n, k]`, bilinear in log n and log k.

    A matrix wider than the grid, the LM head on one GPU, is taken for as efficient as the widest;
    everything else outside is refused.
    """
    if not (min(n_grid) <= n and min(k_grid) <= k <= max(k_grid)):
        raise ValueError(f"n = {n}, k = {k} lies outside the measured grid")
    along_n, along_k = _hats(n_grid, n), _hats(k_grid, k)
    # Corners without weight are cut off first: one of the grid's was never measured.
    corners = values[..., along_n > 0, :][..., along_k > 0]
    return np.asarray(np.einsum("...nk,n,k->...", corners, along_n[along_n > 0], along_k[along_k > 0]))


def _hats(grid: Floats, x: float) -> Floats:
    """Return the weights that linear interpolation in log x gives to the points of `grid`."""
    return np.array([np.interp(np.log(x), np.log(grid), unit) for unit in np.eye(len(grid))])


def check_interpolation(smallest: int = 512) -> pd.DataFrame:
    """Return the error of guessing each point of the grid, n and k >= `smallest`, without its row and column.

    The neighbours are then twice as far apart as they are for the tables, so the error is an upper estimate.
    The widest matrices, guessed from the second widest, stand for the extrapolated ones.
    """
    rows = []
    for (engine, dtype), grid in _gemm_grid().groupby(["engine", "dtype"]):
        n_grid, *_ = axes = _efficiency(str(dtype), grid)
        for obtained, sizes in {"interpolated": n_grid[:-1], "extrapolated": n_grid[-1:]}.items():
            errors = np.concatenate([*_leave_one_out(*axes, sizes[sizes >= smallest], smallest)])
            rows.append({
                "engine": engine, "dtype": dtype, "obtained": obtained, "points": len(errors),
                "bias %": 100 * np.median(errors), "median %": 100 * np.median(abs(errors)),
                "95th %": 100 * np.quantile(abs(errors), 0.95),
            })  # fmt: skip
    return pd.DataFrame(rows).round(1)


def _leave_one_out(
    n_grid: Floats, k_grid: Floats, efficiency: Floats, sizes: Floats, smallest: int
) -> Iterator[Floats]:
    """Yield guessed / measured time - 1 over the token counts, for n in `sizes` and each inner k."""
    for n in sizes:
        for k in k_grid[(k_grid >= smallest) & (k_grid < max(k_grid))]:
            i, j = np.searchsorted(n_grid, n), np.searchsorted(k_grid, k)
            without = np.delete(np.delete(efficiency, i, axis=1), j, axis=2)
            guess = interpolate(np.delete(n_grid, i), np.delete(k_grid, j), without, n, k)
            error = efficiency[:, i, j] / np.minimum(guess, 1) - 1
            yield error[np.isfinite(error)]  # one corner of the grid was never measured


def gemm_shapes() -> set[tuple[int, int]]:
    """Return (n, k) of every matrix product of every deployment."""
    return {
        shape for name, sizes in DEPLOYMENTS.items() for tp in sizes
        for shape in MODELS[name].gemm_shapes(tp).values()
    }  # fmt: skip


def head_splits() -> set[tuple[int, int]]:
    """Return (query heads, KV heads) on one GPU of every deployment."""
    return {MODELS[name].heads_on(tp) for name, sizes in DEPLOYMENTS.items() for tp in sizes}


def package_folder() -> Path:
    """Return the folder of the H100 tables in the installed package, which must be of the pinned version."""
    found = importlib.util.find_spec("aiconfigurator_core")
    if found is None or found.origin is None:
        raise SystemExit('aiconfigurator-core is not installed; run: python -m pip install ".[derive]"')
    version = importlib.metadata.version("aiconfigurator-core")
    if version != VERSION:
        raise SystemExit(f"aiconfigurator-core must be {VERSION}, not {version}")
    return Path(found.origin).parent / "systems" / "data" / "h100_sxm"


def _read(operator: str, table: str) -> pd.DataFrame:
    """Return a raw table of all engines with a column `engine` and the time in microseconds."""
    frames = []
    for engine, version in ENGINES.items():
        frame = pd.read_parquet(package_folder() / operator / engine / version / f"{table}_perf.parquet")
        frames.append(frame.assign(engine=engine, time_us=frame.latency * 1e3))
    return pd.concat(frames, ignore_index=True)


def _attention(phase: str) -> pd.DataFrame:
    """Return the raw attention times at the deployments' head splits, without sliding windows."""
    table = _read("attention", f"{phase}_attention").rename(
        columns={
            "num_heads": "heads", "num_key_value_heads": "kv_heads", "head_dim": "head_size",
            "batch_size": "batch", "kv_cache_dtype": "kv_dtype",
        }
    )  # fmt: skip
    split = pd.MultiIndex.from_frame(table[["heads", "kv_heads"]]).isin(list(head_splits()))
    table = table[split & (table.head_size == 128) & (table.window_size == 0) & (table.beam_width == 1)]
    return table.replace({"kv_dtype": PRECISION, "attn_dtype": PRECISION})


def _gemm_grid() -> pd.DataFrame:
    """Return the raw GEMM times in bf16 and in fp8 with one scale per tensor, at the chosen token counts."""
    table = _read("gemm", "gemm")
    table = table[table.gemm_dtype.isin(PRECISION) & table.m.isin(TOKENS)]
    return table.assign(dtype=table.gemm_dtype.map(PRECISION))


def _efficiency(dtype: str, grid: pd.DataFrame) -> tuple[Floats, Floats, Floats]:
    """Return the grid's n, its k, and floor/time as an array over (TOKENS, n, k)."""
    m, n, k, time = grid[["m", "n", "k", "time_us"]].to_numpy(dtype=float).T
    n_grid, k_grid = np.unique(n), np.unique(k)
    share = np.full((len(TOKENS), len(n_grid), len(k_grid)), np.nan)
    cells = np.searchsorted(TOKENS, m), np.searchsorted(n_grid, n), np.searchsorted(k_grid, k)
    share[cells] = gemm_floor(dtype, n, k, m) / time
    return n_grid, k_grid, share


def _finish(table: pd.DataFrame, key: str, *more: str) -> pd.DataFrame:
    """Return the columns of `key` and the time, sorted; a key that is there twice would hide a choice."""
    columns = key.split()
    if table.duplicated(columns).any():
        raise ValueError(f"more than one measurement per {', '.join(columns)}")
    return table.sort_values(columns)[[*columns, "time_us", *more]].reset_index(drop=True)


if __name__ == "__main__":
    main()
