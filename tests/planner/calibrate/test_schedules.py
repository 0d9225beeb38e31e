"""Claims tested directly, on times that obey one model and not the others."""

from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from inference_math import theory
from inference_math.workload.points import REUSED, Point, points
from inference_math_planner.calibrate import from_kernels, schedules

CHOSEN = points(2**18, 2**13, fp8=False)
T_W, TOKEN, READ, PAIR = 5e-3, 2e-5, 4e-8, 1e-9
LAYERS = 32


def frame(seconds):
    columns = ["what", *from_kernels.SIZES, "seconds"]
    rows = [(*astuple(point), s) for point, s in seconds.items() if s is not None]
    return pd.DataFrame(rows, columns=columns).assign(between=np.nan)


def products(tokens):
    return max(T_W, TOKEN * tokens)


def attention(point):
    return point.prompts * PAIR * point.tokens * (point.cached + point.tokens / 2)


def engine(overlap="serial_kv", hidden=0.0):
    """Seconds of every point on a GPU that hides what `overlap` says, and a share of what two streams can hide."""

    def seconds(point):
        reads = READ * point.decodes * point.context
        if point.what == "matrices":
            return products(point.fresh)
        if point.what == "attention":
            return reads + attention(point)
        if point.what in ("decode", "prefill"):
            return products(point.fresh) + reads + attention(point)
        if not point.what.startswith("mixed"):
            return None
        decodes, chunk = products(point.decodes) + reads, products(point.tokens) + attention(point)
        serial = products(point.fresh) + reads + attention(point)
        if point.what == "mixed-attention":
            return serial - hidden * min(reads, attention(point))
        if point.what == "mixed-steps":
            return decodes + chunk - hidden * min(decodes, chunk)
        full = max(decodes, products(point.fresh) + attention(point))
        return {"none": decodes + chunk, "serial_kv": serial, "full": full}[overlap]

    return {point: seconds(point) for point in CHOSEN}


@pytest.mark.parametrize("overlap", schedules.OVERLAPS)
def test_a_gpu_that_obeys_one_model_is_told_from_the_others(overlap):
    found = schedules.overlaps(frame(engine(overlap)))
    assert len(found) == sum(point.what == "mixed" for point in CHOSEN)
    off = {name: (found[name] / found["measured"] - 1).abs() for name in schedules.OVERLAPS}
    assert off[overlap].max() < 1e-9
    for other in set(schedules.OVERLAPS) - {overlap}:
        assert off[other].mean() > 0.02
    assert found["closure"].abs().max() < 1e-9


@pytest.mark.parametrize("hidden", [0.0, 0.3, 1.0])
def test_what_two_streams_hide_is_found(hidden):
    found = schedules.overlaps(frame(engine(hidden=hidden)))
    assert found["hidden_attention"].to_numpy() == pytest.approx(hidden, abs=1e-9)
    assert found["hidden_steps"].to_numpy() == pytest.approx(hidden, abs=1e-9)
    assert schedules.hidden(found) == pytest.approx({"attention": hidden, "steps": hidden}, abs=1e-9)


def test_steps_whose_schedule_was_not_measured_do_not_count():
    """Neither in what was hidden nor in what could be."""
    found = schedules.overlaps(frame(engine(hidden=0.4)))
    some = found.assign(hidden_steps=found["hidden_steps"].where(found.index % 2 == 0))
    assert schedules.hidden(some) == pytest.approx({"attention": 0.4, "steps": 0.4}, abs=1e-9)


def test_large_steps_weigh_most_in_what_is_hidden():
    found = schedules.overlaps(frame(engine(hidden=0.4)))
    largest = found["can_steps"].idxmax()
    some = found.assign(hidden_steps=np.where(found.index == largest, 1.0, 0.0))
    assert schedules.hidden(some)["steps"] == pytest.approx(found["can_steps"].max() / found["can_steps"].sum())


def test_a_step_that_is_not_its_parts_is_found_out():
    times = engine()
    slow = {p: s * (1.05 if p.what == "decode" else 1) for p, s in times.items() if s is not None}
    assert schedules.overlaps(frame(slow))["closure"].to_numpy() == pytest.approx(0.05)


