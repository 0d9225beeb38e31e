import pytest
from hypothesis import given, strategies as st
from refusals import refused

from inference_math import Workload, simulate, theory
from inference_math.optimiser import architectures
from inference_math.unit.costs import WorkloadCosts


def unit(n_in=2048, n_out=65, t_w=0.0165, ttft_1=0.134, read=1.3e-4, room=600_000):
    places = room // (n_in + n_out)
    return WorkloadCosts(
        n_in, n_out, t_w=t_w, ttft_1=ttft_1, cache_read=read, T_decode=0.0, kv_capacity=room, places=places
    )


def found(numbers, S=0.04, S_ttft=1.0, overlap="quadrature", **options):
    return architectures.compare(numbers, S, S_ttft, overlap=overlap, **options).set_index("architecture")


def step_cost(numbers, n_in, overlap):
    T = float(numbers.compute) / n_in
    return simulate.StepCost(t_w=numbers.t_w, T=T, T_decode=T, delta_h=numbers.delta_h, overlap=overlap)


@pytest.mark.parametrize("overlap", ["quadrature", "serial-kv", "full"])
@pytest.mark.parametrize("n_out", [65, 257, 1025])
def test_the_simulator_finishes_what_the_chunked_row_says(overlap, n_out):
    numbers = unit(n_out=n_out)
    row = found(numbers, overlap=overlap).loc["chunked"]
    cost = step_cost(numbers, 2048, overlap)
    batch = round(row.batch)
    run = simulate.closed_loop(
        Workload(2048, n_out), cost, concurrency=batch + 40, requests=1500, warmup=200, log=True,
        scheduler=simulate.Chunked(round(row.chunk) + batch, max_batch=batch + 2),
    )  # fmt: skip
    # The engine's batch counts the prompt under way, too, so the batch differs by about one.
    assert run.request_rate == pytest.approx(row.rate, rel=0.04)
    assert run.gaps.quantile(0.99) <= 0.04 * 1.03


@pytest.mark.parametrize("n_out", [65, 257, 1025])
def test_the_simulator_finishes_what_the_disaggregated_row_says(n_out):
    numbers = unit(n_out=n_out)
    row = found(numbers).loc["disaggregated"]
    n_p, n_d = int(row.prefill_units), int(row.decode_units)
    pools = simulate.Disaggregated(n_p, n_d, max_batch=int(row.batch))
    run = simulate.closed_loop(
        Workload(2048, n_out), step_cost(numbers, 2048, "quadrature"),
        concurrency=8 * int(row.batch), requests=12_000, warmup=6000, scheduler=pools,
    )  # fmt: skip
    assert run.request_rate / (n_p + n_d) == pytest.approx(row.rate, rel=0.02)


def test_the_aggregated_row_is_the_largest_batch():
    """Without an overlap it is that of the numbers' own step: the sum, whose batch is the closed form's."""
    numbers = unit(n_out=1024)
    row = architectures.compare(numbers, 0.04, 1.0).set_index("architecture").loc["aggregated"]
    by_formula = theory.max_batch(
        sla_tpot=0.04, tpot_1=numbers.tpot_1, delta_p=numbers.delta_p, delta_h=numbers.delta_h * (1 - 1 / 1024)
    )
    assert row.batch == by_formula == numbers.batch_limits(0.04, 1.0).batch[0]
    assert row.rate == pytest.approx(numbers.rate(row.batch))
    tight = found(numbers, quantile=0.99).loc["aggregated"]
    assert 0 < tight.batch < row.batch


@pytest.mark.parametrize("overlap", ["quadrature", "serial-kv", "full"])
@pytest.mark.parametrize("n_in", [256, 2048])
def test_the_simulator_finishes_what_the_aggregated_row_says(overlap, n_in):
    numbers = unit(n_in=n_in, ttft_1=0.01 * n_in / 256)
    row = found(numbers, overlap=overlap).loc["aggregated"]
    run = simulate.closed_loop(
        Workload(n_in, 65, lengths="geometric"), step_cost(numbers, n_in, overlap),
        concurrency=int(row.batch), requests=8000, warmup=500, start="steady",
    )  # fmt: skip
    assert run.request_rate == pytest.approx(row.rate, rel=0.02)
    assert run.gaps.mean == pytest.approx(0.04, rel=0.06)
    assert float(run.requests.ttft.mean()) == pytest.approx(row.ttft, rel=0.02)


