"""The data package is valid, complete, small, and nothing measured in it beats the hardware."""

from __future__ import annotations

import csv
import json
from typing import Any

import frictionless
import numpy as np
import pandas as pd
import pytest

from inference_math.catalogue import GPUS, MODELS
from inference_math.evidence import data_dir, load

PACKAGE: dict[str, Any] = json.loads((data_dir() / "datapackage.json").read_text(encoding="utf-8"))
H100 = GPUS["h100-sxm"]
WIDTH = {"bf16": 2, "fp8": 1}
PEAK = {"bf16": H100.bf16_flops, "fp8": H100.flops("fp8")}


def test_frictionless_finds_nothing_wrong() -> None:
    limit = csv.field_size_limit()
    report = frictionless.validate(str(data_dir() / "datapackage.json"))
    csv.field_size_limit(limit)  # frictionless changes it for the whole process
    assert report.valid, report.flatten(["title", "rowNumber", "fieldName", "message"])
    assert report.stats["tasks"] == len(PACKAGE["resources"])


def test_every_file_is_described() -> None:
    described = [resource["path"] for resource in PACKAGE["resources"]]
    there = [path.relative_to(data_dir()).as_posix() for path in data_dir().rglob("*.csv")]
    assert sorted(described) == sorted(there)


@pytest.mark.parametrize("resource", PACKAGE["resources"], ids=lambda resource: resource["name"])
def test_every_column_and_origin_is_described(resource: dict[str, Any]) -> None:
    for field in resource["schema"]["fields"]:
        assert field["unit"], field
        assert field["description"], field
    assert resource["licenses"]
    assert all(source["path"].startswith("https://") for source in resource["sources"])
    if resource["evidence"] == "measured":
        assert resource["hardware"]
        assert resource["engine"]
        assert resource["revision"]
        assert resource["cautions"]


def test_the_data_stay_small_and_portable() -> None:
    files = [path for path in data_dir().rglob("*") if path.is_file()]
    # GPUs' own steps, an engine's, sixty claims, a hundred models, splits both ways, halves of three sources, plays.
    assert sum(path.stat().st_size for path in files) < 2_310_000
    assert not [path.name for path in files if b"\r" in path.read_bytes()]


@pytest.mark.parametrize("name", ["h100_decode_attention", "h100_prefill_attention", "h100_gemm", "h100_allreduce"])
def test_no_time_beats_the_datasheet(name: str) -> None:
    frame = load(name).frame
    share = _floor_us(name, frame) / frame.time_us
    assert share.max() <= 1
    # A wrong unit would pass the line above: the best kernels come near the floor.
    assert share.max() > 0.5


def _floor_us(name: str, t: pd.DataFrame) -> pd.Series[float]:
    """Return the least microseconds that the datasheet allows for each row."""
    if name == "h100_gemm":
        width, peak = t.dtype.map(WIDTH), t.dtype.map(PEAK)
        traffic = width * (t.tokens + t.n) * t.k + 2 * t.tokens * t.n
        return np.maximum(2 * t.tokens * t.n * t.k / peak, traffic / H100.hbm_bw) * 1e6
    if name == "h100_decode_attention":
        cached = 2 * t.kv_heads * t.head_size * t.context * t.batch * t.kv_dtype.map(WIDTH)
        return cached / H100.hbm_bw * 1e6
    if name == "h100_prefill_attention":
        # Scores and values, half of each under the causal mask.
        return 2 * t.batch * t.length**2 * t.heads * t.head_size / t.attn_dtype.map(PEAK) * 1e6
    # However it is reduced, each GPU sends and receives its tensor once.
    return t.bytes / H100.link_bw * 1e6


def test_served_tokens_are_consistent_and_not_faster_than_reading_the_weights() -> None:
    table = load("mlenergy").frame
    mean_ms = table.batch / table.output_tokens_per_s * 1e3
    assert (table.batch <= table.max_num_seqs).all()
    assert (table.batch >= 0.85 * table.max_num_seqs).all()
    assert (table.itl_p50_ms <= table.itl_p90_ms).all()
    assert (mean_ms / table.itl_p50_ms).between(1, 1.31).all()
    for _, rows in table.groupby(["served_model", "tp"]):
        assert rows.itl_p50_ms.is_monotonic_increasing
        assert rows.itl_p90_ms.is_monotonic_increasing
    weights = table.model.map({name: 2 * (m.n_params_total + m.lm_head_params) for name, m in MODELS.items()})
    share = weights / table.tp / H100.hbm_bw * 1e3 / table.itl_p50_ms
    assert share.max() < 1
    # A wrong unit or TP would pass the line above: at the smallest batch weights are most of a step.
    assert share[table.max_num_seqs == 8].min() > 0.5
