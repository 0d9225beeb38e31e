"""The data package is valid, complete, small, and nothing measured in it beats the hardware."""

import csv
import json
from typing import Any

import frictionless
import pytest

from inference_math.evidence import data_dir

PACKAGE: dict[str, Any] = json.loads((data_dir() / "datapackage.json").read_text(encoding="utf-8"))


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


def test_the_data_are_portable() -> None:
    files = [path for path in data_dir().rglob("*") if path.is_file()]
    assert not [path.name for path in files if b"\r" in path.read_bytes()]
