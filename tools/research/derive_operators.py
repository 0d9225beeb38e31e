"""Derive data/measured/operators.csv, curves of measured operators, and operator_points.csv, a few points to draw.

    python -m pip install ".[derive]"
    python tools/research/derive_operators.py

NVIDIA's aiconfigurator-core carries Parquet tables of kernel times on nine of our GPUs. Each kind of operator has a
form of few numbers: a time that any call takes, and shares of datasheet rates. The numbers are fitted to the logarithms
of the times; the newest table of each engine counts. Sizes whose weights or caches fit the L2 cache are left out: a
model that goes through all its layers reads HBM.

Which tables count was written down before a served point was predicted with them. A table is *host-bound* where its
median time at up to 64 rows or decodes is more than `HOST_BOUND` times the fastest engine's on the same sizes: such
times are those of a launch, which an engine's graphs hide. A table is *unlike its form* where the median error is above
`UNLIKE`. (Later, of linear attention: it *beats the datasheet* where more than half of its times do, since it has other
bytes.) They stay in the table, with the reason. Experts that tokens choose by a power law are there where their even
choice does not count, and on two GPUs, to compare.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
from derive_h100_operators import package_folder
from numpy.typing import NDArray
from scipy.optimize import least_squares
from tables import write

from inference_math import catalogue
from inference_math.catalogue.layers import FILLED

HOST_BOUND = 1.5
UNLIKE = 0.2
MOST_FASTER = 0.5  # of the points
FEW = 64  # rows, at which a table shows what a launch takes
LEAST = 20  # points of a curve
STEP = 4096  # new tokens of a step of prompts, at which sparse attention's host is hidden
LONGEST = 2**17  # tokens of a context, of its curve
PROJECTED = (0.9, 0.6)  # of bandwidth and compute, that projections reach which are taken off
CURVE = ("a0_us", "memory", "compute", "index", "choosing_ns", "error", "error_p90", "points")
SHOWN = 14  # points of a curve that are drawn
UNEVEN, COMPARED = "power_law_1.2", ("h100-sxm", "b200")
LAUNCH = 1e-6  # seconds at least, of any kernel: where the points tell no more
GPUS = {
    "a100_sxm": "a100-80gb",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "b300_sxm": "b300",
    "gb200": "gb200",
    "gb300": "gb300",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000",
}
# Bytes of the L2 cache, by NVIDIA's architecture papers and data sheets.
L2_BYTES = {"a100-80gb": 40e6, "h100-sxm": 50e6, "h200-sxm": 50e6, "l40s": 96e6, "rtx-pro-6000": 128e6}
L2_BLACKWELL = 126e6
BYTES = {
    "bfloat16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0,
    "nvfp4": 0.5625,
    "int4_wo": 0.5625,
    "int8_wo": 1.0,
    "w4a16_mxfp4": 0.53125,
    "w4a8_mxfp4_mxfp8": 0.53125,
}
NAMES = {"bfloat16": "bf16", "int4_wo": "int4", "w4a16_mxfp4": "mxfp4", "w4a8_mxfp4_mxfp8": "mxfp4 x mxfp8"}
INPUTS = {"fp8": 1.0, "fp8_block": 1.0, "nvfp4": 0.5625, "w4a8_mxfp4_mxfp8": 1.0}  # all others in BF16
RATES = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "fp4", "w4a8_mxfp4_mxfp8": "fp8"}
TIMED_HOSTS = ("matrix product", "latent block, decode", "sparse block, decode")  # kinds that tell so
UNSIZED = ("version", "kernel_source", "latency", "transmit_us", "notify_us")  # columns that are no size
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Kind:
    """A kind of operator: its table, and its exponent, by which memory and compute share the time.

    Of matrix products and experts it is that of a step's law; a fitted one (1.8 to 5) is no nearer: 0 to 1 point.
    """

    folder: str
    table: str
    exponent: float


KINDS = {  # a block is attention with its projections
    "matrix product": Kind("gemm", "gemm", 2.0),
    "attention, decode": Kind("attention", "generation_attention", 2.0),
    "attention, prefill": Kind("attention", "context_attention", 1.0),
    "MLA, decode": Kind("mla", "generation_mla", 2.0),
    "MLA, prefill": Kind("mla", "context_mla", 1.0),
    "latent block, decode": Kind("mla", "mla_generation_module", 2.0),
    "latent block, prefill": Kind("mla", "mla_context_module", 1.0),
    "sparse block, decode": Kind("sparse_attention", "dsa_generation_module", 2.0),
    "sparse attention, decode": Kind("sparse_attention", "dsa_generation_module", 2.0),
    "sparse attention, prefill": Kind("sparse_attention", "dsa_context_module", 1.0),
    "linear attention, decode": Kind("linear_attention", "gdn", 1.0),
    "linear attention, prefill": Kind("linear_attention", "gdn", 1.0),
    "experts": Kind("moe", "moe", 2.0),
    "quantisation": Kind("quantize", "scale_matrix", 1.0),
    "all-reduce": Kind("comm", "custom_allreduce", 1.0),
    "dispatch": Kind("comm", "moe_a2a", 1.0),
    "combine": Kind("comm", "moe_a2a", 1.0),
    "all-gather": Kind("comm", "nccl", 1.0),
    "reduce-scatter": Kind("comm", "nccl", 1.0),
    "all-to-all": Kind("comm", "nccl", 1.0),
}


def main() -> None:
    """Write the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("data/measured"))
    arguments.add_argument("--source", type=Path, help="folder of the package's tables (default: as installed)")
    options = arguments.parse_args()
    source = package_folder().parent if options.source is None else options.source
    table = derived(source)
    numbers = ("a0_us", "memory", "compute", "index", "choosing_ns", "error", "error_p90", "behind")
    write(table, options.out / "operators.csv", *numbers)
    write(drawn(source), options.out / "operator_points.csv", "memory", "compute", "time")
    print(table.groupby(["kind", "counts"]).size().to_string())


