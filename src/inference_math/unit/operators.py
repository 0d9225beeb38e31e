"""Steps and prefills of a model, added up from measured operators of the H100.

The sum of a model's matrix products, attention and all-reduces as measured one by one. It leaves out
what lies between them (norms, activations, sampling, the host).
Every function returns one row per measured attention point, times in seconds. The matrix products of
shapes that were not measured are interpolated (see the column `obtained` of the table and data/README.md).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from inference_math import evidence, theory
from inference_math.catalogue import Model, gpu
from inference_math.catalogue.precisions import as_kv_precision
from inference_math.evidence.checks import as_one_of, as_whole
from inference_math.evidence.fits import rounded

__all__ = ["H100", "H100_L2_BYTES", "Curve", "Kernels", "Operators"]

_US = 1e-6
H100 = "h100-sxm"  # the GPU that the tables were measured on
H100_L2_BYTES = 50e6  # NVIDIA H100 Tensor Core GPU Architecture whitepaper
_ACTIVATION_BYTES = 2  # activations stay in BF16 whatever the weights are


@dataclass(frozen=True)
class Curve:
    """Seconds by size, linear between measured sizes; beyond the last as long for each token as there."""

    sizes: tuple[float, ...]
    seconds: tuple[float, ...]

    def __call__(self, size: float) -> float:
        """Return the seconds of a size."""
        at = bisect_left(self.sizes, size)
        if at == 0:
            return self.seconds[0]
        if at == len(self.sizes):
            return self.seconds[-1] * size / self.sizes[-1]
        left, right = self.sizes[at - 1], self.sizes[at]
        low, high = self.seconds[at - 1], self.seconds[at]
        return low + (high - low) * (size - left) / (right - left)

    @classmethod
    def rising(cls, sizes: Any, seconds: ArrayLike) -> Curve:
        """Return the curve of sizes in order; where a larger one was measured faster, as fast: a step can be padded."""
        fastest = np.minimum.accumulate(np.asarray(seconds, dtype=float)[::-1])[::-1]
        return cls(tuple(map(float, sizes)), tuple(fastest.tolist()))


@dataclass(frozen=True)
class Kernels:
    """Measured operators as the cost of a step for the simulator: the sum of all that the step's tokens go through.

    `products` are the matrices and all-reduces of all layers by tokens, `head` the LM head by tokens sampled,
    `attending` what the decodes' attention takes however little it reads; `kv_read` and `pair` seconds of a cached
    token and of a prompt's (token, earlier token) pair.
    """

    products: Curve
    head: Curve
    attending: float
    kv_read: float
    pair: float

    def __call__(
        self, decodes: float, context: float, prefills: float = 0.0, tokens: float = 0, pairs: float = 0.0
    ) -> float:
        """Return the seconds of a step; see `simulate.Cost` for the arguments."""
        seconds = self.products(decodes + tokens) + self.head(max(decodes + prefills, 1.0))
        if decodes:
            seconds += self.attending + self.kv_read * context
        return seconds + self.pair * pairs

    def line(self, decodes: int, context: int) -> tuple[float, float, float, float]:
        """Return (fixed, per token of context) of a step that only decodes, for all contexts."""
        return self(decodes, 0.0), self.kv_read, 0.0, np.inf


@dataclass(frozen=True)
class Operators:
    """The measured operators of one model on `tp` H100 GPUs.

    Parameters
    ----------
    model
        A dense model with GQA whose shapes are in the tables (llama-3-8b, llama-3-70b, qwen3-32b, …).
    tp
        GPUs that share the work, 1, 2, 4 or 8.
    weights, kv
        Precision of the weights and of the KV cache, "bf16" or "fp8".
    engine
        Whose kernels were timed, "vllm" or "trtllm".

    Raises
    ------
    ValueError
        For a shape, head split or engine that is not in the tables.
    """

    model: Model
    tp: int = 1
    weights: str = "bf16"
    kv: str = "bf16"
    engine: str = "vllm"

    def __post_init__(self) -> None:
        as_one_of("engine", self.engine, ("vllm", "trtllm"))
        object.__setattr__(self, "tp", as_whole("tp", self.tp))
        self.model.gemm_shapes(self.tp)  # refuses a model or a tp without such shapes, by name
        object.__setattr__(self, "weights", as_kv_precision("weights", self.weights))
        object.__setattr__(self, "kv", as_kv_precision("kv", self.kv))

    def steps(self) -> pd.DataFrame:
        """Return decode steps: batch, context, and seconds of gemm, attention, allreduce and their sum, total.

        `kv_bytes` is the KV cache that one layer reads on one GPU; where `in_l2` is true, it fits the L2 cache.
        The benchmark repeats the same layer, so it reads L2 there; a model that goes through all its layers
        reads HBM. The attention of such a point is too fast.
        """
        frame = self._decode_attention()
        batch = frame["batch"].to_numpy()
        return self._with_rest(frame, tokens=batch, sampled=batch)

    @cached_property
    def kernels(self) -> Kernels:
        """The cost of a step: KV reads at a context of 2,048, a prompt's pairs at a length of 4,096.

        The attention of one decode at 2,048 beyond its read counts for every batch: it is what the kernels need to
        start.
        """
        tokens = np.unique(evidence.load("h100_gemm").frame["tokens"])
        read = float(self.kv_reads().set_index("context").cache_read[2048])
        one = self._decode_attention().set_index(["batch", "context"])["attention"][1, 2048]
        attention = self.prefills().set_index("n_in")["attention"]
        head = self._gemm(self.model.gemm_shapes(self.tp)["lm_head"], "bf16", tokens)
        links = 2 * self.model.n_layers * self._allreduce(tokens)
        return Kernels(
            products=Curve.rising(tokens, self._layers(tokens) + links),
            head=Curve.rising(tokens, head),
            attending=max(float(one) - read, 0.0),
            kv_read=read / 2048,
            pair=float(attention[4096]) / (4096**2 / 2),
        )

    def products(self) -> pd.DataFrame:
        """Return the matrix products of all layers, LM head aside: tokens put through at once, gemm in seconds."""
        tokens = np.unique(evidence.load("h100_gemm").frame["tokens"])
        return pd.DataFrame({"tokens": tokens, "gemm": self._layers(tokens)})

    def kv_reads(self) -> pd.DataFrame:
        """Return the measured KV read [C14] by context: what one more request adds to the attention of a step.

        Columns: context; cache_read, the slope of the attention time against the batch, in seconds; points,
        how many it is fitted to; share, of the datasheet's HBM bandwidth that it reaches; low and high, the
        range of that share when one point is left out (equal to share for two points). Fitted by least
        squares on relative errors to points that do not fit L2, where there are at least two.
        """
        reads = self._decode_attention()
        rows = []
        for context, points in reads[~reads["in_l2"]].groupby("context"):
            if len(points) > 1:
                fewer = [points.drop(i) for i in points.index] if len(points) > 2 else [points]
                slopes = [_slope(chosen) for chosen in fewer]
                rows.append((context, _slope(points), len(points), max(slopes), min(slopes)))
        frame = pd.DataFrame(rows, columns=["context", "cache_read", "points", "steepest", "flattest"])
        limit = theory.cache_read(
            n_in=frame["context"], kv_token=self.model.kv_token(self.kv), hbm_bw=self.tp * gpu(H100).hbm_bw
        )
        frame["share"], frame["low"], frame["high"] = (
            limit / frame[slope] for slope in ("cache_read", "steepest", "flattest")
        )
        return frame.drop(columns=["steepest", "flattest"])

    def prefills(self) -> pd.DataFrame:
        """Return prefills of one prompt: n_in, and seconds of gemm, attention, allreduce and total."""
        points = self._attention("h100_prefill_attention")
        frame = points.loc[points["batch"] == 1, ["length", "attention"]].rename(columns={"length": "n_in"})
        return self._with_rest(frame, tokens=frame["n_in"].to_numpy(), sampled=np.ones(len(frame)))

    def _decode_attention(self) -> pd.DataFrame:
        frame = self._attention("h100_decode_attention")[["batch", "context", "attention"]].copy()
        layer_token = self.model.kv_token(self.kv) / self.model.n_layers / self.tp
        frame["kv_bytes"] = frame["batch"] * frame["context"] * layer_token
        frame["in_l2"] = frame["kv_bytes"] <= H100_L2_BYTES
        return frame

    def _with_rest(self, frame: pd.DataFrame, tokens: NDArray[np.int64], sampled: NDArray[Any]) -> pd.DataFrame:
        """Complete `frame`, which has attention: `tokens` go through the layers, `sampled` through the LM head."""
        # Engines keep the LM head in BF16; it works on the last token of each request.
        head = self._gemm(self.model.gemm_shapes(self.tp)["lm_head"], "bf16", sampled)
        parts = {
            "gemm": self._layers(tokens) + head,
            "attention": frame["attention"],
            "allreduce": 2 * self.model.n_layers * self._allreduce(tokens),
        }
        sums = pd.DataFrame(parts, index=frame.index).assign(total=lambda part: part.sum(axis=1))
        return frame.drop(columns="attention").join(sums).reset_index(drop=True)

    def _layers(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        shapes = self.model.gemm_shapes(self.tp)
        del shapes["lm_head"]
        one = [self._gemm(shape, self.weights, tokens) for shape in shapes.values()]
        return np.asarray(self.model.n_layers * np.sum(one, axis=0))

    def _attention(self, table: str) -> pd.DataFrame:
        """Return the rows of one attention table for this model, with the seconds of all its layers."""
        heads, kv_heads = self.model.heads_on(self.tp)
        split: dict[str, object] = {
            "engine": self.engine,
            "kv_dtype": self.kv,
            "heads": heads,
            "kv_heads": kv_heads,
            "head_size": self.model.head_size,
        }
        frame = evidence.load(table).frame
        if "attn_dtype" in frame:
            # TensorRT-LLM computes attention over an FP8 cache in FP8; vLLM in BF16.
            split["attn_dtype"] = "fp8" if (self.engine, self.kv) == ("trtllm", "fp8") else "bf16"
        rows = _where(frame, split)
        if rows.empty:
            raise ValueError(f"{table} has no rows for {self.model.name} at tp={self.tp}: {split}")
        return rows.assign(attention=self.model.n_layers * rows["time_us"] * _US)

    def _gemm(self, shape: tuple[int, int], dtype: str, tokens: NDArray[Any]) -> NDArray[np.float64]:
        key = {"engine": self.engine, "dtype": dtype, "n": shape[0], "k": shape[1]}
        rows = _where(evidence.load("h100_gemm").frame, key)
        if rows.empty:
            raise ValueError(f"h100_gemm has no rows for {self.model.name} at tp={self.tp}: {key}")
        return _between(rows["tokens"], rows["time_us"], tokens)

    def _allreduce(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.tp == 1:
            return np.zeros(len(tokens))
        rows = _where(evidence.load("h100_allreduce").frame, {"engine": self.engine, "gpus": self.tp})
        return _between(rows["bytes"], rows["time_us"], tokens * self.model.d_model * _ACTIVATION_BYTES)


def _slope(points: pd.DataFrame) -> float:
    """Return seconds of attention per request, fitted with weights that make all relative errors alike."""
    return float(rounded(np.polyfit(points["batch"], points["attention"], 1, w=1 / points["attention"])[0]))


def _where(frame: pd.DataFrame, key: dict[str, object]) -> pd.DataFrame:
    return frame[(frame[list(key)] == pd.Series(key)).all(axis=1)]


def _between(grid: pd.Series[int], time_us: pd.Series[float], wanted: NDArray[Any]) -> NDArray[np.float64]:
    """Interpolate linearly between measured sizes (in seconds); outside them there is no answer."""
    if wanted.min() < grid.min() or wanted.max() > grid.max():
        raise ValueError(f"sizes must be from {grid.min()} to {grid.max()}, not {wanted.min()} to {wanted.max()}")
    return np.asarray(np.interp(wanted, grid, time_us) * _US)
