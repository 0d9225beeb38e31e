"""What is remembered of a run: exact means, quantiles within a bin, and memory that does not grow."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inference_math.simulate import Aggregated, Chunked, Disaggregated, GapHistogram, StepCost, closed_loop, record
from inference_math.workload import Workload

COST = StepCost(t_w=0.02, T=1e-4, delta_h=1e-4, kv_read=1e-7)
USERS = Workload(200, 40, lengths="geometric")

counted = st.lists(st.tuples(st.floats(1e-6, 1e3), st.integers(1, 50)), min_size=1, max_size=30)


@given(counted, st.floats(0, 1))
def test_a_histogram_knows_every_gap_to_a_thousandth(pairs, q):
    gaps, weights = (np.array(column, dtype=np.float64) for column in zip(*pairs, strict=True))
    histogram = GapHistogram()
    for half in (slice(None, None, 2), slice(1, None, 2)):
        histogram.add(gaps[half], weights[half])
    every = np.repeat(gaps, weights.astype(int))
    assert histogram.count == every.size
    assert histogram.mean == pytest.approx(every.mean())
    assert histogram.largest == every.max()
    # Just beside a step of the quantile, rounding decides; either side is right.
    beside = [np.quantile(every, np.clip(q + d, 0, 1), method="inverted_cdf") for d in (-1e-9, 1e-9)]
    assert beside[0] * 0.999 <= histogram.quantile(q) <= beside[1] * 1.001
    frame = histogram.frame()
    assert frame["gap"].is_monotonic_increasing
    assert frame["count"].sum() == every.size


def test_without_a_gap_there_is_no_quantile():
    histogram = GapHistogram()
    assert np.isnan(histogram.mean)
    assert np.isnan(histogram.quantile(0.5))
    assert histogram.frame().empty


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan"), 99])
def test_a_share_outside_0_to_1_is_refused(q):
    with pytest.raises(ValueError, match="q must be a number from 0 to 1"):
        GapHistogram().quantile(q)


def test_the_histogram_does_not_depend_on_how_often_it_is_filled(monkeypatch):
    at_once = closed_loop(USERS, COST, concurrency=4, requests=100, every_gap=True)
    monkeypatch.setattr(record, "_STEPS", 7)
    in_parts = closed_loop(USERS, COST, concurrency=4, requests=100, every_gap=True)
    assert at_once.gaps.frame().equals(in_parts.gaps.frame())
    assert (at_once.every_gap == in_parts.every_gap).all()


@pytest.mark.parametrize("scheduler", [Aggregated(), Chunked(64), Disaggregated()], ids=repr)
def test_the_warm_up_is_left_out_and_changes_nothing_else(scheduler):
    setting = {"concurrency": 8, "scheduler": scheduler, "every_gap": True}
    whole = closed_loop(USERS, COST, requests=300, **setting)
    part = closed_loop(USERS, COST, requests=200, warmup=100, **setting)
    start = whole.requests.finished[99]
    later = whole.requests[whole.requests.finished > start].head(len(part.requests)).reset_index(drop=True)
    assert part.requests.equals(later)
    assert part.seconds == part.requests.finished.max() - start
    assert part.request_rate == len(part.requests) / part.seconds
    assert part.every_gap.tolist() == whole.every_gap[-len(part.every_gap) :].tolist()
    assert part.gaps.count == len(part.every_gap)


def test_who_finishes_with_the_last_of_the_warm_up_belongs_to_it():
    """All finish in the same step, so the first to be measured are those of the next round."""
    run = closed_loop(Workload(100, 10), COST, concurrency=4, requests=3, warmup=1)
    assert len(run.requests) == 4
    assert run.requests.arrival.gt(0).all()
    assert run.request_rate == pytest.approx(4 / run.requests.latency[0])


def test_the_summary_is_that_of_the_tables():
    run = closed_loop(USERS, COST, concurrency=8, requests=500)
    summary = run.summary()
    for name in ("ttft", "tpot", "latency"):
        column = run.requests[name].dropna()
        assert summary[f"{name}_mean"] == pytest.approx(column.mean())
        for q in (50, 90, 99):
            assert summary[f"{name}_p{q}"] == pytest.approx(np.percentile(column, q))
    assert summary.gap_mean == run.gaps.mean
    assert summary.gap_p90 == run.gaps.quantile(0.9)
    assert summary.request_rate == run.request_rate


def test_answers_of_one_token_have_a_ttft_and_no_gaps():
    summary = closed_loop(Workload(100, 1), COST, concurrency=2, requests=10).summary()
    assert summary.ttft_mean == pytest.approx(COST(0, 0, 2, 200, 0.0))
    assert summary[["tpot_mean", "tpot_p50", "gap_mean", "gap_p99"]].isna().all()


def peak(n_out, **kept):
    """Return the most bytes that a run of long answers held."""
    tracemalloc.start()
    closed_loop(Workload(100, n_out), COST, concurrency=1, requests=100, **kept)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_memory_does_not_grow_with_the_tokens_unless_every_gap_is_kept():
    short, long = peak(1000), peak(10_000)
    assert long < 1.2 * short
    assert peak(10_000, every_gap=True) > long + 8 * 100 * 9999
