from __future__ import annotations

import numpy as np

from inference_math import catalogue, theory
from inference_math.unit.operators import Operators
from inference_math_book.figures import measured

OPERATORS = Operators(catalogue.model("llama-3-70b"), tp=2, weights="fp8", kv="fp8")


def test_deltas_are_the_formulas_and_measured_ones_lie_above(ax):
    frame = measured.deltas(ax, OPERATORS, n_out=170).set_index("n_in")
    assert (frame.delta_p_measured > frame.delta_p_datasheet).all()
    known = frame.dropna(subset="cache_read_measured")
    assert len(known) == 6
    assert (known.cache_read_measured > known.cache_read_datasheet).all()
    prefill = OPERATORS.prefills().set_index("n_in").total
    np.testing.assert_allclose(frame.delta_p_measured, prefill[frame.index] / 170)
    datasheet = theory.delta_h(n_in=frame.index.to_numpy(), kv_token=163_840, hbm_bw=2 * 3.35e12)
    np.testing.assert_allclose(frame.cache_read_datasheet, datasheet)


def test_tpot_overhead_starts_at_zero_and_adds_up(ax):
    frame = measured.tpot_overhead(ax, OPERATORS, context=2048)
    assert frame.decode_only[0] == frame.line[0] == 0
    np.testing.assert_allclose(frame.gemm + frame.attention + frame.allreduce, frame.decode_only, atol=1e-12)
    # Outside L2 attention follows the line, and the whole step lies above it.
    outside = frame[~frame.in_l2]
    np.testing.assert_allclose(outside.attention, outside.line, rtol=0.1)
    assert (outside.decode_only > outside.line).all()


def test_no_layer_outside_l2_beats_the_bandwidth(ax):
    frame = measured.attention_floor(ax, OPERATORS)
    outside = frame[frame.kv_bytes > 50e6]
    assert (outside.seconds > outside.kv_bytes / 3.35e12).all()
    assert frame.seconds.min() > 10e-6  # the floor: no launch is faster
