"""The file: its schema, its descriptor, and going on after an interruption."""

import csv
from dataclasses import asdict, replace

import frictionless
import pytest

from inference_math import evidence
from inference_math.workload.points import Point
from inference_math_bench.measure.record import COLUMNS, Record, Row, Setup
from inference_math_bench.measure.timing import Sample

SETUP = Setup(
    "llama-3-8b", 32, 2**17, "bf16", "bf16", "h100-sxm", 0, False, {"device": "NVIDIA H100", "software": "PyTorch"}
)
ROWS = [
    Row(1, Point("decode", 8, 512), Sample(0.0123456789, 0.0123, 0.0125, 40)),
    Row(1, Point("prefill", prompts=2, tokens=128, cached=64), Sample(0.05, 0.04, 0.06, 10)),
    Row(2, Point("copy"), Sample(1e-5, 1e-5, 1e-5, 50), bytes=2.0**31),
]


@pytest.fixture
def record(tmp_path):
    found = Record(tmp_path / "mine.csv", SETUP)
    for row in ROWS:
        found.add(row)
    return found


def test_rows_come_back_as_they_were_written(record):
    table = evidence.read(record.path)
    assert tuple(table.frame.columns) == COLUMNS
    assert table.frame.loc[0, ["what", "decodes", "context", "repeats"]].tolist() == ["decode", 8, 512, 40]
    assert table.frame["time_us"].tolist() == pytest.approx([12345.7, 50000, 10], rel=1e-9)
    assert table.frame["bytes"].tolist() == [0, 0, 2**31]
    assert record.done == {(row.round, row.point) for row in ROWS}


def test_the_descriptor_is_a_data_package_that_frictionless_accepts(record):
    limit = csv.field_size_limit()
    report = frictionless.validate(str(record.path.with_suffix(".json")))
    csv.field_size_limit(limit)  # frictionless changes it for the whole process
    assert report.valid, report.flatten(["title", "rowNumber", "fieldName", "message"])
    table = record.table
    assert table.setup == asdict(SETUP)
    assert Setup.of(record.path) == SETUP
    assert table.evidence == "measured"
    assert all(table.units[name] and table.meanings[name] for name in COLUMNS)


def test_a_toy_says_that_it_is_no_measurement(tmp_path):
    table = Record(tmp_path / "toy.csv", replace(SETUP, toy=True)).table
    assert table.evidence == "toy"
    assert "NO MEASUREMENT" in table.cautions[0]


@pytest.mark.parametrize(("cut", "left"), [(0, 3), (1, 2), (3, 2), (20, 2), (10_000, 0)])
def test_it_goes_on_where_it_was_interrupted_and_measures_a_cut_line_again(record, cut, left):
    """Also where the cut number would still be one: 50 repeats read as 5; and where the header was cut."""
    text = record.path.read_text()
    record.path.write_text(text[: max(len(text) - cut, 8)])
    assert Setup.of(record.path) == SETUP
    again = Record(record.path, SETUP)
    assert again.done == {(row.round, row.point) for row in ROWS[:left]}
    again.add(Row(2, Point("decode", 8, 512), ROWS[0].sample))
    assert len(again.table.frame) == left + 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "llama-3-70b"}, r"another model \('llama-3-8b', now 'llama-3-70b'\)"),
        ({"layers": 30}, r"another layers \(32, now 30\)"),
        ({"machine": {"device": "NVIDIA H200"}}, "another machine"),
    ],
)
def test_a_file_of_another_setup_is_left_alone(record, change, words):
    before = record.path.read_bytes()
    with pytest.raises(ValueError, match=words):
        Record(record.path, replace(SETUP, **change))
    assert record.path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "words"),
    [("mine.txt", "out must end in .csv, not 'mine.txt'"), ("nowhere/mine.csv", "must lie in a folder that is there")],
)
def test_a_place_that_will_not_do_is_named(tmp_path, name, words):
    with pytest.raises(ValueError, match=words):
        Record(tmp_path / name, SETUP)


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path):
    other = tmp_path / "mine.json"
    other.write_text("{}")
    with pytest.raises(ValueError, match="is there without its table"):
        Record(tmp_path / "mine.csv", SETUP)
    assert other.read_text() == "{}"
    assert Setup.of(tmp_path / "mine.csv") is None
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"mine.json must be a data package that describes mine.csv"):
        Record(tmp_path / "mine.csv", SETUP)
