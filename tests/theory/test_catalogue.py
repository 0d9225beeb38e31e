"""What holds for every formula of the catalogue."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_math import theory
from inference_math.notation import QUANTITIES

EVERY = pytest.mark.parametrize("formula", theory.CATALOGUE.values(), ids=lambda f: f.name)

# The names and arguments that other code may rely on.
PROMISED = """\
kv_load_time(kv_token, io_bw)
token_time(n_params, n_layers, d_att, n_in, flops)
token_time_causal(n_params, n_layers, d_att, n_in, flops)
attention_threshold(n_params, n_layers, d_att)
attention_threshold_causal(n_params, n_layers, d_att)
token_acceleration(T, R)
ttft_vanilla(n_in, T)
ttft_kv(n_in, T, alpha, e, W)
crossover(e)
crossover_causal(e, phi)
crossover_shared_link(e, T, W)
speedup_layerwise(alpha, e)
speedup_layerwise_causal(alpha, e, phi)
speedup_mixed(alpha, e)
speedup_whole(alpha, e)
speedup_pipelined(alpha, e, n_layers)
delta_p(ttft_1, n_out)
delta_h(n_in, kv_token, hbm_bw)
expected_tpot(B, tpot_1, delta_p, delta_h)
""".splitlines()


@pytest.mark.parametrize("promise", PROMISED)
def test_promised_names_and_arguments(promise):
    name, arguments = promise.removesuffix(")").split("(")
    assert [s.name for s in theory.CATALOGUE[name].arguments] == arguments.split(", ")


@EVERY
@given(data=st.data())
@settings(max_examples=25)
def test_numpy_computes_what_sympy_means(formula, data):
    """The compiled function against exact substitution, at random points inside the accepted ranges."""
    given_ = {}
    for symbol in formula.arguments:
        high = 0.99 if QUANTITIES[symbol.name].accepted.high == 1 else 1e3
        given_[symbol.name] = data.draw(st.floats(0.01, high), label=symbol.name)
    exact = formula.expr.subs({s: sp.Rational(given_[s.name]) for s in formula.arguments})
    assert formula(**given_) == pytest.approx(float(exact), rel=1e-12)


@EVERY
def test_a_million_points_keep_the_shape(formula):
    grid = np.linspace(0.1, 0.9, 10**6)
    arguments = {s.name: grid if i == 0 else 0.5 for i, s in enumerate(formula.arguments)}
    assert formula(**arguments).shape == grid.shape
