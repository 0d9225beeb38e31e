"""Users in a closed loop with stores: against the simulated engine, the collapse, limits and errors."""

from collections import deque
from heapq import heapify, heappop, heappush

import numpy as np
import pytest
from grids import rest_long
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace
from refusals import refused

from inference_math import Unit, Workload, simulate, theory
from inference_math.simulate.cost import timed
from inference_math_planner.fleets import stored
from inference_math_planner.fleets.loops import PLAIN, Habit, loop, session_habits
from inference_math_planner.fleets.turns import Turns
from inference_math_planner.fleets.visits import room_wait, store_for

COST = simulate.StepCost(t_w=0.01, T=40e-6, kv_read=2e-8)
AGENTS = Turns(turns=20, first=20_000, message=1500, answer=500, think=20.0)
MEANS = AGENTS.sessions(0)
SHARING = replace(AGENTS, first=2000, shared=18_000)


def played(turns, users, tokens, cost=COST, load=0.0, habit=PLAIN, requests=500):
    hbm, *below = tokens
    ranks = habit.groups
    engine = simulate.Chunked(habit.budget * ranks, kv_capacity=hbm, ranks=ranks, by_chance=ranks > 1)
    return stored.with_stores(
        turns, cost, users=users, requests=requests, warmup=requests // 2 + 50, block_tokens=64, scheduler=engine,
        tiers=[stored.StoreTier(size, load) for size in below], blocking=habit.blocking, lifetime=habit.lifetime,
    )  # fmt: skip


def agree(turns, users, tokens, cost=COST, load=0.0, habit=PLAIN, requests=500, **near):
    """Assert that a loop says what a simulated run has: what is found by its difference, others by their ratio."""
    run = played(turns, users, tokens, cost, load, habit, requests)
    said = loop(turns, users, cost, tokens=tokens, loads=[load] * (len(tokens) - 1), habit=habit)
    means = run.run.requests
    seen = {"rate": run.run.request_rate, "tpot": means.tpot.mean(), "ttft": means.ttft.mean()}
    assert said.together == pytest.approx(run.tiers.found.sum(), abs=near.pop("together", 1))
    for name, error in near.items():
        assert getattr(said, name) == pytest.approx(seen[name], rel=error), name
    return said


def needed(turns, users, cost, share, hbm, groups=1):
    return store_for(turns, users, timed(cost), share, hbm, session_habits(Habit(groups=groups), cost))


@pytest.mark.parametrize(
    ("users", "tokens", "waits"),
    rest_long(
        [
            (40, [1.5e6], 0.3), (40, [0.4e6, 1.2e6], 0.3), (40, [1.0e6], 0.3), (20, [0.6e6], 0.4),
            (40, [0.4e6, 2e6], 0.3), (40, [1e6, 5e5], 0.7),  # turns in flight fill most of HBM
        ], 2,
    ),
)  # fmt: skip
def test_hits_rates_and_gaps_are_those_of_a_simulated_engine(users, tokens, waits):
    agree(AGENTS, users, tokens, load=2e-6, requests=750, together=0.04, rate=0.06, tpot=0.12, ttft=waits)


def test_a_lifetime_costs_what_comes_later():
    tokens = [1e6, 3e6]
    said = agree(AGENTS, 25, tokens, load=2e-6, habit=Habit(lifetime=30.0), together=0.04, rate=0.06)
    assert said.together < loop(AGENTS, 25, COST, tokens=tokens, loads=[2e-6]).together - 0.1


@pytest.mark.parametrize("cv", rest_long([0.5, 2.0]))
def test_spread_of_thinking_moves_hits_as_in_the_simulated_engine(cv):
    agree(replace(AGENTS, cv=cv), 40, [1.5e6], together=0.04)