def derived(source: Path) -> pd.DataFrame:
    """Return a curve for each kind, GPU, engine, version, precision and variant; see the table's description."""
    rows: list[dict[str, object]] = []
    chosen = indexes(source) if "sparse attention, prefill" in KINDS else {}
    for kind in KINDS:
        for gpu in GPUS.values():
            tables = dict(newest(source, kind, gpu))
            slow = host_bound(tables) if kind in TIMED_HOSTS else {}
            for (engine, version), table in tables.items():
                named = {"kind": kind, "gpu": gpu, "engine": engine, "version": version}
                for (precision, variant), points in table.groupby(["precision", "variant"]):
                    if len(points) < LEAST:
                        continue
                    behind = slow.get((engine, str(precision)), np.nan)
                    what = {"precision": NAMES.get(str(precision), str(precision)), "variant": variant}
                    index = chosen.get((gpu, str(precision)))
                    found = with_index(points, index) if "looked" in points else fitted(points, KINDS[kind].exponent)
                    curve = {name: found.get(name, np.nan) for name in CURVE}
                    counts = reason(behind, curve["error"], faster(points))
                    rows.append({**named, **what, **curve, "behind": behind, "counts": counts})
    table = pd.DataFrame(rows)
    key = ["gpu", "engine", "version", "precision"]
    even = table[(table["variant"] == "balanced") & (table["counts"] == "yes")].set_index(key).index
    spare = (table["variant"] == UNEVEN) & ~table["gpu"].isin(COMPARED) & table.set_index(key).index.isin(even)
    return table[~spare].reset_index(drop=True)


def drawn(source: Path) -> pd.DataFrame:
    """Return some points of each kind on two GPUs, spread evenly over what the datasheet allows, all in seconds."""
    tables = []
    for kind, (precisions, variant) in DRAWN.items():
        for gpu in COMPARED:
            for (engine, _), points in newest(source, kind, gpu):
                own = points[points["precision"].isin(precisions) & (points["variant"] == variant)]
                if len(own) >= LEAST:
                    ordered = own.iloc[np.argsort(np.maximum(own["memory"], own["compute"]), kind="stable")]
                    chosen = ordered.iloc[np.linspace(0, len(own) - 1, SHOWN).round().astype(int)]
                    named = {"kind": kind, "gpu": gpu, "engine": engine}
                    named["precision"] = NAMES.get(str(own["precision"].iloc[0]), str(own["precision"].iloc[0]))
                    tables.append(chosen[["memory", "compute", "time"]].assign(variant=variant, **named))
    columns = ["kind", "gpu", "engine", "precision", "variant", "memory", "compute", "time"]
    return pd.concat(tables, ignore_index=True)[columns]


def faster(points: pd.DataFrame) -> float:
    """Return the share of the points that take less than the datasheet allows."""
    return float((points["time"] < np.maximum(points["memory"], points["compute"])).mean())


def reason(behind: float, error: float, beats: float = 0.0) -> str:
    """Return whether a table counts, or why it does not."""
    if beats > MOST_FASTER:
        return "beats the datasheet"
    if behind > HOST_BOUND:
        return "host-bound"
    return "unlike its form" if error > UNLIKE else "yes"


def newest(source: Path, kind: str, gpu: str) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    """Yield (engine, version) and the points of each engine: of each precision those of its newest release.

    Candidates of a release are one: a later one that timed some models anew leaves the others to those before it.
    """
    of = KINDS[kind]
    (folder,) = [name for name, ours in GPUS.items() if ours == gpu]
    for engine in ("vllm", "sglang", "trtllm", "nccl"):
        found = (source / folder / of.folder / engine).glob(f"*/{of.table}_perf.parquet")
        seen: set[str] = set()
        ordered = sorted(found, key=lambda one: release(one.parent.name), reverse=True)
        for _, candidates in groupby(ordered, key=lambda one: release(one.parent.name)[:4]):
            paths = list(candidates)
            points = POINTS[kind](_joined(paths), gpu)
            points = points[~points["precision"].isin(seen)]
            seen |= set(points["precision"])
            if len(points):
                yield (engine, paths[0].parent.name), points


