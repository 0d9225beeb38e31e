"""The tables of data/ are read, checked and handed out whole; damaged ones are refused by name."""

import json
from pathlib import Path

import pytest

from inference_math import evidence

FIELDS = [
    {"name": "gpu", "type": "string", "constraints": {"required": True, "enum": ["a", "b"]}},
    {"name": "batch", "type": "integer", "constraints": {"required": True, "minimum": 1, "maximum": 64}},
    {"name": "time", "type": "number", "unit": "s", "description": "Time", "constraints": {"minimum": 0}},
    {"name": "gated", "type": "boolean"},
    {"name": "experts", "type": "integer"},
]
GOOD = "gpu,batch,time,gated,experts\na,1,0.5,true,\nb,2,,false,8\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small package of one table, whose file a test may spoil."""
    described = {"title": "A table", "hardware": "H100", "engine": "vLLM", "revision": "1.0", "cautions": ["mine"]}
    origin = {"licenses": [{"name": "MIT"}], "sources": [{"title": "Somewhere", "path": "https://example.org"}]}
    schema = {"fields": FIELDS, "primaryKey": ["gpu", "batch"]}
    resource = {"name": "small", "path": "part/small.csv", **described, **origin, "schema": schema}
    (tmp_path / "datapackage.json").write_text(json.dumps({"name": "p", "resources": [resource]}))
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "small.csv").write_text(GOOD)
    return tmp_path


@pytest.mark.parametrize("name", evidence.tables())
def test_every_table_loads(name: str) -> None:
    table = evidence.load(name)
    assert len(table.frame) > 0
    assert list(table.units) == list(table.meanings) == list(table.frame.columns)
    assert table.evidence in {"measured", "published", "fitted", "predicted"}


def test_types_units_and_origin(folder: Path) -> None:
    table = evidence.load("small", folder)
    assert table.frame.to_dict("list")["batch"] == [1, 2]
    assert [str(table.frame[c].dtype) for c in ("batch", "time", "gated", "experts")] == [
        "int64", "float64", "bool", "Int64",
    ]  # fmt: skip
    assert table.frame.time.isna().tolist() == [False, True]
    assert table.frame.gated.tolist() == [True, False]
    assert (table.units["time"], table.meanings["time"], table.units["gpu"]) == ("s", "Time", "")
    assert (table.hardware, table.engine, table.revision) == ("H100", "vLLM", "1.0")
    assert (table.source, table.url, table.licence) == ("Somewhere", "https://example.org", "MIT")
    assert table.cautions == ("mine",)


def test_frames_are_the_callers_own(folder: Path) -> None:
    first = evidence.load("small", folder).frame
    first.loc[0, "time"] = 99.0
    assert evidence.load("small", folder).frame.time[0] == 0.5


def test_an_installed_package_uses_the_data_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        evidence.datapackage, "__file__", str(tmp_path / "src" / "inference_math" / "evidence" / "datapackage.py")
    )
    assert evidence.data_dir() == tmp_path / "data"
    packaged = tmp_path / "src" / "inference_math" / "_data"
    packaged.mkdir(parents=True)
    assert evidence.data_dir() == packaged


def test_unknown_table_is_refused_with_a_hint() -> None:
    with pytest.raises(ValueError, match="did you mean 'h100_gemm'"):
        evidence.load("h100_gem")


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("a,1,0.5", "a,one,0.5", ", column batch, row 2: 'one' is no integer"),
        ("a,1,0.5", "a,1.5,0.5", ", column batch, row 2: '1.5' is no integer"),
        ("a,1,0.5", "a,0,0.5", ", column batch, row 2: '0' is below 1"),
        ("b,2,", "b,65,", ", column batch, row 3: '65' is above 64"),
        ("b,2,", "b,,", ", column batch, row 3: '' is missing"),
        ("b,2,", "B,2,", ", column gpu, row 3: 'B' is none of a, b"),
        ("b,2,", "b,2,inf", ", column time, row 3: 'inf' is no number"),
        ("b,2,,false", "b,2,,no", ", column gated, row 3: 'no' is no boolean"),
        ("b,2,", "a,1,", ", column gpu, batch, row 3: 'a, 1' occurs twice"),
        ("batch", "size", ": the columns must be gpu, batch"),
        ("b,2,", "b,2,1,1,1,1,", ": .*line 3"),
    ],
)
def test_bad_cells_and_files_are_named(folder: Path, good: str, bad: str, words: str) -> None:
    (folder / "part" / "small.csv").write_text(GOOD.replace(good, bad, 1))
    with pytest.raises(ValueError, match=rf"^part/small\.csv{words}"):
        evidence.load("small", folder)


def test_a_constraint_that_nothing_checks_is_refused(folder: Path) -> None:
    path = folder / "datapackage.json"
    path.write_text(path.read_text().replace('"maximum"', '"pattern"'))
    with pytest.raises(ValueError, match=r"small\.csv: the constraint on batch must be one of"):
        evidence.load("small", folder)


def test_digest_follows_bytes_and_names_alone(folder: Path) -> None:
    before = evidence.digest(folder)
    assert len(before) == 12
    (folder / "README.md").write_text("words")
    (folder / "part" / ".hidden").write_text("x")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_text("x")
    assert evidence.digest(folder) == before
    path = folder / "part" / "small.csv"
    path.write_text(GOOD.replace("0.5", "0.6"))
    changed = evidence.digest(folder)
    assert changed != before
    path.rename(path.with_name("smaller.csv"))
    assert evidence.digest(folder) not in {before, changed}


# A table of one's own: a CSV file and its descriptor.


def test_a_file_is_read_with_its_descriptor(tmp_path):
    package = json.loads((evidence.data_dir() / "datapackage.json").read_text(encoding="utf-8"))
    resource = next(r for r in package["resources"] if r["name"] == "h100_allreduce")
    source = evidence.data_dir() / resource["path"]
    (tmp_path / "mine.csv").write_bytes(source.read_bytes())
    described = {"name": "mine", "resources": [resource | {"path": "mine.csv", "setup": {"layers": 3}}]}
    (tmp_path / "mine.json").write_text(json.dumps(described), encoding="utf-8")
    table = evidence.read(tmp_path / "mine.csv")
    assert table.frame.equals(evidence.load("h100_allreduce").frame)
    assert table.setup == {"layers": 3}
    assert evidence.load("h100_allreduce").setup == {}


def test_a_file_without_one_of_the_two_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"mine.csv is not there"):
        evidence.read(tmp_path / "mine.csv")
    (tmp_path / "mine.csv").write_text("a\n1\n")
    with pytest.raises(FileNotFoundError, match=r"mine.json is not there; it describes mine.csv"):
        evidence.read(tmp_path / "mine.csv")
    for content in ("no JSON", "[]", '{"resources": [{"path": "other.csv"}]}', '{"resources": [{"path": "mine.csv"}]}'):
        (tmp_path / "mine.json").write_text(content)
        with pytest.raises(ValueError, match=r"mine.json must be a data package that describes mine.csv"):
            evidence.read(tmp_path / "mine.csv")
