"""The searches, and what is decided by them, against a look at every candidate."""

import math
from math import isnan

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from msgspec.structs import replace
from scipy import stats

from inference_math.optimiser import search
from inference_math.optimiser.architectures import SURE
from inference_math.optimiser.choice import decide
from inference_math.optimiser.load import left_to_decode, limit_utilisation, settings_row
from inference_math.optimiser.settings import FEW_UNITS, MOST_FED, decode_rates, pools_settings
from inference_math.unit import batch
from inference_math.unit.problem import prompts_together
from inference_math.unit.types import SearchConstants, StepCosts

lengths = st.sampled_from([(2200.0, 170.0), (100.0, 1000.0), (9600.0, 20.0), (64.0, 2.0)])
limits = st.tuples(st.floats(0.012, 0.2), st.floats(0.05, 5.0))


def step(decodes, prompts, n_in=2200.0):
    tokens = decodes + prompts * n_in
    return np.hypot(0.0155, 8e-5 * tokens) + 9e-5 * decodes + 1e-6 * tokens


CONSTANTS = SearchConstants(
    n_in=100.0, steps=11.0, step=0.04, sharing=1.0, ttft=2.0, quantile=0.0, kv_seqs=300, room=300.0, together=4.0,
    fresh=1.0, groups=1.0, units=8, prefill_gpus=1.0, share=1.0, handover=0.0, sent=0.0, mixes=True,
)  # fmt: skip


def costs_of(step_seconds, prefill, front=0.0):
    """Return steps, and those of a unit that only prefills; settings are searched with nothing else."""
    none = dict.fromkeys(("t_w", "ttft_1", "cache_read", "own", "load"), 0.0)
    return StepCosts(**none, front=front, step_seconds=step_seconds, step_with_chunk_each=step_seconds, prefill=prefill)


def decided(name, limits, lengths=(2200.0, 170.0), kv_seqs=300.0, units=8, sent=0.0, quantile=0.0, prefill=(1.0, 1.0)):
    """Return what an architecture does whose steps are those above: of a unit that holds so many requests.

    `prefill`: GPUs of a prefill unit, over those of the others, and how long its steps take.
    """
    n_in, n_out = lengths
    together = prompts_together(kv_seqs * (n_in + n_out), n_in, 1)
    constants = replace(
        CONSTANTS, n_in=n_in, steps=n_out, step=limits[0], ttft=limits[1], quantile=quantile, kv_seqs=kv_seqs,
        room=kv_seqs, together=together, units=units, prefill_gpus=prefill[0], sent=sent,
    )  # fmt: skip
    costs = costs_of(
        lambda decodes, prompts: step(decodes, prompts, n_in),
        lambda decodes, prompts: prefill[1] * step(decodes, prompts, n_in),
    )
    return decide([constants] * 2, [[costs]] * 2, SURE).each[name][0]


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_the_largest_whole_number(most, last):
    assert batch.largest_whole(most, lambda n: n <= last) == min(most, last)


@given(st.integers(-3, 6000), st.integers(0, 5000), st.integers(0, 5000))
def test_a_guess_changes_nothing(guess, most, last):
    assert batch.largest_from(guess, most, lambda n: n <= last) == min(most, last)


def test_the_higher_of_two_peaks_is_found():
    def height(v):
        return max(1 - (v - 1) ** 2, 1.2 - 4 * (v - 8) ** 2)

    assert search.highest(height, 0, 10) == pytest.approx(8, abs=1e-4)


@given(st.floats(-5, 5), st.floats(0, 10))
def test_edges_and_peaks(place, width):
    assert search.edge(lambda v: v <= place, place - width, place + 1) == pytest.approx(place, abs=1e-6)
    found = search.peak(lambda v: -((v - place) ** 2), place - width, place + 2 * width + 1, search.CUTS)
    assert found == pytest.approx(place, abs=1e-3)


@given(st.integers(1, 3000), st.floats(1, 5000))
def test_who_prefills_beside_is_binomial(B, n_out):
    found = np.array(batch.concurrent_prefill_pmf(B, n_out))
    assert found[:, 1].sum() == pytest.approx(1)
    np.testing.assert_allclose(found[:, 1], stats.binom(B - 1, 1 / n_out).pmf(found[:, 0]), rtol=1e-6, atol=1e-15)


