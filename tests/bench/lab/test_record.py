"""What is written is read back, whatever interrupts the writing."""

import json

import numpy as np
import pytest
from laboratory import HEAD, bench, one_round

from inference_math_bench.lab import session
from inference_math_bench.lab.experiments import EXPERIMENTS, Chunks, Interference
from inference_math_bench.lab.record import Book, read


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("record") / "lab.jsonl"
    file.write_text(one_round(), encoding="utf-8")
    return file


def test_every_experiment_predicts_all_that_it_finds(path) -> None:
    lab = read(path)
    found = {trial.experiment for trial in lab.trials}
    assert found == {experiment.name for experiment in EXPERIMENTS}
    free = {"steps", "windows", "gap_p50", "gap_p90", "gap_p99", "prefill_share", "context"}  # of the locked arm
    for trial in lab.trials:
        assert set(trial.found) <= set(trial.said) | free, trial
        assert all(value == value for value in trial.found.values()), trial


def test_steps_and_requests_come_back(tmp_path) -> None:
    one, book = bench(), Book(tmp_path / "lab.jsonl", HEAD)
    arm = {"users": 4, "lengths": "geometric"}
    found = Interference().run(arm, {}, one)
    number = book.prediction(1, "interference", arm, {"tpot": 0.01})
    book.outcome(number, found.values, found.observed, 0.0, True)
    (trial,) = read(tmp_path / "lab.jsonl").trials
    (seen,), (written,) = trial.observed, found.observed
    assert np.allclose(seen.log.to_numpy(float), written.log.to_numpy(float), atol=1e-6)
    assert seen.gaps == pytest.approx(written.gaps, abs=1e-6)
    assert seen.ttfts == pytest.approx(written.ttfts)
    assert [step.emitted for step in seen.steps] == [step.emitted for step in written.steps]
    assert seen.run().gaps.mean == pytest.approx(written.run().gaps.mean, rel=1e-4)


def test_an_interrupted_file_loses_the_trial_in_work_and_goes_on(path, tmp_path) -> None:
    whole = path.read_text(encoding="utf-8")
    last = whole.rindex('{"kind":"outcome"')
    cut = tmp_path / "cut.jsonl"
    cut.write_text(whole[: last + 30], encoding="utf-8")
    lab = read(cut)
    assert len(lab.trials) == len(read(path).trials) - 1
    book = Book(cut, HEAD)
    assert (book.number, book.round) == (max(trial.number for trial in lab.trials), 1)
    book.costs(2, {"t_w": 1.0})  # the line that was cut does not spoil the next one
    assert read(cut).costs[-1] == {"round": 2, "t_w": 1.0}


def test_another_setup_is_refused(path) -> None:
    with pytest.raises(ValueError, match="of another model, seed: name another file"):
        Book(path, {**HEAD, "model": "llama-3-8b", "seed": 6})


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "is empty"),
        ('{"kind":"costs"}\n', "was not written by this version of the laboratory"),
        ("[1]\n", "line 1, is no object"),
        ("x\n", "line 1, is no JSON"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, text: str, error: str) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"other.jsonl.*{error}"):
        read(file)


def test_no_file_is_said() -> None:
    with pytest.raises(FileNotFoundError, match="is no file of the laboratory"):
        read("nothing.jsonl")


def test_a_prediction_is_written_before_its_trial(path) -> None:
    said: set[int] = set()
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if line["kind"] == "prediction":
            said.add(line["trial"])
        elif line["kind"] in ("steps", "requests", "outcome"):
            assert line["trial"] in said


def test_disturbed_trials_are_repeated_and_marked(tmp_path, monkeypatch) -> None:
    busy = iter([2.0, 0.0, 2.0, 0.0])  # a look at bare steps, and a trial
    monkeypatch.setattr("inference_math_bench.lab.machine.Alone.beside", lambda self: next(busy))
    experiment = Chunks()
    monkeypatch.setattr(experiment, "arms", lambda: [{"budget": 144, "n_out": 8}])
    book = Book(tmp_path / "lab.jsonl", HEAD)
    session.rounds(bench(), book, [experiment], until=1e9, progress=None, most=1)
    assert [trial.usable for trial in read(book.path).trials] == [False, True]
