import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, strategies as st
from played import Hardware

from inference_math import Workload, catalogue, simulate, theory
from inference_math.theory.notation import delta_h, delta_p, delta_p_gross, n_out, sla_tpot, t_w

times = st.floats(1e-5, 1.0)
answers = st.integers(2, 2000)


def at(t_w, delta_p, delta_h, room):
    """Return arguments, with a limit that a request alone keeps."""
    return {"delta_p": delta_p, "delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + max(room, delta_h)}


NEEDS_ROOM = (
    "pdd_split", "pdd_gain", "pdd_gain_same", "pdd_gain_talk", "pdd_gain_integer", "pdd_gain_mixed",
    "pdd_gain_per_cost", "unit_time_aggregated", "unit_time_aggregated_full", "unit_time_disaggregated",
    "unit_time_disaggregated_same", "unit_time_chunked", "unit_time_chunked_serial", "offload_gain_pdd",
    "offload_gain_chunked", "offload_gain_chunked_serial", "masking_speedup", "chunked_gain_sla",
    "chunked_gain_sla_serial",
)  # fmt: skip


@pytest.mark.parametrize("name", NEEDS_ROOM)
def test_a_limit_that_no_decode_keeps_is_refused(name):
    formula = theory.CATALOGUE[name]
    numbers = {symbol.name: 2.0 for symbol in formula.arguments} | {"t_w": 0.02, "delta_h": 0.5, "sla_tpot": 0.52}
    assert formula(**numbers) > 0
    with pytest.raises(ValueError, match=rf"{name} needs .*sla_tpot >= delta_h \+ t_w.*, not .*sla_tpot=0.519"):
        formula(**numbers | {"sla_tpot": 0.519})


# N_out, milliseconds of a prompt in a step that runs anyway, of a decode's read and of the weight read, users of an
# aggregated unit; and what pools gain where users are as fast. The last five are a pair of H100s.
PLAYED = [
    (2, 100, 0.1, 10, 2, 1.000), (3, 50, 1, 15, 3, 0.987), (4, 100, 0.2, 10, 4, 0.999),
    (170, 181, 0.166, 16.73, 1, 1.000), (170, 181, 0.166, 16.73, 2, 2.902), (170, 181, 0.166, 16.73, 3, 2.860),
    (170, 181, 0.166, 16.73, 5, 2.445), (170, 181, 0.166, 16.73, 19, 1.453),
]  # fmt: skip


@pytest.mark.parametrize(("n_out", "prompt", "read", "t_w", "users", "gain"), PLAYED)
def test_pools_that_are_played_gain_what_the_theorem_says_up_to_both_of_its_ends(n_out, prompt, read, t_w, users, gain):
    unit = Hardware(n_out, prompt / 1e3, read / 1e3, t_w / 1e3)
    rate, gap = unit.together(users)
    limit = max(gap, unit.t_w + unit.read)
    played = unit.apart(limit) / rate
    assert played == pytest.approx(gain, rel=0.01)
    law = {"delta_p": unit.prompt / n_out, "delta_h": unit.read, "t_w": unit.t_w, "n_out": n_out}
    assert theory.pdd_gain_same(**law, sla_tpot=limit) == pytest.approx(played, rel=0.01)


@given(t_w=times, prompt=times, delta_h=times, room=times, n_out=answers)
def test_pools_gain_between_one_decode_and_the_prompt_and_nowhere_else(t_w, prompt, delta_h, room, n_out):
    """The sign theorem: ΔH < S − t_w < (1 − 1/N_out)(P − ΔH) [C27]."""
    gain = theory.pdd_gain_same(**at(t_w, prompt / n_out, delta_h, room), n_out=n_out)
    room, last = max(room, delta_h), (1 - 1 / n_out) * (prompt - delta_h)
    assert (gain - 1) * (room - delta_h) * (last - room) >= -1e-9


@given(t_w=times, prompt=times, delta_h=times, n_out=answers, share=st.floats(0, 1))
def test_the_gain_is_a_hump_of_which_the_best_limit_is_the_top(t_w, prompt, delta_h, n_out, share):
    last = (1 - 1 / n_out) * (prompt - delta_h)
    assume(last > 1.001 * delta_h)
    law = {"delta_p": prompt / n_out, "delta_h": delta_h, "t_w": t_w, "n_out": n_out}

    def gain(limit):
        return theory.pdd_gain_same(**law, sla_tpot=limit)

    top, first, final = theory.pdd_best_limit(**law), t_w + delta_h, t_w + last
    assert first < top < final
    assert [gain(first), gain(final)] == pytest.approx([1, 1], rel=1e-6)
    for end in (first, final):  # it rises from either end towards the top
        near, far = (max(first, top + part * (end - top)) for part in sorted((share, (1 + share) / 2)))
        assert gain(top) * (1 + 1e-12) >= gain(near) >= gain(far) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("n_out", "prompt", "read", "t_w", "held"),
    [(3, 50, 1, 15, 2), (3, 50, 1, 15, 30), (8, 40, 0.5, 10, 12), (170, 181, 0.166, 16.73, 9)],
)
def test_the_split_is_where_simulated_pools_are_both_busy(n_out, prompt, read, t_w, held):
    """Few prefill units work all the time, with many the decode units do: between them lie so many for one."""
    cost = simulate.StepCost(t_w=t_w, prompt=prompt, delta_h=read)
    limit = t_w + held * read
    decode = (n_out - 1) * limit / held
    enough = int(1.5 * (prompt + t_w) / decode) + 1

    def rate(n_p, n_d):
        return simulate.closed_loop(
            Workload(2200, n_out, lengths="geometric"), cost, concurrency=n_d * held + 4 * n_p, requests=12_000,
            warmup=1200, scheduler=simulate.Disaggregated(n_p, n_d, max_batch=held), seed=1,
        ).request_rate  # fmt: skip

    of_prefill, of_decode = rate(1, int(1.5 * decode / (prompt + t_w)) + 1), rate(enough, 1)
    law = {"delta_p_gross": (prompt + t_w) / n_out, "delta_h": read, "t_w": t_w, "n_out": n_out}
    assert theory.pdd_split(**law, sla_tpot=limit) == pytest.approx(of_decode / of_prefill, rel=0.02)


