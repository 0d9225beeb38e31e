from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_math import catalogue
from inference_math.perf import steps
from inference_math.unit import Unit, rates_of, shape_of
from inference_math.unit.coefficients import DATASHEET
from inference_math.workload import Workload

UNIT = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
MIXTURE = Unit.of("mixtral-8x7b", "h100-sxm", 4)
WORK = Workload(2200, 170, 0.5)


def terms(unit, coefficients=None):
    return steps.unit_terms(unit.numbers, asdict(coefficients or unit.coefficients))


@pytest.mark.parametrize("name", list(catalogue.MODELS))
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_a_unit_in_numbers_is_what_the_catalogue_says(name, precision):
    model, gpu = catalogue.model(name), catalogue.gpu("b200")
    numbers = steps.unit_numbers(shape_of(model, 8), rates_of(gpu), 8, precision, precision)
    assert numbers["kv_token"] == model.kv_token(precision)
    room = 8 * gpu.hbm_bytes - model.weight_bytes(precision)
    assert numbers["kv_capacity"] == pytest.approx(max(room, 0) / (model.kv_copies(8) * model.kv_token(precision)))
    assert numbers["flops"] == 8 * gpu.flops(precision)
    embedding = model.weight_bytes(precision) - 2 * model.vocab_params
    assert numbers["step_bytes"] == embedding + 2 * model.lm_head_params


@pytest.mark.parametrize("unit", [UNIT, MIXTURE])
@given(
    decodes=st.integers(0, 512), context=st.floats(0, 1e5), fresh=st.floats(0, 1e4), cached=st.floats(0, 1e4),
    prompts=st.floats(0, 4),
)  # fmt: skip
def test_one_number_and_arrays_of_them_agree(unit, decodes, context, fresh, cached, prompts):
    one = steps.step(terms(unit), decodes, context, fresh, cached, prompts)
    many = unit._step(np.array([decodes]), context, fresh, cached, prompts)
    assert one == pytest.approx(many[0], rel=1e-12)


@given(st.floats(1e6, 1e12))
def test_a_slow_store_makes_prefills_wait_and_a_fast_one_hides(read_bw):
    in_hbm, loaded = (steps.costs(UNIT.numbers, terms(UNIT), WORK.plain, bw) for bw in (0.0, read_bw))
    load = UNIT.numbers["kv_token"] / read_bw * 0.5 * 2200
    assert loaded["ttft_1"] == pytest.approx(max(load, in_hbm["ttft_1"]))
    bare, mixed = loaded["mixed"](8, 0), loaded["mixed"](8, 1)
    assert mixed - bare == pytest.approx(max(load, in_hbm["mixed"](8, 1) - bare))


@given(st.floats(0.1, 3))
def test_no_factor_makes_a_unit_faster_than_its_datasheet(factor):
    least = steps.costs(UNIT.numbers, terms(UNIT, DATASHEET.coefficients), WORK.plain, 0.0)
    drawn = steps.stretched(steps.costs(UNIT.numbers, terms(UNIT), WORK.plain, 0.0), least, factor, 1 / factor)
    for name in ("t_w", "ttft_1"):
        assert drawn[name] >= least[name] * (1 - 1e-12)
    assert drawn["mixed"](32, 0.5) >= least["mixed"](32, 0.5)
