import numpy as np
import pytest
from grids import rest_long
from hypothesis import given, strategies as st

from inference_math import Workload, simulate, theory

times = st.floats(1e-5, 1.0)
decodes = st.floats(1, 500)


@given(b=decodes, t_w=times, delta_p=times, delta_h=times)
def test_gains_at_equal_batch_are_ordered_and_at_most_two(b, t_w, delta_p, delta_h):
    """1 ≤ serial KV ≤ full ≤ 2; and the talk's is the full one without the weight read."""
    numbers = {"b": b, "t_w": t_w, "delta_p_gross": delta_p, "delta_h": delta_h}
    serial, full = theory.chunked_gain_serial(**numbers), theory.chunked_gain_weights(**numbers)
    assert serial * (1 + 1e-12) >= 1
    assert serial <= full * (1 + 1e-12)
    assert full <= 2 * (1 + 1e-12)
    talk = theory.chunked_gain(delta_p_gross=delta_p, delta_h=delta_h)
    assert theory.chunked_gain_weights(**(numbers | {"t_w": 0})) == pytest.approx(talk)


@given(t_w=times, delta_p=times, delta_h=times, room=times)
def test_gains_at_an_equal_limit_are_batches_that_just_meet_it(t_w, delta_p, delta_h, room):
    room = max(room, delta_h)
    S = t_w + room
    numbers = {"delta_p_gross": delta_p, "delta_h": delta_h, "t_w": t_w, "sla_tpot": S}
    whole = room / (delta_p + delta_h)  # the batch of whole prefills
    for gain, step in (
        (theory.chunked_gain_sla(**numbers), lambda b: max(b * delta_p, t_w + b * delta_h)),
        (theory.chunked_gain_sla_serial(**numbers), lambda b: max(t_w, b * delta_p) + b * delta_h),
    ):
        assert step(gain * whole) == pytest.approx(S)
    u = 1 - t_w / S
    assert theory.chunked_gain_sla(**numbers) <= (1 + 1 / u) * (1 + 1e-9)
    assert theory.chunked_gain_sla_serial(**numbers) <= theory.chunked_gain_sla(**numbers) * (1 + 1e-12)


@given(b=decodes, t_w=times, T=st.floats(1e-6, 1e-3), delta_h=times, pd_ratio=st.floats(0.1, 500))
def test_the_balanced_chunk_gives_the_balanced_gain(b, t_w, T, delta_h, pd_ratio):
    at = {"b": b, "chunk": b * pd_ratio, "pd_ratio": pd_ratio, "T": T, "t_w": t_w, "delta_h": delta_h}
    balanced = {"b": b, "t_w": t_w, "delta_p_gross": pd_ratio * T, "delta_h": delta_h}
    assert theory.chunked_gain_offbalance(**at) == pytest.approx(theory.chunked_gain_weights(**balanced))
    assert theory.chunked_gain_offbalance_serial(**at) == pytest.approx(theory.chunked_gain_serial(**balanced))


def test_chunk_size_is_the_flow_balance():
    assert theory.chunk_size(b=32, n_in=3072, n_out=64) == 1536
    assert theory.chunk_size_full(b=32, n_in=3072, n_out=65) == 1536
    assert theory.chunk_budget(b=32, T=1e-4, delta_h=1e-4, t_w=0.02, sla_tpot=0.0432) == pytest.approx(400)
    assert theory.chunk_budget(b=32, T=1e-4, delta_h=1e-4, t_w=0.0401, sla_tpot=0.0432) == 0


@pytest.mark.parametrize("n_out", [2, 16])
def test_the_printed_chunk_feeds_fewer_decodes_than_it_says(n_out):
    """A queue of prompts, and a budget of 32 tokens for decodes: how many decode in a step, on average?"""

    def decodes(chunk):
        run = simulate.closed_loop(
            Workload(1024, n_out), simulate.StepCost(t_w=0.0165, T=7e-5, delta_h=9.5e-5), concurrency=168,
            requests=3000, warmup=600, log=True, seed=1, scheduler=simulate.Chunked(round(chunk) + 32, max_batch=96),
        )  # fmt: skip
        return float(run.log.decodes.mean())

    at = {"b": 32, "n_in": 1024, "n_out": n_out}
    assert decodes(theory.chunk_size(**at)) == pytest.approx(32 * (1 - 1 / n_out), rel=0.02)
    assert decodes(theory.chunk_size_full(**at)) == pytest.approx(32, rel=0.02)