@given(t_w=times, delta_p=times, delta_h=times, room=times)
def test_the_one_sided_gain_is_the_ratio_of_rates_counted_from_the_pools(t_w, delta_p, delta_h, room):
    numbers = at(t_w, delta_p, delta_h, room)
    S, n_out, room = numbers["sla_tpot"], 100, max(room, delta_h)
    decode_rate = room / delta_h / (n_out * S)  # requests/s of one decode unit
    prefill_units = decode_rate * n_out * delta_p
    per_unit = decode_rate / (1 + prefill_units)
    batch = 1 + (room - delta_h) / (delta_p + delta_h)  # mean TPOT = S
    aggregated = batch / (n_out * (t_w + batch * (delta_p + delta_h)))
    assert theory.pdd_gain(**numbers) == pytest.approx(per_unit / aggregated)


@given(t_w=times, delta_p=times, delta_h=times, room=times)
def test_the_gain_lies_between_one_and_one_over_u(t_w, delta_p, delta_h, room):
    numbers = at(t_w, delta_p, delta_h, room)
    u = 1 - t_w / numbers["sla_tpot"]
    gain = theory.pdd_gain(**numbers)
    assert gain * (1 + 1e-9) >= 1
    assert gain <= 1 / u * (1 + 1e-9)
    assert theory.pdd_gain_talk(**numbers) <= 1 / u * (1 + 1e-9)


def test_the_gain_is_one_without_a_weight_read_and_where_one_request_fills_the_limit():
    assert sp.simplify(theory.pdd_gain.expr.subs(t_w, 0) - 1) == 0
    assert sp.simplify(theory.pdd_gain.expr.subs(sla_tpot, t_w + delta_h) - 1) == 0
    bound = sp.limit(theory.pdd_gain_talk.expr, delta_p, sp.oo)
    assert sp.simplify(bound - 1 / (1 - t_w / sla_tpot)) == 0


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_p=st.integers(1, 64), n_d=st.integers(1, 64))
def test_whole_units_never_beat_the_best_split(t_w, delta_p, delta_h, room, n_p, n_d):
    numbers = at(t_w, delta_p, delta_h, room)
    best = theory.pdd_gain_talk(**numbers)
    assert theory.pdd_gain_integer(**numbers, prefill_units=n_p, decode_units=n_d) <= best * (1 + 1e-9)
    split = (1 - t_w / numbers["sla_tpot"]) * delta_p / delta_h
    assert theory.pdd_gain_integer(**numbers, prefill_units=split, decode_units=1) == pytest.approx(best)


