"""The tables that pages read are what the package predicts today."""

from __future__ import annotations

import predict
import pytest
from tables import write

from inference_math.evidence import data_dir, load

# Most of the time; the others take seconds.
SLOW = ("served", "served_elsewhere", "silybench", "profiled", "stands")
FIRST = 2


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in SLOW else []) for name in predict.TABLES]
)
def test_the_committed_table_is_what_is_predicted(name, tmp_path):
    """To the last digits, which another BLAS moves."""
    table = predict.TABLES[name]()
    write(table, tmp_path / "again.csv", *table.select_dtypes("float").columns, digits=predict.DIGITS)
    folder = data_dir() / "predicted"
    said, found = (
        (path / file).read_text().splitlines() for path, file in ((folder, f"{name}.csv"), (tmp_path, "again.csv"))
    )
    assert len(said) == len(found)
    for before, after in zip(said, found, strict=True):
        for old, new in zip(before.split(","), after.split(","), strict=True):
            assert old == new or float(new) == pytest.approx(float(old), rel=1e-3, abs=1e-12)


def test_every_table_of_the_folder_is_written_by_the_script():
    assert {path.stem for path in (data_dir() / "predicted").glob("*.csv")} == set(predict.TABLES)


def test_rows_are_those_of_the_measured_table():
    for name, chosen in {
        "served": "use == 'validation' and ttft_s <= 10",
        "silybench": "used",
        "queue_runs": "tp > 0",
    }.items():
        rows = load(name).frame.query(chosen).index + FIRST
        assert sorted(load(f"predicted_{name}").frame["row"]) == list(rows)


def test_served_rows_have_the_errors_of_the_table_of_groups():
    said = load("predicted_served").frame.set_index("row")
    served = load("served").frame
    rows = said.join(served.set_axis(served.index + FIRST))
    off = rows.assign(off=(rows["ttft"] / rows["ttft_s"] - 1).abs())
    key = ["model", "gpu", "engine", "weights", "drafts", "part"]
    groups = load("accuracy").frame.set_index(key)
    assert off.groupby(key)["off"].mean().to_dict() == pytest.approx(groups["ttft"].to_dict(), rel=1e-3)
    assert off.groupby(key)["ttft_inside"].mean().to_dict() == pytest.approx(groups["ttft_inside"].to_dict(), abs=1e-3)


def test_the_page_says_how_many_drafts_are_taken_to_be_accepted(root):
    text = (root / "book" / "handbook" / "speculative-decoding.md").read_text(encoding="utf-8")
    assert f"{10 * predict.served.plays.ACCEPTED:.0f} of 10 is assumed" in text
