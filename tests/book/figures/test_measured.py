import numpy as np

from inference_math import catalogue, theory
from inference_math.unit.operators import Operators
from inference_math_book.figures import measured

OPERATORS = Operators(catalogue.model("llama-3-70b"), tp=2, weights="fp8", kv="fp8")


def test_kernels_are_slower_than_the_datasheet():
    prefills, reads = OPERATORS.prefills(), OPERATORS.kv_reads()
    frame = measured.datasheet_deltas(OPERATORS, prefills.n_in, n_out=170)
    assert (prefills.total / 170 > frame.delta_p).all()
    read = measured.datasheet_deltas(OPERATORS, reads.context, n_out=170).cache_read
    assert (reads.cache_read > read).all()
    expected = theory.delta_h(n_in=reads.context.to_numpy(), kv_token=163_840, hbm_bw=2 * 3.35e12)
    np.testing.assert_allclose(read, expected)
