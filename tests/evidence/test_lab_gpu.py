"""What vLLM on an H100 says of the laws, and of the form that ships: nothing here is fitted but where it says so."""

import numpy as np
import pandas as pd
import pytest

from inference_math import Unit, Workload, evidence
from inference_math_bench.lab import analysis
from inference_math_bench.lab.experiments import experiments
from inference_math_bench.lab.record import arm_name
from inference_math_book.figures import laboratory as plots

STEPS, ARMS = evidence.load("lab_gpu_steps").frame, evidence.load("lab_gpu_arms").frame
UNIT = Unit.of("llama-3-8b", "h100-sxm", 1, "bf16", async_scheduling=False)


def of(experiment: str, quantity: str) -> pd.DataFrame:
    rows = analysis.expanded(ARMS, experiment)
    return rows[rows.quantity == quantity]


def test_all_settings_are_those_of_the_laboratory_at_eight_times_its_lengths() -> None:
    asked = {x.name: {arm_name(arm) for arm in x.arms()} for x in experiments(8)}
    for name, rows in ARMS.groupby("experiment"):
        assert set(rows.arm) == asked[name], name


def test_no_step_beats_the_hardware() -> None:
    plain = STEPS[STEPS.prompts <= 1]
    floor = [1e3 * float(UNIT.at_datasheet.step_time(r.decodes, r.context, r.tokens)) for r in plain.itertuples()]
    assert (plain.low_ms > np.array(floor)).all()
    assert (STEPS.model_ms <= STEPS.step_ms).all()
    assert ((STEPS.low_ms <= STEPS.step_ms) & (STEPS.step_ms <= STEPS.high_ms)).all()


def test_mixed_steps_lie_between_the_sum_and_the_longer_of_two_and_no_form_wins() -> None:
    """Fitted on equal terms to unmixed steps alone, of all or of one round; the mixed ones judge."""
    bare = STEPS[STEPS.offloading == 0]
    one, two = (bare[bare["round"] == number] for number in (1, 2))
    nearest = set()
    for fitted, judges in ((bare, bare), (one, two), (two, one)):
        judged = plots.judged_steps(fitted, judges)
        errors = judged[judged.mixed].groupby("form").error
        off, bias = errors.apply(lambda e: e.abs().mean()), errors.mean()
        assert off[["sum", "p = 1.5", "root"]].max() < 0.05 < off["full overlap"]
        assert off[["sum", "p = 1.5", "root"]].max() < off["longer of two"] + 0.001 < off["full overlap"]
        assert bias["full overlap"] < bias["longer of two"] < bias["root"] < bias["p = 1.5"] < 0 < bias["sum"]
        nearest.add(off.idxmin())
    assert len(nearest) > 1


def test_prompts_alone_are_nearer_to_the_root_than_to_the_sum() -> None:
    judged = plots.judged_steps(STEPS[STEPS.offloading == 0])
    worst = judged[~judged.mixed].groupby("form").error.apply(lambda e: e.abs().max())
    assert worst["root"] < 0.1 < worst["sum"]


def test_prompts_take_more_than_half_of_a_busy_engine_s_time_as_predicted() -> None:
    """With 64 users hardly a step has no prompt, and the share is read against those that have none."""
    share = of("interference", "prefill_share").query("lengths == 'geometric'").set_index("users")
    assert share.ratio.loc[[8, 16, 32]].to_numpy() == pytest.approx(1, abs=0.05)
    assert share.found.loc[[16, 32]].round(2).to_list() == [0.55, 0.69]
    few = of("interference", "no_prompt").query("lengths == 'geometric'").set_index("users").predicted
    assert few[64] < 0.02 < few[32]


def test_with_the_host_of_other_runs_the_form_that_ships_is_near_an_engine_that_is_watched() -> None:
    """Of 7 % for bare steps and 10 % for TPOT of loops; without a host decodes are an eighth too short."""
    steps, loops = STEPS.query("offloading == 0 and prompts <= 1"), evidence.load("predicted_loops").frame
    off, without = (
        1e3 * unit.step_time(steps.decodes, steps.context, steps.tokens) / steps.step_ms - 1
        for unit in (UNIT, UNIT.resized(async_scheduling=None))
    )
    assert off.abs().mean() < 0.06 < 0.09 < without.abs().mean()
    long = (steps.tokens >= 512) & (steps.decodes < 32)
    assert (
        without[long].abs().mean() < off[long].abs().mean() < 0.06
    )  # whose time is that of products: no better with it
    assert without[steps.tokens == 0].mean() == pytest.approx(-0.13, abs=0.02)  # the host between two steps, in full
    assert off[steps.tokens == 0].mean() == pytest.approx(0, abs=0.05)
    assert loops.measured.between(loops.low, loops.high).sum() == 13
    tpot = loops[loops.quantity == "tpot"]
    assert (tpot.predicted / tpot.measured - 1).abs().mean() < 0.1
    one = loops[(loops.quantity == "tpot") & (loops.users == 16)].iloc[0]
    work = Workload(512, 16, lengths="geometric")
    assert one.predicted == pytest.approx(float(UNIT.tpot(work, 16)), rel=1e-5)
