"""Served points as closed loops, and how well they are predicted."""

from __future__ import annotations

from functools import cache

import accuracy
import fit_served
import from_served
import halves
import numpy as np
import pandas as pd
import pytest
import served

from inference_math import catalogue
from inference_math.evidence import load
from inference_math.unit import Unit
from inference_math.unit.coefficients import COEFFICIENTS, DATASHEET, SHARES
from inference_math.unit.nearest import levels
from inference_math.unit.shapes import kind_of
from inference_math.workload import Workload

FITTED, TRIED = served.points("calibration"), served.points("validation")


@cache
def all_scored() -> pd.DataFrame:
    """Return what is predicted for the points set aside: once, for it takes a while."""
    return served.scored(TRIED[TRIED.left_out != "queue"])


def test_rows_are_of_one_use_and_reasons_are_given():
    assert len(FITTED) + len(TRIED) == 1727
    assert set(FITTED.left_out) == {
        "", "drafts", "drafts by TPOT", "queue", "pools", "precision not stated", "layout not stated",
        "prefixes reused", "users",
    }  # fmt: skip
    assert (FITTED.left_out == "pools").sum() == 55
    assert set(FITTED[FITTED.left_out == "drafts by TPOT"].model) == {"deepseek-v3"}
    assert set(FITTED.part) == {""}
    assert set(TRIED.left_out) == {"", "drafts", "queue"}
    assert (FITTED[FITTED.left_out == "queue"].ttft_s > served.BURST).all()
    expected = FITTED.ttft_s + (FITTED.n_out - 1) * FITTED.tpot_s
    assert np.allclose(FITTED.e2e_s, expected)


@pytest.mark.long
def test_no_group_is_without_a_prediction_and_none_beats_the_hardware():
    rows, table = TRIED[TRIED.left_out != "queue"], all_scored()
    assert len(table) == len(rows)
    assert set(table.drafts) == {"none", "mtp", "unknown"}
    assert np.isfinite(table[["tpot", "e2e", "low", "high"]]).all().all()
    assert (table.e2e >= table.floor).all()
    assert (table.low >= 0.999 * table.floor).all()
    assert (table.e2e_s >= table.floor).all()


@pytest.mark.long
def test_rows_that_draft_are_predicted_with_drafts_and_rows_that_do_not_say_with_both():
    rows = TRIED[(TRIED.left_out != "queue") & (TRIED.model == "deepseek-v3") & (TRIED.users <= 64)]
    found = all_scored().loc[rows.index]
    as_none, as_mtp = (served.scored(rows.assign(drafts=each)) for each in ("none", "mtp"))
    times = ["ttft", "e2e", "tpot", "low", "high", "ttft_low", "tpot_high", "floor"]
    for drafts, same in (("none", as_none), ("mtp", as_mtp)):
        assert np.allclose(found[times][rows.drafts == drafts], same[times][rows.drafts == drafts])
    known, unknown = rows.drafts == "mtp", rows.drafts == "unknown"
    off = {name: (one.e2e / one.e2e_s - 1).abs()[known].mean() for name, one in (("with", found), ("without", as_none))}
    assert off["with"] < 0.2 < off["without"]  # what is accepted was fitted to other rows
    for name in ("ttft", "e2e", "tpot"):
        assert np.allclose((found[name] ** 2)[unknown], (as_none[name] * as_mtp[name])[unknown])
    for low, high, value in (("low", "high", "e2e"), ("ttft_low", "ttft_high", "ttft")):
        assert (found[low] <= found[value]).all()
        assert (found[value] <= found[high]).all()
        assert (found[high] / found[low] >= as_none[high] / as_none[low] - 1e-12)[unknown].all()
    assert served.beside_peer(found).peer[known].isna().all()


def test_intervals_hold_what_they_say_and_the_first_token_is_as_benchmarks_measure_it():
    """Of the part by which widths are chosen, in the committed table: the law of full slots was 70 % off."""
    said = load("predicted_served").frame.drop(columns="part")
    rows = TRIED[(TRIED.left_out == "") & (TRIED.part == "choose") & (TRIED.drafts == "none")]
    found = rows.merge(said, on="row", validate="1:1")
    assert len(found) == len(rows)
    kinds = found.model.map(lambda name: kind_of(catalogue.model(name)))
    inside = found.groupby(kinds)[["e2e_inside", "tpot_inside", "ttft_inside"]].mean()
    assert set(inside.index) == {"dense", "mixture of experts", "MLA"}
    assert ((inside >= 0.8) & (inside <= 1.0)).all(axis=None)  # e2e of mixtures: wider than it need be
    assert inside.e2e_inside.drop("mixture of experts").max() < 0.99
    off, law = ((found[name] / found.ttft_s - 1).abs() for name in ("ttft", "law"))
    assert off.mean() < 0.28 < 0.6 < law.mean()
    assert off.groupby(found.engine).mean().max() < 0.3
    total = found.ttft + (found.n_out - 1) * found.tpot  # one play: they cannot contradict each other
    assert np.allclose(total, found.e2e, rtol=0.02)


