"""Served points played as they were run."""

from __future__ import annotations

import plays
import pytest
import served
from recipes import ACCEPTED, COLD, SPAN, recipe_of

from inference_math import simulate
from inference_math.simulate import Chunked
from inference_math.unit import Unit
from inference_math.workload import RandomLengths, Workload

ROWS = served.points("calibration").query("left_out == ''")


def loop_of(query):
    return next(served.loops(ROWS.query(query)))


def test_a_play_is_the_benchmark_with_the_recipe():
    loop = loop_of("model == 'llama-3-70b' and engine == 'vllm' and users == 16 and tp == 4")
    row = loop.rows.iloc[0]
    run = simulate.benchmark(
        RandomLengths(loop.work.n_in, loop.work.n_out, SPAN), simulate.Steps(loop.unit), concurrency=16, requests=160,
        front=0.02, seed=1, scheduler=Chunked(8192, max_batch=loop.unit.places(loop.work)),
    )  # fmt: skip
    ttft, tpot, latency = plays.play(row, loop.unit, loop.work, 0.02)
    assert ttft == run.requests.ttft.mean()
    assert tpot == run.requests.tpot.mean()
    assert latency == run.requests.latency.mean()


def test_repeats_are_played_once(monkeypatch):
    loop = max(served.loops(ROWS.query("model == 'minimax-m2'")), key=lambda one: one.rows.users.duplicated().sum())
    seen = []
    monkeypatch.setattr(plays, "play", lambda row, *rest: seen.append(row["users"]) or [1.0, 2.0, 3.0])
    told = plays.played(loop.rows, loop.unit, loop.work, 0.02)
    assert sorted(seen) == sorted(set(loop.rows.users))
    assert len(seen) < len(loop.rows)
    assert told.index.equals(loop.rows.index)
    assert list(told.columns) == plays.PLAYED


def test_drafts_are_the_recipes():
    row = served.points("calibration").query("left_out == 'drafts'").iloc[0]
    unit = Unit.of("deepseek-v3", "b200", 8, engine="sglang")
    own = plays.drafting(row, unit)
    assert (own.drafts, own.accepted) == (2, ACCEPTED)
    assert plays.drafting(row.to_dict() | {"drafts": "none"}, unit) is unit


def test_a_cold_engine_compiles_once():
    class Plain(simulate.StepCost):
        accepted_per_step = verified_per_step = 1

    cold = plays.Cold(Plain(t_w=0.01), COLD)
    assert cold(1, 100, 1.0, 9_000, 0.0) == pytest.approx(0.01)
    assert cold(1, 100, 1.0, 16_000, 0.0) == pytest.approx(0.01 + COLD)
    assert cold(1, 100, 1.0, 16_000, 0.0) == pytest.approx(0.01)
    assert cold.line(1, 100) == simulate.StepCost(t_w=0.01).line(1, 100)


def test_a_run_without_a_warm_up_shows_it():
    rows = ROWS.query("model == 'deepseek-v3' and weights == 'nvfp4' and version == '' and users == 64 and n_in < 1000")
    row = rows.iloc[0]
    unit = Unit.of("deepseek-v3", "b200", int(row.tp), weights="nvfp4", kv="fp8", engine="sglang")
    ttft, *_ = plays.play(row, unit, Workload(row.n_in, row.n_out), 0.1)
    assert recipe_of(row).cold == COLD
    assert ttft == pytest.approx(row.ttft_s, rel=0.25)
