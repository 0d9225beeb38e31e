"""What holds for every formula of the catalogue."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np
import pytest
import sympy as sp
from grids import each
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inference_math.theory.notation import QUANTITIES
from inference_math_planner import laws

EVERY = pytest.mark.parametrize("formula", laws.CATALOGUE.values(), ids=lambda f: f.name)

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
expected_ttft(B, n_out, ttft_1)
expected_ttft_full(B, n_out, ttft_1, delta_h, t_w)
max_batch(sla_tpot, tpot_1, delta_p, delta_h)
max_batch_printed(sla_tpot, tpot_1, delta_p, delta_h)
max_batch_ttft(sla_ttft, ttft_1, n_out)
batch_gain(delta_p, delta_h, x)
gain_bound(delta_p, delta_h)
cost_ratio_short(n_params, kv_token, hbm_bw, flops, n_out)
break_even_output(n_params, kv_token, hbm_bw, flops)
cost_ratio_long(n_layers, d_att, kv_token, hbm_bw, flops, n_in, n_out)
cost_ratio_long_printed(n_params, kv_token, hbm_bw, flops, n_in, n_out)
chunk_size(b, n_in, n_out)
chunked_gain(delta_p, delta_h)
chunked_gain_weights(b, t_w, delta_p, delta_h)
chunked_gain_serial(b, t_w, delta_p, delta_h)
chunked_gain_sla(delta_p, delta_h, t_w, sla_tpot)
pdd_split(delta_p, delta_h, t_w, sla_tpot)
pdd_gain(delta_p, delta_h, t_w, sla_tpot)
pdd_gain_specialised(delta_p, delta_h, flop_ratio, mbw_ratio)
pdd_concurrency(sla_ttft, n_out, sla_tpot)
transfer_bandwidth(rate, n_in, kv_token)
littles_law(rate, latency)
""".splitlines()


@each(PROMISED)
def test_promised_names_and_arguments(promise):
    name, arguments = promise.removesuffix(")").split("(")
    assert [s.name for s in laws.CATALOGUE[name].arguments] == arguments.split(", ")


@EVERY
@given(data=st.data())
@settings(max_examples=25)
def test_numpy_computes_what_sympy_means(formula, data):
    """The compiled function against 40 digits, at random points inside the accepted ranges."""
    given_ = {}
    for symbol in formula.arguments:
        high = 0.99 if QUANTITIES[symbol.name].accepted.high == 1 else 1e3
        # A request has at least one output token.
        low = 1.01 if symbol.name == "n_out" else max(0.01, QUANTITIES[symbol.name].accepted.low)
        given_[symbol.name] = data.draw(st.floats(low, high), label=symbol.name)
    assume(bool(formula.domain.subs({s: given_[s.name] for s in formula.arguments})))
    check_against_forty_digits(formula, given_)


@pytest.mark.parametrize(
    ("name", "given_"),
    [("reuse_local", {"turns": 1.0, "units": 521.0}), ("reuse_local", {"turns": 2.0, "units": 521.0})],
)
def test_what_hypothesis_once_found_stays_found(name, given_):
    check_against_forty_digits(laws.CATALOGUE[name], given_)


# Each of its two differences is as long as its larger part, and both are multiplied: the last digit of units². A share
# of stored tokens of a thousand units is still right to nine decimals.
# Near e = 1 what loading saves is a difference of nearly equal numbers.
EPS = np.finfo(float).eps
LOST = {
    "reuse_local": lambda turns, units: 2 * EPS * units**2,
    "break_even_reads": lambda write, e: 2 * EPS * write / (1 - 1 / e) ** 2,
}


def check_against_forty_digits(formula, given_):
    exact = in_forty_digits(formula, given_)
    # A floor jumps where its argument is a whole number, to the last digit of the argument.
    first = formula.arguments[0].name
    beside = [in_forty_digits(formula, given_ | {first: given_[first] * (1 + h)}) for h in (-1e-12, 1e-12)]
    accepted = [exact, *(beside if formula.expr.has(sp.floor) else [])]
    # Rounding moves a difference by its larger part's last digits, and a power by its exponent's.
    lost = max(1e-11, LOST[formula.name](**given_) if formula.name in LOST else 0)
    assert any(formula(**given_) == pytest.approx(float(v), rel=1e-11, abs=lost) for v in accepted)


def in_forty_digits(formula, values):
    with mpmath.workdps(40):
        return high_precision(formula.name)(**{name: mpmath.mpf(value) for name, value in values.items()})


@cache
def high_precision(name):
    formula = laws.CATALOGUE[name]
    return sp.lambdify(formula.arguments, formula.expr, "mpmath")


@each(list(laws.CATALOGUE.values()), lambda formula: formula.name)
def test_a_million_points_keep_the_shape(formula):
    grid = np.linspace(0.1, 0.9, 10**6) + QUANTITIES[formula.arguments[0].name].accepted.low
    # At least one token; a limit above the weight read; at least one unit, one request; loads faster than computing.
    sensible = {"B": 4, "e": 4, "n_out": 64, "sla_tpot": 9, "units": 4, "tp": 2}
    sensible |= {"rounds": 4, "together": 4, "wave": 4, "every": 4, "ranks": 4}
    first, *others = [s.name for s in formula.arguments]
    arguments = {first: grid} | {name: sensible.get(name, 0.5) for name in others}
    assert formula(**arguments).shape == grid.shape