def _joined(paths: list[Path]) -> pd.DataFrame:
    """Return the rows of the first table, and of the others those of sizes that none before them has."""
    first, *others = (pd.read_parquet(path) for path in paths)
    for other in others:
        sizes = [name for name in other.columns if name not in UNSIZED]
        known = pd.MultiIndex.from_frame(first[sizes].drop_duplicates())
        first = pd.concat([first, other[~pd.MultiIndex.from_frame(other[sizes]).isin(known)]], ignore_index=True)
    return first


def release(version: str) -> tuple[int, ...]:
    """Return a version to compare by; a release candidate comes before its release.

    >>> release("1.3.0rc20") < release("1.3.0"), release("0.5.6.post2") < release("0.5.14")
    (True, True)
    """
    whole, _, candidate = version.partition("rc")
    numbers = [int(part.removeprefix("post")) for part in whole.split(".")]
    return (*(numbers + [0] * 4)[:4], int(candidate) if candidate else 10**6)


def host_bound(tables: dict[tuple[str, str], pd.DataFrame]) -> dict[tuple[str, str], float]:
    """Return by how much each engine's times at few rows are above the fastest one's, in the median, by precision."""
    few = pd.concat(
        [table[table["rows"] <= FEW].assign(engine=engine) for (engine, _), table in tables.items()] or [pd.DataFrame()]
    )
    if few.empty:
        return {}
    # FP8 has a scale for a tensor, or for blocks: the same work.
    few["like"] = few["precision"].str.removesuffix("_block")
    same = few.groupby(["like", "size", "rows"])
    shared = few[same["engine"].transform("nunique") > 1]  # alone, everybody is the fastest
    few = shared if len(shared) else few
    least = few.groupby(["like", "size", "rows"])["time"].transform("min")
    ratio = (few["time"] / least).groupby([few["engine"], few["precision"]]).median()
    return {(str(key[0]), str(key[1])): value for key, value in ratio.items() if isinstance(key, tuple)}


def fitted(points: pd.DataFrame, p: float) -> dict[str, float]:
    """Return a curve's numbers: a0 + ((memory time)^p + (compute time)^p)^(1/p) at shares of the datasheet's rates."""
    memory, compute, time = points[["memory", "compute", "time"]].to_numpy(float).T
    computes = bool((compute > 0).any())

    def curve(x: Floats) -> Floats:
        a0 = LAUNCH + np.exp(x[0])
        read, done = memory / share(x[1]), (compute / share(x[2]) if computes else 0 * memory)
        top = np.maximum(read, done)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(np.minimum(read, done) / top)
        return np.asarray(a0 + top * (1 + ratio**p) ** (1 / p))

    def misses(x: Floats) -> Floats:
        return np.asarray(np.log(curve(x) / time))

    start = [np.log(max(time.min() / 2, 1e-8)), 1.0, 1.0]
    found = least_squares(misses, start, loss="soft_l1", f_scale=0.1)
    off = np.abs(curve(found.x) / time - 1)
    return {
        "a0_us": 1e6 * float(LAUNCH + np.exp(found.x[0])),
        "memory": share(found.x[1]),
        "compute": share(found.x[2]) if computes else np.nan,
        "error": float(np.median(off)),
        "error_p90": float(np.quantile(off, 0.9)),
        "points": len(points),
    }


def indexes(source: Path) -> dict[tuple[str, str], Floats]:
    """Return by GPU and precision of the cache the share that an index reaches of FP8, and seconds of a token's choice.

    SGLang's blocks tell both, since they were timed behind cached prefixes, and without the index, whose choice layers
    can share. Where these are slower than the whole (H200), the H100's stand in.
    """
    found: dict[tuple[str, str], Floats] = {}
    for gpu in GPUS.values():
        for (engine, _), table in newest(source, "sparse attention, prefill", gpu):
            for precision, points in table.groupby("precision") if engine == "sglang" else ():
                told = bool((points["tokens"] == 0).any())
                found[gpu, str(precision)] = _looked(points) if told else found[COMPARED[0], str(precision)]
    return found


def _looked(points: pd.DataFrame) -> Floats:
    """Return the share and the seconds of an index, of blocks with and without one."""
    curve = partial(_block_time, points)
    time = points["time"].to_numpy(float)
    start = np.array([np.log(time.min() / 2), 1.0, 1.0, -1.0, np.log(1e-7)])
    misses = lambda x: np.log(curve(x[:3], share(x[3]), np.exp(x[4])) / time)  # noqa: E731
    found = least_squares(misses, start, loss="soft_l1", f_scale=0.1).x
    return np.array([share(found[3]), np.exp(found[4])])


def with_index(points: pd.DataFrame, index: Floats | None) -> dict[str, float]:
    """Return the numbers of a curve of blocks whose index reaches this share and takes these seconds for a token."""
    if index is None:
        raise ValueError("index must be known of the GPU and the precision")
    curve, time = partial(_block_time, points), points["time"].to_numpy(float)
    start = np.array([np.log(time.min() / 2), 1.0, 1.0])
    found = least_squares(lambda x: np.log(curve(x, *index) / time), start, loss="soft_l1", f_scale=0.1).x
    off = np.abs(curve(found, *index) / time - 1)
    return {
        "a0_us": 1e6 * float(LAUNCH + np.exp(found[0])),
        "memory": share(found[1]),
        "compute": share(found[2]),
        "index": float(index[0]),
        "choosing_ns": 1e9 * float(index[1]),
        "error": float(np.median(off)),
        "error_p90": float(np.quantile(off, 0.9)),
        "points": len(points),
    }