@given(delta_p=times, delta_h=times, f=st.floats(0.1, 10), m=st.floats(0.1, 10))
def test_special_gpus_gain_a_harmonic_mean_of_both_ratios(delta_p, delta_h, f, m):
    gain = theory.pdd_gain_specialised(delta_p=delta_p, delta_h=delta_h, flop_ratio=f, mbw_ratio=m)
    assert min(f, m) * (1 - 1e-9) <= gain <= max(f, m) * (1 + 1e-9)
    same = {"delta_p": delta_p, "delta_h": delta_h, "t_w": 0, "sla_tpot": 20, "flop_ratio": f, "mbw_ratio": m}
    assert theory.pdd_gain_per_cost(**same, prefill_cost=1, decode_cost=1) == pytest.approx(gain)


@given(t_w=times, delta_p=times, delta_h=times, room=times)
def test_equal_gpus_at_equal_cost_gain_what_disaggregation_gains(t_w, delta_p, delta_h, room):
    numbers = at(t_w, delta_p, delta_h, room)
    same = {"flop_ratio": 1, "mbw_ratio": 1, "prefill_cost": 1, "decode_cost": 1}
    assert theory.pdd_gain_per_cost(**numbers, **same) == pytest.approx(theory.pdd_gain_talk(**numbers))


@pytest.mark.parametrize("gpu", catalogue.GPUS.values(), ids=lambda g: g.name)
def test_a_decode_step_never_lasts_longer_than_reading_all_of_hbm(gpu):
    """At datasheet rates: fill HBM with weights and KV caches, and read it."""
    weights, cache = 0.4 * gpu.hbm_bytes, 0.6 * gpu.hbm_bytes
    step = weights / gpu.hbm_bw + cache / gpu.hbm_bw
    assert theory.hbm_read_time(hbm_bytes=gpu.hbm_bytes, hbm_bw=gpu.hbm_bw) == pytest.approx(step)


def test_the_published_transfer():
    """OPT-66B, 512 tokens: 1.125 GiB; ten per second are 96.6 Gbit/s [C33]."""
    kv_token = catalogue.model("opt-66b").kv_token("bf16")
    assert 512 * kv_token == pytest.approx(1.125 * 2**30)
    assert 8 * theory.transfer_bandwidth(rate=10, n_in=512, kv_token=kv_token) == pytest.approx(96.6e9, rel=1e-3)


def test_the_ratio_of_requests_is_littles_law_twice():
    rate, S_ttft, n_out, S = 3.0, 0.4, 170, 0.04
    prefill, decode = (theory.littles_law(rate=rate, latency=stay) for stay in (S_ttft, (n_out - 1) * S))
    assert theory.pdd_concurrency(sla_ttft=S_ttft, n_out=n_out, sla_tpot=S) == pytest.approx(prefill / decode)


def pool_cost(t_w, prompt, read):
    """The talk's costs: a step with decodes reads the weights, a prefill hides them."""
    return lambda decodes, context, prefills, tokens, pairs: (
        (t_w if decodes else 0) + prompt * prefills + read * decodes
    )


@pytest.mark.parametrize(("n_p", "n_d"), [(3, 1), (1, 1), (1, 4)])
def test_the_simulated_pools_finish_what_the_slower_of_them_can(n_p, n_d):
    t_w, prompt, read, n_out, S = 0.016, 0.14, 0.0004, 65, 0.040
    batch = int((S - t_w) / read)
    cost = pool_cost(t_w, prompt, read)
    pools = simulate.Disaggregated(n_p, n_d, max_batch=batch)
    run = simulate.closed_loop(
        Workload(1024, n_out), cost, concurrency=n_d * batch + 4 * n_p, requests=4000, warmup=1500, scheduler=pools
    )
    decode = n_d * batch / ((n_out - 1) * (t_w + batch * read))
    assert run.request_rate == pytest.approx(min(n_p / prompt, decode), rel=0.02)
    assert np.mean(run.requests.tpot) <= S * (1 + 1e-2)


def test_the_printed_split_and_the_printed_gain():
    long = sp.limit(theory.pdd_split.expr.subs(t_w, 0), n_out, sp.oo)
    assert theory.pdd_split_printed.equals(long.subs(delta_p_gross, delta_p))
    assert theory.pdd_gain_specialised_printed(mbw_ratio=2) == 2
    assert theory.pdd_gain_specialised(delta_p=0.003, delta_h=1e-9, flop_ratio=2, mbw_ratio=1) == pytest.approx(2)


