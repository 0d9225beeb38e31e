"""How big a store: sizes in bytes, what tiers find and bring, errors."""

import json

import numpy as np
import pytest
from made import Made
from msgspec.structs import replace
from scipy.stats import t as student

from inference_math import SLA, Unit, Workload
from inference_math.catalogue import tiers
from inference_math.optimiser.case import Case
from inference_math.optimiser.gain_error import gain_error
from inference_math.optimiser.verdict import word_of
from inference_math.simulate import Steps
from inference_math.simulate.cost import timed
from inference_math.unit.nearest import known_comparisons
from inference_math.unit.steps import kv_sent
from inference_math_planner import size_store
from inference_math_planner.fleets.ladder import ladder_notes
from inference_math_planner.fleets.loops import Habit, loop, session_habits
from inference_math_planner.fleets.queues import pace_of
from inference_math_planner.fleets.sessions import session_of
from inference_math_planner.fleets.turns import Turns
from inference_math_planner.fleets.visits import Served, store_for, turns_held

AGENTS = Turns(turns=60, first=15_000, message=1_500, answer=500, think=20.0)
UNIT = Unit.of("llama-3-70b", "h100-sxm", 4, weights="fp8", kv="fp8")
SPLIT = Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8)
TIERS = {"dram": 2e12, "local_ssd": 30e12}


def waiting(turns, front):
    """Return turns as the engine sees them: to the times that users think comes a front, which does not scatter."""
    think = turns.think + front
    return replace(turns, think=think, cv=turns.cv * turns.think / think)


def cost_of(unit, turns=AGENTS):
    return Steps(unit.near(Workload(turns.sessions(1).prompt, turns.answer)))


def test_a_ladder_is_the_loop_of_a_unit_in_bytes():
    found = size_store(UNIT, AGENTS, 160, TIERS, units=8)
    each, means = UNIT.model.kv_token("fp8"), AGENTS.sessions(1)
    rows = found.tiers.set_index("tier")
    assert "step together" not in str(found)
    assert rows.gb.tolist()[1:] == pytest.approx([2000, 30_000])
    hbm = UNIT.kv_tokens(means.prompt)
    assert rows.tokens.tolist() == pytest.approx([8 * hbm, 2e12 / each, 30e12 / each])
    assert rows.users["hbm"] == pytest.approx(means.border(8 * hbm))
    assert rows.users["dram"] == pytest.approx(means.border(8 * hbm + 2e12 / each))
    cost, turns = cost_of(UNIT), waiting(AGENTS, UNIT.front.seconds)
    of_a_unit = store_for(turns, 20, timed(cost), 0.9, hbm, session_habits(Habit(), cost))
    assert found.needed[0.9] * 1e9 / each == pytest.approx(8 * of_a_unit)
    link = UNIT.gpus * tiers.tier("dram").read_bw
    seen = loop(turns, 20, cost, tokens=[hbm, 2e12 / each / 8], loads=[each / link])
    assert rows.rate["dram"] == pytest.approx(8 * seen.rate)
    assert rows.ttft["dram"] == pytest.approx(UNIT.front.seconds + seen.ttft)
    assert found.gb == pytest.approx(means.prompt * each / 1e9)


@pytest.mark.usefixtures("few_draws")
def test_turns_come_as_often_as_users_think_and_wait():
    found = size_store(UNIT, AGENTS, 300, TIERS, units=4).tiers
    whole = found.rate * (AGENTS.think + found.ttft + (AGENTS.answer - 1) * found.tpot)
    assert whole.tolist() == pytest.approx([300] * 3, rel=1e-3)
    assert found.together.is_monotonic_increasing
    assert found.rate.is_monotonic_increasing


@pytest.mark.usefixtures("few_draws")
def test_units_have_what_all_share_each_and_loads_take_time():
    shared = replace(AGENTS, first=5_000, shared=100_000)
    one, eight = (size_store(UNIT, shared, 8 * n, {"dram": n * 1e12}, units=n).tiers.users for n in (1, 8))
    assert (eight / 8).tolist() == pytest.approx(one.tolist())
    tight = Unit.of("llama-3-8b", "h100-sxm")  # computes a token as fast as an SSD gives some
    fast, slow = (size_store(tight, AGENTS, 30, {name: 1e13}).tiers.rate[1] for name in ("dram", "local_ssd"))
    assert slow < 0.85 * fast