@pytest.mark.parametrize("formula", [theory.chunked_gain_offbalance, theory.chunked_gain_offbalance_serial])
@pytest.mark.parametrize("chunk", [256, 512, 1024])
def test_each_tent_peaks_where_the_chunk_balances(formula, chunk):
    ratios = np.linspace(0.5, 100, 400)
    gain = formula(b=32, chunk=chunk, pd_ratio=ratios, T=7e-5, t_w=0.0165, delta_h=9.5e-5)
    assert ratios[np.argmax(gain)] == pytest.approx(chunk / 32, rel=0.25)
    assert 1 < gain.max() <= 2


@given(b=decodes, t_w=times, delta_p=times, delta_h=times)
def test_ttft_is_never_shorter_than_alone(b, t_w, delta_p, delta_h):
    numbers = {"b": b, "t_w": t_w, "delta_p_gross": delta_p, "delta_h": delta_h}
    assert theory.ttft_chunked(**numbers) >= 1
    serial = theory.ttft_chunked_serial(**numbers)
    assert serial == pytest.approx(max(1, t_w / (b * delta_p)) + delta_h / delta_p)


def own_steps(t_w, T, delta_h):
    """The baseline of the gains, SARATHI's: whole prompts have steps of their own, between those of the decodes."""
    return lambda decodes, context, prefills, tokens, pairs: (
        (max(t_w, T * tokens) if tokens else 0) + (t_w + delta_h * decodes if decodes else 0)
    )


def simulated(work, cost, users, scheduler=None):
    """Return tokens per second and the mean number of decodes in a step."""
    run = simulate.closed_loop(
        work, cost, concurrency=users, requests=3000, warmup=300, start="steady", seed=3, log=True,
        scheduler=scheduler or simulate.Aggregated(),
    )  # fmt: skip
    return run.request_rate * work.n_out, float(np.mean(run.log.decodes))


def whole_prompts(work, cost, b):
    """Return the tokens per second of whole prompts beside b decodes, between two simulated numbers of users."""
    (low, below), (high, above) = (simulated(work, cost, int(b) + more) for more in (0, 2))
    assert below <= b <= above
    return low + (high - low) * (b - below) / (above - below)


@pytest.mark.parametrize(("overlap", "name"), [("full", ""), ("serial-kv", "_serial")])
@pytest.mark.parametrize(("n_out", "chunk"), rest_long([(512, 256), (256, 512), (512, 1024)]))
def test_the_simulator_gains_what_the_formula_says(overlap, name, n_out, chunk):
    """Both systems are simulated, with as many decodes in a step."""
    T, t_w, delta_h = 7e-5, 0.0165, 9.5e-5
    work = Workload(3072, n_out)
    cost = simulate.StepCost(t_w=t_w, T=T, delta_h=delta_h, overlap=overlap)
    chunked, b = simulated(work, cost, 32, simulate.Chunked(chunk + 32))
    formula = theory.CATALOGUE[f"chunked_gain_offbalance{name}"]
    gain = formula(b=b, chunk=chunk, pd_ratio=3072 / n_out, T=T, t_w=t_w, delta_h=delta_h)
    assert chunked / whole_prompts(work, own_steps(t_w, T, delta_h), b) == pytest.approx(gain, rel=0.005)
    # Over whole prompts that share their steps with decodes, under the same overlap, chunks gain less.
    assert chunked / whole_prompts(work, cost, b) < 0.98 * gain


@pytest.mark.parametrize("n_out", [96, 128])
def test_a_chunk_that_is_too_small_starves_the_decodes_as_the_formula_says(n_out):
    T, t_w, delta_h, chunk, b = 7e-5, 0.0165, 9.5e-5, 512, 32
    work = Workload(3072, n_out)
    cost = simulate.StepCost(t_w=t_w, T=T, delta_h=delta_h, overlap="serial-kv")
    run = simulate.closed_loop(
        work, cost, concurrency=2 * b, requests=3000, warmup=300, log=True,
        scheduler=simulate.Chunked(chunk + 16, max_batch=b),
    )  # fmt: skip
    pd_ratio = 3072 / n_out
    tokens = float(run.log.tokens.mean())  # what the budget leaves to prompts
    gain = theory.chunked_gain_offbalance_serial(b=b, chunk=tokens, pd_ratio=pd_ratio, T=T, t_w=t_w, delta_h=delta_h)
    assert tokens / pd_ratio < b
    whole = whole_prompts(work, own_steps(t_w, T, delta_h), b)
    assert run.request_rate * n_out / whole == pytest.approx(gain, rel=0.01)
