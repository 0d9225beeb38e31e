import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refused
from scipy import stats

from inference_math.workload import RandomLengths, Source, Trace, Workload

tokens = st.integers(1, 10_000)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@given(n_in=tokens, n_out=tokens, alpha=st.floats(0, 1), lengths=st.sampled_from(["fixed", "geometric"]))
def test_what_is_drawn_can_be_served(n_in, n_out, alpha, lengths):
    """Whole numbers; at least one token out, and at least the last of the prompt to compute."""
    drawn = Workload(n_in, n_out, alpha, lengths).draw(5, np.random.default_rng(0))
    assert all(column.dtype == np.int64 and column.shape == (5,) for column in drawn)
    assert (drawn.n_in == n_in).all()
    assert (drawn.n_out >= 1).all()
    assert (np.abs(drawn.cached - min(alpha * n_in, n_in - 1)) <= 1).all()
    if lengths == "fixed":
        assert (drawn.n_out == n_out).all()
        assert Workload(n_in, n_out).cv == 0


def test_the_stored_share_is_kept_in_the_mean(rng):
    drawn = Workload(7, 1, 0.5).draw(40_000, rng).cached
    assert set(drawn) == {3, 4}
    assert drawn.mean() == pytest.approx(3.5, abs=0.02)


@pytest.mark.parametrize("n_out", [1, 1.5, 20, 170.5])
def test_geometric_lengths_have_their_mean_and_their_spread(n_out, rng):
    users = Workload(100, n_out, lengths="geometric")
    drawn = users.draw(50_000, rng).n_out
    assert drawn.mean() == pytest.approx(n_out, abs=4 * drawn.std() / np.sqrt(drawn.size) + 1e-12)
    assert drawn.std() / drawn.mean() == pytest.approx(users.cv, rel=0.03, abs=1e-12)
    if n_out > 1:
        edges = np.arange(1, int(3 * n_out))
        counts = [(drawn == length).sum() for length in edges] + [(drawn > edges[-1]).sum()]
        law = stats.geom(1 / n_out)
        expected = drawn.size * np.append(law.pmf(edges), law.sf(edges[-1]))
        kept = expected > 5
        assert stats.chi2.sf((((counts - expected) ** 2 / expected)[kept]).sum(), kept.sum() - 1) > 0.01


def test_a_trace_is_played_as_recorded_and_drawn_with_replacement(rng):
    trace = Trace([10, 20, 30], [1, 2, 3], alpha=[0.0, 0.5, 1.0])
    assert np.column_stack(trace.rows()).tolist() == [[10, 1, 0], [20, 2, 10], [30, 3, 29]]
    drawn = np.column_stack(trace.draw(30_000, rng))
    rows, counts = np.unique(drawn, axis=0, return_counts=True)
    assert rows.tolist() == np.column_stack(trace.rows()).tolist()
    assert stats.chisquare(counts).pvalue > 0.01
    assert trace.cv == pytest.approx(np.std([1, 2, 3]) / 2)


def test_the_means_of_a_trace_know_its_longest_request():
    work = Workload.from_trace(Trace([10, 500, 30], [5, 2, 90]))
    assert work.longest == 502


def test_a_trace_stays_what_it_was():
    """Its columns are copies that nobody writes to: answers are kept by the trace that they are of."""
    arrival = np.array([0.0, 1.0])
    trace = Trace([10, 20], [1, 2], arrival=arrival)
    for column in (trace.n_in, trace.n_out, trace.arrival, trace.alpha):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 5
    arrival[0] = 0.5
    assert trace.arrival[0] == 0


def test_a_trace_is_read_from_a_frame():
    frame = pd.DataFrame({"n_in": [5, 6], "n_out": [1, 2], "arrival": [0.5, 0.5], "alpha": 0.5, "user": ["a", "b"]})
    trace = Trace.from_frame(frame)
    assert trace.arrival.tolist() == [0.5, 0.5]
    assert trace.rows().cached.tolist() == [3, 3]
    assert Trace.from_frame(frame[["n_in", "n_out"]]).arrival is None
    with pytest.raises(ValueError, match="frame must have the columns n_in and n_out; missing: n_out"):
        Trace.from_frame(frame.drop(columns="n_out"))


@pytest.mark.parametrize("source", [Workload(10, 5), Trace([10], [5])])
def test_both_are_sources_and_draw_as_many_as_asked(source, rng):
    assert isinstance(source, Source)
    for count in (0, 1, 7):
        assert all(len(column) == count for column in source.draw(count, rng))
    for bad in (-1, 2.5):
        with pytest.raises(ValueError, match="count must be a whole number >= 0"):
            source.draw(bad, rng)


def test_a_workload_that_makes_no_sense_is_refused_by_name():
    wrong = [
        {"n_in": 0}, {"n_out": 0.5}, {"n_out": np.array([10])}, {"alpha": 2}, {"alpha": [0.1, 0.2]}, {"longest": -1},
        {"lengths": "exponential"},
    ]  # fmt: skip
    refused(Workload, {"n_in": 10, "n_out": 5}, *wrong)


@pytest.mark.parametrize("name", ["n_in", "n_out"])
def test_only_whole_numbers_of_tokens_can_be_drawn(name, rng):
    with pytest.raises(ValueError, match=f"{name} must be a whole number"):
        Workload(**{"n_in": 10, "n_out": 5, name: 10.5}).draw(1, rng)


def test_a_trace_that_makes_no_sense_is_refused_by_name():
    good = {"n_in": [1, 2], "n_out": [1, 2]}
    wrong = (
        {"n_in": 5},
        {"n_in": [[1, 2]]},
        {"n_out": [0, 1]},
        {"alpha": 1.5},
        {"arrival": [1, 0]},
        {"arrival": [-1, 0]},
    )
    refused(Trace, good, *wrong)
    for change, names in (({"n_out": [1]}, ""), ({"alpha": [0.1] * 3}, ""), ({"arrival": [1.0]}, ", arrival")):
        with pytest.raises(ValueError, match=f"n_in, n_out, alpha{names} must have the same length"):
            Trace(**good | change)


@given(n_in=st.integers(20, 5000), n_out=st.integers(20, 5000), span=st.floats(0, 0.9))
@settings(max_examples=25, deadline=None)
def test_random_lengths_are_uniform_about_their_means(n_in, n_out, span):
    drawn = RandomLengths(n_in, n_out, span).draw(4000, np.random.default_rng(1))
    for mean, column in ((n_in, drawn.n_in), (n_out, drawn.n_out)):
        assert column.min() >= round(mean * (1 - span))
        assert column.max() <= round(mean * (1 + span))
        assert column.mean() == pytest.approx(mean, rel=0.05)
        assert column.std() / mean == pytest.approx(span / 3**0.5, abs=0.05)
    assert span < 0.1 or abs(np.corrcoef(drawn.n_in, drawn.n_out)[0, 1]) < 0.1
    assert not drawn.cached.any()


def test_lengths_that_are_none_are_refused():
    refused(RandomLengths, {"n_in": 10, "n_out": 10}, {"n_in": 0}, {"n_out": 0.5}, {"span": 1.0}, {"span": -0.1})
