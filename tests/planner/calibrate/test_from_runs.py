"""Profiles: what made the runs is found, what they do not tell is kept, and the bar on an engine of our day."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from inference_math import Unit, Workload, evidence
from inference_math.unit.coefficients import Calibration
from inference_math_planner import calibrate
from inference_math_planner.calibrate.files import Runs

UNITS = {name: Unit.of("qwen3-8b", "h100-sxm", weights=name, kv="bf16") for name in ("bf16", "fp8")}
NONE = pd.DataFrame({"source": [], "reason": []}, dtype=str)


def runs(n_in, n_out, concurrency, e2e):
    table = pd.DataFrame({"n_in": n_in, "n_out": n_out, "concurrency": concurrency, "e2e": e2e}, dtype=float)
    return Runs(table.assign(source=[f"run {i}" for i in range(len(table))], ttft=np.nan, tpot=np.nan), NONE)


def silybench(precision, count=None):
    """The used rows of one precision; `count` of them, evenly spaced in the table's order."""
    rows = evidence.load("silybench").frame.query("used and precision == @precision")
    if count is not None:
        rows = rows.iloc[np.linspace(0, len(rows) - 1, count).round().astype(int)]
    return runs(rows.prompt_tokens, rows.output_tokens, rows.concurrency, rows.e2e_s)


def errors(unit, measured):
    rows = measured.table
    found = [
        unit.e2e(Workload(n_in, n_out), users)
        for n_in, n_out, users in rows[["n_in", "n_out", "concurrency"]].to_numpy()
    ]
    return np.array(found) / rows.e2e.to_numpy() - 1


GRID = [(n_in, n_out, users) for n_in, n_out in ((512, 128), (4096, 256), (128, 1024)) for users in (1, 4, 16, 64)]


def made_by(unit, grid=GRID):
    columns = np.array(grid, dtype=float).T
    return runs(*columns, [unit.e2e(Workload(n_in, n_out), users) for n_in, n_out, users in grid])


def test_the_fit_finds_what_made_the_runs():
    """An engine near its operators, without noise: 24 runs in two precisions tell all five coefficients."""
    start = UNITS["bf16"].calibration
    truth = replace(start.coefficients, bf16=0.7, fp8=0.5, kv=0.8, layer=8e-5, per_sequence_overhead=8e-7)
    engine = {name: unit.calibrated(replace(start, coefficients=truth)) for name, unit in UNITS.items()}
    found = calibrate.fit(*((UNITS[name], made_by(engine[name])) for name in UNITS))
    for name in calibrate.PROFILED:
        assert getattr(found.calibration.coefficients, name) == pytest.approx(getattr(truth, name), rel=0.06), name
    assert found.mape < 0.01
    assert found.kept == ()
    assert found.calibration.mode == "profile"
    assert found.calibration.coefficients.memory == start.coefficients.memory


def test_what_the_runs_do_not_tell_is_kept():
    """BF16 runs use no FP8 unit."""
    found = calibrate.fit((UNITS["bf16"], silybench("bf16", 24)))
    assert found.kept == ("fp8",)
    zero_shot = Calibration.zero_shot("vllm")
    assert found.calibration.coefficients.fp8 == zero_shot.coefficients.fp8
    assert found.calibration.sd("fp8") == pytest.approx(zero_shot.sd("fp8"))


@pytest.mark.parametrize(
    ("fitted", "tested", "bar", "anchored_bar"), [("fp8", "bf16", 0.06, 0.05), ("bf16", "fp8", 0.07, 0.08)]
)
def test_the_bar_across_precisions(fitted, tested, bar, anchored_bar):
    """Fitted to 24 points of one precision, tested on all of the other, and thrown away."""
    measured = silybench(tested)
    unit = UNITS[tested].calibrated(calibrate.fit((UNITS[fitted], silybench(fitted, 24))).calibration)
    assert np.abs(errors(unit, measured)).mean() <= bar
    alone = (measured.table.concurrency == 1).to_numpy()
    moved = errors(calibrate.anchored(unit, measured), measured)
    assert moved[alone] == pytest.approx(0, abs=1e-9)
    assert np.abs(moved[~alone]).mean() <= anchored_bar  # the anchors themselves are not counted


def test_intervals_of_a_profile_hold_most_points_of_the_other_precision():
    unit = UNITS["bf16"].calibrated(calibrate.fit((UNITS["fp8"], silybench("fp8", 24))).calibration)
    rows = silybench("bf16").table
    inside = []
    for n_in, n_out, users, seconds in rows[["n_in", "n_out", "concurrency", "e2e"]].to_numpy():
        found = unit.predict("e2e", Workload(n_in, n_out), users)
        inside.append(found.low <= seconds <= found.high)
    assert 0.8 <= np.mean(inside) <= 0.97