def test_own_runs_of_a_mixture_bring_predictions_nearer():
    """24 points of gpt-oss on the B200, of which no point was fitted, predict its others (a profile from served)."""
    rows = TRIED[(TRIED.left_out == "") & (TRIED.model == "gpt-oss-120b") & (TRIED.engine == "trtllm")]
    (own,) = load("predicted_profiled").frame.query("model == 'gpt-oss-120b' and engine == 'trtllm'").itertuples()
    assert own.points == len(rows) - 24
    assert own.profile < 0.1 < own.shipped


@pytest.mark.long
def test_points_of_other_sources_are_predicted_by_their_engine_and_version():
    found = served.external_results()
    assert (found[["tpot", "low", "high"]] > 0).all(axis=None)
    assert (found["low"] <= found["tpot"]).all()
    assert (found["tpot"] <= found["high"]).all()
    oss = found[(found["model"] == "gpt-oss-120b") & (found["source"] == "ML.ENERGY")]
    assert (oss["tpot"] / oss["tpot_s"] - 1).abs().mean() < 0.15  # of a source that nothing was fitted to
    row = oss.iloc[0]
    unit = Unit.of(row["model"], row["gpu"], int(row["tp"]), engine="vllm", version=row["version"])
    assert unit.tpot(Workload(row["n_in"], row["n_out"], lengths="geometric"), row["users"]) == pytest.approx(
        row["tpot"]
    )


def test_one_source_alone_and_under_other_coefficients():
    found = served.external_results(source="ATOM recipes", unit=lambda unit: unit.calibrated(DATASHEET))
    assert set(found["source"]) == {"ATOM recipes"}
    assert (found["tpot"] < served.external_results(source="ATOM recipes")["tpot"]).all()
    with pytest.raises(ValueError, match="source must be one of ATOM recipes, "):
        served.external_results(source="hearsay")


def test_an_engine_that_is_not_calibrated_is_less_sure_than_the_one_it_is_taken_for():
    found = served.external_results(source="ATOM recipes")
    known = served.external_results(source="ATOM recipes", unit=served.like_ours, foreign=False)
    assert (found["tpot"] == known["tpot"]).all()
    assert (found["high"] / found["low"] > 1.001 * known["high"] / known["low"]).all()


@pytest.mark.long
def test_intervals_of_mixtures_are_as_wide_as_another_source_asks():
    """The width is that of ML.ENERGY's mixtures beside the groups left out."""
    others = served.external_results(source="ML.ENERGY")
    misses = np.log(others["tpot_s"] / others["tpot"])[others["kind"] == "mixture of experts"].abs()
    assert levels().spread["mixture of experts"] > np.quantile(misses, 0.75) / 1.645


@pytest.mark.long
def test_errors_name_what_was_set_aside_and_who_else_published(monkeypatch):
    known = all_scored()
    monkeypatch.setattr(served, "scored", lambda frame: known.loc[frame.index])
    own = accuracy.watched_results()
    found = served.errors(pd.concat([own, accuracy.silybench_results()], ignore_index=True))
    others = {"ML.ENERGY", "SGLang cookbook", "ATOM recipes", "silybench", *own["source"]}
    assert set(found["source"]) == {"set aside", "left out", *others}
    assert (found[found["source"] == own["source"].iloc[0]]["points"] == len(own)).all()
    assert set(found[found["maker"] == "AMD"]["engine"]) == {"sglang", "atom"}
    shipped = load("served_error").frame
    blind = TRIED.query("left_out != 'queue' and part == 'blind'")
    assert found.loc[found["source"] == "set aside", "points"].sum() == len(blind) < len(TRIED)
    left = found[found["source"] == "left out"]
    assert left["points"].sum() == load("served_left_out").frame["points"].sum()
    assert left["inside"].isna().all()
    key = ["kind", "engine", "maker", "source", "model", "gpu", "weights", "drafts"]
    # Rows of `served_halves` that set no coefficient are there by name and number; a release predicts them, no test.
    monkeypatch.setattr(halves, "predicted", lambda frame: frame)
    today = halves.results(halves.chosen())
    later = shipped[shipped["source"].isin(today["source"])]
    told = later.set_index([*key[3:], "engine"])["points"].sort_index()
    assert told.equals(today.groupby(told.index.names).size().rename("points").sort_index())
    shipped = shipped.drop(later.index).reset_index(drop=True)
    assert shipped[key].equals(found[key])
    assert np.allclose(shipped[["error", "ttft"]], found[["error", "ttft"]], rtol=0.02, equal_nan=True)
    # The page on accuracy has the same points, group by group.
    groups = load("accuracy").frame.query("part == 'blind'").set_index(["model", "gpu", "engine", "weights", "drafts"])
    own = shipped[shipped["source"] == "set aside"].set_index(groups.index.names)
    for name, told in (("error", "e2e"), ("ttft", "ttft"), ("points", "points"), ("inside", "inside")):
        assert np.allclose(own[name].sort_index(), groups[told].sort_index(), rtol=1e-3)


