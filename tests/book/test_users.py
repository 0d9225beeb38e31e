"""Users who come back, on the planner's page: the numbers of the package, what a reader clicks, what is refused."""

import pytest
from forms import unit_of
from grids import rest_long

from inference_math.optimiser.verdict import hundredths
from inference_math.workload import SLA
from inference_math_planner import size_store
from inference_math_planner.fleets.loops import Habit
from inference_math_planner.fleets.turns import Turns

pytestmark = pytest.mark.browser
PAGE = "book/planner-sessions.html"
SIZE = """([changes, plan]) => {
    const page = window.inferenceMathPlanner;
    const asked = { ...plan, lifetime: plan.lifetime ?? Infinity };
    return window.inferenceMathSessions.size({ ...page.state(), ...changes }, asked);
}"""
PLAN = {
    "users": 500, "units": 8, "turns": 60, "first": 15_000, "message": 1500, "answer": 500, "shared": 0, "think": 20,
    "dram": 8000, "local_ssd": 0, "lifetime": None,
}  # fmt: skip
WIDE = {"model": "deepseek-v3", "gpu": "h200-sxm", "tp": "1", "dp": "8", "experts": "whole", "kv": "bf16"}


def sized(given, plan):
    turns = Turns(*(plan[name] for name in ("turns", "first", "message", "answer", "think")), shared=plan["shared"])
    tiers = {name: 1e9 * plan[name] for name in ("dram", "local_ssd") if plan[name]}
    limits = SLA(float(given["ttft"]) / 1000, float(given["tpot"]) / 1000)
    habit = Habit(lifetime=plan["lifetime"])
    return size_store(unit_of(given), turns, plan["users"], tiers, plan["units"], sla=limits, habit=habit)


@pytest.mark.parametrize(
    ("changes", "plan"),
    rest_long([
        ({"tp": "4"}, {"local_ssd": 30_000}), (WIDE | {"engine": "sglang"}, {"users": 300, "units": 2}),
    ], 2),
)  # fmt: skip
def test_a_ladder_is_that_of_the_package(page, changes, plan):
    asked = PLAN | plan
    told = page.evaluate(SIZE, [changes, asked])
    found = sized(page.evaluate("window.inferenceMathPlanner.state()") | changes, asked)
    assert told["names"] == found.tiers.tier.tolist()
    for here, there in zip(told["rows"], found.tiers.to_dict("records"), strict=True):
        for name in ("together", "users", "rate", "ttft", "tpot", "in_flight", "prompts"):
            assert here[name] == pytest.approx(there[name], rel=1e-6, abs=1e-9), name
        assert here["full"] == there["full"]
    assert told["kept"] == pytest.approx(found.tiers.kept.tolist())
    sure = found.tiers[["chance", "sure"]].to_dict("records")[1:]
    assert told["sure"][1:] == [{"chance": pytest.approx(one["chance"]), "sure": one["sure"]} for one in sure]
    assert told["units"] == found.alone
    assert told["ends"] == pytest.approx(found.spread, rel=1e-6)
    assert told["head"] == list(found.head)
    assert told["notes"] == list(found.notes)


def shown(page):
    page.wait_for_selector("#planner-form[data-answered]")
    return page.locator("#planner-table tr").evaluate_all(
        "all => all.map((row) => [...row.children].map((c) => c.textContent))"
    )


def test_overload_comes_first_and_columns_say_whom_they_count(open_page):
    page = open_page(PAGE)
    rows = shown(page)
    state = page.evaluate("window.inferenceMathPlanner.state()")
    found = sized(state | {"tp": "2"}, PLAN | {"users": 100, "dram": 2000})
    assert page.locator("#planner-headline").inner_text() == found.head[0]
    assert found.head[0].startswith("Overload: 100 users")
    told = page.locator("#planner-first li").all_inner_texts()
    assert [one for one in told if not one.startswith("Each unit: ")] == list(found.head[1:])
    columns = {name: [row[place] for row in rows[1:]] for place, name in enumerate(rows[0])}
    assert columns["found"] == [f"{share:.0%}" for share in found.tiers.together]
    own = found.tiers.iloc[1]
    assert columns["how sure"] == ["", f"{own.sure} ({min(hundredths(own.chance), 99)} of 100)"]
    assert columns["users whose caches fit"] == [f"{users:.3g}" for users in found.tiers.users]
    assert columns["users within the limits"] == [f"{users:g}" for users in found.tiers.kept]
    page.locator("[name='sessions.users']").fill("16")
    page.locator("#planner-headline", has_text="8 units have room for the turns of 16 users").wait_for()


def test_means_lead_to_a_plan_that_answers(open_page):
    """Of the default limits no fleet keeps that on TTFT: the button says which one it takes."""
    page = open_page(PAGE)
    found = sized(
        page.evaluate("window.inferenceMathPlanner.state()") | {"tp": "2"}, PLAN | {"users": 100, "dram": 2000}
    )
    button = page.locator("a", has_text="Plan with these means, TTFT within")
    button.click()
    page.wait_for_url("**/planner.html#plan:*")
    page.wait_for_selector("#planner-form[data-sized]")
    state = page.evaluate("window.inferenceMathPlanner.state()")
    asked = {"prompt": 74_000, "output": 500, "tier": "dram", "sessions": 13, "gpu": "h100-sxm", "model": "llama-3-70b"}
    assert {name: state[name] for name in asked} == {name: str(value) for name, value in asked.items()}
    at_limits = 100 / (20 + 0.4 + 499 * 0.04)  # turns/s, which overload does not let them have
    assert float(state["traffic"]) == pytest.approx(at_limits, rel=5e-3)
    assert at_limits > 1.5 * found.tiers.rate.iloc[-1]
    assert float(state["stored"]) == pytest.approx(100 * found.tiers.together.iloc[-1], abs=0.05)
    assert float(state["ttft"]) > 400
    assert page.locator("#card-rows li").count() > 0


def test_means_that_no_fleet_serves_are_not_offered(open_page):
    page = open_page(PAGE + "#plan:sessions.users=1&sessions.units=1")  # fewer requests than the planner's field takes
    page.wait_for_selector("#planner-form[data-offered]")
    assert page.locator("#planner-table tr").count() == 3
    assert page.locator("a", has_text="Plan with these means").count() == 0


def test_a_link_carries_what_was_sized(open_page):
    page = open_page(PAGE)
    page.locator("[name='sessions.users']").fill("64")
    page.wait_for_function("location.hash.includes('sessions.users=64')")
    rows = shown(page)
    other = open_page(PAGE + page.evaluate("location.hash"))
    assert shown(other) == rows
    assert other.locator("[name='sessions.users']").input_value() == "64"
    assert other.locator("#planner-link").inner_text() == ""


def test_what_no_session_has_is_refused_with_what_would_do(open_page):
    page = open_page(PAGE)
    for name, value, why in (
        ("turns", "0", "must be a whole number from 1"),
        ("users", "", "not empty"),
        ("first", "1900000", "hold the longest request"),
    ):
        field = page.locator(f"[name='sessions.{name}']")
        kept = field.input_value()
        field.fill(value)
        page.locator("#planner-headline", has_text=why).wait_for()
        assert page.locator("#planner-table").is_hidden()
        assert page.locator("#planner-fixes button").count() > 0
        field.fill(kept)
        shown(page)
