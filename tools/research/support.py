"""What stands behind a unit's numbers: served points, kernels of its GPU, another GPU's kernels, or a refusal."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from inference_math import catalogue
from inference_math.evidence import load
from inference_math.unit import Unit
from inference_math.workload import Workload
from inference_math_planner.answers.notes import LEFT_OUT, SET_ASIDE
from inference_math_planner.fleets.gpus import provenance

__all__ = ["FAMILIES", "STANDS", "matrix", "stands_behind"]

Key = tuple[str, str, str, str]  # kind of model, GPU, engine, precision
FAMILIES = {
    "dense": "llama-3-70b",
    "mixture of experts": "gpt-oss-120b",
    "MLA": "deepseek-v3",
    "hybrid": "qwen3.5-397b-a17b",
}
"""Kinds of models, with the one that stands for each."""

STANDS = ("calibrated", "measured", "scaled", "refused")
"""Served points of the engine on the GPU; kernels alone; another GPU's kernels; no such unit."""


def stands_behind(unit: Unit) -> str:
    """Return one of `STANDS` for a unit.

    Examples
    --------
    >>> from inference_math import Unit
    >>> from support import stands_behind
    >>> stands_behind(Unit.of("minimax-m2", "b200", 4)), stands_behind(Unit.of("llama-3-8b", "l40s"))
    ('calibrated', 'scaled')
    """
    said = provenance(unit, Workload(1000, 100))
    return said if said in STANDS else "scaled"


def matrix(gpus: Iterable[str] = (), engines: Iterable[str] = ("vllm", "sglang", "trtllm")) -> pd.DataFrame:
    """Return what stands behind each kind of model on each GPU, under each engine in each precision; and its error.

    `points` are the served points that the error is of.

    The error is of e2e, in per cent: of rows that chose nothing where there are such, else of the calibration rows of
    the engine on the GPU, left out of the fit; empty where nothing was served.
    """
    errors, asked = _errors(), tuple(gpus) or tuple(catalogue.GPUS)
    rows = []
    for kind, name in FAMILIES.items():
        model = catalogue.model(name)
        for gpu in asked:
            for weights in dict.fromkeys(("bf16", "fp8", "nvfp4", "int4", model.stored)):
                for engine in engines:
                    said = "refused"
                    off: tuple[float | None, int | None] = (None, None)
                    if (unit := _smallest(name, gpu, weights, engine)) is not None:
                        said = stands_behind(unit)
                        off = (
                            errors.get((kind, gpu, engine, weights), off) if unit.calibration.mode == "served" else off
                        )
                    key: dict[str, object] = {"model": kind, "gpu": gpu, "weights": weights, "engine": engine}
                    rows.append(key | {"stands": said, "error": off[0], "points": off[1]})
    return pd.DataFrame(rows).astype({"points": "Int64"})


def _smallest(name: str, gpu: str, weights: str, engine: str) -> Unit | None:
    """Return the unit on the fewest GPUs that hold the weights; None where eight do not, or have no such products."""
    for tp in (1, 2, 4, 8):
        try:
            return Unit.of(name, gpu, tp, weights, engine=engine)
        except ValueError:
            continue
    return None


def _errors() -> dict[Key, tuple[float, int]]:
    """Return errors of e2e in per cent, and of how many points, by kind, GPU, engine and precision.

    Those of the blind part count, where there are any.
    """
    found: dict[Key, tuple[float, int]] = {}
    table = load("served_error").frame.query("drafts == 'none'")
    for source in (LEFT_OUT, SET_ASIDE):
        off = table[table["source"] == source].assign(sum=table["error"] * table["points"])
        groups = off.groupby(["kind", "gpu", "engine", "weights"])[["sum", "points"]].sum().reset_index()
        for kind, gpu, engine, weights, total, count in groups.itertuples(index=False):
            found[kind, gpu, engine, weights] = 100 * total / count, int(count)
    return found
