"""A reader's own file goes through the chapter: from measurement to coefficients, claims and plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from inference_math import catalogue
from inference_math.unit import Unit
from inference_math.workload.points import Point, points
from inference_math_bench.measure.record import Record, Row, Setup
from inference_math_bench.measure.room import room
from inference_math_bench.measure.timing import Sample

TWINS = Path(__file__).parents[2] / "_build" / "pages" / "predictions"
LINK = 50e9  # bytes/s of the host's memory


def seconds(point: Point, of: Unit) -> float:
    """A GPU that does what the unit says, reads one after the other, and pipelines its loads."""
    load = point.cached * of.model.kv_token(of.kv) / LINK
    fresh = point.prompts * point.tokens
    whole = of.step_time(point.decodes, point.context, fresh, point.cached) if point.fresh else 0.0
    inside = of.terms["caches"][0]["read"] * (point.decodes * point.context + point.prompts * point.cached)
    inside += of.terms["caches"][0]["pair"] * fresh * (point.cached + point.tokens / 2)
    layers = of.model.n_layers
    return {
        "copy": 2**31 / 4e12, "product-bf16": 2 * 8192**3 / 7e14, "product-fp8": 2 * 8192**3 / 12e14,
        "attention": inside, "matrices": whole - inside, "load": load, "load-first": load + whole,
        "load-layerwise": (load + whole + (layers - 1) * max(load, whole)) / layers,
    }.get(point.what, whole)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a reader's notebooks and file lie."""
    folder = tmp_path_factory.mktemp("reader")
    space = room(catalogue.model("llama-3-70b"), 100e9, "fp8")
    setup = Setup(
        "llama-3-70b", space.layers, space.kept, "fp8", "bf16", "h200-sxm", 0, False, {"device": "NVIDIA H200"}
    )
    of = Unit.of(replace(catalogue.model("llama-3-70b"), n_layers=space.layers), "h200-sxm", 1, "fp8")
    of = of.calibrated(of.calibration.kernels)  # what an engine adds for a request is in no kernel
    record = Record(folder / "mine.csv", setup)
    for number in (1, 2):
        for point in points(space.kept, space.fresh, fp8=True):
            s = seconds(point, of) * (1 + 0.01 * number)
            work = {"copy": {"bytes": 2.0**31}, "load": {"bytes": s * LINK}}.get(point.what, {})
            record.add(Row(number, point, Sample(s, s, s, 9), **work))
    return folder


def run(name, folder):
    notebook = nbformat.read(TWINS / f"{name}.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "skip-execution" not in cell.metadata.get("tags", [])]
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


@pytest.fixture(scope="module")
def executed(folder):
    return run("04-measure-your-own-gpu", folder)


def outputs(notebook, word):
    found = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [str(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in found]
    return [text for text in texts if word in text]


def pictures(notebook):
    found = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return sum("image/png" in output.get("data", {}) for output in found)


def test_the_chapter_reads_the_reader_s_own_file_and_draws_from_it(executed):
    (said,) = outputs(executed, "points, ")
    assert said.startswith("llama-3-70b (fp8, KV bf16) on h200-sxm:")
    assert outputs(executed, "own-lines.csv")
    assert pictures(executed) == 1


def test_its_coefficients_are_those_that_made_the_file(executed):
    """The zero-shot ones, for the file is of a unit that has them."""
    (table,) = outputs(executed, "± zero-shot")
    rows = {line.split()[0]: line.split()[-4:] for line in table.splitlines()[1:]}
    for name in ("memory", "bf16", "fp8", "kv"):
        before, _, own, _ = map(float, rows[name])
        assert own == pytest.approx(before, rel=0.05)


@pytest.mark.long
def test_so_does_the_chapter_that_tests_claims(folder):
    tested = run("04b-what-your-gpu-could-hide", folder)
    assert outputs(tested, "points")[0].startswith("llama-3-70b (fp8, KV bf16) on h200-sxm:")
    assert outputs(tested, "own-mixed.csv")
    assert outputs(tested, "own-loads.csv")
    assert pictures(tested) == 2