@pytest.mark.parametrize(("users", "load"), rest_long([(30, 1e-5), (33, 2e-6), (24, 3e-5)]))
def test_turns_wait_for_room_before_their_mean_fills_it(users, load):
    """Most of HBM is held in the mean, and now and then all: waits grow well before means meet."""
    run = played(AGENTS, users, [0.6e6, 9e6], load=load).run
    said = loop(AGENTS, users, COST, tokens=[0.6e6, 9e6], loads=[load])
    late = run.requests.ttft.mean()
    assert said.rate == pytest.approx(run.request_rate, rel=0.06)
    assert late / 2.5 < said.ttft < 1.1 * late


def test_the_wait_for_room_is_that_of_a_finite_source():
    """Two users, one place, by hand: alone half of the time each thinks and holds; and limits."""
    assert room_wait(2, 1, 1.0, 1.0) == pytest.approx(0.5)  # states 0, 1, 2 with chances 1, 2, 2
    assert room_wait(40, 40, 1.0, 1.0) == 0
    assert room_wait(40, 10, 0.0, 3.0) == pytest.approx(9.0)  # who thinks for no time always waits for three others
    assert room_wait(1e5, 100, 1.0, 2.0) == pytest.approx(1e3 * 2.0 - 3.0, rel=1e-6)
    assert room_wait(5, 2, 1e300, 1e-3) == 0
    both = [room_wait(users, 10, 20.0, 9.0) for users in (30, 31)]
    assert room_wait(30.5, 10, 20.0, 9.0) == pytest.approx(sum(both) / 2)


def waits_for_room(users, room, think, holds, sizes):
    """Return the mean wait of simulated users, first come, first served, whose sessions have one size after another."""
    rng, free, waits, queue = np.random.default_rng(0), room, [], deque()
    events = [(rng.exponential(think), user, False) for user in range(users)]
    turn = rng.integers(0, len(sizes), users)
    heapify(events)
    while len(waits) < 20_000:
        now, user, leaves = heappop(events)
        if leaves:
            free += sizes[turn[user]]
            turn[user] = (turn[user] + 1) % len(sizes)
            heappush(events, (now + rng.exponential(think), user, False))
        else:
            queue.append((now, user))
        while queue and sizes[turn[queue[0][1]]] <= free:
            came, first = queue.popleft()
            free -= sizes[turn[first]]
            waits.append(now - came)
            heappush(events, (now + rng.exponential(holds), first, True))
    return np.mean(waits[2000:])


@pytest.mark.parametrize(("users", "places", "think", "holds"), [(40, 12, 20, 9), (40, 16, 20, 9), (30, 10, 20, 6)])
def test_sessions_that_grow_wait_longer_for_room_than_equal_ones(users, places, think, holds):
    grows = np.arange(15_000, 135_000, 2000)
    law = room_wait(users, places, think, holds)
    assert waits_for_room(users, places * 1.0, think, holds, [1.0]) == pytest.approx(law, rel=0.2)
    longer = waits_for_room(users, places * grows.mean(), think, holds, grows) / law
    assert 1.3 < longer < 4.5


def test_who_thinks_for_a_week_is_answered_as_soon_as_who_thinks_for_an_hour():
    said = [loop(Turns(1, 2000, 0, 500, think), 3, COST, tokens=[1e6]).ttft for think in (3600.0, 604_800.0)]
    assert said[1] == pytest.approx(said[0], rel=1e-3)


@given(users=st.integers(1, 80), places=st.floats(1, 60), think=st.floats(0, 50), holds=st.floats(0.01, 50))
def test_nobody_waits_less_than_means_say_or_than_fewer_do(users, places, think, holds):
    wait = room_wait(users, places, think, holds)
    assert wait >= max(users * holds / places - holds - think, 0) - 1e-6 * (think + holds)
    assert wait <= room_wait(users + 1, places, think, holds) + 1e-9 * holds


