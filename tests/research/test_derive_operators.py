"""Curves of measured operators: the fit finds what made the times, and the rules say which tables count."""

from __future__ import annotations

import derive_operators as derive
import numpy as np
import pandas as pd
import pytest

from inference_math import catalogue
from inference_math.evidence import load

TABLE = load("operators").frame


def made(exponent, a0=8e-6, memory=0.8, compute=0.6, noise=0.0):
    rng = np.random.default_rng(1)
    read, done = np.geomspace(1e-6, 1e-3, 40), np.geomspace(1e-8, 3e-3, 40)
    time = a0 + ((read / memory) ** exponent + (done / compute) ** exponent) ** (1 / exponent)
    return pd.DataFrame({"memory": read, "compute": done, "time": time * np.exp(noise * rng.normal(size=40))})


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_the_fit_finds_what_made_the_times(exponent):
    found = derive.fitted(made(exponent), exponent)
    expected = {"a0_us": 8.0, "memory": 0.8, "compute": 0.6}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=0.01)
    assert found["error"] < 1e-3


def test_an_error_is_the_scatter_about_the_curve():
    found = derive.fitted(made(2.0, noise=0.1), 2.0)
    assert found["error"] == pytest.approx(0.1 * 0.6745, rel=0.4)  # the median of a normal number's size
    assert found["error_p90"] == pytest.approx(0.1 * 1.645, rel=0.4)


def test_without_compute_there_is_no_share_of_it():
    found = derive.fitted(made(1.0).assign(compute=0.0, time=lambda one: 8e-6 + one["memory"] / 0.5), 1.0)
    assert found["memory"] == pytest.approx(0.5, rel=0.01)
    assert np.isnan(found["compute"])


def test_slow_at_few_rows_is_host_bound_whatever_large_ones_take():
    sizes = pd.DataFrame({"precision": "fp8", "size": "a", "rows": [1.0, 8.0, 64.0, 4096.0], "time": 1e-5})
    slow = sizes.assign(precision="fp8_block", time=[2e-5, 2e-5, 2e-5, 1e-6])
    behind = derive.host_bound({("quick", "1"): sizes, ("slow", "1"): slow})
    assert behind == pytest.approx({("quick", "fp8"): 1.0, ("slow", "fp8_block"): 2.0})
    assert derive.reason(behind["slow", "fp8_block"], 0.05) == "host-bound"
    assert derive.reason(behind["quick", "fp8"], 0.05) == "yes"
    assert derive.reason(np.nan, 0.3) == "unlike its form"
    assert derive.reason(np.nan, 0.01, 0.6) == "beats the datasheet"
    assert derive.host_bound({}) == {}


def test_versions_are_compared_as_releases():
    ordered = ["0.5.6.post2", "0.5.10", "0.5.14", "0.14.0", "0.24.0", "1.3.0rc10", "1.3.0rc20", "1.3.0"]
    assert sorted(ordered, key=derive.release) == ordered


def test_candidates_of_a_release_are_one_table(tmp_path, monkeypatch):
    """A later one that timed some sizes anew leaves the others to the one before it; an older release adds nothing.

    Whichever kernels they ran.
    """
    tables = {"1.3.0": {1: 9.0, 4: 9.0}, "1.3.1rc1": {1: 3.0, 2: 2.0}, "1.3.1rc2": {1: 1.0}}
    for version in tables:
        folder = tmp_path / "b200_sxm" / "moe" / "trtllm" / version
        folder.mkdir(parents=True)
        (folder / "moe_perf.parquet").touch()

    def read(path):
        times = tables[path.parent.name]
        ran = {"version": path.parent.name, "kernel_source": path.parent.name}
        return pd.DataFrame({**ran, "size": list(times), "latency": list(times.values())})

    monkeypatch.setattr(derive.pd, "read_parquet", read)
    monkeypatch.setitem(derive.POINTS, "experts", lambda raw, gpu: raw.assign(precision="nvfp4"))
    ((key, points),) = derive.newest(tmp_path, "experts", "b200")
    assert key == ("trtllm", "1.3.1rc2")
    assert points[["size", "latency"]].to_numpy().tolist() == [[1, 1.0], [2, 2.0]]


def test_times_of_products_rise_with_their_rows():
    raw = pd.DataFrame({"gemm_dtype": "fp8", "m": [1, 2, 4], "n": 65536, "k": 8192, "latency": [3.0, 1.0, 2.0]})
    assert derive.products(raw, "b200")["time"].tolist() == [0.002, 0.001, 0.001]  # most rows first
    small = raw.assign(n=1024)
    assert derive.products(small, "b200").empty  # fits L2


def prompts(**changed):
    return derive.sparse_prefill(pd.DataFrame([block(**changed)]), "h200-sxm")


def block(**changed):
    told = {"op_name": "dsa_context_module", "architecture": "GlmMoeDsaForCausalLM", "gemm_type": "fp8_block"}
    told |= {"kv_cache_dtype": "bfloat16", "num_heads": 8, "batch_size": 1, "isl": 8192, "step": 0, "latency": 5.0}
    return told | changed


