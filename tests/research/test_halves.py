"""Rows that choose, played as they were run."""

from __future__ import annotations

from dataclasses import replace

import halves
import numpy as np
import pandas as pd
import pytest
from recipes import SPAN

CHOOSING = halves.choosing()


def row(**told: object) -> dict[str, object]:
    """Return the first row that chooses with these values."""
    found = CHOOSING[(CHOOSING[list(told)] == pd.Series(told)).fillna(False).all(axis=1)]
    return dict(found.iloc[0])


def test_rows_that_score_are_not_among_them():
    assert set(CHOOSING["part"]) == {"choose"}
    assert len(CHOOSING) == 322
    assert CHOOSING.query("cold")["source"].unique().tolist() == ["InferenceX"]


def test_what_a_row_was_told_is_what_is_played():
    told = halves.told_of(row(model="glm-5.2", gpu="h200-sxm", seqs=64))
    assert (told.recipe.budget, told.recipe.memory, told.recipe.kv, told.places) == (8192, 0.85, "bf16", 64)
    assert halves.told_of(row(kv="fp8")).unit.kv == "fp8"
    drafted = halves.told_of(row(drafted=5))
    assert (drafted.unit.drafts, drafted.recipe.policy.alone) == (5, True)
    cut = halves.told_of(row(told="enable_chunked_prefill"))
    assert not cut.recipe.policy.whole
    free = halves.told_of(row(engine="trtllm", source="GPUStack", users=1000)).unit
    assert free.share > 0.9  # of what the weights leave
    old = halves.told_of(row(engine="vllm", version="0.11.0"))
    assert (old.recipe.budget, old.recipe.policy.ahead) == (2048, False)  # on the A100


UNTOLD = {"told": np.nan, "memory": np.nan, "source": "GPUStack"}


def test_untold_sglang_keeps_more_memory_for_itself_where_groups_have_requests_of_their_own():
    split = row(model="glm-5.2", gpu="h200-sxm", dp=8, ep=1)
    whole = row(model="glm-5.2", gpu="h200-sxm", tp=8, engine="sglang")
    shares = [halves.told_of(one | UNTOLD).unit.share for one in (split, whole)]
    assert shares == pytest.approx([0.77, 0.90], abs=0.005)
    few = [halves.told_of(one | UNTOLD | {"told": "cuda-graph-max-bs=8"}).unit.share for one in (split, whole)]
    assert shares[0] < few[0] < few[1]
    assert halves.told_of(whole | UNTOLD | {"drafts": "mtp"}).unit.share < shares[1]


def test_groups_of_attention_compute_prompts_of_their_own():
    one = row(model="glm-5.2", gpu="h200-sxm", dp=8, memory=0.85, ep=1) | {"requests": 256, "users": 128}
    told = halves.told_of(one)
    rates = [halves.ran(one | {"dp": dp}, told).request_rate for dp in (1, 8)]
    assert rates[1] > 1.5 * rates[0]


def test_lengths_scatter_as_the_source_has_them():
    assert halves.SPANS["0.8 to 1"] == SPAN
    chats = row(lengths="chats", users=4)
    run = halves.ran(chats, halves.told_of(chats))
    assert len(run.requests) == chats["requests"]
    assert run.requests["n_in"].nunique() == 1 < run.requests["n_out"].nunique()


def test_nights_of_one_set_up_have_one_prediction_in_the_statistic_of_their_source():
    nights = CHOOSING[(CHOOSING["gpu"] == "b200") & (CHOOSING["engine"] == "trtllm") & (CHOOSING["users"] == 4)]
    table = halves.predicted(nights[nights["tpot_s"].isna() & (nights["drafts"] == "none")])
    assert not table.duplicated(["weights", "date"]).any()
    assert len(table.drop_duplicates(["weights", "tpot"])) == 2 < len(table)
    assert (table["wide_high"] >= table["high"]).all()
    assert table["tpot"].between(table["low"], table["high"]).all()
    found = halves.score(table, ["source"])
    assert found["points"].tolist() == [len(table)]
    assert found["tpot"][0] < 0.3


def test_rows_set_aside_are_played_with_the_recipes_of_those_that_choose(monkeypatch):
    few = CHOOSING[CHOOSING["gpu"] == "mi355x"].head(3)
    own = halves.predicted(few).assign(fitted=[True, False, False])
    monkeypatch.setattr(halves, "_rows", lambda part: few.assign(part=part))
    found = halves.results(own)
    assert found["part"].tolist() == ["choose"] * 2 + ["score"] * 3  # those that are fitted set coefficients
    assert found["tpot"].tolist() == [*own["tpot"][1:], *own["tpot"]]
    assert found["source"].tolist() == ["InferenceX"] * 2 + ["InferenceX, set aside"] * 3
    assert found[["ttft_s", "tpot_s"]].notna().all(axis=None)


