"""What a calibration cannot know of what it was not made on: other generations of an engine, other GPUs, other lengths.

From the measured operators, ML.ENERGY, Splitwise and two published sets; and how far set-ups are off that nobody
fitted.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import accuracy
import between
import from_operators
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import least_squares

from inference_math.evidence import load
from inference_math.unit import Unit
from inference_math.unit.coefficients import DATASHEET, ZERO_SHOT_SCOPE, Coefficients
from inference_math.unit.nearest import coefficient_key, levels, served
from inference_math.unit.operators import H100

__all__ = ["KV", "added", "between_generations", "chats", "request_overhead", "requests", "widths"]

_CHAT = 512  # tokens of ML.ENERGY's prompts, whose length is not given
# By our fits to benchmarks that are not in this repository: seconds that TensorRT-LLM 0.9 adds for each request to a
# step, least and most over its models, of 32 and 80 layers, taken to be in this order; the bandwidth at which engines
# read KV caches, one of today and an older NIM.
_TRTLLM = (11e-6 / 32, 30e-6 / 80)
KV = (1.0, 0.5)
# For kinds of models of which no operator was fitted, a judgement: DeepSeek-R1 on 8 H200 under SGLang took 1.1 to 1.4
# times the predicted TPOT at 8 to 64 users (InferenceX), and another predictor has 0.3 to 0.6 of our rates.
_KIND = float(np.log(2))
# For links between nodes: TP 16 on two H100 nodes was predicted 4 times too fast (tt-inference-server issue 356), wide
# expert parallelism of DeepSeek on 4 and 9 nodes 8 times too slow (LMSYS): nine in ten are to lie within that.
_NODES = float(np.log(8)) / NormalDist().inv_cdf(0.95)
_TABLED = 8  # how far beyond: tables end at 8 times the batch and the context that the narrow fit sees


def request_overhead(coefficients: Coefficients, context: float = _CHAT) -> float:
    """Return what vLLM 0.11 adds to a layer for each request beyond its kernels, in seconds, from ML.ENERGY's medians.

    A fit of one number to log(measured / predicted) of batches of chats on the H100, with the other coefficients
    given; the prompts, of unknown length, are taken as `context` tokens.
    """
    found = chats(coefficients, context)
    return float(added(found, found["batch"] * found["layers"])[0])


def chats(coefficients: Coefficients, context: float = _CHAT) -> pd.DataFrame:
    """Return ML.ENERGY's rows with the `step` that kernels take, the `measured` median, in seconds, and `layers`."""
    kernels = replace(DATASHEET, coefficients=coefficients).kernels
    parts = []
    for (model, gpu, tp), rows in load("mlenergy").frame.groupby(["model", "gpu", "tp"]):
        unit = Unit.of(str(model), str(gpu), tp=int(str(tp)), calibration=kernels)
        step = unit.step_time(rows["batch"], context + rows["output_tokens"] / 2)
        parts.append(rows.assign(step=step, measured=rows["itl_p50_ms"] / 1e3, layers=unit.model.n_layers))
    return pd.concat(parts)


def requests(coefficients: Coefficients) -> pd.DataFrame:
    """Return what each generation of an engine adds to a layer for each request: engine, version, seconds.

    vLLM of mid-2023 from Splitwise's decode steps, the geometric mean over GPUs; the time that its layers take longer
    is fitted beside it and not used.
    """
    kernels, old = replace(DATASHEET, coefficients=coefficients).kernels, []
    for (gpu, tp), rows in load("splitwise_llama2_70b").frame.groupby(["gpu", "tp"]):
        unit = Unit.of("llama-2-70b", str(gpu), int(str(tp)), calibration=kernels)
        step = unit.step_time(rows["batch"].to_numpy(float), (rows["prompt"] + rows["output_tokens"] / 2).to_numpy())
        layers = np.full(len(rows), unit.model.n_layers)
        asked = rows.assign(step=step, measured=rows["step_ms"] / 1e3)
        old.append(added(asked, rows["batch"] * layers, layers)[0])
    found = [
        ("vllm", "mid-2023", np.exp(np.mean(np.log(old)))),
        ("vllm", "0.11", request_overhead(coefficients)),
        ("trtllm", "0.9", np.sqrt(_TRTLLM[0] * _TRTLLM[1])),
    ]
    return pd.DataFrame(found, columns=["engine", "version", "seconds"])


