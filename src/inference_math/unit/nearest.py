"""Which calibration a unit gets that brings none: the nearest one of those that ship."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from inference_math.catalogue import Gpu, Model
from inference_math.catalogue.engines import engine as engine_record
from inference_math.evidence import load
from inference_math.perf.calibrate import FACTORS, by_operators, composed, precisions_seen
from inference_math.unit.coefficients import COEFFICIENTS, ENGINES, Calibration, Coefficients
from inference_math.unit.shapes import kind_of

__all__ = ["SERVED_SCOPE", "alike", "engine_generation", "levels", "levels_of", "select_calibration", "served"]


def select_calibration(of: Model, on: Gpu, weights: str, engine: str, version: str = "") -> Calibration:
    """Return the calibration that stands nearest to a unit.

    Its operators on the H100 (`Calibration.zero_shot`) where `perf.calibrate.by_operators` says so; for all others
    served points of the same engine (`served`).
    """
    given, own = levels_of(of, on, weights), engine_generation(engine, version)
    if by_operators(engine_record(engine)["kernels"] and own == alike(engine), given):
        return Calibration.zero_shot(engine)
    return served(levels(), own, given)


def alike(engine: str) -> str:
    """Return the name of the engine whose coefficients an engine takes: its own, or another's that its record names."""
    return engine_record(engine)["like"] or engine


def engine_generation(engine: str, version: str = "") -> str:
    """Return the name of an engine's generation: vLLM below 0.13 is "vllm-2025", all others are one each.

    >>> engine_generation("vllm", "0.11.2"), engine_generation("vllm")
    ('vllm-2025', 'vllm')
    """
    older = engine_record(alike(engine))["older"]
    if older and (said := _numbers(version)) and said < _numbers(older["below"]):
        return older["name"]
    return alike(engine)


def _numbers(version: str) -> tuple[int, int] | tuple[()]:
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else ()


def levels_of(model: Model, gpu: Gpu, weights: str) -> dict[str, str]:
    """Return the level of each factor that a unit stands at."""
    return {"generation": gpu.generation, "kind": kind_of(model), "weights": weights}


def served(found: dict[str, Any], engine: str, given: dict[str, str]) -> Calibration:
    """Return what served points say of an engine's generation, moved by the GPU's, the model's kind and the precision.

    `found` is what `levels` returns.
    """
    mixed = composed(found, engine, given)
    widths = np.array([mixed["widths"][name] for name in COEFFICIENTS])
    spread = found["spread"].get(given["kind"], 0.0)
    values = Coefficients(**mixed["values"])
    precisions = tuple(precisions_seen(found, given["generation"], given["kind"]))
    scope = SERVED_SCOPE | ({"weights": precisions} if precisions else {})
    return Calibration("served", values, np.diag(widths**2), spread, scope)


@lru_cache(maxsize=1)
def levels() -> dict[str, object]:
    """Return the tables `served_levels`, `served_together` and `served_spread` as `composed` and `served` take them."""
    frame = load("served_levels").frame
    found: dict[str, Any] = {"engine": {}, **{factor: {} for factor in FACTORS}}
    for row in frame.to_dict("records"):
        values = {name: float(row[name]) for name in COEFFICIENTS}
        if row["factor"] in found:
            found[row["factor"]][row["level"]] = values
        else:
            found[str(row["factor"])] = values
    found["together"] = load("served_together").frame[FACTORS].to_numpy().tolist()
    spreads = load("served_spread").frame.set_index("kind")["spread"]
    return found | {"spread": {str(kind): float(width) for kind, width in spreads.items()}}


_MODELS = (
    "deepseek-v3",
    "glm-5",
    "gpt-oss-120b",
    "kimi-k2",
    "llama-3-70b",
    "llama-3-8b",
    "minimax-m2",
    "qwen3.5-397b-a17b",
)

SERVED_SCOPE: dict[str, tuple[object, ...]] = {
    "engine": ENGINES,
    "model": _MODELS,
    "gpu": ("h100-sxm", "h200-sxm", "b200", "b300"),
    "kind": ("dense", "mixture of experts", "MLA", "hybrid"),
    "tp": (1, 8),
    "n_in": (1, 8_192),
    "n_out": (1, 8_192),
    "concurrency": (1, 1024),
}