def test_turns_in_flight_make_a_cliff_where_gaps_are_exponential():
    """A store for two thirds of the sessions finds most if turns took no time, and nothing where they fill it."""
    held, law = loop(AGENTS, 40, COST, tokens=[1.0e6]), AGENTS.sessions(0).of(40)
    assert law.found(1.0e6) > 0.55
    assert held.together < 0.01
    assert played(AGENTS, 40, [1.0e6]).tiers.found.sum() < 0.02


def collapse(turns, hbm):
    """Return the users of the formula, at the rate that they have where nothing is kept for long enough to be found."""
    means, users = turns.sessions(0), 50.0
    for _ in range(30):
        rate = loop(turns, users, COST, tokens=[hbm], habit=Habit(lifetime=1e-6)).rate
        users = theory.users_collapse(
            kv_capacity=hbm, again=means.again, brought=means.brought, think=turns.think, rate=rate
        )
    return users


@pytest.mark.parametrize(
    ("turns", "hbm"),
    [
        (AGENTS, 1.0e6),
        (replace(AGENTS, think=90.0), 1.0e6),
        (Turns(turns=12, first=500, message=200, answer=400, think=30.0), 2e5),  # chats
        (Turns(turns=12, first=500, message=200, answer=1500, think=30.0), 2e5),  # long answers
    ],
)
def test_nothing_is_found_from_as_many_users_on_as_the_formula_says(turns, hbm):
    """Turns in flight fill HBM then, for long answers as for agents: where a slope is one does not come into it."""
    border, ceiling = collapse(turns, hbm), turns.sessions(0).of(1).ceiling
    assert loop(turns, 1.1 * border, COST, tokens=[hbm]).together < 0.01
    assert loop(turns, 0.85 * border, COST, tokens=[hbm]).together > 0.1 * ceiling


def test_a_simulated_engine_collapses_there_too():
    chats = Turns(turns=12, first=500, message=200, answer=400, think=30.0)
    border = collapse(chats, 2e5)
    assert played(chats, round(1.15 * border), [2e5]).tiers.found.sum() < 0.02
    assert played(chats, round(0.6 * border), [2e5]).tiers.found.sum() > 0.2


@pytest.mark.parametrize("answer", [50, 400, 1500])
def test_some_hits_are_left_at_the_collapse_and_before_it_they_fall_in_a_slope(answer):
    """Users and lengths scatter, and decodes take most of the time here: a lost hit slows nobody down (E09)."""
    chats = Turns(turns=12, first=500, message=200, answer=answer, think=30.0)
    border, ceiling = collapse(chats, 2e5), chats.sessions(0).of(1).ceiling
    parts = [played(chats, round(part * border), [2e5], requests=750).tiers.found.sum() for part in (0.4, 0.6, 1.0)]
    shares = np.array(parts) / ceiling
    assert 0.5 < shares[0] < 0.98
    assert 0.3 < shares[1] < 0.65
    assert 0 <= shares[2] < 0.07


def test_sessions_that_grow_count_by_their_mean_over_turns():
    """Were long sessions held in proportion to their size, the engine would find nothing from a sixth fewer on."""
    chats, hbm = Turns(turns=15, first=1600, message=1743, answer=400, think=30.0), 1.7e6
    sizes = np.array([chats.prompt(turn) + chats.answer for turn in range(chats.turns)])
    border = collapse(chats, hbm)
    sooner = border - hbm / sizes.mean() + hbm / (sizes @ sizes / sizes.sum())
    assert sooner < 0.85 * border
    assert played(chats, round(sooner), [hbm]).tiers.found.sum() > 0.4
    assert played(chats, round(1.15 * border), [hbm]).tiers.found.sum() < 0.02


