"""The laboratory's tables from its file, and what the committed ones say."""

from __future__ import annotations

import derive_lab
import numpy as np
import pandas as pd
import pytest
from grids import rest_long
from laboratory import COST, LENGTHS, one_round

from inference_math import evidence
from inference_math_bench.lab import analysis, pools, session
from inference_math_bench.lab.engines import ALL_AT_ONCE, Played
from inference_math_bench.lab.experiments import Counts, InsideAStep, Interference, Limit
from inference_math_bench.lab.experiments.bench import Bench
from inference_math_bench.lab.machine import Alone
from inference_math_bench.lab.record import Book, read


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    file = tmp_path_factory.mktemp("lab") / "lab.jsonl"
    file.write_text(one_round(), encoding="utf-8")
    return derive_lab.derive(read(file))


def test_the_tables_have_the_columns_and_settings_of_the_committed_ones(tables) -> None:
    for name, table in tables.items():
        committed = evidence.load(name).frame
        assert list(table.columns) == list(committed.columns), name
    ours, here = evidence.load("lab_arms").frame.query("experiment != 'pools'"), tables["lab_arms"]
    here = here[here.experiment != "host"]
    assert {*zip(here.arm, here.quantity, strict=True)} == {*zip(ours.arm, ours.quantity, strict=True)}


def test_bare_steps_of_a_gpu_are_told_by_what_was_in_them(tmp_path) -> None:
    """An engine with a known cost, at eight times the lengths, once with offloading: every kind has that cost."""
    labs = []
    for i, flags in enumerate(({}, {"kv_offloading_size": 16})):
        engine = Played(COST, noise=0.05, budget=8 * ALL_AT_ONCE)
        bench = Bench(engine, np.random.default_rng(i), seconds=9.0, scale=8, watch=Alone)
        head = {"model": "played", "engine": {"flags": flags}, "machine": {}, "seed": i, "scale": 8}
        tried = [InsideAStep(8), Interference(8)] if i == 0 else [Limit(8)]
        session.rounds(bench, Book(tmp_path / f"{i}.jsonl", head), tried, until=1e9, progress=None, most=1)
        labs.append(read(tmp_path / f"{i}.jsonl"))
    tables = derive_lab.of_gpu(labs)
    for name, table in tables.items():
        assert list(table.columns) == list(evidence.load(name).frame.columns), name
    steps = tables["lab_gpu_steps"]
    assert not steps.duplicated(["offloading", "round", "decodes", "context", "after", "prompts", "tokens"]).any()
    assert 28672 in set(steps.tokens)  # of the experiment, not of a look at bare steps
    assert steps.groupby("offloading").prompts.agg(set).to_dict() == {0: {0, 1, 2, 4}, 1: {0, 1}}
    assert set(steps[steps.after == 1].tokens) == {0}
    for row in steps[steps.steps > 20].itertuples():
        cost = 1e3 * COST(row.decodes, row.decodes * row.context, row.prompts, row.tokens, row.tokens**2 / 2)
        assert float(row.low_ms) < float(row.step_ms) < float(row.high_ms)
        assert float(row.step_ms) == pytest.approx(cost, rel=0.05), row
    loops = tables["lab_gpu_loops"]
    assert set(loops.tokens) == {512}
    for row in loops[loops.steps > 30].itertuples():
        low, high = (1e3 * COST(d, d * 500, 1, 512, 0) for d in (row.least, row.most))
        assert 0.95 * low < float(row.step_ms) < 1.05 * high, row


def test_an_experiment_that_is_added_replaces_only_itself() -> None:
    columns = ["experiment", "arm", "quantity", "found"]
    known = pd.DataFrame([["limit", "a", "q", "2"], ["step", "b", "q", "1.0"]], columns=columns)
    found = derive_lab.added(known, pd.DataFrame([["limit", "c", "q", "3"]], columns=columns))
    assert found.to_numpy().tolist() == [["limit", "c", "q", "3"], ["step", "b", "q", "1.0"]]


def test_every_setting_of_two_engines_is_in_the_table() -> None:
    rows = analysis.expanded(evidence.load("lab_arms").frame, "pools")
    there = {(r.pools, r.users, r.n_out) for r in rows.itertuples()}
    assert there == {(arm["pools"], arm["users"], arm["n_out"]) for arm in pools.arms()}


@pytest.mark.parametrize("name", rest_long(LENGTHS))
def test_the_committed_counts_follow_the_law_and_not_a_wrong_one(name) -> None:
    """χ² at the recorded size for all laws of the lengths; the wrong number of slots is rejected."""
    table = evidence.load("lab_counts").frame
    assert set(table.lengths) == set(LENGTHS)
    rows = table[table.lengths == name]
    design = {"users": Counts.users, "watched": (int(rows.windows.iloc[0]), Counts.window)}
    assert analysis.count_test(rows.steps.tolist(), LENGTHS[name], **design).p > 0.01
    beside = {"beside": True, **design}
    assert analysis.count_test(rows.decodes.tolist(), LENGTHS[name], **beside).p > 0.01
    assert analysis.count_test(rows.decodes.tolist(), LENGTHS[name], tagged=Counts.users, **beside).p < 0.01


def test_no_ratio_is_without_its_trials() -> None:
    table: pd.DataFrame = evidence.load("lab_arms").frame
    several = table[table.trials >= analysis.FEWEST]
    assert ((several.low <= several.ratio) & (several.ratio <= several.high)).all()
    assert table[table.trials < analysis.FEWEST].low.isna().all()
