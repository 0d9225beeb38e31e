"""The quick laboratory on vLLM itself, end to end: counts, not seconds. `make test-lab` runs it."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from inference_math_bench.lab.experiments.bench import N_IN, N_OUT
from inference_math_bench.lab.record import read

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="no vLLM here: make test-lab"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    path = tmp_path_factory.mktemp("quick") / "lab.jsonl"
    command = [sys.executable, "-m", "inference_math_bench.lab", "--quick", "--out", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return read(path)


def test_every_experiment_ran(lab) -> None:
    ran = {trial.experiment for trial in lab.trials}
    assert {"step", "interference", "counts", "limit", "reuse", "store", "chunks", "open"} <= ran


def trials(lab, experiment, **arm):
    """Return the trials of an experiment whose arm says so; there are some."""
    found = [one for one in lab.trials if one.experiment == experiment and arm.items() <= one.arm.items()]
    assert found
    return found


def test_a_step_has_every_user_once(lab) -> None:
    """Whoever does not decode has a prompt computed: the law's slots are always full."""
    for seen in (seen for trial in trials(lab, "counts") for seen in trial.observed):
        assert {step.decodes + round(step.prefills) for step in seen.steps} == {8}


def test_tokens_and_contexts_add_up(lab) -> None:
    for step in (step for trial in lab.trials for seen in trial.observed for step in seen.steps):
        assert step.decodes <= min(len(step.emitted), step.context)
        assert step.model <= step.seconds


def test_the_cache_holds_what_is_shared_the_store_what_is_stored_and_a_step_its_budget(lab) -> None:
    for experiment, what, name in (("reuse", "prefill", "cached"), ("store", "load", "stored")):
        for trial in trials(lab, experiment, what=what):
            assert {step.cached for step in trial.observed[0].steps} == {0, trial.arm[name]}
    for trial in trials(lab, "chunks"):
        assert max(step.tokens + step.decodes for step in trial.observed[0].steps) <= trial.arm["budget"]


def test_equal_answers_that_begin_together_stay_together(lab) -> None:
    for trial in trials(lab, "interference", lengths="locked"):  # several, where the machine was busy
        assert {step.decodes for step in trial.observed[0].steps} <= {0, 8}


def test_the_mean_context_is_length_biased(lab) -> None:
    found = [t.found["context"] for t in trials(lab, "interference") if t.arm.get("users", 0) >= 32]
    assert np.mean(found) == pytest.approx(N_IN + N_OUT, rel=0.15)