def test_the_scope_is_what_was_run():
    found = calibrate.fit((UNITS["fp8"], silybench("fp8"))).calibration
    assert found.scope["model"] == ("qwen3-8b",)
    assert found.scope["weights"] == ("fp8",)
    assert found.scope["concurrency"] == (1, 256)
    outside = UNITS["bf16"].calibrated(found).predict("tpot", Workload(2048, 128), 8).outside
    assert outside == ("weights bf16 is not among the calibrated: fp8",)


def test_a_first_token_sooner_than_any_prefill_is_none():
    """TTFT and TPOT swapped add up to a latency that nothing forbids: the prompt alone says that it cannot be."""
    unit, grid = UNITS["bf16"], [(1000, 200, users) for users in (1, 4, 16, 64)]
    sound = made_by(unit, grid)
    ttft = np.array([unit.ttft(Workload(*lengths), users) for *lengths, users in grid])
    assert calibrate.fit((unit, replace(sound, table=sound.table.assign(ttft=ttft)))).unusable.empty
    swapped = replace(sound, table=sound.table.assign(ttft=[0.008, 0.009, 0.01, 0.011]))
    with pytest.raises(
        ValueError, match=r"at least 3 usable runs \(there are 0\).*4 left out: a first token sooner than"
    ):
        calibrate.fit((unit, swapped))


def test_anchored_predictions_stay_above_the_floor():
    """A run at the floor itself moves others to it, not beyond."""
    unit, work = UNITS["bf16"], Workload(2048, 128)
    quick = runs([2048], [128], [1], [1.001 * unit.floor.e2e(work, 1)])
    moved = calibrate.anchored(unit, quick)
    assert moved.e2e(work, 1) == pytest.approx(quick.table.e2e[0], rel=0.04)  # the first token cannot be that fast
    short = Workload(64, 128)
    assert moved.tpot(short, 1) == pytest.approx(unit.floor.tpot(short, 1))
    assert moved.tpot(short, 8) >= unit.floor.tpot(short, 8)
    assert moved.ttft(short, 8) >= unit.floor.ttft(short, 8)
    # Anchors replace anchors.
    assert calibrate.anchored(moved, quick).calibration.anchors == moved.calibration.anchors


def test_saturated_runs_are_listed_not_used():
    measured = made_by(UNITS["bf16"], [*GRID, (8192, 512, 64)])
    found = calibrate.fit((UNITS["bf16"], measured))
    assert len(found.table) == len(GRID)
    (row,) = found.unusable.itertuples()
    assert row.source == f"run {len(GRID)}"
    assert "KV cache" in row.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"e2e": 0.001}, "faster than the hardware allows"),
        ({"concurrency": 0.5}, "less than one request at a time"),
        ({"e2e": np.nan}, "or one that is none"),
        ({"n_in": 1e300}, "a number above 1e+09"),
    ],
)
def test_impossible_runs_are_listed_not_used(change, reason):
    measured = made_by(UNITS["bf16"])
    table = measured.table.copy()
    for column, value in change.items():
        table.loc[3, column] = value
    found = calibrate.fit((UNITS["bf16"], Runs(table, measured.unusable)))
    assert len(found.table) == len(GRID) - 1
    assert reason in found.unusable.reason[0]


def test_a_little_less_than_one_user_is_one():
    """Little's law of a run of one user at a time comes out just below 1."""
    measured = made_by(UNITS["bf16"])
    table = measured.table.assign(concurrency=measured.table.concurrency.replace(1.0, 0.98))
    found = calibrate.fit((UNITS["bf16"], Runs(table, measured.unusable)))
    assert found.table.concurrency.min() == 1


def test_runs_of_another_kind_are_refused():
    measured = made_by(UNITS["bf16"])
    slow = Runs(measured.table.assign(e2e=1000 * measured.table.e2e), measured.unusable)
    with pytest.raises(ValueError, match="with times in seconds: the best fit is"):
        calibrate.fit((UNITS["bf16"], slow))


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (GRID[:2], "at least 3 usable runs \\(there are 2\\): without, the coefficients cannot be told apart$"),
        ([(512, n, 8) for n in (64, 128, 256, 512, 1024, 2048)], "concurrencies that span a factor of 4"),
        ([(512, 128, n) for n in (8, 9, 10, 11, 12, 13)], "concurrencies that span a factor of 4"),
    ],
)
def test_runs_too_few_or_too_much_alike_are_refused(grid, words):
    with pytest.raises(ValueError, match=words):
        calibrate.fit((UNITS["bf16"], made_by(UNITS["bf16"], grid)))