@settings(max_examples=20, deadline=None)
@given(users=st.integers(2, 60), room=st.floats(0.1, 3), think=st.floats(0, 60), answer=st.sampled_from([2, 20, 500]))
def test_little_s_law_and_limits(users, room, think, answer):
    turns = replace(AGENTS, think=think, message=2000 - answer, answer=answer)
    seen = loop(turns, users, COST, tokens=[room * 1e6])
    length = turns.sessions(1).prompt + answer
    whole = seen.rate * (think + seen.ttft + (answer - 1) * seen.tpot)
    assert whole == pytest.approx(users, rel=1e-3)
    assert 0 <= seen.together <= turns.sessions(1).of(1).ceiling + 1e-9
    assert seen.in_flight <= max(1, room * 1e6 / length) * (1 + 1e-9)
    # Where more turns than fit are on their way, nearly all places are held, but for those asked for by chance.
    assert not seen.full or seen.in_flight > 0.7 * max(1, room * 1e6 / length)
    assert 0 < seen.prompts < 1


def test_more_room_is_never_worse():
    rates = [loop(AGENTS, 40, COST, tokens=[size * 1e6]).rate for size in (0.3, 0.6, 1.0, 1.3, 1.5, 2.0, 4.0)]
    assert rates == sorted(rates)
    host = [loop(AGENTS, 40, COST, tokens=[0.6e6, size], loads=[1e-6]).rate for size in (0.0, 5e5, 1e6, 2e6)]
    assert host == sorted(host)


def test_what_all_prompts_share_is_held_once():
    said = agree(SHARING, 30, [0.5e6], rate=0.08, together=0.06)
    assert said.rate > 1.2 * loop(AGENTS, 30, COST, tokens=[0.5e6]).rate


def test_one_user_waits_for_nobody():
    """A step for each part of the prompt, and each token: by hand, from an HBM that keeps all."""
    turns = Turns(turns=2, first=3000, message=200, answer=100, think=4.0)
    seen = agree(turns, 1, [1e6], ttft=0.02)
    first, later = (0.01 + 40e-6 * fresh for fresh in (3000, 200))
    assert seen.ttft == pytest.approx((first + later) / 2, rel=1e-3)
    assert seen.tpot == pytest.approx(0.01 + 2e-8 * (turns.sessions(0).prompt + 50), rel=0.02)  # means know no "one"
    assert seen.together == pytest.approx(turns.sessions(0).of(1).ceiling)


def test_an_answer_is_read_as_far_as_it_has_come():
    slow = simulate.StepCost(t_w=0.001, kv_read=1e-5)
    seen = loop(Turns(turns=1, first=100, message=0, answer=2000, think=0.0), 1, slow, tokens=[1e5])
    assert seen.tpot == pytest.approx(0.001 + 1e-5 * 1100, rel=0.02)


def test_sessions_of_one_turn_find_what_all_share():
    seen = agree(Turns(turns=1, first=500, message=0, answer=50, think=4.0, shared=2000), 3, [1e5], ttft=0.1)
    assert seen.together == pytest.approx(2000 / 2500)


def test_drafts_share_a_step():
    unit = Unit.of("llama-3-8b", "h100-sxm", drafts=3, accepted=0.7)
    turns = Turns(turns=6, first=2000, message=300, answer=200, think=3.0)
    cost = simulate.Steps(unit.near(Workload(turns.sessions(0).prompt, turns.answer)))
    assert cost.accepted_per_step > 1
    agree(turns, 10, [5e5], cost, rate=0.05, tpot=0.1)


def test_pairs_of_attention_and_all_that_is_loaded_count():
    """Attention alone takes time: prompts of 60,000 tokens, whose pasts must be loaded at a second each."""
    turns = Turns(turns=4, first=60_000, message=500, answer=100, think=30.0)
    pairs = simulate.StepCost(t_w=0.01, pair=2e-9)
    agree(turns, 6, [1.3e5, 1e6], pairs, 1.0 / 60_000, rate=0.05, ttft=0.25)


def test_what_is_needed_finds_what_was_asked():
    for users, hbm in ((20, 1e6), (40, 4e5)):
        size = needed(AGENTS, users, COST, 0.9, hbm)
        tokens = [hbm, max(size - hbm, 0.0)] if size > hbm else [size]
        seen = loop(AGENTS, users, COST, tokens=tokens, loads=[0.0] * (len(tokens) - 1))
        assert seen.together == pytest.approx(0.9 * AGENTS.sessions(0).of(1).ceiling, abs=0.01)