def _block_time(points: pd.DataFrame, x: Floats, reached: float, choosing: float) -> Floats:
    """Return the seconds of blocks: of a launch, projections, attention, an index, and its choice for each token."""
    projected, computed, looked, tokens = points[["memory", "compute", "looked", "tokens"]].to_numpy(float).T
    attended = (computed - looked) / share(x[2])
    return np.asarray(LAUNCH + np.exp(x[0]) + projected / share(x[1]) + attended + looked / reached + choosing * tokens)


def share(x: float) -> float:
    """Return a share of a rate, between 0 and 1, of a number without bounds."""
    return float(1 / (1 + np.exp(-x)))


def _framed(raw: pd.DataFrame, **columns: object) -> pd.DataFrame:
    return pd.DataFrame({"time": raw["latency"].to_numpy(float) / 1e3, **columns})


def products(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return matrix products of m rows, of weights beyond L2; times rise with the rows, or a padded one would win."""
    raw = raw[raw["gemm_dtype"].isin(RATES) & raw["gemm_dtype"].map(lambda name: rate(gpu, name) > 0)]
    raw = raw.astype({"gemm_dtype": str})
    m, n, k = raw[["m", "n", "k"]].to_numpy(float).T
    weights = n * k * raw["gemm_dtype"].map(BYTES).to_numpy(float)
    moved = weights + m * k * raw["gemm_dtype"].map(INPUTS).fillna(2.0).to_numpy(float) + 2.0 * m * n
    peak = raw["gemm_dtype"].map(lambda name: rate(gpu, name)).to_numpy(float)
    table = _framed(
        raw,
        memory=moved / catalogue.gpu(gpu).hbm_bw,
        compute=2 * m * n * k / peak,
        precision=raw["gemm_dtype"].to_numpy(),
        variant="all",
        rows=m,
        size=[f"{int(a)}x{int(b)}" for a, b in zip(k, n, strict=True)],
    )
    table = table[weights >= l2(gpu)].groupby(["precision", "size", "rows"], as_index=False).min(numeric_only=False)
    table = table.sort_values(["precision", "size", "rows"], ascending=[True, True, False])
    table["time"] = table.groupby(["precision", "size"])["time"].cummin()
    kept: pd.DataFrame = table.loc[table["rows"].isin([2**i for i in range(15)])]
    return kept


def decode_attention(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return decode attention without windows, of caches beyond L2."""
    raw = _attention(raw)
    batch, heads, kv, size, context = raw[["batch_size", "num_heads", "kv", "head_dim", "context"]].to_numpy(float).T
    held = batch * context * 2 * kv * size * raw["kv_cache_dtype"].map(BYTES).to_numpy(float)
    table = _framed(
        raw,
        memory=held / catalogue.gpu(gpu).hbm_bw,
        compute=4 * batch * context * heads * size / catalogue.gpu(gpu).bf16_flops,
        precision=raw["kv_cache_dtype"].to_numpy(),
        variant=[f"head {int(one)}" for one in size],
    )
    kept: pd.DataFrame = table.loc[held >= l2(gpu)]
    return kept


def prefill_attention(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return prefill attention without windows, of prompts of 64 tokens or more."""
    raw = _attention(raw)
    raw = raw[raw["isl"] >= 64]
    batch, heads, kv, size, new = raw[["batch_size", "num_heads", "kv", "head_dim", "isl"]].to_numpy(float).T
    known = raw["context"].to_numpy(float) - 1
    seen = batch * (new**2 / 2 + new * known)
    moved = batch * size * (2 * (2 * heads * new) + 2 * kv * (new + known) * 2)
    return _framed(
        raw,
        memory=moved / catalogue.gpu(gpu).hbm_bw,
        compute=4 * heads * size * seen / catalogue.gpu(gpu).bf16_flops,
        precision=raw["attn_dtype"].to_numpy(),
        variant=[f"head {int(one)}" for one in size],
    )


def _attention(raw: pd.DataFrame) -> pd.DataFrame:
    if "window_size" in raw:  # the oldest tables have none
        raw = raw[raw["window_size"] <= 0]
    raw = raw[raw["head_dim"].isin([64, 128]) & raw["kv_cache_dtype"].isin(BYTES)]
    kv = raw["num_key_value_heads"].where(raw["num_key_value_heads"] > 0, raw["num_heads"])
    text = {"kv_cache_dtype": str, "attn_dtype": str}
    return raw.astype(text).assign(kv=kv, context=raw["step"] + 1)


LATENT, ROTARY, HEAD = 512, 64, 128  # of DeepSeek's MLA


def decode_mla(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return MLA's decode kernel, absorbed: every head reads the one latent cache, beyond L2."""
    raw = raw.astype({"kv_cache_dtype": str})
    batch, heads, context = raw["batch_size"], raw["num_heads"], raw["step"] + 1.0
    held = (batch * context * (LATENT + ROTARY) * raw["kv_cache_dtype"].map(BYTES)).to_numpy(float)
    table = _framed(
        raw,
        memory=held / catalogue.gpu(gpu).hbm_bw,
        compute=(2 * batch * context * heads * (2 * LATENT + ROTARY) / catalogue.gpu(gpu).bf16_flops).to_numpy(float),
        precision=raw["kv_cache_dtype"].to_numpy(),
        variant="all",
    )
    kept: pd.DataFrame = table.loc[held >= l2(gpu)]
    return kept


def prefill_mla(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return MLA's prefill kernel, of prompts of 64 tokens or more."""
    raw = raw[raw["isl"] >= 64].astype({"kv_cache_dtype": str})
    batch, heads, new, known = raw[["batch_size", "num_heads", "isl", "step"]].to_numpy(float).T
    seen = batch * (new**2 / 2 + new * known)
    moved = 2 * batch * heads * (new * (HEAD + ROTARY + HEAD) + (new + known) * (HEAD + ROTARY + HEAD))
    return _framed(
        raw,
        memory=moved / catalogue.gpu(gpu).hbm_bw,
        compute=2 * heads * seen * (HEAD + ROTARY + HEAD) / catalogue.gpu(gpu).bf16_flops,
        precision=raw["kv_cache_dtype"].to_numpy(),
        variant="all",
    )


def experts(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return the routed experts of a layer on one GPU: those are read that some token has chosen, by chance."""
    raw = raw[raw["moe_dtype"].isin(BYTES) & ~raw["kernel_source"].astype(str).str.contains("situ|nongated")]
    raw = raw.astype({"moe_dtype": str, "distribution": str})
    # What engines run in a node; narrower experts, of many GPUs, are padded.
    raw = raw[(raw["moe_ep_size"] <= 8) & (raw["inter_size"] / raw["moe_tp_size"] >= 256)]
    raw = raw[raw["distribution"].isin(["balanced", UNEVEN])]
    columns = ["num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"]
    # Of several kernels for the same experts an engine takes the faster.
    raw = raw.groupby([*columns, "moe_dtype", "distribution"])[["latency"]].min().reset_index()
    tokens, hidden, wide, chosen, many, tp, ep = raw[columns].to_numpy(float).T
    each = 3 * hidden * wide / tp
    read = many / ep * (1 - (1 - chosen / many) ** tokens)
    held = many / ep * each * raw["moe_dtype"].map(BYTES).to_numpy(float)
    inside = 2 * tokens * chosen / ep * (2 * hidden + 3 * wide / tp)
    moved = read * each * raw["moe_dtype"].map(BYTES).to_numpy(float) + inside
    peak = raw["moe_dtype"].map(lambda name: rate(gpu, name)).to_numpy(float)
    table = _framed(
        raw,
        memory=moved / catalogue.gpu(gpu).hbm_bw,
        compute=2 * each * chosen * tokens / ep / peak,
        precision=raw["moe_dtype"].to_numpy(),
        variant=raw["distribution"].to_numpy(),
    )
    kept: pd.DataFrame = table.loc[(held >= l2(gpu)) & (peak > 0)]
    return kept


QUERY, WIDTH = 1536, 7168  # of DeepSeek-V3: its queries' latent, its hidden size


@dataclass(frozen=True)
class Latent:
    """Sizes of a model with latent attention; where it has an index, that chooses `top` tokens at most."""

    hidden: float
    query: float
    nope: float
    value: float
    index_heads: float = 0.0
    top: float = np.inf

    def projections(self, heads: Floats) -> tuple[Floats, Floats]:
        """Return parameters of a layer's projections on one GPU, and of those that stand for keys and values."""
        down = self.hidden * (self.query + LATENT + ROTARY)
        index = self.index_heads * INDEX * self.query + (self.hidden * INDEX if self.index_heads else 0.0)
        across = self.query * heads * (self.nope + ROTARY) + heads * self.value * self.hidden
        return down + index + across, LATENT * heads * (self.nope + self.value)


INDEX = 128  # values of an index's key, in FP8, with a scale in FP32
DEEPSEEK = Latent(WIDTH, QUERY, HEAD, HEAD)
SPARSE = {  # by the architecture that a table names
    "DeepseekV32ForCausalLM": Latent(WIDTH, QUERY, HEAD, HEAD, 64, 2048),
    "GlmMoeDsaForCausalLM": Latent(6144, 2048, 192, 256, 32, 2048),
}


def latent_decode(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return decodes of latent attention with its projections, of weights and caches beyond L2."""
    raw = raw[raw["model"] == "deepseek-ai/DeepSeek-V3"]
    return _block(raw, gpu, DEEPSEEK, decodes=True)


def latent_prefill(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return prompts of the same, of 64 tokens or more."""
    raw = raw[(raw["model"] == "deepseek-ai/DeepSeek-V3") & (raw["isl"] >= 64)]
    return _block(raw, gpu, DEEPSEEK, decodes=False)


def sparse_decode(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return decodes whose index chooses the tokens that are read, of all models together."""
    tables = []
    for name, rows in raw[raw["op_name"] == "dsa_generation_module"].groupby("architecture"):
        table = _block(rows, gpu, SPARSE[str(name)], decodes=True)
        tables.append(table.assign(size=f"{name}, " + table["size"]))
    return pd.concat(tables)


def sparse_reads(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return what is left of these blocks without their projections, by the precision of the cache.

    The tokens that are chosen are read and attended to, in BF16, with the heads of a GPU filled up to `FILLED`; the
    whole index is read and looked through, in FP8. Caches beyond L2, of contexts of which not all is chosen: kernels
    for FP8 take as long for shorter ones. All models together.
    """
    own = catalogue.gpu(gpu)
    tables: list[pd.DataFrame] = []
    raw = raw[(raw["op_name"] == "dsa_generation_module") & raw["gemm_type"].isin(RATES)]
    raw = raw.astype({"gemm_type": str, "kv_cache_dtype": str})
    raw = raw[raw["gemm_type"].map(lambda name: rate(gpu, name) > 0)]
    sizes = ["num_heads", "batch_size", "step"]
    for name, rows in raw.groupby("architecture"):
        of = SPARSE[str(name)]
        rows = rows[(rows["step"] >= of.top) & (rows["step"] < LONGEST)]
        rows = rows.groupby([*sizes, "gemm_type", "kv_cache_dtype"])[["latency"]].min().reset_index()
        heads, batch, known = rows[sizes].to_numpy(float).T
        width, entry = (rows[column].map(BYTES).to_numpy(float) for column in ("gemm_type", "kv_cache_dtype"))
        across, stands = of.projections(heads)
        context, seen, fp8 = batch * (known + 1), batch * of.top, own.fp8_flops or own.bf16_flops
        held = context * (INDEX + 4) + seen * entry * (LATENT + ROTARY)
        attended = 2 * seen * np.maximum(heads, FILLED) * (2 * LATENT + ROTARY)
        peak = rows["gemm_type"].map(lambda kind: rate(gpu, kind)).to_numpy(float)
        table = _framed(
            rows,
            memory=held / own.hbm_bw,
            compute=attended / own.bf16_flops + 2 * context * of.index_heads * INDEX / fp8,
            precision=rows["kv_cache_dtype"].to_numpy(),
            variant="all",
        )
        for matrices, size, flops in ((across, width, peak), (stands, BYTES["bfloat16"], own.bf16_flops)):
            read, computed = size * matrices / own.hbm_bw, 2 * batch * matrices / flops
            table["time"] -= np.hypot(read / PROJECTED[0], computed / PROJECTED[1])
        kept: pd.DataFrame = table.loc[(held >= l2(gpu)) & (table["time"] > 0)]
        tables.append(kept)
    return pd.concat(tables)


def sparse_prefill(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return prompts whose index chooses the tokens that they see, by the precision of the cache, all models together.

    With their projections, whose time at the datasheet's rates is the "memory" here: a block is timed whole. Prompts
    attend to the latents themselves, in BF16, with the heads of a GPU filled up to `FILLED`; each GPU looks through all
    of the index, "looked" of the compute, and chooses for each of its "tokens". Blocks that take another layer's choice
    have neither; they count where they are faster. Steps of `STEP` tokens at least, in prompts or chunks of a quarter
    of that at least: below, the tables time a host. Up to the tokens that are chosen engines attend in another way.
    """
    tables = []
    raw = raw[raw["gemm_type"].isin(RATES)].astype({"gemm_type": str, "kv_cache_dtype": str, "op_name": str})
    raw = raw[(raw["isl"] >= STEP / 4) & (raw["batch_size"] * raw["isl"] >= STEP)]
    sizes = ["num_heads", "batch_size", "isl", "step"]
    for name, rows in raw.groupby("architecture"):
        of = SPARSE[str(name)]
        sees = rows["isl"] + rows["step"]
        rows = rows[(sees > of.top) & (sees <= LONGEST)]
        key = [*sizes, "gemm_type", "kv_cache_dtype"]
        rows = rows.groupby([*key, "op_name"])[["latency"]].min().reset_index()
        rows = rows[_faster_alone(rows, key)]
        heads, batch, new, known = rows[sizes].to_numpy(float).T
        peak, half = rows["gemm_type"].map(lambda kind: rate(gpu, kind)).to_numpy(float), rate(gpu, "bfloat16")
        index = (rows["op_name"] == "dsa_context_module").to_numpy()
        across, stands = of.projections(heads)
        across = np.where(index, across, replace(of, index_heads=0.0).projections(heads)[0])
        pairs = batch * (_pairs(known + new, of.top) - _pairs(known, of.top))
        looked = index * 2 * batch * new * (known + new / 2) * of.index_heads * INDEX / rate(gpu, "fp8")
        attended = 2 * pairs * np.maximum(heads, FILLED) * (2 * LATENT + ROTARY)
        tables.append(
            _framed(
                rows,
                memory=2 * batch * new * (across / peak + stands / half),
                compute=attended / half + looked,
                looked=looked,
                tokens=index * batch * new,
                precision=rows["kv_cache_dtype"].to_numpy(),
                variant="all",
            )
        )
    return pd.concat(tables)


def _faster_alone(rows: pd.DataFrame, key: list[str]) -> Floats:
    """Return which rows have an index, or all, where nine in ten of those without one take less than with it."""
    index = rows["op_name"] == "dsa_context_module"
    both = rows[~index].merge(rows[index], on=key, suffixes=("", "_whole"))
    sound = len(both) > 0 and (both["latency"] < both["latency_whole"]).mean() > 0.9
    return np.asarray(index | sound)


def _pairs(tokens: Floats, top: float) -> Floats:
    """Return the (token, earlier token) pairs of the first so many tokens, of which each sees `top` others at most."""
    seen = np.minimum(tokens, top)
    return np.asarray(seen * (tokens - seen / 2))


def _block(raw: pd.DataFrame, gpu: str, of: Latent, decodes: bool) -> pd.DataFrame:
    """Return a block's bytes and FLOPs: projections in their precision, attention in BF16, the index in FP8.

    Of several kernels for the same sizes an engine takes the faster. A decode stands for keys and values by two
    products in BF16.
    """
    sizes = ["num_heads", "batch_size", "isl", "step"]
    raw = raw[raw["gemm_type"].isin(RATES) & (raw["kv_cache_dtype"] == "bfloat16")]  # FP8 changes the attention, too
    raw = raw.astype({"gemm_type": str})
    raw = raw[raw["gemm_type"].map(lambda name: rate(gpu, name) > 0)]
    raw = raw.groupby([*sizes, "gemm_type"])[["latency"]].min().reset_index()
    heads, batch, new, known = raw[sizes].to_numpy(float).T
    own, width = catalogue.gpu(gpu), raw["gemm_type"].map(BYTES).to_numpy(float)
    peak = raw["gemm_type"].map(lambda name: rate(gpu, name)).to_numpy(float)
    eight = own.fp8_flops or own.bf16_flops
    entry = BYTES["bfloat16"] * (LATENT + ROTARY)
    across, stands = of.projections(heads)
    if decodes:
        context = known + 1
        seen, tokens = batch * np.minimum(context, of.top), batch
        held = batch * context * (INDEX + 4) * (of.index_heads > 0) + seen * entry
        attended = 2 * seen * heads * (2 * LATENT + ROTARY)
        looked = batch * context
    else:
        tokens = batch * new
        pairs = batch * (new**2 / 2 + new * known)
        # What goes in and out, queries, and the keys and values that stand for the latents, in BF16.
        own_heads = heads * (2 * (of.nope + ROTARY) + 2 * of.value)
        held = batch * (known + new) * entry + BYTES["bfloat16"] * tokens * (2 * of.hidden + own_heads)
        attended = 2 * pairs * heads * (of.nope + ROTARY + of.value)
        looked = pairs
    moved = width * across + BYTES["bfloat16"] * stands
    index = 2 * looked * of.index_heads * INDEX / eight
    table = _framed(
        raw,
        memory=(moved + held) / own.hbm_bw,
        compute=2 * tokens * across / peak + (2 * tokens * stands + attended) / own.bf16_flops + index,
        precision=raw["gemm_type"].to_numpy(),
        variant="all",
        rows=batch,
        size=[f"{int(a)} heads, {int(b)}" for a, b in zip(heads, known, strict=True)],
    )
    kept: pd.DataFrame = table.loc[(moved + held >= l2(gpu)) | (not decodes)]
    return kept


STATE = 4  # bytes of a state's value


def linear_decode(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return decodes of the gated delta rule: each reads and writes its state, beyond L2."""
    return _linear(raw[raw["phase"] == "generation"], gpu)


def linear_prefill(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return prompts of the gated delta rule, of 64 tokens or more, computed in pieces of 64."""
    return _linear(raw[(raw["phase"] == "context") & (raw["seq_len"] >= 64)], gpu)


def _linear(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return the convolution and the recurrence together; of several kernels for either the faster."""
    sizes = ["batch_size", "seq_len", "num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim"]
    parts = raw["kernel_source"].astype(str).str.startswith("causal_conv1d").rename("convolution")
    raw = raw.groupby([*sizes, parts])[["latency"]].min().reset_index()
    both = raw.groupby(sizes)["latency"].agg(["sum", "size"]).reset_index()
    both = both[both["size"] == 2].rename(columns={"sum": "latency"})
    batch, length, keys, values, key, value = both[sizes].to_numpy(float).T
    tokens, piece = batch * length, 64
    state = batch * values * key * value
    # Inputs pass the convolution, and come back as outputs.
    passed = tokens * 2 * (2 * keys * key + values * value) + tokens * values * value
    moved = 2 * STATE * state + 2 * passed
    # A token meets its state three times, and on average half of its piece, by its keys three times.
    within = piece / 2 * (3 * key + 2 * value)
    computed = np.where(length > 1, 2 * tokens * values * (3 * key * value + within), 0.0)
    of = catalogue.gpu(gpu)
    table = _framed(
        both, memory=moved / of.hbm_bw, compute=computed / of.bf16_flops, precision="bfloat16", variant="all"
    )
    kept: pd.DataFrame = table.loc[(STATE * state >= l2(gpu)) | (length > 1)]
    return kept


def quantisation(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return the pass that reads activations in BF16 and writes them in FP8, beyond L2."""
    size = raw["m"].to_numpy(float) * raw["k"].to_numpy(float)
    table = _framed(raw, memory=3 * size / catalogue.gpu(gpu).hbm_bw, compute=0.0, precision="fp8", variant="all")
    kept: pd.DataFrame = table.loc[3 * size >= l2(gpu)]
    return kept


def exchanged(phase: str, raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return tokens' way to the GPUs that have their experts ("dispatch"), or back, each GPU's own, over its link."""
    raw = raw[(raw["phase"] == phase) & raw["comm_dtype"].isin(["bfloat16", "default"])]
    columns = ["num_tokens", "hidden_size", "topk", "ep_size"]
    tokens, hidden, chosen, many = raw[columns].to_numpy(float).T
    # That have an expert of a token; for few tokens a copy goes to each expert.
    each = raw["comm_backend"].astype(str).str.contains("_ll").to_numpy()
    others = np.where(each, chosen * (many - 1) / many, (many - 1) * (1 - (1 - 1 / many) ** chosen))
    table = _framed(
        raw.assign(latency=raw["latency"] / 1e3),  # in microseconds, unlike the others
        memory=2 * tokens * hidden * others / catalogue.gpu(gpu).link_bw,
        compute=0.0,
        precision="bfloat16",
        variant=raw["comm_backend"].astype(str).str.removeprefix("trtllm_").to_numpy(),
    )
    return table.groupby(["precision", "variant", "memory"], as_index=False).min()


def collective(name: str, raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return one of NCCL's collectives of four and eight GPUs: a ring's bytes over the link of a GPU."""
    raw = raw[(raw["op_name"] == name) & (raw["nccl_dtype"] == "half") & raw["num_gpus"].isin([4, 8])]
    many, size = raw[["num_gpus", "message_size"]].to_numpy(float).T
    return _framed(
        raw,
        memory=(many - 1) / many * 2 * size / catalogue.gpu(gpu).link_bw,
        compute=0.0,
        precision="bfloat16",
        variant=[f"{int(one)} GPUs" for one in many],
    )


def all_reduce(raw: pd.DataFrame, gpu: str) -> pd.DataFrame:
    """Return all-reduces in a CUDA graph, where there are such: a ring's bytes over the link of a GPU."""
    graphs = raw[raw["kernel_source"].astype(str).str.contains("graph")]
    raw = graphs if len(graphs) else raw
    many, size = raw[["num_gpus", "message_size"]].to_numpy(float).T
    table = _framed(
        raw,
        memory=2 * (many - 1) / many * 2 * size / catalogue.gpu(gpu).link_bw,
        compute=0.0,
        precision="bfloat16",
        variant=[f"{int(one)} GPUs" for one in many],
    )
    return table.groupby(["precision", "variant", "memory"], as_index=False).min()


def rate(gpu: str, precision: str) -> float:
    """Return the FLOP/s of products with weights in a precision: weights alone in four bits are expanded to BF16."""
    of = catalogue.gpu(gpu)
    return {"bf16": of.bf16_flops, "fp8": of.fp8_flops, "fp4": of.fp4_flops}[RATES.get(precision, "bf16")] or 0.0


def l2(gpu: str) -> float:
    """Return the bytes of a GPU's L2 cache."""
    return L2_BYTES.get(gpu, L2_BLACKWELL)


# What is drawn of each kind: precisions and the variant.
DRAWN = {
    "matrix product": (("fp8_block",), "all"),
    "attention, decode": (("bfloat16",), "head 128"),
    "attention, prefill": (("bfloat16",), "head 128"),
    "MLA, decode": (("bfloat16",), "all"),
    "experts": (("fp8_block",), "balanced"),
    "all-reduce": (("bfloat16",), "8 GPUs"),
    "latent block, decode": (("bfloat16",), "all"),
    "sparse block, decode": (("bfloat16",), "all"),
    "linear attention, decode": (("bfloat16",), "all"),
    "linear attention, prefill": (("bfloat16",), "all"),
    "dispatch": (("bfloat16",), "deepep_ll"),
    "all-gather": (("bfloat16",), "8 GPUs"),
}

POINTS: dict[str, Callable[[pd.DataFrame, str], pd.DataFrame]] = {
    "matrix product": products,
    "attention, decode": decode_attention,
    "attention, prefill": prefill_attention,
    "MLA, decode": decode_mla,
    "MLA, prefill": prefill_mla,
    "latent block, decode": latent_decode,
    "latent block, prefill": latent_prefill,
    "sparse block, decode": sparse_decode,
    "sparse attention, decode": sparse_reads,
    "sparse attention, prefill": sparse_prefill,
    "linear attention, decode": linear_decode,
    "linear attention, prefill": linear_prefill,
    "experts": experts,
    "quantisation": quantisation,
    "all-reduce": all_reduce,
    "dispatch": partial(exchanged, "dispatch"),
    "combine": partial(exchanged, "combine"),
    "all-gather": partial(collective, "all_gather"),
    "reduce-scatter": partial(collective, "reduce_scatter"),
    "all-to-all": partial(collective, "alltoall"),
}

if __name__ == "__main__":
    main()