@given(
    t_w=st.floats(1e-3, 0.03), ttft_1=st.floats(0.01, 0.5), read=st.floats(1e-5, 1e-3),
    n_out=st.integers(16, 2000), S=st.floats(0.031, 0.2), S_ttft=st.floats(0.1, 3),
)  # fmt: skip
def test_no_row_breaks_a_limit_or_beats_the_work_it_must_do(t_w, ttft_1, read, n_out, S, S_ttft):
    numbers = unit(n_out=n_out, t_w=t_w, ttft_1=ttft_1, read=read)
    for overlap in ("quadrature", "serial-kv", "full"):
        frame = found(numbers, S, S_ttft, overlap=overlap)
        served = frame[frame.rate > 0]
        assert (served.ttft <= S_ttft * (1 + 1e-9)).all()
        assert (served.loc[served.index != "aggregated", "step"] <= S * (1 + 1e-9)).all()
        # A prompt must be computed and an answer's KV caches read, whatever hides under what.
        assert (served.rate <= 1 / max(ttft_1, (n_out - 1) * read) * (1 + 1e-9)).all()


def test_chunks_that_hide_more_finish_more():
    rates = [found(unit(), overlap=overlap).rate["chunked"] for overlap in ("quadrature", "serial-kv", "full")]
    assert rates == sorted(rates)


def test_without_limits_that_bind_the_closed_forms_come_back():
    """Long answers, much memory, no TTFT limit: theta_PDD and theta_serial within whole numbers of units."""
    numbers = unit(n_out=4000, read=2e-4, room=10**9)
    S = 0.04
    law = {"delta_p": numbers.delta_p, "delta_h": numbers.delta_h, "t_w": numbers.t_w, "sla_tpot": S}
    frame = found(numbers, S, 1e6, units=512, overlap="serial-kv")
    # Prompts computed together hide the weight read; a decode's own products stay below it.
    prefill = numbers.compute / 4000
    pdd = theory.unit_time_disaggregated(**(law | {"delta_p": prefill}))
    assert frame.rate["disaggregated"] == pytest.approx(1 / (4000 * pdd), rel=5e-3)
    serial = theory.unit_time_chunked_serial(**(law | {"delta_p": prefill + numbers.compute / 2048}))
    assert frame.rate["chunked"] == pytest.approx(1 / (4000 * serial), rel=5e-3)


@pytest.mark.parametrize("places", [1, 6, 40])
def test_prompts_under_way_take_places(places):
    """Against the simulator's best over many budgets, with an HBM for a few requests."""
    numbers = unit(room=places * (2048 + 65))
    row = found(numbers, 10, 10).loc["chunked"]
    rates = [
        simulate.closed_loop(
            Workload(2048, 65), step_cost(numbers, 2048, "quadrature"), concurrency=3 * places, requests=300, warmup=30,
            scheduler=simulate.Chunked(budget, kv_capacity=numbers.kv_capacity, max_batch=places),
        ).request_rate
        for budget in (64, 256, 512, 1024, 2048, 4096)
    ]  # fmt: skip
    assert row.rate == pytest.approx(max(rates), rel=0.07)


def test_a_store_shortens_the_prompts_own_compute():
    numbers, ten = unit(), unit().with_prefill(10)
    assert ten.compute == pytest.approx(numbers.compute / 10)
    assert (found(ten).rate > found(numbers).rate).all()


def test_answers_of_one_token_are_refused():
    with pytest.raises(ValueError, match="answers of more than one token"):
        found(unit(n_out=1))


def test_what_does_not_fit_is_zero():
    frame = found(unit(), S=0.01)
    assert (frame.rate == 0).all()
    assert frame.step.isna().all()
    assert (found(unit(room=100)).rate == 0).all()


def test_bad_arguments():
    good = {"numbers": unit(), "sla_tpot": 0.04, "sla_ttft": 1.0}
    wrong = {"sla_tpot": 0}, {"sla_ttft": -1}, {"units": 1}, {"quantile": 2}, {"overlap": "some"}
    refused(architectures.compare, good, *wrong)