def test_bad_input_is_refused():
    good = {"turns": AGENTS, "users": 4, "cost": COST, "tokens": [1e6]}
    refused(loop, good, {"users": 0}, {"tokens": [-1]}, {"loads": [1.0]})
    refused(loop, good | {"tokens": [1e6, 1e6]}, {"loads": [-1.0]})
    for change, words in (
        ({"tokens": [9e3]}, "tokens of HBM must hold"),
        ({"tokens": [1e5], "habit": Habit(groups=2)}, "58500 in each of 2 groups"),
    ):
        with pytest.raises(ValueError, match=words):
            loop(**good | change)
    refused(Habit, {}, {"budget": 0}, {"groups": 0}, {"blocking": 1}, {"lifetime": 0})


@pytest.mark.parametrize(("users", "load"), rest_long([(40, 3e-5), (20, 2e-6), (40, 6e-5)]))
def test_loads_beside_the_engine_take_the_link_and_not_its_steps(users, load):
    tokens = [0.6e6, 3e6]
    said = agree(AGENTS, users, tokens, load=load, habit=Habit(blocking=False), rate=0.08, tpot=0.08, together=0.02)
    # Who waits for the link holds room meanwhile, which a load that hides under a step does not.
    assert said.rate >= 0.995 * loop(AGENTS, users, COST, tokens=tokens, loads=[load]).rate
    assert said.rate < theory.link_rate(again=MEANS.again, R=load)


@pytest.mark.parametrize(("users", "load"), rest_long([(160, 3e-5), (200, 4e-5)]))
def test_steps_of_many_prompts_hide_loads_once(users, load):
    """A long weight read hides a load; with several in each step it does so for all of them together."""
    short = Turns(turns=20, first=2000, message=200, answer=100, think=5.0)
    cost = simulate.StepCost(t_w=0.05, T=40e-6, kv_read=2e-8)
    said = agree(short, users, [0.6e6, 3e6], cost, load, rate=0.04, tpot=0.03)
    assert said.rate < theory.link_rate(again=short.sessions(0).again, R=load)


@pytest.mark.parametrize(("groups", "users"), rest_long([(4, 64), (8, 16), (4, 128)], 2))
def test_groups_step_together(groups, users):
    """Where all is found: what is said of sessions that stay with a group is as for one, next test."""
    cost = simulate.StepCost(t_w=0.02, T=10e-6, kv_read=0.5e-8)
    agree(AGENTS, users, [6e7], cost, habit=Habit(groups=groups), rate=0.03, tpot=0.06, ttft=0.3)


@pytest.mark.parametrize("blocking", [True, False])
def test_each_group_keeps_its_own_users_and_its_own_link(blocking):
    """Steps that prompts hardly lengthen: four groups find what one finds of a quarter of the users and of HBM."""
    cost, loads = simulate.StepCost(t_w=0.02, T=1e-9), [1e-9 if blocking else 2e-5]
    shared = replace(AGENTS, shared=5_000)
    one, four = (
        loop(shared, 30 * n, cost, tokens=[1.2e6 * n, 4e5 * n], loads=loads, habit=Habit(groups=n, blocking=blocking))
        for n in (1, 4)
    )
    assert four.found == pytest.approx(one.found, rel=1e-3 if blocking else 1e-2)
    assert four.in_flight == pytest.approx(4 * one.in_flight, rel=1e-2)
    assert four.rate == pytest.approx(4 * one.rate, rel=1e-2)
    assert four.ttft == pytest.approx(one.ttft, rel=0.05)
    for share in (0.9, 1e-6):
        each, all_four = (needed(shared, 30 * n, cost, share, 4e5 * n, n) / n for n in (1, 4))
        assert all_four == pytest.approx(each, rel=1e-2)