def test_sparse_prompts_attend_with_64_heads_at_least_and_look_through_the_whole_index():
    few, all_of_them, twice = (prompts(num_heads=heads).iloc[0] for heads in (8, 64, 128))
    assert few.compute == all_of_them.compute < twice.compute
    # By hand: 2,048 tokens are seen by all but the first, whose pairs are half; 64 heads of 1,088 values; 32 of 128.
    pairs, looked = 2048 * (8192 - 1024), 8192**2 / 2
    by_hand = 2 * pairs * 64 * 1088 / 989.4e12 + 2 * looked * 32 * 128 / 1978.9e12
    assert few.compute == pytest.approx(by_hand, rel=1e-3)
    assert few.memory < all_of_them.memory  # projections divide
    assert (few.time, few.precision) == (5e-3, "bfloat16")


def decodes(**changed):
    told = {"op_name": "dsa_generation_module", "isl": 1, "step": 8191, "batch_size": 64, "latency": 0.2}
    return derive.sparse_reads(pd.DataFrame([block(**(told | changed))]), "h200-sxm")


def test_sparse_decodes_read_what_is_chosen_and_the_whole_index_and_leave_their_projections_out():
    few, twice, eight = (decodes(**one).iloc[0] for one in ({}, {"num_heads": 128}, {"kv_cache_dtype": "fp8"}))
    chosen, context = 64 * 2048, 64 * 8192
    assert few.memory == pytest.approx((chosen * 576 * 2 + context * 132) / 4.8e12, rel=1e-3)
    assert eight.memory == pytest.approx((chosen * 576 + context * 132) / 4.8e12, rel=1e-3)
    by_hand = 2 * chosen * 64 * 1088 / 989.4e12 + 2 * context * 32 * 128 / 1978.9e12
    assert few.compute == pytest.approx(by_hand, rel=1e-3)
    assert few.compute < twice.compute
    assert twice.time < few.time < 0.2e-3  # more heads, more projections
    assert decodes(step=1024).empty  # all is chosen
    assert decodes(batch_size=1).empty  # the cache fits L2


def alone(**changed):
    return block(op_name="dsa_context_module_skip_indexer", **changed)


def test_sparse_prompts_that_take_another_layer_s_choice_look_through_nothing_and_count_where_they_are_faster():
    own, taken = derive.sparse_prefill(pd.DataFrame([block(), alone(latency=3.0)]), "h200-sxm").itertuples()
    assert (own.tokens, taken.tokens, taken.looked) == (8192, 0, 0)
    assert own.compute - taken.compute == pytest.approx(own.looked)
    assert taken.memory < own.memory  # no projections of the index
    assert len(derive.sparse_prefill(pd.DataFrame([block(), alone(latency=6.0)]), "h200-sxm")) == 1


def test_the_fit_finds_what_made_the_times_of_blocks_with_an_index():
    rng = np.random.default_rng(1)
    points = pd.DataFrame(
        dict(zip(["memory", "attended", "looked", "tokens"], rng.uniform(0.1, 1, (4, 60)), strict=True))
    )
    points = points.assign(tokens=1e7 * points["tokens"], compute=points["attended"] + points["looked"])
    points.loc[::2, ["looked", "tokens"]] = 0.0
    points["compute"] = points["attended"] + points["looked"]
    time = 8e-6 + points["memory"] / 0.8 + points["attended"] / 0.5 + points["looked"] / 0.3 + 1e-7 * points["tokens"]
    points["time"] = time
    index = derive._looked(points)
    assert index == pytest.approx([0.3, 1e-7], rel=0.01)
    found = derive.with_index(points, index)
    assert (found["memory"], found["compute"]) == pytest.approx((0.8, 0.5), rel=0.01)
    assert found["error"] < 1e-3
    with pytest.raises(ValueError, match="index must be known"):
        derive.with_index(points, None)


@pytest.mark.parametrize("left", [{"isl": 2048, "batch_size": 4}, {"isl": 512, "step": 4096}, {"step": 2**17}])
def test_no_curve_of_sparse_prompts_holds_dense_ones_the_host_or_the_longest(left):
    assert len(derive.sparse_prefill(pd.DataFrame([block(), block(**left)]), "h200-sxm")) == 1


def test_the_committed_table_follows_the_rules():
    assert set(TABLE["gpu"]) == set(derive.GPUS.values()) <= set(catalogue.GPUS)
    said = [derive.reason(row.behind, row.error) for row in TABLE.itertuples()]
    unsure = np.isclose(TABLE["error"], derive.UNLIKE, rtol=1e-3)  # the table has four digits
    quick = TABLE["counts"] == "beats the datasheet"
    assert set(TABLE["kind"][quick]) == {"linear attention, decode"}
    assert (pd.Series(said) == TABLE["counts"])[~unsure & ~quick].all()
    assert (TABLE[["memory", "compute"]].fillna(1) <= 1).all(axis=None)
