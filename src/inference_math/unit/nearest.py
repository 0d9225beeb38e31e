"""Which calibration a unit gets that brings none: the nearest one of those that ship."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from inference_math.catalogue import GPUS, Gpu, Model
from inference_math.catalogue.engines import engine as engine_record, engines
from inference_math.evidence import load
from inference_math.evidence.checks import as_bool
from inference_math.unit.coefficients import COEFFICIENTS, ENGINES, Calibration, Coefficients, Host, scored_too
from inference_math.unit.kernels import kernels, like
from inference_math.unit.mixing import FACTORS, by_operators, coefficient_key_of, fitted
from inference_math.unit.shapes import operators_of
from inference_math.unit.types import CoefficientKey, CoefficientValues, ComparisonError, ErrorRow, MixedEffects

__all__ = [
    "SERVED_SCOPE",
    "TOGETHER",
    "TOGETHER_SCOPE",
    "alike",
    "as_dated",
    "coefficient_key",
    "engine_generation",
    "host",
    "known_errors",
    "levels",
    "planning_option",
    "plans_ahead",
    "select_calibration",
    "served",
    "with_host",
]

TOGETHER = FACTORS[2:]  # generation of GPUs, kind of model, precision: which were served together


def select_calibration(
    of: Model, on: Gpu, weights: str, engine: str, version: str = "", *, kv: str = "bf16", together: int = 1
) -> Calibration:
    """Return the calibration that stands nearest to a unit of which `together` GPUs add up each sum.

    Its operators on the H100 (`Calibration.zero_shot`) where `unit.mixing.by_operators` says so; for all others the
    kernels of its GPU and engine, moved by served points (`served`).
    """
    at = coefficient_key(of, on, weights, engine, version, kv=kv, together=together)
    own = at.levels["engine"] == alike(engine)
    if by_operators(engine_record(engine).kernels and own, at.levels):
        return Calibration.zero_shot(engine)
    return served(levels(), at)


def alike(engine: str) -> str:
    """Return the name of the engine whose coefficients an engine takes: its own, or another's that its record names."""
    return engine_record(engine).like or engine


def engine_generation(engine: str, version: str = "") -> str:
    """Return the name of an engine's generation: vLLM below 0.13 is "vllm-2025", all others are one each.

    >>> engine_generation("vllm", "0.11.2"), engine_generation("vllm")
    ('vllm-2025', 'vllm')
    """
    older = engine_record(alike(engine)).older
    if older and (said := _numbers(version)) and said < _numbers(older["below"]):
        return str(older["name"])
    return alike(engine)


def plans_ahead(engine: str, version: str = "", asked: bool | None = None) -> bool:
    """Return whether an engine of some age plans a step while the one before it runs, unless it is `asked` to or not.

    >>> plans_ahead("vllm", "0.11.2"), plans_ahead("vllm"), plans_ahead("vllm", asked=False)
    (False, True, False)
    """
    if asked is not None:
        return asked
    record = engine_record(engine)
    older = record.older
    aged = older and engine_generation(engine, version) == older["name"]
    return bool(older["ahead"] if aged else record.scheduler.ahead)


def planning_option(engine: str, asked: bool | None = None) -> str:
    """Return the option by which an engine is told whether to plan a step ahead; "" where nobody says.

    >>> planning_option("vllm", False)
    '--no-async-scheduling'

    Raises
    ------
    ValueError
        For an engine that has no such option.
    """
    options = engine_record(engine).cli.planning
    if asked is None:
        return ""
    if not options:
        able = ", ".join(name for name, record in engines().items() if record.cli.planning)
        raise ValueError(f"async_scheduling must be left out for {engine}, which has no such option: {able} has")
    return options[as_bool("async_scheduling", asked)]


def with_host(calibration: Calibration, layers: int, ahead: bool) -> Calibration:
    """Return a calibration that ships with the host of an engine that plans no step `ahead`, where it is not in yet.

    This is the rule: operators (`Calibration.zero_shot`) are the GPU's time alone, so such a unit has the host on top.
    No other has: `layer` and `per_sequence_overhead` of served points, and of runs of your own, were fitted to steps
    with whatever the host did then.
    """
    return calibration if ahead or calibration.mode != "zero-shot" else calibration.hosted(host(), layers)


