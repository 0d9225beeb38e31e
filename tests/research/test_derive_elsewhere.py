"""Rows of other sources: which are taken, and what is made of them."""

from __future__ import annotations

import derive_elsewhere as derive
import pandas as pd
import pytest

from inference_math.evidence import load

ENERGY = {
    "task": "gpqa", "model": "openai/gpt-oss-120b", "n_gpus": "8", "dp": "2", "ep": "8", "gpu": "B200",
    "engine_version": "0.11.1", "precision": "mxfp4", "osl_mean_actual": "5000", "batch_mean": "31.5",
    "tbt_mean_ms": "12.5",
}  # fmt: skip
COOK = {
    "model": "deepseek-ai/DeepSeek-R1-0528", "gpu": "B200 (8x)", "tp": "8", "ep": "", "engine_version": "0.5.6",
    "spec_decode": "none", "tpot_mean_ms": "20", "isl_mean_actual": "512.5", "osl_mean_actual": "300",
    "mean_concurrency": "0.9",
}  # fmt: skip
ATOM = {
    "model": "Kimi-K2-Thinking-MXFP4", "gpu": "mi355x", "n_gpus": "4", "tp": "4", "ep": "1", "dp": "1",
    "precision": "mxfp4", "isl": "1000", "osl": "500", "concurrency": "8", "tpot_mean_ms": "13",
    "notes": "range ratio 0.8: mean lengths 0.9 nominal",
}  # fmt: skip


def rows(make, row, **changes):
    return list(make(pd.DataFrame([row | changes])))


def test_times_are_seconds_and_what_is_left_of_gpus_shares_matrices():
    (one,) = rows(derive.mlenergy, ENERGY)
    assert (one["tp"], one["dp"], one["ep"], one["gpus"]) == (4, 2, 8, 8)
    assert (one["tpot_s"], one["users"], one["n_out"]) == (0.0125, 31.5, 5000)
    assert rows(derive.mlenergy, ENERGY, task="lm-arena-chat") == []


def test_lengths_are_those_that_were_seen():
    (one,) = rows(derive.cookbook, COOK)
    assert (one["n_in"], one["n_out"], one["users"], one["ep"]) == (512.5, 300, 1, 1)
    assert rows(derive.cookbook, COOK, spec_decode="EAGLE") == []
    assert rows(derive.cookbook, COOK, tpot_mean_ms="") == []
    assert rows(derive.cookbook, COOK, gpu="H800 (16x)") == []


@pytest.mark.parametrize(("notes", "part"), [("range ratio 0.8", 0.9), ("range ratio 1.0 (exact lengths)", 1)])
def test_drawn_lengths_have_their_mean(notes, part):
    (one,) = rows(derive.atom, ATOM, notes=notes)
    assert (one["n_in"], one["n_out"]) == (1000 * part, 500 * part)


def test_the_table_has_each_measurement_once():
    table = load("served_elsewhere").frame
    assert not table.duplicated().any()
    assert set(table["source"]) == {"ML.ENERGY", "SGLang cookbook", "ATOM recipes"}
    assert (table["tp"] * table["dp"] == table["gpus"]).all()