@given(st.integers(1, 300), st.floats(2, 500), st.integers(0, 1), st.floats(0.01, 0.999))
def test_means_and_quantiles_of_steps(B, n_out, own, quantile):
    beside = np.arange(B)
    shares = stats.binom(B - 1, 1 / n_out).pmf(beside)
    seconds = np.array([step(B - own - k, own + k) for k in beside])
    assert batch.seen(step, B, n_out, own, 0.0) == pytest.approx(seconds @ shares, rel=1e-9)
    order = np.argsort(seconds)
    reached = np.cumsum(shares[order])
    assume(abs(reached - quantile).min() > 1e-9)
    assert batch.seen(step, B, n_out, own, quantile) == pytest.approx(seconds[order][np.argmax(reached >= quantile)])


def best_by_grid(kv_seqs, n_in, n_out, tpot, ttft):
    """Every number of decodes in steps of a hundredth, with 400 chunks each."""
    b, ratio = np.linspace(kv_seqs / 400, kv_seqs, 400)[:, None], np.geomspace(1, 4 * n_in * n_out, 400)
    balance = b * n_in / (n_out - 1)
    chunk = np.maximum(balance * ratio, 1)
    step_seconds, bare = step(b, chunk / n_in, n_in), step(b, 0.0)
    share = np.minimum(1, balance / chunk)
    good = (
        (step_seconds <= tpot) & ((n_in / chunk + 1) * step_seconds <= ttft) & (chunk <= np.maximum(4 * n_in, balance))
    )
    good &= b + share * np.maximum(1, chunk / n_in) <= kv_seqs
    return np.where(good, b / ((n_out - 1) * (bare + share * (step_seconds - bare))), 0).max()


@given(lengths, limits, st.sampled_from([1, 5, 40, 200]))
def test_chunks_beat_every_candidate_of_a_grid(length, limit, kv_seqs):
    n_in, n_out = length
    row = decided("chunked", limit, length, kv_seqs)
    grid = best_by_grid(kv_seqs, n_in, n_out, *limit)
    assert row.rate >= grid * (1 - 1e-6)
    if not row.rate:
        assert isnan(row.ttft)
        return
    balance = row.batch * n_in / (n_out - 1)
    under_way = min(1.0, balance / row.chunk) * max(1.0, row.chunk / n_in)
    assert row.batch + under_way <= kv_seqs * (1 + 1e-9)  # prompts under way hold places, too
    step_seconds = step(row.batch, row.chunk / n_in, n_in)
    assert step_seconds <= limit[0] * (1 + 1e-9)
    assert row.ttft == pytest.approx((n_in / row.chunk + 1) * step_seconds)
    assert row.ttft <= limit[1] * (1 + 1e-9)


@given(limits, st.sampled_from([2, 8, 33]), st.sampled_from([1.0, 20.0, 300.0]))
def test_pools_are_the_best_of_all_splits(limit, units, kv_seqs):
    n_in, n_out = 2200.0, 170.0
    row = decided("disaggregated", limit, (n_in, n_out), kv_seqs, units)
    rates = [
        min(k * together / step(0, together), n * d / ((n_out - 1) * step(d, 0))) / (k + n)
        for k in range(1, units)
        for n in range(1, units - k + 1)
        for together in range(1, int(prompts_together(kv_seqs * 2370, n_in, 1)) + 1) if step(0, together) <= limit[1]
        for d in range(1, int(kv_seqs) + 1) if step(d, 0) <= limit[0]
    ]  # fmt: skip
    best = max(rates, default=0.0)
    # Fewer prompts together feed nearly as much; a split into whole units may make more of that, or less.
    assert MOST_FED * best <= row.rate <= best * (1 + 1e-12)


def test_a_pool_decodes_all_tokens_but_the_first():
    row = decided("disaggregated", (0.04, 1.0), (2200.0, 4.0))
    decode = row.batch / (3 * step(row.batch, 0.0))
    prefill = row.chunk / 2200 / row.ttft
    pools = row.prefill_units, row.decode_units
    assert row.rate == pytest.approx(min(pools[0] * prefill, pools[1] * decode) / sum(pools))


@given(limits, st.sampled_from([0.0, 0.9]))
def test_the_aggregated_batch_is_the_largest_within_limits(limit, quantile):
    row = decided("aggregated", limit, quantile=quantile)
    good = [
        B for B in range(1, 301)
        if batch.seen(step, B, 170.0, 0, quantile) <= limit[0] and batch.seen(step, B, 170.0, 1, quantile) <= limit[1]
    ]  # fmt: skip
    assert row.batch == max(good, default=0)


