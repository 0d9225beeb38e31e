"""An engine with stores: against stores that are played, by hand, and its errors."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from refusals import refused

from inference_math import simulate
from inference_math_planner.fleets import stored
from inference_math_planner.fleets.caches import play
from inference_math_planner.fleets.traces import Read
from inference_math_planner.fleets.turns import Turns

COST = simulate.StepCost(t_w=0.01, T=1e-4)
AGENTS = Turns(turns=5, first=1000, message=100, answer=60, think=2.0)
EMPTY = pd.DataFrame({"line": [], "reason": []})


def recorded(prompts, n_in=None, n_out=1, apart=1000.0, arrival=None, block_tokens=16):
    sizes = [len(prompt) * block_tokens - 1 for prompt in prompts] if n_in is None else n_in
    times = apart * np.arange(len(prompts)) if arrival is None else arrival
    columns = {"arrival": times, "n_in": sizes, "n_out": n_out, "blocks": prompts}
    return Read(pd.DataFrame(columns), EMPTY, block_tokens)


def fetched(source, blocks, load, policy=None, **options):
    """Return a run of an engine that goes on while a tier of 400 blocks loads, or not."""
    engine = simulate.Chunked(2048, kv_capacity=16 * blocks, policy=policy or simulate.SchedulerPolicy())
    asked = {"requests": len(source.requests), "scheduler": engine, "blocking": False} | options
    return stored.with_stores(source, COST, tiers=[stored.StoreTier(16 * 400, load=load)], **asked).run


def served(source, hbm, below=(), cost=COST, **options):
    asked = {"requests": 10**6, "scheduler": simulate.Chunked(2048, kv_capacity=hbm), "block_tokens": 16} | options
    return stored.with_stores(source, cost, tiers=[stored.StoreTier(size) for size in below], **asked)


def blocks_of(name, count=10):
    return [(name, k) for k in range(count)]


@settings(max_examples=30)
@given(seed=st.integers(0, 99), hbm=st.integers(12, 60), below=st.lists(st.integers(0, 60), max_size=2))
def test_requests_that_never_meet_find_what_a_played_store_finds(seed, hbm, below):
    rng = np.random.default_rng(seed)
    prompts = [[(int(s), k) for k in range(int(rng.integers(1, 12)))] for s in rng.integers(6, size=40)]
    found = served(recorded(prompts), 16 * hbm, [16 * size for size in below])
    said = play([(0.0, len(prompt), prompt) for prompt in prompts], [hbm, *below])
    blocks = sum(len(prompt) for prompt in prompts)
    tokens = found.run.requests.n_in.sum()
    # Of a prompt that is found whole the last token is computed, and its last block is a token short.
    assert found.tiers.found.to_numpy() * tokens / 16 == pytest.approx(np.array(said) * blocks, abs=2 * 40 / 16)
    assert found.tiers.found.sum() <= 1


def test_a_session_finds_the_whole_blocks_of_what_was_said_before():
    found = served(AGENTS, 50_000, users=1, requests=5 * 20, warmup=5).run.requests
    turn = ((found.n_in - 1000) // 160).astype(int)
    assert (found.cached == np.where(turn > 0, (found.n_in - 100) // 16 * 16, 0)).all()


def test_what_others_hold_is_found_in_hbm_and_held_once():
    both = recorded([blocks_of("same")] * 2, n_out=1600, apart=0.05)
    run = served(both, 16 * (110 + 100)).run.requests
    assert run.cached.tolist() == [0, 158]
    assert run.admitted.max() < run.first_token.max() < run.finished.min()  # both are there at once
    tight = served(both, 16 * (110 + 99)).run.requests
    assert tight.admitted.max() >= tight.finished.min()


def test_a_step_takes_what_it_loads_and_writes_or_what_it_computes():
    """Two prompts in turn, of which HBM holds one: each is loaded, and the other one written."""
    source = recorded([blocks_of(name) for name in "ababab"], n_in=[161] * 6)  # the last token is no block
    asked = {"requests": 6, "scheduler": simulate.Chunked(2048, kv_capacity=16 * 11)}
    for load, write, seconds in ((0.0, 0.0, 0.0101), (1e-3, 0.0, 0.16), (1e-3, 5e-4, 0.24), (1e-7, 1e-7, 0.0101)):
        tier = stored.StoreTier(1000, load, write)
        found = stored.with_stores(source, COST, tiers=[tier], **asked).run.requests
        assert found.cached.tolist() == [0, 0, 160, 160, 160, 160]
        assert found.ttft[2:].tolist() == pytest.approx([seconds] * 4)


def test_an_engine_that_goes_on_loads_one_after_the_other():
    """Three prompts that a tier has come at once beside a long answer: 0.16 s of link each, and steps as ever.

    One that needs all of HBM has come between.
    """
    three = [blocks_of(name) for name in "abc"]
    source = recorded(
        [*three, blocks_of("big", 58), blocks_of("long", 1), *three], [161] * 3 + [16 * 58, 17] + [161] * 3,
        [1] * 3 + [16, 300] + [1] * 3, arrival=[0.0, 1.0, 2.0, 5.0, 9.9, 10.0, 10.0, 10.0],
    )  # fmt: skip
    for blocking in (True, False):
        run = fetched(source, 60, 1e-3, log=True, blocking=blocking)
        last = run.requests.sort_values(["arrival", "first_token"]).tail(3)
        assert last.cached.tolist() == [160] * 3
        longest = run.log[run.log.start > 9.95].seconds.max()
        if blocking:
            assert longest == pytest.approx(3 * 0.16)  # the decode stands still for all three
        else:
            assert longest == pytest.approx(0.0101)
            assert last.ttft.tolist() == pytest.approx([0.16, 0.32, 0.48], abs=0.025)  # the end of a step, and one


def test_a_prompt_that_finds_nothing_waits_for_no_link():
    found = [served(AGENTS, 16 * 500, users=3, requests=30, blocking=blocking) for blocking in (True, False)]
    pd.testing.assert_frame_equal(*(one.run.requests for one in found))


def test_users_wait_for_the_link_although_nobody_else_is_there():
    turns = Turns(turns=2, first=1600, message=16, answer=2, think=1.0, cv=0.0)
    tier = stored.StoreTier(10**6, load=1e-3)
    asked = {"users": 2, "requests": 40, "warmup": 10, "scheduler": simulate.Chunked(2048, kv_capacity=1680)}
    run = stored.with_stores(turns, COST, tiers=[tier], block_tokens=16, blocking=False, **asked).run
    loaded = run.requests[run.requests.cached > 0]
    assert len(loaded) > 5
    assert loaded.ttft.min() > 1.5  # a link at a millisecond a token, of which HBM has a few


def test_hbm_is_what_turns_in_flight_leave():
    """Room for seven sessions of 1,640 tokens: four that are being served all the time leave three for the others."""
    asked, seven = {"cost": simulate.StepCost(t_w=0.05), "users": 40, "requests": 400, "warmup": 100}, 16 * 7 * 102
    found, ample = (
        served(AGENTS, hbm, scheduler=simulate.Chunked(2048, max_batch=4, kv_capacity=hbm), **asked).tiers.found.item()
        for hbm in (seven, 10**6)
    )
    assert found < 0.05 < 0.6 < ample
    assert served(AGENTS, seven, users=4, requests=200).tiers.found.item() > 0.6


@pytest.mark.parametrize(("room", "waits"), [(10, False), (9, True)])
def test_a_block_stays_held_until_the_last_who_holds_it_is_done(room, waits):
    """A short request ends beside a long one with the same prompt, while a third needs all other room, or more."""
    prompt = blocks_of("same")
    source = recorded([prompt, prompt, blocks_of("other"), prompt], n_out=[1600, 1, 1, 1], apart=0.05)
    run = served(source, 16 * (110 + room)).run.requests.sort_values("arrival")
    assert run.cached.tolist() == [0, 158, 0, 158]
    assert run.finished.iloc[1] < run.finished.iloc[0]
    assert (run.admitted.iloc[2] >= run.finished.iloc[0]) == waits


def test_a_tier_below_takes_what_is_dropped_and_tells_how_much():
    one = served(AGENTS, 16 * 500, users=30, requests=400, warmup=100)
    two = served(AGENTS, 16 * 500, [16 * 4000], users=30, requests=400, warmup=100)
    assert two.tiers.found.sum() > one.tiers.found.sum() + 0.3
    assert list(two.tiers.tier) == ["hbm", "tier 1"]
    # In a steady state what comes into HBM goes out of it: all that is computed, answers included, and all loaded.
    requests = two.run.requests
    came = (requests.n_in - requests.cached + requests.n_out).sum() + two.tiers.found[1] * requests.n_in.sum()
    assert two.tiers.written[1] == pytest.approx(came / two.run.seconds, rel=0.1)
    three = served(AGENTS, 16 * 500, [16 * 400, 16 * 4000], users=30, requests=400, warmup=100).tiers
    assert three.found.sum() == pytest.approx(two.tiers.found.sum(), abs=0.05)
    assert 0 < three.written[2] < three.written[1] + 1e-9
    assert two.summary()["found_tier 1"] == two.tiers.found[1]
    assert two.summary()["request_rate"] == two.run.request_rate


def test_a_sweep_of_users_and_tiers_has_a_row_for_each():
    asked = {"source": AGENTS, "cost": COST, "scheduler": simulate.Chunked(2048, kv_capacity=9000), "requests": 30}
    tiers = ([], [stored.StoreTier(20_000)])
    found = simulate.sweep(stored.with_stores, [asked | {"users": n, "tiers": each} for n in (3, 9) for each in tiers])
    assert found.users.tolist() == [3, 3, 9, 9]
    assert found["found_tier 1"].isna().tolist() == [True, False, True, False]


def test_bad_input_is_refused():
    good = {"source": AGENTS, "cost": COST, "requests": 5, "scheduler": simulate.Chunked(8, kv_capacity=9000)}
    many, growing = (simulate.Chunked(4096, kv_capacity=10**6, **more) for more in ({"ranks": 2}, {"grows": True}))
    wrong = [
        {"source": 1}, {"source": recorded([None], n_in=[5])}, {"users": 0}, {"tiers": [1]}, {"block_tokens": 0},
        {"scheduler": simulate.Chunked(8)}, {"scheduler": growing},
    ]  # fmt: skip
    refused(stored.with_stores, good, *wrong)
    for change, words in (
        ({"scheduler": simulate.Chunked(8, kv_capacity=900)}, "kv_capacity must hold the longest request"),
        ({"blocking": False, "scheduler": many}, "one rank where blocking is False, not 2"),
    ):
        with pytest.raises(ValueError, match=words):
            stored.with_stores(**good | change)
    refused(stored.StoreTier, {"tokens": 1}, {"tokens": -1}, {"load": -1}, {"write": float("nan")})


@pytest.mark.parametrize("n_out", [1, 800])  # of the one that is there before
@pytest.mark.parametrize("policy", [simulate.SchedulerPolicy(), simulate.SchedulerPolicy(wait_steps=5)])
def test_who_loads_nothing_does_not_wait_for_who_does(n_out, policy):
    """A fresh prompt half a second after one whose load takes long: beside a decode, and with nobody else."""
    blocks = [blocks_of(*one) for one in (("a",), ("b", 58), ("l", 1), ("m", 1), ("a",), ("f",))]
    sizes, times = [161, 16 * 58, 17, 17, 161, 161], [0.0, 2.0, 5.0, 9.9, 10.0, 10.5]
    found = fetched(recorded(blocks, sizes, [1, 16, 1, n_out, 1, 1], arrival=times), 78, 1e-2, policy).requests
    loaded, new = (found[found.arrival == at].iloc[0] for at in (10.0, 10.5))
    assert len(found) == 6
    assert n_out == 1 or loaded.ttft == pytest.approx(1.62, abs=0.1)
    assert new.ttft < 0.1


def test_the_last_who_loads_is_served_though_nobody_else_is_there():
    blocks = [blocks_of("a"), blocks_of("b", 58), blocks_of("a")]
    source = recorded(blocks, [161, 16 * 58, 161], [1, 16, 1], arrival=[0.0, 2.0, 9.0])
    found = fetched(source, 60, 1e-3).requests
    assert found.arrival.tolist() == [0.0, 2.0, 9.0]
    assert 0.1 < found.ttft.iloc[2] <= 1e-3 * found.cached.iloc[2] + 0.011  # HBM still has a block
