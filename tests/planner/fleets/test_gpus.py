from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as replaced

from inference_math import SLA, Unit, Workload, catalogue
from inference_math.optimiser.answers import gpus_ranked
from inference_math.unit.nearest import known_errors
from inference_math_planner import across, plan
from inference_math_planner.answers.notes import GUESSED, provenance_of

UNIT = Unit.of("llama-3-8b", "h100-sxm")
WORK, LIMITS = Workload(2000, 200), SLA(1.0, 0.05)


def asked(**options):
    return plan(UNIT, WORK, LIMITS, intervals=False, **options)


def test_a_row_is_the_plan_on_that_gpu():
    table = across(asked(price=2.5), ["b200"], {"b200": 5}).set_index("gpu")
    own = plan(Unit.of("llama-3-8b", "b200"), WORK, LIMITS, intervals=False, price=5)
    assert table.rate["b200"] == pytest.approx(own["rate"])
    assert table.usd_per_million["b200"] == pytest.approx(own["usd_per_million"])
    assert table.break_even["b200"] == pytest.approx(2.5 * own["rate"] / asked()["rate"])
    # At its break-even price a token costs what it costs here.
    even = across(asked(price=2.5), ["b200"], {"b200": table.break_even["b200"]}).usd_per_million
    assert even[0] == pytest.approx(even[1])


def test_the_plan_s_own_gpu_is_one_of_them():
    table = across(asked(price=2.5), ["h200-sxm"]).set_index("gpu")
    assert table.ratio["h100-sxm"] == 1
    assert table.price.to_dict() == pytest.approx({"h100-sxm": 2.5, "h200-sxm": np.nan}, nan_ok=True)
    assert np.isnan(table.usd_per_million["h200-sxm"])
    other = across(asked(price=2.5), [], {"h100-sxm": 3.0}).set_index("gpu")
    assert other.price["h100-sxm"] == other.break_even["h100-sxm"] == pytest.approx(3.0)


def test_a_gpu_of_one_s_own_under_a_known_name_is_the_plan_s():
    slow = replace(catalogue.gpu("h100-sxm"), hbm_bw=1.7e12)
    found = plan(Unit.of("llama-3-8b", slow), WORK, LIMITS, intervals=False)
    for table in (across(found, "h200-sxm"), across(found)):
        assert table.set_index("gpu").rate["h100-sxm"] == pytest.approx(found["rate"])


def test_the_whole_catalogue_is_asked_and_guesses_come_last():
    table = across(asked())
    assert set(table.gpu) == set(catalogue.GPUS)
    assert table.standing.eq(GUESSED).to_list() == sorted(table.standing.eq(GUESSED))
    rates = table.rate[table.standing != GUESSED].fillna(0)
    assert rates.is_monotonic_decreasing
    assert table.joules[table.rate > 0].gt(0).any()


def test_where_it_does_not_fit_or_meets_nothing():
    big = plan(Unit.of("llama-3-70b", "b200", 1, "fp8"), WORK, LIMITS, intervals=False)
    late = plan(UNIT, WORK, SLA(1.0, 0.006), intervals=False)
    for found, said in ((big, "does not fit, or not in this precision"), (late, "none meets the SLA")):
        assert across(found, ["l40s"]).set_index("gpu").architecture["l40s"] == said


def test_what_is_no_gpu_or_no_price_is_named():
    with pytest.raises(ValueError, match="h900"):
        across(asked(), ["h900"])
    with pytest.raises(ValueError, match="prices: a GPU must be one of"):
        across(asked(), ["b200"], {"l40s": 1.0})
    with pytest.raises(ValueError, match="prices: b200 must be"):
        across(asked(), ["b200"], {"b200": 0})


@pytest.mark.parametrize(
    ("costs", "order"),
    [
        ([np.nan] * 4, [1, 2, 0, 3]),  # by rate; the guess last
        ([2.0, np.nan, np.nan, np.nan], [1, 2, 0, 3]),  # a single price orders nothing
        ([2.0, np.nan, 1.0, 0.5], [2, 0, 1, 3]),
    ],
)
def test_the_order_of_gpus(costs, order):
    assert gpus_ranked([1.0, 3.0, 2.0, 9.0], costs, [False, False, False, True]) == order


@pytest.mark.parametrize(
    ("mode", "unseen", "changed", "said"),
    [
        ("served", [], {}, "calibrated"), ("served", ["n_in"], {"weights": "bf16"}, "measured"),
        ("served", [], {"engine": "sglang"}, "measured"), ("served", [], {"kind": "MLA"}, "measured"),
        ("served", ["gpu"], {"gpu": "l40s"}, "scaled"), ("zero-shot", [], {"gpu": "h100-sxm"}, "measured"),
        ("zero-shot", [], {}, "scaled"), ("profile", [], {}, "calibrated"), ("profile", ["gpu"], {}, "scaled"),
        ("served", [], {"maker": "AMD"}, "calibrated"), ("served", [], {"maker": "AMD", "kind": "MLA"}, GUESSED),
        ("zero-shot", [], {"maker": "AMD"}, GUESSED),
    ],
)  # fmt: skip
def test_what_a_row_stands_on(mode, unseen, changed, said):
    row = replaced(known_errors()[0], source="left out", gpu="b200", kind="dense", engine="vllm", weights="fp8")
    own = {name: getattr(row, name) for name in ("gpu", "kind", "engine", "weights")} | {"maker": "NVIDIA"} | changed
    assert provenance_of(mode, unseen, own.pop("gpu"), "b200", rows=[row], **own) == said
