"""What a store brought: the table by hand, and that nothing is said of a run by itself."""

import pytest

from inference_math import Unit, Workload, theory
from inference_math.evidence import load
from inference_math.simulate import Steps
from inference_math_book.figures import brought
from inference_math_planner.fleets.loops import loop
from inference_math_planner.fleets.turns import Turns


def test_the_time_of_a_token_is_the_slope_between_two_runs():
    runs = load("agent_stores").frame.set_index("run")
    one, other = runs.loc["glm53_pool8192_off"], runs.loc["glm53_c8_off_steady"]
    tokens = 32_770 * (other.found - one.found)
    assert brought.token_times()["GLM-5.3"] == pytest.approx((1 / one.rate - 1 / other.rate) / tokens, rel=1e-3)
    assert brought.token_times()["MiniMax-M3"] == pytest.approx(1.766 / (90_170 * (1 - 0.5517)))


def test_no_pair_gives_its_own_time_of_a_token():
    told = {name: {one, other} for name, one, other in brought._TOLD} | {brought._ALONE[0]: {brought._ALONE[1]}}
    for _, _, with_, source in brought._PAIRS:
        assert with_ not in told[source]


def test_what_is_said_of_a_pair_by_hand():
    pairs = brought.gains().set_index("pair")
    row, slow = pairs.loc["glm53_c32_steady"], pairs.loc["glm52_early_64"]
    share = 1.263 * 32_770 * (1 - 0.6423) * row.token_us / 1e6
    assert row.share == pytest.approx(share)
    assert row.said == pytest.approx(1 / (1 - share * (1 - (1 - 0.9094) / (1 - 0.6423))) - 1)
    assert row.measured == pytest.approx(1.873 / 1.263 - 1)
    left = ((1 - 0.5864) * (1 + 150.3 / slow.token_us) + (0.5864 - 0.114) * 60 / slow.token_us) / (1 - 0.1494)
    assert slow.path == pytest.approx(1 / (1 - slow.share * (1 - left)) - 1)
    assert slow.said == slow.beside < 0 < slow.free


def test_users_behind_one_link():
    """One user waits for nobody; two share it as an exponential queue does; many are as fast as it is."""
    assert brought._behind_a_link(1, 9.0, 1.0) == pytest.approx(0.1)
    assert brought._behind_a_link(2, 9.0, 1.0) == pytest.approx(2 / (9.0 + 1.0 * (1 + 0.1)))
    assert brought._behind_a_link(200, 9.0, 1.0) == pytest.approx(1.0, rel=1e-3)
    off = load("agent_stores").frame.set_index("run").loc["glm52_early_64_off"]
    row = brought.gains().set_index("pair").loc["glm52_early_64"]
    link = 32_770 * ((0.5864 - 0.114) * 60e-6 + (1 - 0.5864) * 150.3e-6)
    said = brought._behind_a_link(8, 8 / off.rate / (1 + row.free), link) / off.rate - 1
    assert row.beside == pytest.approx(said)


def test_the_bars_that_were_reached():
    """The sign in nine of ten; the size within a quarter in half of those whose path nobody has counted."""
    pairs = brought.gains()
    assert pairs.sign.mean() >= 0.9
    assert pairs[pairs.path.isna()].close.mean() >= 0.5
    assert pairs[pairs.path.notna()].close.all()  # chosen after a look at them
    assert (pairs.measured < (1 - pairs.before) / (1 - pairs.after) - 1).all()


def test_every_pair_of_the_table_that_can_be_said_is_said():
    """A run without a tier, one with it, hits and rates of both: nothing that went wrong is left out."""
    runs = load("agent_stores").frame
    known = runs[runs.found.notna() & runs.rate.notna()]
    both = known.groupby("pair").tier_gb.agg(lambda tier: (tier == 0).any() and (tier > 0).any())
    assert set(both[both].index) <= set(brought.gains().pair)


def test_two_formulas_in_turn_are_the_loop_away_from_the_border():
    """What the live chart computes, in Python: hits and rates as of the loop with its waits and ended sessions."""
    unit = Unit.of("llama-3-70b", "h100-sxm", 4, weights="fp8", kv="fp8")
    turns = Turns(turns=60, first=15_000, message=1500, answer=500, think=20.0)
    means = turns.sessions(1.0)
    cost, hbm = Steps(unit.near(Workload(means.prompt, 500))), unit.kv_tokens(means.prompt)
    one, two = (cost.bare(count, count * means.prompt) for count in (1, 2))
    engine = {"n_out": 500, "t_w": 2 * one - two}
    token = float(unit.prefill_time(means.prompt)) / means.prompt
    for users, host in ((8, 0), (14, 0), (28, 0), (60, 0), (28, 2.5e6), (40, 2.5e6), (64, 2.5e6), (80, 2.5e6)):
        found, places = 0.0, hbm / (means.again + means.brought)
        for _ in range(brought._ROUNDS):
            prompt = token * (means.brought + means.again * (1 - found))
            busy = prompt + 500 * (two - one)
            free = theory.turn_rate(users=users, turn_away=20.0 + prompt, turn_busy=busy, **engine)
            rate = min(free, theory.turn_rate(users=places, turn_away=prompt, turn_busy=busy, **engine))
            room = {"kv_capacity": hbm + host, "again": means.again, "brought": means.brought}
            held = theory.held_share(users=users, served=users / rate - 20.0, think=20.0, **room)
            found += brought._DAMPED * (held - found)
        tokens, loads = ([hbm, host], [1e-9]) if host else ([hbm], [])
        seen = loop(turns, users, cost, tokens=tokens, loads=loads)
        assert rate == pytest.approx(seen.rate, rel=0.06)
        assert found * means.again / means.prompt == pytest.approx(seen.together, abs=0.02)