@lru_cache(maxsize=1)
def host() -> Host:
    """Return what vLLM's host takes of a step that was not planned while the one before it ran: table `host`.

    It is that of vLLM 0.11 in ML.ENERGY's runs on H100s, beyond the GPU's operators; see `tools/research/fit_host.py`.

    >>> f"{1e3 * host().step:.1f} ms, {1e6 * host().request:.0f} us for each request that decodes"
    '0.5 ms, 35 us for each request that decodes'
    """
    rows = load("host").frame.set_index("name")
    names = list(rows.index)
    widths = rows["sd"] / rows["seconds"]
    covariance = rows.loc[names, names].to_numpy() * np.outer(widths, widths)
    return Host(float(rows["seconds"]["step"]), float(rows["seconds"]["request"]), covariance)


def as_dated(engine: str, version: str = "") -> str:
    """Return an engine's name, with a version that tells no age, which no calibration knows.

    >>> as_dated("vllm", "0.19.0"), as_dated("vllm", "nightly-5b8c30d")
    ('vllm', 'vllm nightly-5b8c30d')
    """
    return engine if not version or _numbers(version) else f"{engine} {version}"


def _numbers(version: str) -> tuple[int, int] | tuple[()]:
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else ()


def coefficient_key(
    model: Model, gpu: Gpu, weights: str, engine: str, version: str = "", *, kv: str = "bf16", together: int = 1
) -> CoefficientKey:
    """Return where a unit stands for `unit.mixing.composed`: levels of factors, keys of kernels."""
    own, of = engine_generation(engine, version), operators_of(model)
    given = {"gpu": like(gpu), "generation": gpu.generation, "weights": weights, "kv": kv}
    return coefficient_key_of(own, alike(engine), given, together, of)


def served(found: MixedEffects, at: CoefficientKey) -> Calibration:
    """Return a unit's kernels, moved by what served points say of its engine, model, GPU and precision.

    `found` is what `levels` returns.
    """
    fit = fitted(found, kernels(), {"served": scored_too(SERVED_SCOPE), "together": dict(TOGETHER_SCOPE)}, at)
    widths = np.array([fit.widths[name] for name in COEFFICIENTS])
    scope = {name: tuple(known) for name, known in fit.scope.items()}
    return Calibration("served", Coefficients(**fit.found), np.diag(widths**2), fit.spread, scope)


@lru_cache(maxsize=1)
def levels() -> MixedEffects:
    """Return the tables `served_levels`, `served_together` and `served_spread` as `composed` and `served` take them."""
    tables: dict[str, dict[str, CoefficientValues]] = {name: {} for name in ("centre", *FACTORS, "seen", "unseen")}
    for row in load("served_levels").frame.fillna("").to_dict("records"):
        tables[row["factor"]][row["level"]] = {name: float(row[name]) for name in COEFFICIENTS}
    spreads = load("served_spread").frame.set_index("kind")["spread"]
    return MixedEffects(
        intercept=tables["centre"],
        effects={factor: tables[factor] for factor in FACTORS},
        sd_seen=tables["seen"][""],
        sd_unseen=tables["unseen"],
        interactions=load("served_together").frame[TOGETHER].to_numpy().tolist(),
        spread={str(kind): float(width) for kind, width in spreads.items()},
    )


@lru_cache(maxsize=1)
def known_errors() -> list[ErrorRow]:
    """Return how far off predictions are known to be, table `served_error`: what was not scored is -1."""
    frame = load("served_error").frame.drop(columns="printed").fillna({"ttft": -1.0, "inside": -1.0, "lacked": 0.0})
    rows: Any = frame.assign(generation=[GPUS[name].generation for name in frame["gpu"]]).to_dict("records")
    return [ErrorRow(**row) for row in rows]


@lru_cache(maxsize=1)
def known_comparisons() -> dict[str, ComparisonError]:
    """Return how far off predicted gains are known to be by kind of comparison, table `comparison_error`."""
    errors: dict[str, ComparisonError] = {}
    for row in load("comparison_error").frame.to_dict("records"):
        errors[str(row["kind"])] = ComparisonError(
            bias=float(row["bias"]), sd=float(row["sd"]),
            pairs=int(row["pairs"]), setups=int(row["setups"]),
            n_in=[float(row["n_in_min"]), float(row["n_in_max"])],
            n_out=[float(row["n_out_min"]), float(row["n_out_max"])],
            kinds=str(row["models"]).split(";"), generations=str(row["generations"]).split(";"),
        )  # fmt: skip
    return errors


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
    "nodes": ("one",),
    "tp": (1, 8),
    "dp": (1, 8),
    "n_in": (1, 8_192),
    "n_out": (1, 8_192),
    "concurrency": (1, 1024),
}
# Where a kind of model was served on a generation: with GPUs of which no kernel was measured, served points alone tell.
TOGETHER_SCOPE: dict[str, tuple[object, ...]] = {"gpu": (*SERVED_SCOPE["gpu"], "mi300x", "mi355x")}