@pytest.mark.usefixtures("few_draws")
def test_a_ladder_stands_for_units():
    """One by one: as many as do as much with HBM alone, where that finds a part of it."""
    found = size_store(UNIT, AGENTS, 40, {"dram": 2e12}, units=2)
    assert 0.2 < found.tiers.together.iloc[0] < 0.9
    rates = [size_store(UNIT, AGENTS, 40, {}, units=n).tiers.rate[0] for n in range(2, 6)]
    enough = [n for n, rate in enumerate(rates, 2) if rate >= 0.98 * found.tiers.rate.iloc[-1]]
    assert found.alone == enough[0] > 2
    assert f"HBM alone needs {found.alone} units for as many turns per second" in " ".join(str(found).split())
    assert found.gpus == 8
    assert found.stands_for == (found.alone - 2) * 4
    assert size_store(UNIT, AGENTS, 40, {}, units=2).stands_for == 0


@pytest.mark.usefixtures("few_draws")
def test_users_within_limits_are_the_most_that_keep_them():
    def sized(users, ttft=1.0):
        return size_store(UNIT, AGENTS, users, {"dram": 2e12}, units=2, sla=SLA(ttft, 0.04)).tiers

    hbm, dram = sized(100).kept
    assert 0 < hbm <= dram
    for users, keeps in ((dram, True), (dram + 2, False)):
        row = sized(users).iloc[-1]
        assert (row.ttft <= 1.0 and row.tpot <= 0.04) == keeps
    assert sized(100, 1e-3).kept.tolist() == [0, 0]
    assert size_store(UNIT, AGENTS, 100, {}).tiers.kept.isna().all()


@pytest.mark.usefixtures("few_draws")
def test_overload_is_said_before_any_number():
    """Turns that wait for room are too many; those that have it and are late only miss a limit."""
    crowded, calm = (
        str(size_store(UNIT, AGENTS, users, {"dram": 2e12}, units=2, sla=SLA(1.0, 0.04))) for users in (100, 4)
    )
    assert crowded.startswith("Overload: 100 users ask for more turns at once than 2 units have room for.")
    assert calm.startswith("2 units have room for the turns of 4 users.\nThe first token of a turn takes ")
    late = size_store(UNIT, AGENTS, 4, {}, units=2, sla=SLA(0.01, 0.04))
    assert not late.tiers.full[0]
    assert "Not even one user would be served within the limits: in the mean 10 ms to the first" in late.head[1]
    assert len(crowded.splitlines()) <= 9 + 2 + 3  # sentences, an empty line and a legend, the table
    for text, columns in ((crowded, True), (str(size_store(UNIT, AGENTS, 4, {})), False)):
        assert "caches fit" in text
        assert ("within limits" in text) == ("a question of time" in text) == columns


@pytest.mark.usefixtures("few_draws")
def test_groups_of_attention_keep_a_part_of_everything():
    turns = replace(AGENTS, shared=10_000)
    found, means = size_store(SPLIT, turns, 60, {"dram": 2e12}), turns.sessions(1)
    assert "8 groups of attention step together" in " ".join(str(found).split())
    hbm, each = SPLIT.kv_tokens(means.prompt), kv_sent(SPLIT.numbers, means.prompt) / means.prompt
    assert found.tiers.users[0] == pytest.approx(means.border(hbm / 8) * 8)
    asked = waiting(turns, SPLIT.front.seconds), 60, cost_of(SPLIT, turns)
    own = SPLIT.gpus / 8 * tiers.tier("dram").read_bw  # a group's own link
    for row, (tokens, loads) in enumerate((([hbm], []), ([hbm, 2e12 / each], [each / own]))):
        said = loop(*asked, tokens=tokens, loads=loads, habit=Habit(groups=8))
        assert found.tiers.rate[row] == pytest.approx(said.rate)


@pytest.mark.usefixtures("few_draws")
def test_an_engine_that_goes_on_while_a_tier_loads_is_no_slower():
    asked = Unit.of("llama-3-8b", "h100-sxm"), AGENTS, 30, {"local_ssd": 1e13}
    waits, goes_on = (size_store(*asked, habit=Habit(blocking=which)).tiers.rate[1] for which in (True, False))
    assert goes_on > 1.05 * waits