@given(t_w=times, delta_p=times, delta_h=times, room=times)
def test_against_steps_that_share_the_weight_read_equal_gpus_never_gain(t_w, delta_p, delta_h, room):
    """No gain on equal GPUs [C27]: a mixed step hides what two pools pay twice."""
    law = {"delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + max(room, delta_h)}
    gain = theory.pdd_gain_mixed(**law, delta_p_gross=delta_p)
    assert gain <= 1 + 1e-12
    # At worst, where a step's chunk takes as long as its weight read, it is (1 + ρ)/(1 + 2ρ).
    assert gain >= (delta_p + delta_h) / (2 * delta_p + delta_h) * (1 - 1e-9)
    assume(t_w >= delta_p)  # so that a decode fits there
    worst = t_w * (1 + 1e-12) * (delta_p + delta_h) / delta_p
    at_worst = theory.pdd_gain_mixed(delta_p_gross=delta_p, delta_h=delta_h, t_w=t_w, sla_tpot=worst)
    assert at_worst == pytest.approx((delta_p + delta_h) / (2 * delta_p + delta_h))


def test_a_gain_over_mixed_steps_by_hand():
    """u = 1/2: a mixed step takes max(7 + 1, 2), pools 7 + 2."""
    assert theory.pdd_gain_mixed(delta_p_gross=7, delta_h=1, t_w=10, sla_tpot=20) == pytest.approx(8 / 9)


@given(t_w=times, gross=times, delta_h=times, n_out=answers, n_p=st.integers(1, 20), n_d=st.integers(1, 20))
def test_the_balance_is_where_the_split_is_the_best(t_w, gross, delta_h, n_out, n_p, n_d):
    assume(n_d * gross > n_p * (1 - 1 / n_out) * delta_h * (1 + 1e-6))
    law = {"delta_h": delta_h, "t_w": t_w, "n_out": n_out, "delta_p_gross": gross}
    limit = theory.pdd_balance(**law, prefill_units=n_p, decode_units=n_d)
    assume(limit >= t_w + delta_h)
    assert theory.pdd_split(**law, sla_tpot=limit) == pytest.approx(n_p / n_d, rel=1e-4)


@given(t_w=times, delta_p=times, delta_h=times, room=times, n_out=answers, share=st.floats(0, 1))
def test_pools_of_one_layout_gain_what_equal_gpus_gain_at_their_best_share(t_w, delta_p, delta_h, room, n_out, share):
    law = {"delta_h": delta_h, "t_w": t_w, "sla_tpot": t_w + max(room, delta_h), "n_out": n_out}
    together = theory.unit_time_aggregated_full(**law, delta_p=delta_p)
    w_p = delta_p + t_w / n_out
    w_d = theory.unit_time_disaggregated_same(**law, delta_p=delta_p) - w_p
    costs = {"gpu_time": together, "gpu_time_prefill": w_p, "gpu_time_decode": w_d}
    best = theory.pdd_gain_same(**law, delta_p=delta_p)
    assert theory.pdd_gain_pools(**costs, prefill_gpus=w_p / (w_p + w_d)) == pytest.approx(best)
    assert theory.pdd_gain_pools(**costs, prefill_gpus=share) <= best * (1 + 1e-9)


@given(delta_p=times, delta_h=times, f=st.floats(0.1, 10), m=st.floats(0.1, 10))
def test_a_layout_gains_as_special_hardware_does(delta_p, delta_h, f, m):
    """f and m are the GPU-seconds that a layout saves of a prompt and of a decode [C28]."""
    w_p, w_d = delta_p / f, delta_h / m
    costs = {"gpu_time": delta_p + delta_h, "gpu_time_prefill": w_p, "gpu_time_decode": w_d}
    special = theory.pdd_gain_specialised(delta_p=delta_p, delta_h=delta_h, flop_ratio=f, mbw_ratio=m)
    assert theory.pdd_gain_pools(**costs, prefill_gpus=w_p / (w_p + w_d)) == pytest.approx(special)


def in_pools(prefill, decode, n_p, n_d, users, held=np.inf):
    """Simulate pools of two layouts: each is a weight read, a prompt net of it, a decode's read, in seconds."""
    cost = pool_layouts(prefill, decode)
    return simulate.closed_loop(
        Workload(2200, 170, lengths="geometric"), cost, concurrency=users, requests=6 * users + 3000,
        warmup=5 * users + 300, scheduler=simulate.Disaggregated(n_p, n_d, max_batch=held), seed=3,
    )  # fmt: skip


def pool_layouts(prefill, decode):
    return lambda decodes, context, prefills, tokens, pairs: (
        decode[0] + decode[2] * decodes if decodes else prefill[0] + prefill[1] * prefills
    )


# Llama-3-70B on 2, 4 and 8 H100, as served: seconds.
LAYOUTS = {2: (0.0167, 0.181, 0.000166), 4: (0.0112, 0.123, 0.0000946), 8: (0.0090, 0.094, 0.0000568)}


@pytest.mark.parametrize(
    ("layouts", "n_p", "n_d", "limit"), [((4, 2, 4), 4, 1, 0.025), ((2, 2, 4), 6, 1, 0.03), ((4, 4, 4), 3, 2, 0.02)]
)
def test_simulated_pools_with_layouts_of_their_own_gain_what_the_formula_says(layouts, n_p, n_d, limit):
    (t_w, net, read), prefill, decode = (LAYOUTS[tp] for tp in layouts)
    together, g_p, g_d = layouts
    delta_p = net / 170
    law = {"delta_p": delta_p, "delta_h": read, "t_w": t_w, "sla_tpot": limit, "n_out": 170}
    users = int(1 + (limit - t_w - read) / (delta_p + (1 - 1 / 170) * read))
    own = simulate.closed_loop(
        Workload(2200, 170, lengths="geometric"), simulate.StepCost(t_w=t_w, prompt=net, delta_h=read),
        concurrency=users, requests=4000, warmup=400, start="steady", seed=2,
    )  # fmt: skip
    held = int((limit - decode[0]) / decode[2])
    run = in_pools(prefill, decode, n_p, n_d, n_d * held + 6 * n_p, held)
    assert max(own.gaps.mean, run.gaps.mean) <= limit * 1.02
    gpus = n_p * g_p + n_d * g_d
    gain = theory.pdd_gain_pools(
        gpu_time=together * theory.unit_time_aggregated_full(**law),
        gpu_time_prefill=g_p * (prefill[0] + prefill[1]) / 170,
        gpu_time_decode=g_d * (1 - 1 / 170) * decode[2] / (1 - decode[0] / limit),
        prefill_gpus=n_p * g_p / gpus,
    )
    assert gain == pytest.approx(run.request_rate / gpus / (own.request_rate / together), rel=0.03)


@pytest.mark.parametrize(("n_p", "n_d"), [(7, 2), (3, 1), (1, 1)])
def test_users_from_which_simulated_pools_gain(n_p, n_d):
    """Over as many units with whole prompts that are as fast for a user, of which fractions of a user are let in."""
    t_w, net, read = LAYOUTS[2]
    law = {"delta_p": net / 170, "delta_h": read, "n_out": 170}
    least = theory.pdd_least_users(**law, prefill_units=n_p, decode_units=n_d)

    def gain(users):
        run = in_pools(LAYOUTS[2], LAYOUTS[2], n_p, n_d, users)
        beside = 1 + max(0, run.gaps.mean - t_w - read) / (net / 170 + (1 - 1 / 170) * read)
        return run.request_rate / ((n_p + n_d) * theory.request_rate(**law, B=beside, t_w=t_w))

    assert gain(n_p + n_d - 1) < 1 < gain(int(least) + 1)


@given(t_w=times, h=times, n_out=answers, n_p=st.integers(1, 9), n_d=st.integers(1, 9), more=times)
def test_with_the_least_users_as_many_units_that_are_as_fast_hold_them_all(t_w, h, n_out, n_p, n_d, more):
    delta_p = h / n_out + n_p * h / n_d * (1.001 + more)
    users = theory.pdd_least_users(delta_p=delta_p, delta_h=h, n_out=n_out, prefill_units=n_p, decode_units=n_d)
    gap = t_w + h * users / n_d  # the step of a decode unit, over which they spread
    beside = 1 + (gap - t_w - h) / (delta_p + (1 - 1 / n_out) * h)  # users of a unit with whole prompts, at that TPOT
    assert (n_p + n_d) * beside == pytest.approx(users, rel=1e-6)
