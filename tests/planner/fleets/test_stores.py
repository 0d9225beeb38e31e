"""How big a store: sizes in bytes, what tiers find and bring, errors."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from inference_math import Unit
from inference_math.catalogue import tiers
from inference_math.optimiser.case import Case
from inference_math.simulate import Steps
from inference_math.simulate.cost import timed
from inference_math.unit.steps import kv_sent
from inference_math.workload import SLA, Workload
from inference_math_planner import size_store
from inference_math_planner.fleets.ladder import ladder_notes
from inference_math_planner.fleets.loops import Habit, loop, session_habits
from inference_math_planner.fleets.queues import pace_of
from inference_math_planner.fleets.sessions import session_of
from inference_math_planner.fleets.turns import Turns
from inference_math_planner.fleets.visits import Served, store_for, turns_held

AGENTS = Turns(turns=60, first=15_000, message=1_500, answer=500, think=20.0)
UNIT = Unit.of("llama-3-70b", "h100-sxm", 4, weights="fp8", kv="fp8")
LONG = replace(AGENTS, first=3_000_000)
SPLIT = Unit.of("deepseek-v3", "h200-sxm", dp=8, ep=8)
TIERS = {"dram": 2e12, "local_ssd": 30e12}


def waiting(turns, front):
    """Return turns as the engine sees them: to the times that users think comes a front, which does not scatter."""
    think = turns.think + front
    return replace(turns, think=think, cv=turns.cv * turns.think / think)


def waiting_of(unit):
    return waiting(AGENTS, unit.front.seconds)


def cost_of(unit):
    return Steps(unit.near(Workload(AGENTS.sessions(1).prompt, AGENTS.answer)))


def test_a_ladder_is_the_loop_of_a_unit_in_bytes():
    found = size_store(UNIT, AGENTS, 160, TIERS, units=8)
    each, means = UNIT.model.kv_token("fp8"), AGENTS.sessions(1)
    rows = found.tiers.set_index("tier")
    assert "step together" not in str(found)
    assert list(rows.index) == ["hbm", "dram", "local_ssd"]
    assert rows.gb.tolist()[1:] == pytest.approx([2000, 30_000])
    hbm = UNIT.kv_tokens(means.prompt)
    assert rows.tokens.tolist() == pytest.approx([8 * hbm, 2e12 / each, 30e12 / each])
    assert rows.users.iloc[0] == pytest.approx(means.border(8 * hbm))
    assert rows.users["dram"] == pytest.approx(means.border(8 * hbm + 2e12 / each))
    habits = session_habits(Habit(), cost_of(UNIT))
    of_a_unit = store_for(waiting_of(UNIT).numbers, 20, timed(cost_of(UNIT)), 0.9, hbm, habits)
    assert found.needed[0.9] * 1e9 / each == pytest.approx(8 * of_a_unit)
    cost, front = Steps(UNIT.near(Workload(means.prompt, 500))), UNIT.front.seconds
    link = UNIT.gpus * tiers.tier("dram").read_bw
    waiting = replace(AGENTS, think=20.0 + front)
    seen = loop(waiting, 20, cost, tokens=[hbm, 2e12 / each / 8], loads=[each / link])
    assert rows.rate["dram"] == pytest.approx(8 * seen.rate)
    assert rows.ttft["dram"] == pytest.approx(front + seen.ttft)
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


def test_times_spread_as_a_prediction_does_and_more_where_turns_wait_for_each_other():
    few, many = (size_store(UNIT, AGENTS, users, TIERS, units=8) for users in (8, 500))
    at = max(1.0, few.tiers.in_flight.iloc[-1])
    within = UNIT.predict("e2e", Workload(AGENTS.sessions(1).prompt, 500, few.tiers.together.iloc[-1]), at)
    assert few.spread == pytest.approx((within.low / within.value, within.high / within.value), rel=0.15)
    assert many.tiers.full.iloc[-1]
    assert max(few.spread[0], many.spread[0]) < 1 < few.spread[1] < many.spread[1]
    assert many.spread[1] / many.spread[0] > few.spread[1] / few.spread[0]


@pytest.mark.usefixtures("few_draws")
def test_a_ladder_stands_for_units():
    found = size_store(UNIT, AGENTS, 300, TIERS, units=4)
    rate = found.tiers.rate.iloc[-1]
    assert found.alone > 4
    assert size_store(UNIT, AGENTS, 300, {}, units=found.alone).tiers.rate[0] >= 0.98 * rate
    assert size_store(UNIT, AGENTS, 300, {}, units=found.alone - 1).tiers.rate[0] < 0.98 * rate
    assert size_store(UNIT, AGENTS, 300, {}, units=4).alone == 4
    assert f"as many turns per second take {found.alone} units:" in " ".join(str(found).split())
    assert found.gpus == 16
    assert found.stands_for == (found.alone - 4) * 4
    assert size_store(UNIT, AGENTS, 300, {}, units=4).stands_for == 0


@pytest.mark.usefixtures("few_draws")
def test_users_within_limits_are_the_most_that_keep_them():
    limits = SLA(1.0, 0.04)
    rows = size_store(UNIT, AGENTS, 100, TIERS, units=2, sla=limits).tiers
    for k, kept in enumerate(rows.kept):
        for users, keeps in ((kept, True), (kept + 2, False)):
            row = size_store(UNIT, AGENTS, users, dict(list(TIERS.items())[:k]), units=2).tiers.iloc[-1]
            assert (row.ttft <= limits.ttft and row.tpot <= limits.tpot) == keeps
    assert rows.kept.is_monotonic_increasing
    assert size_store(UNIT, AGENTS, 100, TIERS, sla=SLA(1e-3, 0.04)).tiers.kept.tolist() == [0, 0, 0]
    assert size_store(UNIT, AGENTS, 100, TIERS).tiers.kept.isna().all()


@pytest.mark.usefixtures("few_draws")
def test_groups_of_attention_keep_a_part_of_everything():
    found = size_store(SPLIT, AGENTS, 60, {"dram": 2e12})
    assert "8 groups of attention step together" in " ".join(str(found).split())
    rows = found.tiers
    means, hbm = AGENTS.sessions(1), SPLIT.kv_tokens(AGENTS.sessions(1).prompt)
    cost = Steps(SPLIT.near(Workload(means.prompt, AGENTS.answer)))
    seen = loop(waiting_of(SPLIT), 60, cost, tokens=[hbm], habit=Habit(groups=8))
    assert rows.rate[0] == pytest.approx(seen.rate)
    assert rows.users[0] == pytest.approx(means.border(hbm))
    link = SPLIT.gpus / 8 * tiers.tier("dram").read_bw  # a group's own
    each = kv_sent(SPLIT.numbers, means.prompt) / means.prompt
    said = loop(waiting_of(SPLIT), 60, cost, tokens=[hbm, 2e12 / each], loads=[each / link], habit=Habit(groups=8))
    assert rows.rate.iloc[-1] == pytest.approx(said.rate)


@pytest.mark.usefixtures("few_draws")
def test_an_engine_that_goes_on_while_a_tier_loads_is_no_slower():
    tight = Unit.of("llama-3-8b", "h100-sxm")
    rows = [
        size_store(tight, AGENTS, 30, {"local_ssd": 1e13}, habit=Habit(blocking=blocking)).tiers
        for blocking in (True, False)
    ]
    waits, goes_on = (row.rate[1] for row in rows)
    assert goes_on > 1.05 * waits


@pytest.mark.usefixtures("few_draws")
def test_more_users_find_less_and_all_is_written():
    few, many = (size_store(UNIT, AGENTS, users, TIERS) for users in (10, 200))
    assert few.tiers.together[0] > 0.9 > 0.01 > many.tiers.together[0]
    assert json.loads(json.dumps(many.to_dict(), allow_nan=False))["tiers"][1]["tier"] == "dram"
    text = str(many)
    assert "200 users who think for 20 s; prompts of 74,000 tokens, 12.1 GB." in text
    assert "HBM alone finds next to nothing of what was said before" in text
    assert "These sizes lie close together" in text
    assert "HBM alone" not in str(few)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"users": 0}, "users must be"), ({"tiers": {"tape": 1e12}}, "tier must be|must be one of"),
        ({"tiers": {"dram": -1.0}}, "size of dram must be"), ({"units": 0}, "units must be"),
        ({"tiers": {"dram": 1e30}}, "tiers must have at most"),
        ({"unit": SPLIT, "turns": replace(AGENTS, first=500_000)}, "in each of 8 groups of attention"),
        ({"turns": LONG}, "unit must hold the longest request, 3,118,500 tokens"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        size_store(**{"unit": UNIT, "turns": AGENTS, "users": 5, "tiers": {}} | change)


@pytest.mark.usefixtures("few_draws")
def test_what_is_asked_of_a_ladder_reaches_its_numbers():
    """Groups, a shared beginning, fronts and answers, each where leaving it out would not show elsewhere."""
    shared = replace(AGENTS, shared=10_000)
    wide = size_store(SPLIT, shared, 40, {"dram": 4e12})
    hbm = SPLIT.kv_tokens(shared.sessions(1).prompt)
    assert wide.tiers.users.iloc[0] == pytest.approx(shared.sessions(1).border(hbm / SPLIT.dp) * SPLIT.dp)
    means = shared.sessions(1)
    assert means.border(means.shared + 10 * (means.again + means.brought)) == pytest.approx(10)
    told = size_store(UNIT, shared, 400, {"dram": 8e12}, units=8)
    assert told.tiers.together.iloc[0] == pytest.approx(
        means.shared / means.prompt, abs=0.01
    )  # that much is always there
    assert any("next to nothing" in note for note in told.notes)


@pytest.mark.usefixtures("few_draws")
def test_a_lifetime_is_of_all_that_is_said():
    asked = {"units": 8, "tiers": {"dram": 8e12}}
    short, long = (size_store(UNIT, AGENTS, 40, habit=Habit(lifetime=seconds), **asked) for seconds in (30.0, None))
    assert short.ceiling == pytest.approx(AGENTS.sessions(1).of(1).within(30))
    assert short.tiers.together.iloc[-1] == pytest.approx(short.ceiling, abs=0.06)
    assert "used within 30 s before" in short.head[1]
    assert "were there before" in long.head[1]
    assert short.needed[0.99] < long.needed[0.99]  # whoever keeps less long needs less
    crowded = size_store(UNIT, AGENTS, 500, habit=Habit(lifetime=30.0), **asked)
    assert crowded.tiers.together.iloc[-1] < 0.01
    assert any("longer than what is stored lives" in note for note in crowded.notes)
    assert not any("longer than what is stored lives" in note for note in (*short.notes, *long.notes))


def test_latencies_spread_as_the_loop_does_under_each_draw():
    """By hand: the loop at the same hits, with a draw's steps and front."""
    turns, users, units = AGENTS, 300, 8
    found = size_store(UNIT, turns, users, {"dram": 8e12}, units=units)
    case = Case(UNIT, Workload(turns.sessions(1).prompt, turns.answer), SLA(1.0, 1.0))
    tokens = [UNIT.kv_tokens(turns.sessions(1).prompt)]
    habits = session_habits(Habit(), cost_of(UNIT))
    hits = [float(found.tiers.together.iloc[0]), float(found.tiers.together.iloc[1] - found.tiers.together.iloc[0])]
    load = kv_sent(UNIT.numbers, 1e5) / 1e5 / (UNIT.gpus * tiers.tier("dram").read_bw)
    each = []
    for coefficients, factors in case.pairs(64):
        front = UNIT.front.seconds * np.exp(UNIT.front.sd * factors[2])
        pace = pace_of(case.asked, coefficients, factors)
        served = Served(waiting(turns, front).numbers, pace, habits, tokens[0])
        seen = served.seen(users / units, hits, [0.0, load])
        each.append(front + seen["ttft"] + 499 * seen["tpot"])
    own = found.tiers.ttft.iloc[-1] + 499 * found.tiers.tpot.iloc[-1]
    ordered = sorted(each)
    assert found.spread == pytest.approx((ordered[3] / own, ordered[60] / own), rel=1e-6)


