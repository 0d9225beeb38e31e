"""The analysis finds a wrong law that is planted, and lets the right one pass."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from grids import rest_long
from laboratory import COST, LENGTHS

from inference_math.simulate import StepCost
from inference_math_bench.lab import analysis, costs, session
from inference_math_bench.lab.engines import Played
from inference_math_bench.lab.experiments import Counts, Interference
from inference_math_bench.lab.experiments.bench import Bench, calibration
from inference_math_bench.lab.machine import Alone
from inference_math_bench.lab.record import Book, read


def laboratory(tmp_path, experiments, rounds=4, seconds=8.0, noise=0.05):
    """Return what a session on a played engine recorded."""
    bench = Bench(Played(COST, noise=noise, seed=1), np.random.default_rng(5), seconds=seconds, watch=Alone)
    book = Book(tmp_path / "lab.jsonl", {"model": "played", "engine": {}, "machine": {}, "seed": 5})
    session.rounds(bench, book, experiments, until=1e9, progress=None, most=rounds)
    return read(tmp_path / "lab.jsonl")


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A session with one law of lengths, played once."""

    @cache
    def played(name: str):
        whole = Counts()
        arms = [arm for arm in whole.arms() if arm["lengths"] == name]
        whole.arms = lambda: arms
        return laboratory(tmp_path_factory.mktemp("counts"), [whole], rounds=6, seconds=12.0)

    return played


@pytest.mark.parametrize("name", rest_long(LENGTHS))
@pytest.mark.parametrize(("beside", "wrong"), [(False, 7), (True, 8)])
def test_counts_of_every_law_of_lengths_are_binomial(counted, name, beside, wrong) -> None:
    """And not with one slot too many or too few: B in place of B − 1, and the other way round."""
    table = analysis.counts(counted(name).trials, Counts.most)
    rows = table[table.lengths == name]
    seen = (rows.decodes if beside else rows.steps).tolist()
    design = {"users": 8, "watched": (int(rows.windows.iloc[0]), Counts.window), "beside": beside}
    found = analysis.count_test(seen, LENGTHS[name], **design)
    assert found.p > 0.02, found
    if name == "geometric":
        assert analysis.count_test(seen, LENGTHS[name], tagged=wrong, **design).p < 0.01


def test_the_right_means_pass_and_a_missing_weight_read_is_found(tmp_path, monkeypatch) -> None:
    law, arms = Interference(), [{"users": 8, "lengths": "geometric"}, {"users": 2, "lengths": "geometric"}]
    monkeypatch.setattr(law, "arms", lambda: arms)
    right = analysis.summary(laboratory(tmp_path, [law], seconds=15).table).query("quantity == 'tpot'")
    assert ((right.low < 1.02) & (right.high > 0.98)).all(), right
    predict = law.predict
    monkeypatch.setattr(law, "predict", lambda arm, cost, bench: predict(arm, replace(cost, t_w=1e-9), bench))
    (tmp_path / "wrong").mkdir()
    wrong = analysis.summary(laboratory(tmp_path / "wrong", [law], seconds=4).table).query("quantity == 'tpot'")
    assert (wrong.low > 1.2).all(), wrong


def test_a_bare_look_tells_the_cost_it_was_played_with() -> None:

    cost = StepCost(t_w=0.006, T=0.0002, T_decode=0.0004, kv_read=8e-7, pair=2e-8, prompt=0.001)
    found = costs.fit(calibration(Bench(Played(cost), np.random.default_rng(0))))
    for name, value in costs.coefficients(cost).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-6, abs=1e-12), name
    with pytest.raises(ValueError, match="at least 12 bare steps, not 0"):
        costs.fit([])


def test_the_summary_leaves_out_disturbed_trials_and_says_how_sure_it_is() -> None:
    table = pd.DataFrame({"round": [1, 2, 3, 4], "found": [1.1, 1.2, 9.0, 1.15], "usable": [True, True, False, True]})
    table = table.assign(experiment="x", arm="a", quantity="q", predicted=1.0, law=2.0)
    (one,) = analysis.summary(table).to_dict("records")
    assert one["trials"] == 3
    assert one["ratio"] == pytest.approx(1.15)
    assert one["low"] < one["ratio"] < one["high"]
    (few,) = analysis.summary(table[table["round"] < 3]).to_dict("records")
    assert few["trials"] == 2
    assert np.isnan(few["low"])  # two trials tell no scatter
    (other,) = analysis.alternatives(table).to_dict("records")
    assert (other["law"], other["ratio"]) == ("law", pytest.approx(1.15 / 2))


def test_many_intervals_are_judged_together() -> None:
    """Under a true law a tenth excludes 1 and next to none is significant; a wrong one stays."""
    rng = np.random.default_rng(3)

    def arms(mean: float, experiment: str) -> pd.DataFrame:
        trials = pd.DataFrame({"round": np.arange(1800) % 6, "arm": np.arange(1800) // 6, "usable": True})
        found = mean + 0.1 * rng.normal(size=1800)
        return analysis.summary(trials.assign(experiment=experiment, quantity="q", predicted=1.0, found=found))

    both = pd.concat([arms(1.0, "right"), arms(1.4, "wrong")], ignore_index=True)
    told = analysis.multiplicity(both).set_index("experiment")
    assert told.loc["right", "excludes"] == pytest.approx(30, abs=15)
    assert told.loc["right", "significant"] < told.loc["right", "excludes"]
    assert told.loc["wrong", "significant"] > 280
    assert told["intervals"].tolist() == [300, 300]
    assert analysis.multiplicity(both[both.experiment == "right"])["significant"].sum() <= 2
    assert analysis.multiplicity(both.assign(low=np.nan)).empty


def test_scatter_is_that_of_the_steps() -> None:

    bench = Bench(Played(COST, noise=0.1, seed=3), np.random.default_rng(0), repeats=40)
    scatter = costs.noise([calibration(bench)])
    assert scatter.std() == pytest.approx(0.1, rel=0.15)
    assert scatter.mean() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("overlap", ["none", "quadrature", "serial-kv", "full"])
def test_a_model_of_overlap_is_found_from_steps_of_its_own(overlap) -> None:
    """Also where a term is nought, at which the additive fit begins; the mixed steps are not in the fit."""
    known = StepCost(t_w=0.0075, T=2.4e-5, T_decode=1e-4, kv_read=4.6e-8, prompt=0.0013, pair=9e-10, overlap=overlap)
    steps = calibration(Bench(Played(known), np.random.default_rng(0), scale=8))
    found = costs.fit_alone(steps, overlap)
    for step in steps:
        mixed = step.decodes and step.tokens
        if not mixed or overlap in ("none", "quadrature"):  # of the others no unmixed step tells the shorter side
            said = found(step.decodes, step.context, step.prefills, step.tokens, step.pairs)
            assert said == pytest.approx(step.seconds, rel=0.02 if mixed else 0.01)
