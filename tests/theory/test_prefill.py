"""Laws and limits of prefill acceleration (C04–C10)."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from inference_math import theory as t

share = st.floats(0, 1)
inner = st.floats(1e-6, 1 - 1e-6)
acceleration = st.floats(1e-3, 1e4)
layers = st.integers(1, 500)
seconds = st.floats(1e-9, 1e-2)


@given(alpha=share, e=acceleration)
def test_speedup_is_the_ratio_of_the_two_times(alpha, e):
    vanilla = t.ttft_vanilla(n_in=1000, T=1e-4)
    kv = t.ttft_kv(n_in=1000, T=1e-4, alpha=alpha, e=e, W=0)
    assert vanilla / kv == pytest.approx(t.speedup_layerwise(alpha=alpha, e=e), rel=1e-9)


@given(alpha=share, e=acceleration)
def test_no_share_beats_the_crossover(alpha, e):
    peak = t.speedup_layerwise(alpha=t.crossover(e=e), e=e)
    assert peak == pytest.approx(1 + e, rel=1e-9)
    assert t.speedup_layerwise(alpha=alpha, e=e) <= peak * (1 + 1e-9)


@given(alpha=share, e=acceleration, beside=st.floats(0, 10))
def test_a_whole_step_peaks_as_high_and_later(alpha, e, beside):
    star = t.crossover_step(e=e, beside=beside)
    peak = t.speedup_step(alpha=star, e=e, beside=beside)
    assert star >= t.crossover(e=e) * (1 - 1e-12)
    assert t.speedup_step(alpha=alpha, e=e, beside=beside) <= peak * (1 + 1e-9)
    if beside <= 1 / e:
        assert peak == pytest.approx(1 + e, rel=1e-9)
    else:  # all loading hides
        assert star == 1
        assert peak == pytest.approx(1 + 1 / beside, rel=1e-9)
    assert t.speedup_step(alpha=alpha, e=e, beside=0) == pytest.approx(t.speedup_layerwise(alpha=alpha, e=e), rel=1e-9)


def test_the_peak_of_two_steps_by_hand():
    assert t.crossover_root(e=9, beside=0.05) == pytest.approx(0.912, abs=5e-4)  # where parts add 0.945
    assert t.speedup_root(alpha=0.912, e=9, beside=0.05) == pytest.approx(9.88, abs=5e-3)
    assert t.crossover_root(e=3, beside=0.2) == pytest.approx(0.816, abs=5e-4)
    assert t.crossover_root(e=9, beside=0.2) == 1


@given(alpha=st.floats(0, 0.99), beside=st.floats(0, 10))
def test_a_whole_step_needs_less_of_a_store(alpha, beside):
    needed = t.acceleration_needed_root(alpha=alpha, beside=beside)
    assert needed <= t.acceleration_needed(alpha=alpha) * (1 + 1e-12)
    at, faster = (t.speedup_root(alpha=alpha, e=max(needed, 1e-6) * by, beside=beside) for by in (1, 100))
    assert at == pytest.approx(faster)
    assume(alpha > 0.01)
    assert t.speedup_root(alpha=alpha, e=needed / 1.1, beside=beside) < at


@given(alpha=share, e=acceleration, phi=share)
def test_the_causal_form_is_between_the_linear_one_and_half_of_it(alpha, e, phi):
    linear = t.speedup_layerwise(alpha=alpha, e=e)
    causal = t.speedup_layerwise_causal(alpha=alpha, e=e, phi=phi)
    assert linear / 2 * (1 - 1e-9) <= causal <= linear * (1 + 1e-9)
    assert t.speedup_layerwise_causal(alpha=alpha, e=e, phi=0) == pytest.approx(linear, rel=1e-12)


@given(e=acceleration, phi=share)
def test_at_the_causal_crossover_load_and_compute_take_equally_long(e, phi):
    a = t.crossover_causal(e=e, phi=phi)
    assert 0 < a <= 1
    assert (1 - a) * (1 + a * phi) == pytest.approx(a / e, rel=1e-6, abs=1e-9)


@given(e=acceleration)
def test_without_attention_the_causal_crossover_is_the_talk_s(e):
    assert t.crossover_causal(e=e, phi=0) == pytest.approx(t.crossover(e=e), rel=1e-12)


def test_published_example_of_the_causal_correction():
    assert t.speedup_layerwise_causal(alpha=0.9, e=1e6, phi=1) == pytest.approx(5.26, abs=0.005)


@given(alpha=share, e=acceleration)
def test_mixed_is_the_best_share_to_load(alpha, e):
    best = max(t.speedup_layerwise(alpha=np.linspace(0, alpha, 401), e=e))
    mixed = t.speedup_mixed(alpha=alpha, e=e)
    assert mixed >= best * (1 - 1e-9)
    assert mixed == pytest.approx(t.speedup_layerwise(alpha=min(alpha, t.crossover(e=e)), e=e), rel=1e-9)
    assert mixed >= 1


@given(e=st.floats(1e-3, 0.99))
def test_loading_all_is_a_slow_down_exactly_beyond_e(e):
    assert t.speedup_layerwise(alpha=min(1, e * 1.005), e=e) < 1
    assert t.speedup_layerwise(alpha=e * 0.99, e=e) >= 1


@given(alpha=st.floats(0, 0.999), e=acceleration)
def test_faster_io_helps_exactly_below_the_acceleration_needed(alpha, e):
    faster = t.speedup_layerwise(alpha=alpha, e=2 * e) > t.speedup_layerwise(alpha=alpha, e=e) * (1 + 1e-9)
    needed = t.acceleration_needed(alpha=alpha)
    if e < needed * (1 - 1e-6):
        assert faster
    if e >= needed:
        assert not faster


@given(alpha=share, e=acceleration, n_layers=layers)
def test_a_pipeline_lies_between_its_limits(alpha, e, n_layers):
    whole, layerwise = t.speedup_whole(alpha=alpha, e=e), t.speedup_layerwise(alpha=alpha, e=e)
    pipelined = t.speedup_pipelined(alpha=alpha, e=e, n_layers=n_layers)
    assert whole * (1 - 1e-9) <= pipelined <= layerwise * (1 + 1e-9)
    assert t.speedup_pipelined(alpha=alpha, e=e, n_layers=1) == pytest.approx(whole, rel=1e-12)
    assert t.speedup_pipelined(alpha=alpha, e=e, n_layers=1e9) == pytest.approx(layerwise, rel=1e-6)


@given(alpha=share, e=st.floats(0.01, 100), n_layers=st.integers(1, 100))
def test_the_simulated_pipeline_ends_when_the_theorem_says(alpha, e, n_layers):
    """Layer by layer: loads follow each other, a compute waits for its own load and for the layer before."""
    loaded = computed = 0.0
    for _ in range(n_layers):
        loaded += alpha / e / n_layers
        computed = max(loaded, computed) + (1 - alpha) / n_layers
    assert 1 / computed == pytest.approx(t.speedup_pipelined(alpha=alpha, e=e, n_layers=n_layers), rel=1e-9)


@given(alpha=inner, e=acceleration)
def test_overlap_gains_at_most_two(alpha, e):
    gain = t.pipelining_gain(alpha=alpha, e=e)
    assert 1 <= gain <= 2
    assert gain == pytest.approx(t.speedup_layerwise(alpha=alpha, e=e) / t.speedup_whole(alpha=alpha, e=e), rel=1e-9)


@given(e=acceleration, n_layers=layers)
def test_the_largest_pipeline_gain_is_at_the_crossover(e, n_layers):
    peak = t.crossover(e=e)
    at_peak = t.speedup_pipelined(alpha=peak, e=e, n_layers=n_layers) / t.speedup_whole(alpha=peak, e=e)
    assert at_peak == pytest.approx(t.pipelining_gain_layers(n_layers=n_layers), rel=1e-9)
    alpha = np.linspace(0, 1, 101)
    gains = t.speedup_pipelined(alpha=alpha, e=e, n_layers=n_layers) / t.speedup_whole(alpha=alpha, e=e)
    assert gains.max() <= at_peak * (1 + 1e-9)


@given(e=acceleration, T=seconds, ratio=st.floats(0, 3))
def test_shared_link_crossover(e, T, ratio):
    a = t.crossover_shared_link(e=e, T=T, W=ratio * T)
    if ratio >= 1:
        assert a == pytest.approx(0, abs=1e-9 * e)
    else:
        link, compute = a / e + (1 - a) * ratio, 1 - a
        assert link == pytest.approx(compute, rel=1e-6, abs=1e-9)
    assert t.crossover_shared_link(e=e, T=T, W=0) == pytest.approx(t.crossover(e=e), rel=1e-12)


@given(e=acceleration, ratio=st.floats(0, 3))
def test_a_shared_link_peaks_at_its_crossover_only_if_writing_is_no_slower_than_reading(e, ratio):
    alpha = np.linspace(0, 1, 401)
    x = 1 / np.maximum(alpha / e + (1 - alpha) * ratio, 1 - alpha)
    star = t.crossover_shared_link(e=e, T=1.0, W=ratio)
    at_star = 1 / max(star / e + (1 - star) * ratio, 1 - star)
    if ratio <= 1 / e and ratio < 1:
        assert x.max() <= at_star * (1 + 1e-9)
    else:
        best = x[-1] if ratio > 1 / e else x[0]
        assert best >= x.max() * (1 - 1e-9)


@given(e=acceleration, n_layers=layers, alpha=st.tuples(share, share))
def test_past_the_crossover_a_pipeline_falls_only_if_e_is_below_its_layers(e, n_layers, alpha):
    star = t.crossover(e=e)
    low, high = sorted(star + (1 - star) * a for a in alpha)
    before, after = (t.speedup_pipelined(alpha=min(a, 1), e=e, n_layers=n_layers) for a in (low, high))
    if e < n_layers:
        assert after <= before * (1 + 1e-9)
    else:
        assert after >= before * (1 - 1e-9)


@given(e=acceleration, n_layers=layers, alpha=st.tuples(share, share))
def test_up_to_the_crossover_a_pipeline_rises_only_if_e_is_above_one_over_its_layers(e, n_layers, alpha):
    low, high = sorted(t.crossover(e=e) * a for a in alpha)
    before, after = (t.speedup_pipelined(alpha=a, e=e, n_layers=n_layers) for a in (low, high))
    if e > 1 / n_layers:
        assert after >= before * (1 - 1e-9)
    else:
        assert after <= before * (1 + 1e-9)


@given(alpha=share, e=acceleration, T=seconds, ratio=st.floats(0, 1))
def test_writes_no_slower_than_computing_do_not_matter(alpha, e, T, ratio):
    with_writes = t.ttft_kv(n_in=100, T=T, alpha=alpha, e=e, W=ratio * T)
    assert with_writes == t.ttft_kv(n_in=100, T=T, alpha=alpha, e=e, W=0)


def test_the_talk_s_example():
    assert t.crossover(e=9) == 0.9
    assert t.speedup_layerwise(alpha=0.9, e=9) == pytest.approx(10)
    assert t.speedup_layerwise(alpha=[0, 1], e=9).tolist() == [1, 9]
    assert t.speedup_mixed(alpha=1, e=9) == pytest.approx(10)


@pytest.mark.parametrize(("turns", "units"), [(15, 1), (15, 4), (6, 8)])
def test_reuse_of_a_conversation_whose_turns_go_to_units_at_random(turns, units):
    """A unit knows the conversation up to the last turn that it served: the sum over which that was."""
    last = [at * (1 - 1 / units) ** (turn - 1 - at) / units for turn in range(1, turns + 1) for at in range(1, turn)]
    shared, local = t.reuse_conversation(turns=turns), t.reuse_local(turns=turns, units=units)
    assert local == pytest.approx(sum(last) / sum(range(1, turns + 1)))
    assert local <= shared * (1 + 1e-12)
    assert t.reuse_local(turns=turns, units=1) == pytest.approx(shared)