@pytest.mark.usefixtures("few_draws")
def test_units_that_do_as_much_with_hbm_alone_are_the_fewest():
    """One by one, where HBM finds a part of it."""
    found = size_store(UNIT, AGENTS, 40, {"dram": 2e12}, units=2)
    assert 0.2 < found.tiers.together.iloc[0] < 0.9
    hbm, cost, turns = UNIT.kv_tokens(AGENTS.sessions(1).prompt), cost_of(UNIT), waiting_of(UNIT)
    rates = [n * loop(turns, 40 / n, cost, tokens=[hbm]).rate for n in range(2, 6)]
    enough = [n for n, rate in zip(range(2, 6), rates, strict=True) if rate >= 0.98 * found.tiers.rate.iloc[-1]]
    assert found.alone == enough[0] > 2


@pytest.mark.usefixtures("few_draws")
def test_a_row_has_the_tiers_up_to_its_own():
    both, alone = (size_store(UNIT, AGENTS, 200, tiers, units=4).tiers for tiers in (TIERS, {}))
    assert both.iloc[0].together == alone.iloc[0].together
    first = size_store(UNIT, AGENTS, 200, {"dram": TIERS["dram"]}, units=4).tiers
    assert both.iloc[1].rate == first.iloc[1].rate


@pytest.mark.parametrize(("part", "said"), [(0.59, False), (0.61, True), (0.94, True), (0.96, False)])
def test_turns_in_flight_that_take_most_of_hbm_wait_longer_than_means_say(part, said):
    """Simulated first tokens were late from six tenths of what fits on; where HBM is full, the law holds again."""
    tokens, law = 1e6, session_of(AGENTS.numbers, 1.0)
    habits = session_habits(Habit(), lambda: 0.0)
    asked = {"turns": AGENTS.numbers, "users": 40, "units": 1, "gpus": 1, "front": 0.0, "bytes": 1.0,
             "tokens": [tokens], "loads": [0.0], "habits": habits}  # fmt: skip
    row = {"in_flight": part * turns_held(law, tokens), "together": 0.9, "ttft": 1.0}
    notes = ladder_notes(asked, [row], [1.0, 2.0, 3.0], 1, [0.9, 1.1])
    assert any(note["key"] == "ladder.brim" for note in notes) == said
