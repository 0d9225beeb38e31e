import numpy as np
import pytest

from inference_math import catalogue, simulate
from inference_math.unit.operators import Operators
from inference_math.workload import Trace, Workload
from inference_math_book.figures import interference as plots

COST = simulate.StepCost(t_w=0.016, T=5e-5, pair=4e-9, kv_read=3.5e-8)
TRACE = Trace(n_in=[900, 400, 1500, 600], n_out=[5, 1, 7, 4], arrival=[0, 0.005, 0.01, 0.4])
PAIRS = Trace(n_in=[900] * 6, n_out=[8] * 6, arrival=[0, 0, 0.01, 0.01, 0.2, 0.2])  # for units side by side


@pytest.mark.parametrize(
    ("scheduler", "trace"),
    [
        (simulate.Aggregated(max_batch=2), TRACE),
        (simulate.Chunked(256), TRACE),
        (simulate.Disaggregated(transfer=1e-6), TRACE),
        (simulate.Disaggregated(2, 2, transfer=1e-6), PAIRS),
    ],
)
def test_the_segments_of_a_request_fill_its_time_without_overlap(scheduler, trace):
    run = simulate.replay(trace, COST, scheduler=scheduler, log=True)
    frame = plots.segments(run, COST)
    requests = run.requests.sort_values("arrival").reset_index(drop=True)
    for number, request in enumerate(requests.itertuples(), start=1):
        own = frame[frame.request == number].sort_values("start")
        assert own.start.iloc[0] == pytest.approx(request.arrival)
        assert own.end.iloc[-1] == pytest.approx(request.finished)
        np.testing.assert_allclose(own.start.to_numpy()[1:], own.end.to_numpy()[:-1], atol=1e-8)
        assert (own.kind == "decode").sum() == request.n_out - 1


def test_a_bubble_is_as_long_as_the_prefills_in_its_step():
    run = simulate.replay(TRACE, COST, log=True)
    frame = plots.segments(run, COST)
    bubbles = frame[frame.kind == "bubble"]
    assert len(bubbles)
    for row in bubbles.itertuples():
        step = run.log.loc[row.step]
        alone = COST(int(step.decodes), int(step.context))
        assert row.end - row.start == pytest.approx(step.seconds - alone)


def test_pools_have_no_bubbles():
    run = simulate.replay(TRACE, COST, scheduler=simulate.Disaggregated(), log=True)
    assert not (plots.segments(run, COST).kind == "bubble").any()


def test_segments_need_a_log():
    run = simulate.replay(TRACE, COST)
    for drawn in (lambda: plots.segments(run, COST), lambda: plots.concurrency_counts(run, 4, 10)):
        with pytest.raises(ValueError, match="run must have a log"):
            drawn()


def test_counts_are_shares():
    cost = simulate.StepCost(t_w=0.02, prompt=0.064)
    run = simulate.closed_loop(Workload(1000, 8, lengths="geometric"), cost, concurrency=4, requests=3000, log=True)
    frame = plots.concurrency_counts(run, B=4, n_out=8)
    assert frame.simulated.sum() == pytest.approx(1)
    assert (frame.simulated - frame.binomial).abs().max() < 0.02


def test_the_parts_of_a_batch_start_at_nothing_and_add_up():
    unit = Operators(catalogue.model("llama-3-70b"), tp=4)
    frame = plots.batch_parts(unit, 1024, np.array([8.0, 64.0, 128.0]))
    assert (frame.iloc[0, 1:] == 0).all()
    total = unit.steps().query("context == 1024").set_index("batch").total
    assert frame.iloc[-1, 1:].sum() == pytest.approx(total[128] - total[8])
