"""Shared by the tests of measuring."""

import pytest

from inference_math.catalogue import Model


@pytest.fixture
def small() -> Model:
    """A model so small that a CPU steps through it at once, with two queries to a KV head."""
    return Model(name="small", n_layers=2, d_model=64, n_heads=4, n_kv_heads=2, head_size=16, d_ff=96, vocab=80)
