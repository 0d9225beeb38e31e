import numpy as np
import pytest
from msgspec.structs import replace

from inference_math import Unit, Workload
from inference_math.unit import scope
from inference_math.unit.nearest import known_errors
from inference_math.unit.types import ErrorRow, ScoreKey

ROW = ErrorRow(
    model="a", gpu="g", kind="dense", engine="vllm", maker="NVIDIA", generation="Hopper", weights="fp8", source="x",
    drafts="none", points=4.0, error=0.2, ttft=-1.0, inside=0.5, lacked=0.3,
)  # fmt: skip
STAND = ScoreKey(**{name: getattr(ROW, name) for name in ScoreKey.__struct_fields__})
WORK = Workload(1000, 200)


@pytest.mark.parametrize(
    ("rows", "lacked"),
    [
        ([ROW], 0.3),
        ([replace(ROW, inside=0.75)], 0.0),  # three quarters are enough
        ([ROW, replace(ROW, source="y", lacked=0.4)], 0.4),  # the group that it fits least
        ([ROW, replace(ROW, source="y", inside=1.0, points=40.0, lacked=0.0)], 0.0),  # all points together
        ([replace(ROW, inside=-1.0)], 0.0),
        ([replace(ROW, drafts="mtp")], 0.0),
        ([replace(ROW, weights="bf16")], 0.3),  # no point in its own precision
        ([replace(ROW, weights="bf16"), replace(ROW, inside=1.0)], 0.0),
        ([replace(ROW, engine="sglang")], 0.0),
        ([replace(ROW, model="b")], 0.0),
        ([replace(ROW, gpu="h")], 0.0),
        ([], 0.0),
    ],
)
def test_intervals_that_held_few_of_a_unit_s_points_are_wider_by_what_they_lacked(rows, lacked):
    assert scope.extra_log_sd(STAND, rows) == lacked
    assert len(scope.few_of(STAND, rows)) >= (lacked > 0)


def test_where_no_point_set_anything_all_of_a_generation_tell():
    row = replace(ROW, maker="AMD", generation="CDNA 3", model="b", engine="sglang")
    here = replace(STAND, maker="AMD", generation="CDNA 3")
    assert scope.extra_log_sd(here, [row]) == 0.3
    assert scope.extra_log_sd(replace(here, generation="CDNA 4"), [row]) == 0.0


def test_points_that_were_missed_lie_inside_of_what_is_printed_now():
    """The calibration's intervals held two of seven of ML.ENERGY's; of the larger model fourteen of fifteen."""
    unit, other = Unit.of("qwen3-30b-a3b", "b200", weights="bf16"), Unit.of("qwen3-235b-a22b", "b200", 8, "bf16")
    own, wide = (unit.predict("tpot", WORK, 32, known=rows) for rows in ([], None))
    assert own.value == wide.value
    assert unit.extra_log_sd > 0.1
    assert wide.high > own.high > own.low > wide.low
    factors = [np.log([one[1][0] for one in each.draws(WORK, 256)]).std() for each in (unit, other)]
    assert factors[0] ** 2 - factors[1] ** 2 == pytest.approx(unit.extra_log_sd**2, rel=0.05)
    assert unit.at_datasheet.extra_log_sd == 0  # not of a calibration that ships


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_mixtures_on_the_mi300x_may_take_half_as_long_again(engine):
    """Points of DeepSeek-R1 there took 1.5 times what is predicted, of another date than those that were fitted."""
    unit = Unit.of("qwen3-30b-a3b", "mi300x", weights="fp8", engine=engine)
    found = unit.predict("tpot", WORK, 16)
    assert found.high / found.value > 1.54
    assert Unit.of("qwen3-30b-a3b", "mi325x", weights="fp8", engine=engine).extra_log_sd == unit.extra_log_sd
    assert Unit.of("qwen3-30b-a3b", "mi355x", weights="fp8", engine=engine).extra_log_sd == 0


SERVED = {"model": "deepseek-v3", "gpu": "gb300", "tp": 8, "weights": "fp8", "engine": "sglang"}


@pytest.mark.parametrize(
    ("more", "work", "said"),
    [
        ({}, Workload(20_000, 200), "prompt length 20,000"),
        ({}, Workload(1000, 20_000), "answer length 20,000"),
        ({"tp": 16}, WORK, "TP 16"),
        ({"tp": 1, "dp": 32, "ep": 32}, WORK, "DP 32"),
        ({"gpu": "h200-sxm", "tp": 16}, WORK, "nodes more than one"),
        ({"gpu": "mi325x"}, WORK, "GPU mi325x"),
        ({"model": "kimi-k2", "weights": "nvfp4", "engine": "vllm"}, WORK, ""),
        ({"model": "qwen3-235b-a22b"}, WORK, "model qwen3-235b-a22b"),
        ({"engine": "sglang", "version": "nightly"}, WORK, "engine sglang nightly"),
    ],
    ids=["prompt", "answer", "TP", "groups", "nodes", "GPU", "none", "model", "engine"],
)
def test_each_thing_out_of_range_widens_and_is_said(more, work, said):
    def spread(of, load):
        return np.log([one[1][0] for one in of.draws(load, 256)]).std()

    unit = Unit.of(**(SERVED | {"gpu": "b300"} | more if "tp" not in more else SERVED | more))
    known = Unit.of(**SERVED | {"gpu": "b300"}) if "tp" not in more else Unit.of(**SERVED)
    told = [
        line
        for line in unit.outside(work, 8)
        if line.startswith(said or ("prompt", "answer", "TP", "DP", "nodes", "GPU", "model"))
    ]
    assert len(told) == (said != "")
    wider = spread(unit, work) / unit.calibration.spread, spread(known, WORK) / known.calibration.spread
    assert wider[0] > 1.05 * wider[1] if said else wider[0] == pytest.approx(wider[1], rel=0.01)


def test_what_a_table_says_of_held_intervals_is_what_widens_them():
    told = [row for row in known_errors() if row.drafts == "none" and 0 <= row.inside < scope.FEW_HELD]
    assert len(told) > 5
    assert all(row.lacked > 0 for row in told)


def test_a_set_up_that_nobody_served_is_another_engine_s():
    widths, given = {"engine": 0.4}, {"engine": "vllm", "model": "m", "gpu": "g", "weights": "fp8"}
    known = {"engine": ["vllm"], "set_up": scope.set_ups_of([replace(ROW, **given)])}
    assert scope.wider(0.3, widths, known, given) == pytest.approx(0.3)
    for other in ({"weights": "bf16"}, {"model": "o"}, {"gpu": "o"}, {"engine": "trtllm"}, {"engine": "t", "gpu": "o"}):
        assert scope.foreign(known, given | other)
        assert scope.wider(0.3, widths, known, given | other) == pytest.approx(0.5)  # once
    assert not scope.foreign({"engine": ["vllm"]}, given)  # one's own


def test_thresholds_of_scope():
    assert scope.few_of(STAND, [replace(ROW, inside=scope.FEW_HELD)]) == []
    known, given = {"engine": ["vllm"], "gpu": ["g"]}, {"engine": "trtllm", "gpu": "g"}
    assert scope.wider(0.3, {"engine": 0.4, "gpu": 9.0}, known, given) == pytest.approx(0.5)
    assert [len(scope.too_long("m", 100.0, tokens)) for tokens in (100.0, 101.0)] == [0, 1]
    assert scope.extra_log_sd(STAND, [ROW, replace(ROW, source="y", inside=1.0)]) == 0.0