@pytest.mark.parametrize(("budget", "rel"), rest_long([(2048, 0.1), (8192, 0.25)]))
def test_groups_that_compute_long_prompts_are_as_busy_as_simulated_ones(budget, rel):
    """Nothing is found, and a prompt takes several steps: no group computes more than a step's tokens in a step."""
    cost, long = simulate.StepCost(t_w=0.02, T=10e-6, kv_read=0.5e-8), Turns(1, 40_000, 0, 100, 5.0)
    agree(long, 60, [6e7], cost, habit=Habit(budget, groups=4), rate=rel)


def test_no_law_beats_the_steps_that_prompts_take():
    bare = Turns(turns=1, first=20_000, message=0, answer=2, think=0.1)
    said = loop(bare, 200, simulate.StepCost(t_w=0.05, T=5e-6), tokens=[6e8], habit=Habit(1024, groups=4))
    assert said.rate <= 4 / (20_000 / 1024 * 0.05)
    two = Turns(turns=1, first=5120, message=0, answer=2, think=0.0)
    assert loop(two, 2, simulate.StepCost(t_w=0.1, T=1e-7), tokens=[6e7], habit=Habit(512)).rate <= 1.0


def test_a_user_has_one_group_s_part():
    turns = replace(AGENTS, cv=3.0)  # some think so long that room for eight times as much would show
    alone = loop(turns, 1, COST, tokens=[8 * 6e4], habit=Habit(groups=8)).found
    assert alone == pytest.approx(loop(turns, 1, COST, tokens=[6e4]).found, abs=0.002)
    one = needed(turns, 1, COST, 0.9, 6e4)
    assert needed(turns, 1, COST, 0.9, 8 * 6e4, groups=8) == pytest.approx(8 * one, rel=0.05)


@pytest.mark.parametrize("blocking", [True, False])
def test_all_that_is_loaded_is_loaded_by_those_who_find_it(blocking):
    """Two turns, of which the second loads 40,000 tokens in 2 s: half of the turns take that long."""
    turns, load = Turns(turns=2, first=40_000, message=100, answer=50, think=30.0, cv=0.5), 5e-5
    free = simulate.StepCost(t_w=0.01, T=1e-7)
    seen = loop(turns, 1, free, tokens=[4.1e4, 1e6], loads=[load], habit=Habit(blocking=blocking))
    fetched = sum(seen.found[1:]) * turns.sessions(0).prompt * load
    assert fetched > 0.1
    assert seen.ttft == pytest.approx(fetched + 0.01 + 1e-7 * 20_000, rel=0.08)


def test_what_all_share_takes_its_room_once_from_turns_in_flight():
    seen, means = loop(SHARING, 200, COST, tokens=[3e5]), SHARING.sessions(1)
    assert seen.full
    assert seen.in_flight == pytest.approx((3e5 - 18_000) / (means.again + means.brought))


@pytest.mark.parametrize("groups", [1, 4])
def test_prompts_take_what_they_compute_of_the_time(groups):
    """Everything is found: of a turn its message is computed, of a first one all; or nothing takes time."""
    free = loop(AGENTS, 8, simulate.StepCost(t_w=0.02), tokens=[6e7], habit=Habit(groups=groups))
    assert free.prompts == pytest.approx(0, abs=1e-9)
    assert free.tpot == pytest.approx(0.02, rel=1e-9)
    seen = loop(AGENTS, 20, simulate.StepCost(t_w=0.01, T=4e-5), tokens=[6e7])
    fresh = (AGENTS.first + (AGENTS.turns - 1) * AGENTS.message) / AGENTS.turns
    assert seen.prompts == pytest.approx(seen.rate * 4e-5 * fresh, rel=1e-4)  # a few come late
    assert seen.tpot == pytest.approx(0.01 / (1 - seen.prompts), rel=1e-6)