def added(rows: pd.DataFrame, *terms: ArrayLike) -> NDArray[np.float64]:
    """Return the seconds for one of each of `terms` that bring `step` nearest to `measured`, by their logarithms."""
    step, measured = rows["step"].to_numpy(dtype=float), rows["measured"].to_numpy(dtype=float)
    counts = np.column_stack([np.asarray(term, dtype=float) for term in terms])

    def misses(micro: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log((step + counts @ micro * 1e-6) / measured))

    return np.asarray(least_squares(misses, np.ones(len(terms)), bounds=(0, 5000)).x) * 1e-6


def between_generations(values: ArrayLike) -> float:
    """Return the standard deviation of the logarithm of what generations of engines showed."""
    return float(np.std(np.log(values), ddof=1))


def widths(steps: pd.DataFrame) -> pd.DataFrame:
    """Return by how much the spread grows for each input outside of a calibration: name, width, evidence.

    Each is the standard deviation of log(measured / predicted) where predictions were tried beyond what they were
    fitted to. model, tp: each one left out of the fit to operators. engine: set-ups of other sources, of which no
    point was fitted (`between.another`). concurrency, n_out: the larger batches and longer contexts left out. n_in:
    prompts beyond the tables (vLLM's blog, one H100), by the calibration that is further off. gpu: SARATHI's steps on
    an A6000, and Splitwise's on A100s beside those on H100s. dp, nodes, kind: judgements.
    """
    others = accuracy.published()
    error = np.log(others["predicted"] / others["measured"])
    a6000 = _root(error[others["gpu"] == "a6000"])
    left = {name: _root(from_operators.left_out(steps, name)["spread"]) for name in ("model", "tp")}
    left["engine"] = float(between.another(between.points()))
    further = {
        name: from_operators.beyond(steps, column, steps[column].max() / _TABLED)
        for name, column in (("concurrency", "batch"), ("n_out", "context"))
    }
    found = left | further | {"n_in": _long(), "gpu": _root([a6000, _root(_a100())])}
    rows = [(name, width, "fitted") for name, width in found.items()] + [
        ("dp", _KIND, "judged"),
        ("nodes", _NODES, "judged"),
        ("kind", _KIND, "judged"),
    ]
    return pd.DataFrame(rows, columns=["name", "width", "evidence"])


def _long() -> float:
    """Return by how much long prompts are off, zero-shot or from served points, whichever is worse."""
    rows = load("vllm_kv_offload").frame
    rows = rows[rows["prompt_tokens"] > ZERO_SHOT_SCOPE["n_in"][1]]
    unit = Unit.of("llama-3-8b", H100)
    moved = unit.calibrated(
        served(levels(), coefficient_key(unit.model, unit.gpu, unit.weights, unit.engine, kv=unit.kv))
    )
    tokens, seconds = rows["prompt_tokens"].to_numpy(dtype=float), rows["compute_ms"].to_numpy(dtype=float) / 1e3
    return max(_root(np.log(each.prefill_time(tokens) / seconds)) for each in (unit, moved))


def _a100() -> NDArray[np.float64]:
    """Return by how much the error on A100s differs from that on H100s, under one engine."""
    table = accuracy.splitwise()
    sizes = ["phase", "tp", "n_in", "batch", "output_tokens"]
    by_gpu = table.assign(error=np.log(table["predicted"] / table["measured"])).pivot_table("error", sizes, "gpu")
    return np.asarray((by_gpu["a100-80gb"] - by_gpu[H100]).dropna())


def _root(values: ArrayLike) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
