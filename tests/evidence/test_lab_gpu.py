"""What vLLM on an H100 says of the laws, and of the form that ships: nothing here is fitted but where it says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from inference_math import Unit, Workload, evidence
from inference_math_bench.lab import analysis
from inference_math_bench.lab.experiments import experiments
from inference_math_bench.lab.record import arm_name
from inference_math_book.figures import laboratory as plots
from inference_math_book.release import accuracy

STEPS = evidence.load("lab_gpu_steps").frame
ARMS, LAWS = evidence.load("lab_gpu_arms").frame, evidence.load("lab_gpu_laws").frame
UNIT = Unit.of("llama-3-8b", "h100-sxm", 1, "bf16")


def of(experiment: str, quantity: str) -> pd.DataFrame:
    rows = analysis.expanded(ARMS, experiment)
    return rows[rows.quantity == quantity]


def test_all_settings_are_those_of_the_laboratory_at_eight_times_its_lengths() -> None:
    asked = {x.name: {arm_name(arm) for arm in x.arms()} for x in experiments(8)}
    for name, rows in ARMS.groupby("experiment"):
        assert set(rows.arm) == asked[name], name


def test_no_step_beats_the_hardware() -> None:
    plain = STEPS[STEPS.prompts <= 1]
    sheet = UNIT.at_datasheet
    floor = [1e3 * float(sheet.step_time(r.decodes, r.context, r.tokens, r.cached)) for r in plain.itertuples()]
    assert (plain.low_ms > np.array(floor)).all()
    assert (STEPS.model_ms <= STEPS.step_ms).all()
    assert ((STEPS.low_ms <= STEPS.step_ms) & (STEPS.step_ms <= STEPS.high_ms)).all()


def test_mixed_steps_are_the_root_of_weight_read_and_compute_with_reads_on_top() -> None:
    """Fitted to unmixed steps alone; the mixed ones judge."""
    judged = plots.judged_steps(STEPS[STEPS.offloading == 0])
    off = judged[judged.mixed].groupby("law").error.apply(lambda e: e.abs().mean())
    worst = judged[judged.mixed].groupby("law").error.apply(lambda e: e.abs().max())
    assert off["quadrature"] < 0.02 < off["none"] < off["serial-kv"] < off["full"]
    assert worst["quadrature"] < 0.04
    assert worst["full"] > 0.3


def test_reads_of_decodes_add_to_a_prompt_in_full() -> None:
    """Eight decodes at 8,192 tokens add to a step with a prompt what they add to one without."""
    plain = STEPS[STEPS.offloading == 0].assign(long=lambda t: t.context > 8000)
    eight = plain[(plain.decodes == 8) & plain.tokens.isin([0, 1024, 2048])].groupby(["tokens", "long"]).step_ms.mean()
    added = eight.xs(True, level="long") - eight.xs(False, level="long")
    assert added.to_numpy() == pytest.approx(added[0], rel=0.1)


def test_the_laws_hold_to_a_tenth_on_average() -> None:
    for quantity, limit in {"tpot": 0.1, "gap_p50": 0.1, "context": 0.03}.items():
        assert (of("interference", quantity).ratio - 1).abs().mean() < limit, quantity
    users = of("limit", "users")
    assert ((users.found - users.predicted).abs()[users["of"] == "mean"] <= 1).all()


def test_loading_is_slower_than_printed_and_near_the_complete_form() -> None:
    found = of("host", "speedup").set_index(["n_in", "stored"])
    printed = analysis.expanded(LAWS[LAWS.quantity == "speedup"], "host").set_index(["n_in", "stored"]).predicted
    assert found.ratio.between(0.75, 1.15).all()
    most = printed[printed.index.get_level_values("stored") / printed.index.get_level_values("n_in") > 0.9]
    assert (most / found.found[most.index] > 1.6).all()


def test_offloading_lengthens_every_kind_of_step() -> None:
    key = ["decodes", "prompts", "tokens", "kind"]
    kinds = STEPS.assign(kind=STEPS.context.round(-2))
    on, off = (kinds[kinds.offloading == i].groupby(key).step_ms.median() for i in (1, 0))
    both = on.index.intersection(off.index)
    assert len(both) > 10
    assert (on[both] > off[both]).all()


def test_the_form_that_ships_is_too_short_for_an_engine_that_is_watched() -> None:
    steps, loops = accuracy.watched_steps(), accuracy.watched_loops()
    off = steps.predicted / steps.measured - 1
    assert off.between(-0.3, 0).all()
    assert off.mean() == pytest.approx(-0.13, abs=0.03)
    assert (loops.predicted < loops.measured).all()
    one = loops[(loops.quantity == "tpot") & (loops.users == 16)].iloc[0]
    work = Workload(512, 16, lengths="geometric")
    assert one.predicted == pytest.approx(float(UNIT.tpot(work, 16)))