def test_the_spread_is_that_of_the_parts_and_the_step():
    found = schedules.overlaps(frame(engine()).assign(between=0.02))
    sizes = found.iloc[0][["decodes", "context", "tokens", "cached"]].astype(int).tolist()
    parts, times = schedules.parts_of_mixed(Point("mixed", *sizes[:2], 1, *sizes[2:])), engine()
    summed = [found.iloc[0]["measured"], *(times[parts[name]] for name in ("products", "reads", "attention"))]
    assert found.iloc[0]["spread"] == pytest.approx(0.02 * np.linalg.norm(summed))
    # One round knows no spread.
    assert schedules.overlaps(frame(engine()))["spread"].isna().all()


def test_schedules_that_were_not_measured_are_missing_and_the_models_stay():
    times = {point: s for point, s in engine("none").items() if point.what not in ("mixed-attention", "mixed-steps")}
    found = schedules.overlaps(frame(times))
    assert len(found) == sum(point.what == "mixed" for point in CHOSEN)
    assert np.isnan(list(schedules.hidden(found).values())).all()
    assert found[["attention_beside", "steps_beside", "hidden_steps"]].isna().all().all()
    assert found[[*schedules.OVERLAPS, "measured"]].notna().all().all()
    alone = {point: s for point, s in times.items() if point.what != "mixed"}
    assert schedules.overlaps(frame(alone)).empty


def test_steps_without_all_their_parts_are_left_out():
    times = engine("none")
    gone = next(point for point in CHOSEN if point.what == "matrices" and point.prompts)
    found = schedules.overlaps(frame({point: s for point, s in times.items() if point != gone}))
    left = (found["decodes"] == gone.decodes) & (found["tokens"] == gone.tokens)
    assert len(found) > 0
    assert not left.any()


def host_memory(e, pipelined=True):
    """A GPU whose tokens take a microsecond each to compute, 1/e to load, in layers that are all alike."""
    times = {}
    for point in CHOSEN:
        load, rest = point.cached * 1e-6 / e, point.tokens * 1e-6
        if point.what == "prefill" and point.prompts == 1:
            times[point] = rest
        elif point.what == "load":
            times[point] = load
        elif point.what == "load-first" or (point.what == "load-layerwise" and not pipelined):
            times[point] = load + rest
        elif point.what == "load-layerwise":
            times[point] = (load + rest + (LAYERS - 1) * max(load, rest)) / LAYERS
    return frame(times)


@given(e=st.floats(0.2, 100))
def test_a_gpu_that_obeys_the_formulas_meets_them(e):
    found = schedules.loads(host_memory(e), LAYERS)
    assert found["e"].to_numpy() == pytest.approx(e)
    assert found["alpha"].to_numpy() == pytest.approx(REUSED, abs=1e-4)
    assert found["first"].to_numpy() == pytest.approx(found["law_first"].to_numpy())
    assert found["first"].to_numpy() == pytest.approx(found["parts_first"].to_numpy())
    assert found["layerwise"].to_numpy() == pytest.approx(found["parts_layerwise"].to_numpy())
    # A finite number of layers: between the two formulas.
    assert (found["layerwise"] <= found["law_layerwise"] * (1 + 1e-9)).all()
    assert (found["layerwise"] >= found["law_layerwise"] * LAYERS / (LAYERS + 1) * (1 - 1e-9)).all()
    assert found["law_mixed"].to_numpy() == pytest.approx([theory.speedup_mixed(alpha=a, e=e) for a in found["alpha"]])
    # Beyond the crossover, where load and rest are equally long, the share nearest to it stands for all.
    balance = found["alpha"] / e / (1 - found["alpha"])
    nearest = found["layerwise"][np.log(balance).abs().idxmin()]
    assert (found["mixed"][found["alpha"] > theory.crossover(e=e) * (1 + 1e-9)] == nearest).all()
    assert (found["mixed"] == found["layerwise"])[found["alpha"] < theory.crossover(e=e) * (1 - 1e-9)].all()


def test_a_gpu_that_does_not_pipeline_is_found_out():
    found = schedules.loads(host_memory(9, pipelined=False), LAYERS)
    at = found.set_index(found["alpha"].round(2)).loc[0.9]
    assert at["layerwise"] == pytest.approx(at["first"])
    assert at["parts_layerwise"] / at["layerwise"] == pytest.approx(2 * LAYERS / (LAYERS + 1), rel=0.01)


def test_without_loads_there_is_nothing_to_say():
    assert schedules.loads(frame(engine("none")), LAYERS).empty
    some = host_memory(9)
    assert schedules.loads(some[some["what"] != "load"], LAYERS).empty
    assert np.isfinite(schedules.loads(some, LAYERS).to_numpy()).all()
    assert Point("copy") in CHOSEN