def test_results_have_what_a_row_that_sets_nothing_was_measured_at_and_its_source_by_its_year(monkeypatch):
    """Nothing is played: who tells no mean tells a median."""
    times = {"ttft_s": [1.0, np.nan], "ttft_p50_s": 2.0, "tpot_s": [np.nan, 0.01], "tpot_p50_s": 0.02}
    rows = pd.DataFrame({"source": ["SGLang cookbook", "InferenceX"], **times})
    monkeypatch.setattr(halves, "_rows", lambda part: rows.assign(part=part))
    monkeypatch.setattr(halves, "predicted", lambda frame: frame)
    monkeypatch.setattr(halves, "fitted", lambda frame: frame["source"] == "InferenceX")
    chosen = halves.chosen()
    assert chosen["fitted"].tolist() == [False, True]
    found = halves.results(chosen)
    year = "SGLang cookbook of 2026"
    assert found["source"].tolist() == [year, f"{year}, set aside", "InferenceX, set aside"]
    assert found["ttft_s"].tolist() == [1.0, 1.0, 2.0]
    assert found["tpot_s"].tolist() == [0.02, 0.02, 0.01]


def test_scores_are_shares_of_the_measured():
    times = {"ttft_s": 1.0, "ttft_p50_s": np.nan, "tpot_s": np.nan, "tpot_p50_s": 0.01, "rate": 100.0}
    said = {"ttft": 1.5, "tpot": 0.008, "tokens": 110.0, "low": 0.007, "high": 0.009, "wide_low": 0.006}
    found = halves.score(pd.DataFrame([times | said | {"wide_high": 0.02, "group": "a"}]), ["group"]).iloc[0]
    assert found[["ttft_bias", "tpot_bias", "rate_bias"]].tolist() == pytest.approx([0.5, -0.2, 0.1])
    assert (found["tpot"], found["inside"], found["plan"]) == (pytest.approx(0.2), 0, 1)


def test_what_sets_coefficients_hangs_on_no_time_and_is_a_closed_loop_without_drafts():
    found = halves.fitted(CHOOSING)
    rows = CHOOSING[found]
    times = [name for name in CHOOSING if name.endswith("_s")] + ["rate"]
    assert halves.fitted(CHOOSING.assign(**dict.fromkeys(times, 1.0))).equals(found)
    places = halves.fitted(CHOOSING.assign(seqs=16.0))  # those beyond them wait, and are no closed loop
    assert (rows["users"] > 16).any()
    assert set(CHOOSING[places]["users"]) == {users for users in rows["users"] if users <= 16}
    assert not halves.fitted(CHOOSING.assign(lengths="0 to 1")).any()
    assert not halves.fitted(CHOOSING.assign(requests=np.nan)).any()
    assert set(rows["drafts"]) == {"none"}
    assert (rows["requests"] >= 5 * rows["users"]).all()
    assert set(rows["engine"]) == {"sglang", "atom"}  # of TensorRT-LLM on the B200 rows of `served` are set aside
    assert rows.groupby("group").size().min() >= 3
    assert "GPUStack" not in set(rows["source"])  # all requests at once


def test_nights_of_a_set_up_are_one_point_of_its_loop():
    loops = halves.closed()
    assert all(one.unit.synchronized_arrivals for one in loops)
    loop = next(one for one in loops if one.unit.gpu.name == "mi300x" and one.work.n_out > 5000)
    nights = CHOOSING.query("gpu == 'mi300x' and n_out > 5000 and users == 64")
    own = loop.rows.set_index("users").loc[64]
    assert len(nights) == 6
    assert nights["tpot_p50_s"].min() < own["tpot_s"] < nights["tpot_p50_s"].max()
    assert own["e2e_s"] == pytest.approx(own["ttft_s"] + (own["n_out"] - 1) * own["tpot_s"])
    assert own["middle"]
    assert (loop.waiting == 1).all()
    assert sum(len(one.rows) for one in loops) < halves.fitted(CHOOSING).sum()


def test_a_median_may_stand_for_a_mean_in_a_closed_loop():
    one = row(gpu="mi300x", users=64, n_in=7373.0)
    told = halves.told_of(one)
    run = halves.ran(one, told)
    assert run.requests["tpot"].median() == pytest.approx(run.requests["tpot"].mean(), rel=0.05)
    law = replace(told.unit, synchronized_arrivals=True).tpot(told.work, 64)
    assert law == pytest.approx(run.requests["tpot"].median(), rel=0.05)


def test_a_front_delays_first_tokens():
    loop = next(one for one in halves.closed() if one.unit.gpu.name == "mi300x" and one.work.n_in < 1000)
    soon, late = (halves.first_tokens(loop, front) for front in (0.01, 0.3))
    assert ((late - soon) > 0.2).all()
