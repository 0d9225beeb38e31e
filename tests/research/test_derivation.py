"""The scripts in tools/ derive the measured tables: all of them if the source is there, small data always."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import derive_cadence
import derive_h100_operators as h100
import derive_kv_offload
import derive_mlenergy as mlenergy
import derive_operators as operators
import derive_queue_runs
import derive_repeats
import derive_serving
import derive_silybench
import derive_splitwise as splitwise
import numpy as np
import pandas as pd
import pytest

from inference_math.evidence import data_dir

needs_source = pytest.mark.skipif(
    not (find_spec("aiconfigurator_core") and find_spec("pyarrow")),
    reason='the source is not installed (python -m pip install ".[derive]")',
)


@needs_source
@pytest.mark.parametrize("name", h100.DERIVATIONS)
def test_the_committed_tables_are_derived_byte_for_byte(name, tmp_path):
    h100.write(h100.DERIVATIONS[name](), tmp_path / "again.csv", "time_us")
    assert (tmp_path / "again.csv").read_bytes() == (data_dir() / "measured" / f"{name}.csv").read_bytes()


@needs_source
def test_the_committed_curves_are_the_fits():
    ours, key = (
        pd.read_csv(data_dir() / "measured" / "operators.csv"),
        ["kind", "gpu", "engine", "precision", "variant"],
    )
    both = ours.merge(operators.derived(h100.package_folder().parent), on=key, suffixes=("", "_again"))
    assert len(both) == len(ours)
    np.testing.assert_allclose(both.error, both.error_again, rtol=0.02)
    assert (both.counts == both.counts_again).mean() > 0.99


@needs_source
def test_measured_gemm_times_are_the_raw_ones():
    raw = h100._gemm_grid().rename(columns={"m": "tokens"})
    ours = pd.read_csv(data_dir() / "measured" / "h100_gemm.csv")
    both = ours.merge(raw, on=["engine", "dtype", "n", "k", "tokens"], suffixes=("", "_raw"))
    assert len(both) == (ours.obtained == "measured").sum()
    np.testing.assert_allclose(both.time_us, both.time_us_raw, rtol=5.01e-4)


@needs_source
def test_interpolation_errs_as_the_data_card_says():
    check = h100.check_interpolation()
    card = (data_dir() / "README.md").read_text(encoding="utf-8")
    names = {"trtllm": "TensorRT-LLM", "vllm": "vLLM"}
    for (engine, dtype), rows in check.groupby(["engine", "dtype"]):
        inner, wide = (rows[rows.obtained == kind].iloc[0] for kind in ("interpolated", "extrapolated"))
        cells = [names[engine], dtype.upper()]
        cells += [f"{row[column]:.1f} %" for row in (inner, wide) for column in ("median %", "95th %")]
        assert f"| {' | '.join(cells)} |" in card


WITH_COLUMNS = (derive_cadence, derive_kv_offload, derive_queue_runs, derive_repeats, derive_silybench, mlenergy)
SERVING = (derive_serving.kv_transfer, derive_serving.tiered_cache, derive_serving.pd_ratio)


@pytest.mark.parametrize("derive", [*(script.derive for script in WITH_COLUMNS), *SERVING])
def test_a_raw_file_without_its_columns_is_refused(derive):
    with pytest.raises(ValueError, match=r"lacks the columns (?!.*\bmodel\b)"):
        derive(pd.DataFrame(columns=["model"]))


N, K = np.array([512.0, 2048.0, 8192.0]), np.array([1024.0, 4096.0])


def test_interpolation_is_bilinear_in_the_logarithms():
    values = 0.1 * np.log2(N)[:, None] + 0.02 * np.log2(K)[None, :] * np.log2(N)[:, None]
    layers = np.stack([values, 2 * values])
    n, k = 1000.0, 3000.0
    exact = 0.1 * np.log2(n) + 0.02 * np.log2(k) * np.log2(n)
    np.testing.assert_allclose(h100.interpolate(N, K, layers, n, k), [exact, 2 * exact])
    np.testing.assert_allclose(h100.interpolate(N, K, layers, 2048, 4096), layers[:, 1, 1])


def test_interpolation_holds_the_edge_for_wide_matrices_and_refuses_the_rest():
    values = np.arange(6.0).reshape(3, 2)
    assert h100.interpolate(N, K, values, 128256, 4096) == values[2, 1]
    for n, k in [(256, 2048), (1024, 512), (1024, 8192)]:
        with pytest.raises(ValueError, match="outside the measured grid"):
            h100.interpolate(N, K, values, n, k)


def test_a_missing_corner_spoils_only_its_own_cell():
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, np.nan]])
    assert h100.interpolate(N, K, values, 1024, 2048) == pytest.approx(2.5)
    assert np.isnan(h100.interpolate(N, K, values, 4096, 2048))


def test_the_floor_is_bytes_for_one_token_and_flops_for_many():
    n, k = 8192, 8192
    weights = n * k / 3.35e12 * 1e6
    assert h100.gemm_floor("fp8", n, k, 1) == pytest.approx(weights, rel=1e-3)
    assert h100.gemm_floor("bf16", n, k, 1) == pytest.approx(2 * weights, rel=1e-3)
    assert h100.gemm_floor("fp8", n, k, 8192) == pytest.approx(2 * 8192 * n * k / 1978.9e12 * 1e6)


def test_two_measurements_of_one_size_are_refused():
    twice = pd.DataFrame({"n": [1, 1], "time_us": [1.0, 2.0]})
    with pytest.raises(ValueError, match="more than one measurement per n"):
        h100._finish(twice, "n")


def test_times_are_written_with_four_digits_and_lf(tmp_path):
    h100.write(pd.DataFrame({"n": [1, 2, 3], "time_us": [0.123456, 12345.6, 1234567.0]}), tmp_path / "t.csv", "time_us")
    assert (tmp_path / "t.csv").read_bytes() == b"n,time_us\n1,0.1235\n2,12350\n3,1235000\n"


HEADER = "model,hardware,prompt_size,batch_size,token_size,prompt_time,token_time,e2e_time,tensor_parallel\n"


def test_splitwise_takes_medians_over_distinct_runs_and_says_which_broken_groups_it_leaves_out(
    tmp_path, monkeypatch, capsys
):
    """Two good groups, one broken, and rows that are not wanted at all."""
    rows = [f"llama2-70b,h100-80gb,512,1,11,{p},10,{p + 100},2" for p in (80, 90, 100, 110, 500)] * 3
    rows += [f"llama2-70b,a100-80gb,512,32,11,{p},20,{1.2 * (p + 200)},2" for p in (600, 700)]
    rows += ["llama2-70b,h100-80gb,512,64,11,50,10,301,2", "llama2-70b,h100-80gb-pcap,512,1,11,99,9,189,2"]
    rows += ["bloom-176b,h100-80gb,512,1,11,99,9,189,8"]
    (tmp_path / "raw.csv").write_text(HEADER + "\n".join(rows))
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "raw.csv"), "--out", str(tmp_path / "out")])
    splitwise.main()
    written = (tmp_path / "out" / "splitwise_llama2_70b.csv").read_text().splitlines()
    assert written[0] == "gpu,tp,prompt,batch,output_tokens,prefill_ms,step_ms,repeats"
    assert written[1:] == ["a100-80gb,2,512,32,11,650,20,2", "h100-sxm,2,512,1,11,100,10,5"]
    assert "301" in capsys.readouterr().out


def test_mlenergy_script_selects_names_and_sorts(tmp_path, monkeypatch):
    """Two wanted rows in the wrong order, and each way of not being wanted: task, GPU, precision, model."""
    rows = [
        "Qwen__Qwen3-8B__lm-arena-chat,H100,1,1,1,8,7.971976,8.203724,8.684439,961.71168,646.56933",
        "meta-llama__Llama-3.1-70B-Instruct__lm-arena-chat,H100,4,4,1,1024,898.45283,105.61014,151.6728,6827.2079,350.5",
        "Qwen__Qwen3-8B__gpqa,H100,1,1,1,8,8,8,9,900,6000",
        "Qwen__Qwen3-8B__lm-arena-chat,B200,1,1,1,8,8,5,6,1600,646",
        "meta-llama__Llama-3.1-70B-Instruct-FP8__lm-arena-chat,H100,4,4,1,8,8,12,13,660,350",
        "google__gemma-3-12b-it__lm-arena-chat,H100,1,1,1,8,8,13,14,604,728",
    ]
    (tmp_path / "raw.csv").write_text("model,gpu,n,tp,ep,mns,B,itl50,itl90,thr,out\n" + "\n".join(rows))
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "raw.csv"), "--out", str(tmp_path / "out")])
    mlenergy.main()
    assert (tmp_path / "out" / "mlenergy.csv").read_text().splitlines() == [
        "model,served_model,gpu,tp,max_num_seqs,batch,itl_p50_ms,itl_p90_ms,output_tokens_per_s,output_tokens",
        "llama-3-70b,meta-llama/Llama-3.1-70B-Instruct,h100-sxm,4,1024,898.5,105.6,151.7,6827,350.5",
        "qwen3-8b,Qwen/Qwen3-8B,h100-sxm,1,8,7.972,8.204,8.684,961.7,646.6",
    ]


def test_the_committed_mlenergy_table_is_what_the_data_card_says():
    table = pd.read_csv(data_dir() / "measured" / "mlenergy.csv")
    assert len(table) == 64
    assert set(table.served_model) == set(mlenergy.MODEL)
    pd.testing.assert_frame_equal(table, table.sort_values(mlenergy.KEY, ignore_index=True))
    full = table.batch >= 0.996 * table.max_num_seqs
    assert (~full).sum() == 7
    card = (data_dir() / "README.md").read_text(encoding="utf-8")
    for _, row in table[~full].iterrows():
        name = row.served_model.split("/")[1].removesuffix("-Instruct")
        assert f"| {name} | {row.tp} | {row.max_num_seqs:,} | {row.batch:g} |" in card
