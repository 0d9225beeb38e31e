"""Five faults of simulated engines on their pages of metrics: `watch` tells each from the others."""

import re
from dataclasses import replace

import pytest
from watch_pages import ENGINES, FOLDER, PLANNED, REQUESTS, UNIT, page

from inference_math_planner.calibrate.metrics import watch, window
from inference_math_planner.cli import main

TOLD = {
    "nothing": None,
    "drafts refused": "! planned with --accepted",
    "a token budget too large": "! planned with --budget",
    "long prompts": "! planned with --prompt",
    "one slow GPU": "Moved:\n  fp8 from",
    "a cache too small": "requests lost their place",
}


def test_all_faults_have_a_page():
    assert {fault for fault, _ in ENGINES.values()} == set(TOLD)
    assert {path.stem for path in FOLDER.iterdir()} == set(ENGINES)


@pytest.mark.parametrize("name", ENGINES)
def test_a_page_tells_its_fault_and_no_other(name, capsys):
    fault, _ = ENGINES[name]
    status = main(["watch", str(FOLDER / f"{name}.txt"), *PLANNED])
    said = capsys.readouterr().out
    assert [one for one in TOLD.values() if one and one in said] == [TOLD[fault]] * (fault != "nothing")
    assert ("!" in said) == (fault not in ("nothing", "one slow GPU"))
    assert status == (fault == "one slow GPU")


@pytest.mark.parametrize("name", ["as-planned", "engine-a", "engine-e"])
def test_a_page_is_that_of_its_engine(name, tmp_path):
    _, engine = ENGINES[name]
    path = tmp_path / "page.txt"
    path.write_text(page(engine), encoding="utf-8")
    new, old, run = window(path), window(FOLDER / f"{name}.txt"), engine.run(REQUESTS)
    for one in ("requests", "n_in", "n_out", "ttft", "queue", "first", "tpot", "in_flight", "accepted", "preempted"):
        assert getattr(new, one) == pytest.approx(getattr(old, one), rel=1e-3)
    rows = run.requests
    assert new.first == pytest.approx((rows.first_token - rows.admitted).mean())
    assert (new.drafted, new.accepted) == (3, pytest.approx(engine.unit.accepted, abs=1e-4))
    # A token takes what its answer took after the first one, however many a step gave.
    own = (rows.finished - rows.first_token).sum() / (rows.n_out - 1).sum()
    assert new.tpot == pytest.approx(own, rel=0.03)
    assert new.preempted == run.preempted


def test_a_page_with_drafts_is_compared_with_a_unit_that_drafts():
    seen = window(FOLDER / "engine-a.txt")
    with pytest.raises(ValueError, match="drafts must be 3, as many as on the page, not 0"):
        watch(UNIT.resized(drafts=0), seen)
    with pytest.raises(ValueError, match="drafts must be 0, as many as on the page, not 3"):
        watch(UNIT, replace(seen, drafted=0.0))
    found = watch(UNIT, seen)
    assert found.unit.accepted == pytest.approx(0.25, abs=1e-3)


def test_gaps_that_are_longer_are_counted_by_whole_buckets():
    seen = window(FOLDER / "engine-b.txt")
    counts = seen.gap_counts
    assert seen.longer(0.26) == counts[float("inf")] - counts[0.3]
    assert seen.longer(0.3) == counts[float("inf")] - counts[0.3] > 0
    assert seen.longer(0.0) == counts[float("inf")] - counts[0.01]
    assert replace(seen, gap_counts={}).longer(0.1) == 0
    found = watch(UNIT, seen)
    assert found.step(1024) < found.step(2048) < found.step(4096)


def test_the_handbook_s_answers_are_the_engines_faults():
    text = (FOLDER.parent / "watch.md").read_text(encoding="utf-8")
    said = dict(re.findall(r'^    "([A-E])": \("([^"]+)", f?"', text, re.M))
    assert {f"engine-{letter.lower()}": fault for letter, fault in said.items()} == {
        name: fault for name, (fault, _) in ENGINES.items() if fault != "nothing"
    }
    assert f'PLAN = "{" ".join(PLANNED)}"' in text
