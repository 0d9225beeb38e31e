"""Files of the harness become tables that say where they come from, row by row as they were."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import derive_steps
import pytest

from inference_math import evidence
from inference_math.workload.points import Point
from inference_math_bench.measure.record import Record, Row, Setup
from inference_math_bench.measure.timing import Sample

MACHINE = {"device": "NVIDIA H20", "power_limit": "500.00 W", "driver": "580", "host": "somebody's computer"}
SETUP = Setup("llama-3-8b", 32, 2**17, "bf16", "bf16", "h20", 0, False, MACHINE)


@pytest.fixture
def data(tmp_path):
    (tmp_path / "measured").mkdir()
    (tmp_path / "datapackage.json").write_text(json.dumps({"resources": []}), encoding="utf-8")
    return tmp_path


def derived(data, monkeypatch, setup=SETUP):
    record = Record(data / "mine.csv", setup)
    record.add(Row(len(record.done) + 1, Point("decode", 8, 512), Sample(0.01, 0.009, 0.011, 9)))
    monkeypatch.setattr(sys, "argv", ["", "2026-11-26", str(record.path), "--data", str(data)])
    derive_steps.main()
    return record


def test_a_file_becomes_a_table_with_its_rows_and_origin_and_without_the_host(data, monkeypatch):
    record = derived(data, monkeypatch)
    table = evidence.load("steps_h20_llama_3_8b_bf16", data)
    assert table.frame.equals(record.table.frame)
    assert (table.evidence, table.licence) == ("measured", "CC-BY-4.0")
    assert table.hardware == "1 NVIDIA H20, 500.00 W, driver 580"
    assert "2026-11-26" in table.revision
    assert table.setup["machine"] == {key: value for key, value in MACHINE.items() if key != "host"}


def test_a_table_that_is_there_is_made_anew(data, monkeypatch):
    derived(data, monkeypatch)
    derived(data, monkeypatch)
    assert evidence.tables(data) == ("steps_h20_llama_3_8b_bf16",)
    rows = (data / "measured" / "steps_h20_llama_3_8b_bf16.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 3


@pytest.mark.parametrize("wrong", [{"toy": True}, {"gpu": ""}])
def test_a_toy_and_a_gpu_that_nobody_knows_are_refused(data, monkeypatch, wrong):
    with pytest.raises(ValueError, match=r"mine.csv must be measured on a GPU of the catalogue"):
        derived(data, monkeypatch, replace(SETUP, **wrong))