def test_users_without_a_place_wait():
    crowd = FITTED[(FITTED.left_out == "") & (FITTED.model == "minimax-m2") & (FITTED.users >= 1024)]
    for loop in served.loops(crowd):
        assert np.allclose(loop.users * loop.waiting, loop.rows.users)
        assert (loop.users <= loop.unit.places(loop.work)).all()


def test_scores_by_hand():
    table = pd.DataFrame(
        {
            "g": ["a", "a", "b"], "e2e": [1.1, 0.8, 3.0], "e2e_s": [1.0, 1.0, 2.0], "tpot": [1.0, 2.0, 1.0],
            "tpot_s": [1.0, 1.0, 1.0], "low": [0.9, 0.7, 2.5], "high": [1.2, 0.9, 3.5],
        }
    )  # fmt: skip
    plain = {"points": [2, 1], "tpot": [0.5, 0], "e2e": [0.15, 0.5], "bias": [-0.05, 0.5], "inside": [0.5, 0]}
    first = table.assign(ttft=[0.5, 1.0, 1.0], ttft_s=1.0, ttft_low=0.4, ttft_high=[0.9, 1.1, 2.0])
    of_first = {"ttft": [0.25, 0], "ttft_bias": [-0.25, 0], "ttft_inside": [0.5, 1]}
    peer = table.assign(peer=[1.2, np.nan, 1.0])
    for asked, expected in ((table, {}), (first, of_first), (peer, {"peer": [0.2, 0.5]})):
        found = served.score(asked, ["g"]).set_index("g")
        assert plain.keys() | expected.keys() <= set(found.columns)
        for name, values in (plain | expected).items():
            assert found[name].tolist() == pytest.approx(values), name


def test_the_peer_stands_beside_the_rows_it_predicts():
    rows = TRIED[TRIED.left_out == ""]
    beside = served.beside_peer(rows)
    assert beside.index.equals(rows.index)
    assert beside.drop(columns=["peer", "peer_ttft"]).equals(rows)
    assert beside.peer.isna().sum() == 55  # experts cut over GPUs, under TensorRT-LLM


@pytest.mark.long
def test_a_fit_finds_the_coefficients_that_made_the_times():
    """One engine, one model, of which the times are those of known coefficients: layer and memory come back."""
    rows = FITTED[(FITTED.left_out == "") & (FITTED.model == "llama-3-70b") & (FITTED.engine == "trtllm")]
    loops = from_served.loops_of(list(served.loops(rows, DATASHEET)))
    added, made = np.log(4.0), []  # four times what a layer is thought to take beside its launches
    for loop in loops:
        asked = from_served.Asked(loop, 1.0)
        tpot, e2e = asked.predict(asked.values(asked.start + added * (np.array(COEFFICIENTS) == "layer")))
        made.append(served.Loop(loop.unit, loop.work, loop.rows.assign(tpot_s=tpot, e2e_s=e2e * loop.waiting)))
    found = from_served.fit(made, most=12).levels.effects
    at = {"engine": "trtllm", "model": "trtllm/llama-3-70b", "generation": "Hopper", "kind": "dense", "weights": "fp8"}
    moved = {name: sum(found[factor][level][name] for factor, level in at.items()) for name in COEFFICIENTS}
    assert moved["layer"] == pytest.approx(added, rel=0.3)  # the prior holds it a little
    assert all(abs(moved[name]) < 0.1 for name in SHARES)