def test_one_file_with_three_loads_is_a_beginning():
    """What three runs of one pair of lengths do not tell keeps its prior, and their error is not taken for small."""
    grid = [(512, 128, n) for n in (1, 8, 64)]
    unit = UNITS["bf16"]
    layer = replace(unit.coefficients, layer=3 * unit.coefficients.layer)
    slow = unit.calibrated(replace(unit.calibration, coefficients=layer))
    found = calibrate.fit((unit, made_by(slow, grid)))
    assert "fp8" in found.kept
    assert found.calibration.spread >= unit.calibration.spread
    assert found.calibration.coefficients.layer > 1.5 * unit.coefficients.layer
    assert found.mape < 0.1


def test_too_few_runs_say_why_others_were_left_out():
    measured = made_by(UNITS["bf16"])
    table = measured.table.assign(e2e=np.where(np.arange(len(GRID)) < 10, 0.001, measured.table.e2e))
    with pytest.raises(ValueError, match=r"\(there are 2\).*; 10 left out: faster than the hardware allows"):
        calibrate.fit((UNITS["bf16"], Runs(table, measured.unusable)))


@pytest.mark.parametrize(
    ("model", "tp", "words"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", np.nan, "must be of qwen3-8b, not of 'meta-llama/Llama-3.1-8B-Instruct'"),
        ("Qwen/Qwen3-32B-FP8", np.nan, "must be of qwen3-8b, not of 'Qwen/Qwen3-32B-FP8', which run 0 names"),
        ("Qwen/Qwen3-8B-FP8", np.nan, "must be of weights in bf16, not of 'Qwen/Qwen3-8B-FP8', which run 0 names"),
        ("Qwen/Qwen2-8B", np.nan, "must be of qwen3-8b, not of 'Qwen/Qwen2-8B', which run 0 names"),
        ("Qwen/Qwen3-8B", 2, "must be of tp = 1, not of 2, which run 0 names"),
    ],
)
def test_runs_that_name_another_model_or_tp_are_refused(model, tp, words):
    measured = made_by(UNITS["bf16"])
    other = Runs(measured.table.assign(model=model, tp=tp), measured.unusable)
    with pytest.raises(ValueError, match=words):
        calibrate.fit((UNITS["bf16"], other))
    with pytest.raises(ValueError, match=words):
        calibrate.anchored(UNITS["bf16"], other)


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "/models/qwen3-8b", "chat", None, "our-8b", "qwen-latest"])
def test_runs_of_the_same_or_an_unknown_name_are_taken(model):
    measured = made_by(UNITS["bf16"])
    found = calibrate.fit((UNITS["bf16"], Runs(measured.table.assign(model=model, tp=1.0), measured.unusable)))
    assert len(found.table) == len(GRID)


def test_a_fit_starts_from_the_unit_s_own_calibration():
    """A GPU whose kernels were measured: the rate it found carries into a profile that says nothing of it."""
    start = UNITS["bf16"].calibration
    known = replace(start, mode="measured", coefficients=replace(start.coefficients, memory=0.8, fp8=0.3))
    unit = UNITS["bf16"].calibrated(known)
    found = calibrate.fit((unit, made_by(unit))).calibration
    assert found.coefficients.memory == 0.8
    assert found.coefficients.fp8 == 0.3
    assert found.coefficients.layer == pytest.approx(start.coefficients.layer, rel=0.02)
    other = calibrate.fit((UNITS["bf16"], made_by(unit))).calibration
    assert other.coefficients.layer > 1.05 * found.coefficients.layer  # zero-shot has to put the slower reads somewhere
    # More runs of an engine that was fitted already: a profile goes on from a profile.
    again = calibrate.fit((UNITS["bf16"].calibrated(other), made_by(unit))).calibration
    assert again.sd("layer") < other.sd("layer")
    with pytest.raises(ValueError, match="to start from, not datasheet"):
        calibrate.fit((UNITS["bf16"].at_datasheet, made_by(unit)))
    with pytest.raises(ValueError, match="units with one calibration"):
        calibrate.fit((unit, made_by(unit)), (UNITS["bf16"], made_by(unit)))


def test_bad_profiles():
    measured = made_by(UNITS["bf16"])
    with pytest.raises(ValueError, match="at least one"):
        calibrate.fit()
    other = Unit.of("qwen3-8b", "a100-80gb")
    with pytest.raises(ValueError, match="one engine on one kind of GPU"):
        calibrate.fit((UNITS["bf16"], measured), (other, measured))
    with pytest.raises(ValueError, match="concurrency 1, as an anchor"):
        calibrate.anchored(UNITS["bf16"], runs([512], [128], [8], [1.0]))