@pytest.mark.usefixtures("few_draws")
def test_more_users_find_less_and_all_is_written():
    few, many = (size_store(UNIT, AGENTS, users, TIERS) for users in (10, 200))
    assert few.tiers.together[0] > 0.9 > 0.01 > many.tiers.together[0]
    hbm, dram, _ = json.loads(json.dumps(many.to_dict(), allow_nan=False))["tiers"]
    assert dram["tier"] == "dram"
    assert (hbm["gain"], hbm["chance"], hbm["sure"]) == (1, None, "")
    _, sd, pairs = gain_error(known_comparisons()["store"], "dense", "Hopper", many.prompt, AGENTS.answer)
    assert dram["chance"] == pytest.approx(student.cdf(np.log(dram["rate"] / hbm["rate"]) / sd, pairs))
    assert dram["sure"] == word_of(dram["chance"])
    text = str(many)
    assert "200 users think for 20 s between turns; a prompt has 74,000 tokens, 12.1 GB of KV cache." in text
    assert "HBM alone finds next to nothing of what was said before" in str(size_store(UNIT, AGENTS, 200, {}))
    assert "These sizes lie close together" in text
    assert "HBM alone" not in str(few)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"users": 0}, "users must be"), ({"tiers": {"tape": 1e12}}, "tier must be|must be one of"),
        ({"tiers": {"dram": -1.0}}, "size of dram must be"), ({"units": 0}, "units must be"),
        ({"tiers": {"dram": 1e30}}, "tiers must have at most"),
        ({"unit": SPLIT, "turns": replace(AGENTS, first=500_000)}, "in each of 8 groups of attention"),
        ({"turns": replace(AGENTS, first=3_000_000)}, "unit must hold the longest request, 3,118,500 tokens"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        size_store(**{"unit": UNIT, "turns": AGENTS, "users": 5, "tiers": {}} | change)


@pytest.mark.usefixtures("few_draws")
def test_what_all_share_is_always_there():
    shared = replace(AGENTS, shared=10_000)
    told = size_store(UNIT, shared, 400, {}, units=8)
    assert told.tiers.together.iloc[0] == pytest.approx(10_000 / shared.sessions(1).prompt, abs=0.01)
    assert any("next to nothing" in note for note in told.notes)


@pytest.mark.usefixtures("few_draws")
def test_a_lifetime_is_of_all_that_is_said():
    def sized(users, lifetime):
        return size_store(UNIT, AGENTS, users, {"dram": 8e12}, units=8, habit=Habit(lifetime=lifetime))

    short, long, crowded = sized(40, 30.0), sized(40, None), sized(500, 30.0)
    assert short.ceiling == pytest.approx(AGENTS.sessions(1).of(1).within(30))
    assert short.tiers.together.iloc[-1] == pytest.approx(short.ceiling, abs=0.06)
    assert "used within 30 s before" in short.head[-1]
    assert "were there before" in long.head[-1]
    assert short.needed[0.99] < long.needed[0.99]  # whoever keeps less long needs less
    assert crowded.tiers.together.iloc[-1] < 0.01
    notes = [any("longer than what is stored lives" in note for note in one.notes) for one in (short, long, crowded)]
    assert notes == [False, False, True]


def test_latencies_spread_as_the_loop_does_under_each_draw():
    """By hand: the loop at the same hits, with a draw's steps and front."""
    found = size_store(UNIT, AGENTS, 300, {"dram": 8e12}, units=8)
    row, work = found.tiers.iloc[-1], Workload(AGENTS.sessions(1).prompt, AGENTS.answer)
    case, habits = Case(UNIT, work, SLA(1.0, 1.0)), session_habits(Habit(), cost_of(UNIT))
    hits = np.diff(found.tiers.together, prepend=0.0).tolist()
    load = kv_sent(UNIT.numbers, 1e5) / 1e5 / (UNIT.gpus * tiers.tier("dram").read_bw)
    each = []
    for coefficients, factors in case.pairs(64):
        front = UNIT.front.seconds * np.exp(UNIT.front.sd * factors[2])
        pace = pace_of(case.problem, coefficients, factors)
        served = Served(waiting(AGENTS, front), pace, habits, UNIT.kv_tokens(work.n_in))
        seen = served.seen(300 / 8, hits, [0.0, load])
        each.append((front + seen.ttft + 499 * seen.tpot) / (row.ttft + 499 * row.tpot))
    assert found.spread == pytest.approx((sorted(each)[3], sorted(each)[60]), rel=1e-6)


@pytest.mark.parametrize(("part", "said"), [(0.59, False), (0.61, True), (0.94, True), (0.96, False)])
def test_turns_in_flight_that_take_most_of_hbm_wait_longer_than_means_say(part, said):
    """Simulated first tokens were late from six tenths of what fits on; where HBM is full, the law holds again."""
    asked = Made({"turns": AGENTS, "users": 40, "units": 1, "gpus": 1, "front": 0.0, "bytes": 1.0})
    asked |= {"tokens": [1e6], "loads": [0.0], "habits": session_habits(Habit(), lambda: 0.0)}
    room = turns_held(session_of(AGENTS, 1.0), 1e6)
    row = Made({"in_flight": part * room, "together": 0.9, "ttft": 1.0})
    notes = ladder_notes(asked, [row], [1.0, 2.0, 3.0], 1, [0.9, 1.1])
    assert any(note["key"] == "ladder.brim" for note in notes) == said