@given(limits, st.integers(2, 20), st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0]), st.floats(0.2, 3.0))
def test_prefill_units_of_their_own_size_are_split_as_a_look_at_all_splits_says(limit, units, size, slow):
    row = decided("disaggregated", limit, units=units, prefill=(size, slow))
    if not row.rate:
        assert isnan(row.prefill_units)
        return
    decode = row.batch / (169 * step(row.batch, 0.0))
    together = row.chunk / 2200
    fed = together / (slow * step(0.0, together))
    rests = {k: range(1, math.floor(units - k * size + 1e-9) + 1) for k in range(1, math.ceil(units / size))}
    splits = [
        min(k * fed, n * decode) / (k * size + n) for k, rest in rests.items() for n in rest
    ]  # what is over is free
    assert row.rate >= (1 if units <= FEW_UNITS else 0.999) * max(splits) * (1 - 1e-9)
    decoding = row.decode_units
    used = row.prefill_units * size + decoding
    assert used <= units + 1e-9
    assert row.ttft == pytest.approx(slow * step(0.0, together))
    assert row.decodes / (169 * step(row.decodes, 0.0)) * decoding == pytest.approx(row.rate * used)


def test_more_prefill_units_than_serve_less_may_serve_more():
    """Four of a quarter's size leave two units to decode, five to eight one: a draw of slow prompts gains by eight."""
    constants = replace(CONSTANTS, room=10.0, units=3, prefill_gpus=0.25)
    slow = costs_of(lambda decodes, prompts: 0.001, lambda decodes, prompts: prompts / 20)
    fast = costs_of(lambda decodes, prompts: 0.02, lambda decodes, prompts: prompts / 100)
    assert pools_settings(constants, [slow, fast]).prefill_units == 8
    assert pools_settings(replace(constants, units=10, prefill_gpus=9 / 7), [slow]).prefill_units == 7  # 63 of 70 GPUs
    assert left_to_decode(28, 21, 9 / 7) == 1


@given(limits, st.floats(0.001, 2), st.sampled_from([0.25, 0.5, 2.0, 3.0]))
def test_the_link_of_a_prefill_unit_is_as_wide_as_its_gpus(limit, sent, size):
    row = decided("disaggregated", limit, sent=sent, prefill=(size, 1.0))
    if row.rate:
        together, prefill = row.chunk / 2200, row.prefill_units
        fed = min(together / step(0.0, together), size / sent)
        taken = min(row.batch / (169 * step(row.batch, 0.0)), 1 / sent)
        decoding = row.decode_units
        assert row.rate * (prefill * size + decoding) == pytest.approx(min(prefill * fed, decoding * taken))


def test_pools_take_the_limits_by_steps_of_their_own_and_a_cache_sent_is_part_of_the_first_gap():
    constants = replace(CONSTANTS, sent=0.1)
    costs = costs_of(lambda decodes, prompts: 0.02, lambda decodes, prompts: 1.5 * prompts, front=0.2)
    row = settings_row(8, 100.0, 1, 7)
    assert limit_utilisation(constants, costs, "disaggregated", row) == pytest.approx(1.7 / 2.0)
    assert limit_utilisation(replace(constants, ttft=20.0), costs, "disaggregated", row) == pytest.approx(0.03 / 0.04)
    assert limit_utilisation(replace(constants, handover=0.1), costs, "disaggregated", row) == pytest.approx(1.8 / 2.0)


@given(limits, st.floats(0.001, 2))
def test_a_link_bounds_the_pools(limit, sent):
    """Each decode unit takes one prompt's cache after the other, and each prefill unit sends so."""
    row = decided("disaggregated", limit, sent=sent)
    free = decided("disaggregated", limit)
    assert row.rate <= free.rate * (1 + 1e-9)
    if row.rate:
        pools = row.prefill_units, row.decode_units
        assert row.rate * sum(pools) <= min(pools) / sent * (1 + 1e-9)
        assert row.tpot == pytest.approx(row.step + sent / 169)


@pytest.mark.parametrize("sent", [0.0, 0.03])
def test_a_cache_sent_is_spread_over_the_gaps_of_an_answer(sent):
    """Four tokens have three gaps: as many decodes as the limit leaves, and no more."""
    constants = replace(CONSTANTS, n_in=2200.0, steps=4.0, ttft=1.0, sent=sent)
    costs = costs_of(lambda decodes, prompts: 0.016 + 1e-4 * decodes, lambda decodes, prompts: 0.1)
    (side,) = decode_rates(constants, [costs])
    rows = [settings_row(side.number + more, 2200.0, 1, 1) for more in (0, 1)]
    assert [limit_utilisation(constants, costs, "disaggregated", row) <= 1 + 1e-9 for row in rows] == [True, False]
