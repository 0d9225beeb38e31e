from __future__ import annotations

import derive_splits
import pandas as pd

from inference_math.evidence import load

POOL = {"num_workers": 1, "tp": 8, "ep": 1, "dp_attention": 0}


def row(disagg, engine="dynamo-sglang", prefill=None, decode=None, gpus=(8, 8), **other):
    told = {
        "gpu": "b200", "engine": engine, "date": "2026-01-01", "precision": "fp8", "drafts": "none", "disagg": disagg,
        "isl": 1024, "osl": 1024, "users": 4, "ttft_p50_s": 0.1, "tpot_p50_s": 0.01, "out_tok_s_gpu": 10.0,
        "num_prefill_gpu": gpus[0], "num_decode_gpu": gpus[1], "run_url": "https://x/actions/runs/17/attempts/1",
    }  # fmt: skip
    for pool, own in (("prefill", prefill), ("decode", decode)):
        told |= {f"{pool}_{name}": value for name, value in (POOL | (own or {})).items()}
    return told | other


def test_layouts_rates_and_the_run():
    split = row(1, prefill={"num_workers": 2, "tp": 4, "ep": 4, "dp_attention": 1})
    whole = row(0, "sglang", gpus=(64, 64), decode={"ep": 8})
    found = derive_splits.served_splits(pd.DataFrame([split, whole]))
    one, other = found[found.prefill_workers > 0].iloc[0], found[found.prefill_workers == 0].iloc[0]
    assert one[["prefill_workers", "prefill_tp", "prefill_dp", "prefill_ep"]].tolist() == [2, 1, 4, 4]
    assert one[["workers", "tp", "dp", "ep"]].tolist() == [1, 8, 1, 1]
    assert (one.rate, other.rate, one.run) == (80.0, 80.0, "17")  # of the decode pool's GPUs, and of the TP
    assert one.n_in == 0.9 * 1024
    assert other[["tp", "dp", "ep"]].tolist() == [8, 1, 8]
    assert one.part == other.part != ""


def test_what_states_no_layout_and_set_ups_without_splits_are_left_out():
    unknown = row(1, gpus=(8, 16))
    scattered = row(1, prefill={"tp": 1, "ep": 8})  # eight GPUs whose attention is neither split nor apart
    other_engine = row(1, "atom")
    whole, alone = row(0, "sglang"), row(0, "sglang", drafts="mtp")
    without_rival = row(1, precision="fp4")
    left = [unknown, scattered, other_engine, whole, alone, without_rival]
    assert derive_splits.served_splits(pd.DataFrame(left)).empty


def test_a_split_without_a_prefill_worker_is_no_aggregated_point():
    nobody = row(1, prefill={"num_workers": 0}, gpus=(0, 8))
    found = derive_splits.served_splits(pd.DataFrame([nobody, row(1), row(0, "sglang")]))
    assert sorted(found.prefill_workers) == [0, 1]


def test_a_group_is_in_one_part_whatever_its_engine_and_its_drafts():
    rows = [
        row(disagg, engine, drafts=drafts, precision=precision, isl=isl)
        for disagg in (0, 1) for engine in ("dynamo-sglang", "dynamo-trt") for drafts in ("none", "mtp")
        for precision in ("fp8", "fp4") for isl in (1024, 8192)
    ]  # fmt: skip
    found = derive_splits.served_splits(pd.DataFrame(rows))
    assert found.groupby(derive_splits.GROUP).part.nunique().eq(1).all()
    assert found.part.value_counts().to_dict() == {"choose": 16, "score": 16}


def test_parts_are_those_that_are_stored():
    stored = load("served_splits").frame
    assert derive_splits.parts(stored.drop(columns="part")).part.equals(stored.part)