def test_slopes_are_those_of_the_misses():
    """A loop's residuals hang on its own coefficients alone, which makes the fit ten times as fast."""
    some = from_served.loops_of(list(served.loops(FITTED[FITTED.left_out == ""].iloc[:30], DATASHEET)))
    asked = [from_served.Asked(loop, 1.0) for loop in some]
    names = tuple(sorted({pair for one in asked for pair in one.levels.items()}))
    problem = from_served._Problem(asked, names)
    at = np.random.default_rng(0).normal(0, 0.3, problem.scale.size)
    slopes = problem.slopes(at)
    for number in (0, 9, 17, at.size - 4):
        step = 1e-5 * (np.arange(at.size) == number)
        assert slopes[:, number] == pytest.approx(
            (problem.misses(at + step) - problem.misses(at - step)) / 2e-5, abs=2e-3
        )


def test_rows_whose_users_were_not_served_set_nothing():
    """Twice the users cannot take the same time: one of the two rows was not run as it says."""
    untold = FITTED[FITTED.left_out == "users"]
    assert set(untold.model) == {"gpt-oss-120b", "minimax-m2", "qwen3.5-397b-a17b"}
    assert untold.users.min() >= served.MANY
    assert not (served.points("validation").left_out == "users").any()


def test_a_run_that_a_weaker_gpu_beats_by_far_was_held_up():
    two = FITTED[FITTED["left_out"] == ""].iloc[:1]
    rows = pd.concat([two.assign(gpu=gpu, tpot_s=tpot) for gpu, tpot in (("b300", 0.016), ("b200", 0.01))])
    rows = rows.reset_index(drop=True)
    assert served.slowed(rows).tolist() == [True, False]
    assert not served.slowed(rows.assign(gpu=["b200", "b300"])).any()  # the better one is faster
    assert not served.slowed(rows.assign(tpot_s=[0.0149, 0.01])).any()
    weakest = pd.concat([rows, rows.iloc[:1].assign(gpu="h200-sxm", tpot_s=0.05)], ignore_index=True)
    assert served.slowed(weakest).tolist() == [True, False, False]  # one GPU that is weaker and faster is enough
    late = rows.assign(tpot_s=0.01, ttft_s=[0.26, 0.1])
    assert served.slowed(late).tolist() == [True, False]
    assert not served.slowed(late.assign(ttft_s=[0.24, 0.1])).any()
    assert not served.slowed(rows.assign(users=[4, 8])).any()


def test_runs_that_were_held_up_are_predicted_and_set_nothing():
    """Prompts of DeepSeek on the B300 took five times as long as on the B200."""
    sound = FITTED[FITTED["left_out"] == ""]
    held_up = sound[served.slowed(sound)]
    assert set(zip(held_up["model"], held_up["gpu"], strict=True)) == {("deepseek-v3", "b300")}
    loops = list(served.loops(sound.assign(slowed=served.slowed(sound)), DATASHEET))
    kept = pd.concat([loop.rows for loop in fit_served.sound(loops)])
    assert sorted(kept["row"]) == sorted(sound.drop(held_up.index)["row"])


def test_a_group_of_many_points_does_not_speak_for_all_in_the_spread():
    many = pd.DataFrame({"e2e": 1.0, "e2e_s": np.exp(np.linspace(-0.1645, 0.1645, 900)), "model": "many"})
    few = [pd.DataFrame({"e2e": 1.0, "e2e_s": np.exp(np.full(20, 0.4)), "model": name}) for name in "abcd"]
    table = pd.concat([many, *few], ignore_index=True).assign(kind="MLA", gpu="g", engine="e", weights="w")
    table = table.assign(low=1.0, high=1.0)
    assert from_served.spreads(table)["MLA"] == pytest.approx(0.4 / 1.645, rel=0.01)
    assert np.quantile(np.abs(np.log(table.e2e_s)), 0.9) < 0.2


def test_whole_curves_are_set_aside_before_anything_is_chosen():
    frame = served.points("validation")
    told = served.parts(frame)
    assert set(told) == {"choose", "blind"}
    curves = frame.assign(part=told).groupby(
        ["model", "gpu", "engine", "weights", "tp", "ep", "dp", "version", "n_in", "n_out"]
    )
    assert all(len(set(one)) == 1 for _, one in curves.part)
    for _, rows in frame.assign(part=told).groupby(["model", "gpu", "engine"]):
        assert 0.25 < (rows.part == "blind").mean() < 0.75
    # The same rows in another order are in the same parts.
    assert served.parts(frame.sample(frac=1, random_state=1)).sort_index().equals(told)
