"""The planner's page against the package."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import pandas as pd
import pytest
from forms import DEFAULT, case_of, planned, unit_of
from grids import rest_long

from inference_math.evidence.numerals import digits
from inference_math.optimiser.verdict import hundredths
from inference_math_planner import Arrivals, across, as_record, capacity, fleet, search, size
from inference_math_planner.answers import text
from inference_math_planner.answers.deployment import ANSWERS, record_of
from inference_math_planner.fleets.mixes import MIXES, mix

pytestmark = pytest.mark.browser
PAGE = "book/planner.html"
OPENED = DEFAULT | {"tp": "auto"}  # which finds the two GPUs of the case


def complete(page):
    page.wait_for_selector("#planner-form[data-complete=true]")


def put(page, **changes):
    """Fill in several fields, none of which waits for the answer to those before it; two GPUs unless they say so."""
    asked = {"tp": "2"} | changes
    for name in sorted(asked, key=lambda name: (name != "model", name != "tp")):  # a model brings its own layout
        value = asked[name]
        field = page.locator(f"#planner-form [name={name}]")
        field.select_option(value) if field.evaluate("f => f.tagName") == "SELECT" else field.fill(value)


def shown(page):
    """Return what the form has of the package's settings."""
    return {
        name: value for name, value in page.evaluate("window.inferenceMathPlanner.state()").items() if name in DEFAULT
    }


def set_to(page, **changes):
    put(page, **changes)
    complete(page)


def sized(page):
    page.wait_for_selector("#planner-form[data-sized=true]")


def assert_card(page, card):
    """The page's card has the numbers and the words of the record's."""
    value, (low, high) = card.value, map(digits, (card.value.low, card.value.high))
    shown = page.locator("#card-value").text_content()
    assert shown == (digits(value.value) if not card.ranged else f"{low}–{high}" if isfinite(value.high) else f"{low}+")
    assert page.locator("#planner-said").text_content() == text.sentence(card.headline)
    assert page.locator("#planner-headline").text_content().endswith(card.what)
    assert page.locator("#card-sure").text_content() == f"{card.sure.capitalize()}: {card.why}."
    assert page.locator("#card-evidence").text_content() == " ".join(
        map(text.sentence, [*card.start, card.evidence[0]])
    )
    rows = page.locator("#card-rows li:not(.card-scale)")
    assert rows.locator(".card-name").all_inner_texts()[: len(card.rows)] == [row.name for row in card.rows]
    assert rows.locator("b").all_inner_texts()[: len(card.rows)] == [digits(row.value.value) for row in card.rows]
    meters = [[digits(1e3 * end) for end in (one.value.value, one.value.low, one.value.high)] for one in card.meters]
    told = [f"{low}–{high}" if card.ranged else middle for middle, low, high in meters]
    assert page.locator("#card-meters li b").all_inner_texts() == told


def rows_of(page, table):
    return page.locator(f"#planner-{table} tbody tr").evaluate_all(
        "all => all.map(row => [...row.children].map(cell => cell.textContent))"
    )


@pytest.mark.parametrize(
    "changes",
    rest_long([
        {"goal": "have", "have": "6", "price": "3"},
        {"promise": "means", "link": "tcp", "sessions": "100", "front": "15", "units": "3"},
        {"lengths": "azure-code", "ttft": "1500", "stored": "25", "tier": "dram", "units": "3"},
    ], 2),
)  # fmt: skip
def test_queues_are_those_of_the_package(page, changes):
    """One simulator, in two languages: the same requests, the same draws, the same replicas."""
    given = DEFAULT | changes
    put(page, **changes)
    sized(page)
    gpus = unit_of(given).gpus
    owned = given["goal"] == "have"
    found = planned(given | ({"units": str(min(int(given["units"]), int(given["have"]) // gpus))} if owned else {}))
    promise = given["promise"]
    options = {"quantile": {"usual": 0.9, "means": None}[promise] if promise.isalpha() else float(promise)}
    recorded = mix(given["lengths"], float(given["stored"]) / 100) if given["lengths"] in MIXES else None
    options["arrivals"] = Arrivals(float(given["arrivals"]), recorded)
    one = capacity(found, int(given["have"]), **options) if owned else fleet(found, float(given["traffic"]), **options)
    assert_card(page, one.card)
    assert page.locator("#planner-how").text_content().lower().startswith(f"{one.how}.".lower())
    table, names = {}, page.locator("#planner-architectures thead th").all_text_contents()
    for row in rows_of(page, "architectures"):
        table.setdefault(row[0], row)
    for each in (one, *one.others):
        at = names.index(each.architecture)
        assert table["mean TTFT (ms)"][at] == text.cell(*each.ttft, 1e3)
        assert table["mean TPOT (ms)"][at] == text.cell(*each.tpot, 1e3)
        assert table["the best in this share of draws"][at] == f"{hundredths(each.best_in)}%"
        assert table["serves less in the mean by"][at] == f"{each.loss:.0%}"
        assert table["keeps the promise in this share of draws"][at] == f"{each.kept:.0%}"
    if float(given["price"]) > 0:
        cost = page.locator("#card-cost").inner_text()
        assert digits(one.usd_per_million) in cost
        assert ("an example: set your own" in cost) == (given["price"] == DEFAULT["price"])
    lines = page.locator("#planner-starts pre").evaluate_all("all => all.map(p => p.textContent)")
    assert lines == [line for _, line in one.commands]
    assert ("capacity" if owned else "fleet") in page.evaluate("window.inferenceMathPlanner.asPython()")


PAIRED = {
    "model": "qwen3-30b-a3b",
    "gpu": "h200-sxm",
    "prompt": "8000",
    "output": "1000",
    "ttft": "3000",
    "tpot": "30",
    "traffic": "10",
}


def test_pools_get_a_layout_each_as_on_the_command_line(page):
    """With the layout on auto, at full load and with queues; and where a prefill unit's layout is named."""
    put(page, tp="auto", **PAIRED)
    sized(page)
    case = replace(case_of(DEFAULT | PAIRED | {"tp": "8"}), units=8)
    found = size(case, 8, rate=10.0)
    assert found.plan.case.prefill != found.plan.case.decode
    assert_card(page, found.fleet.card)
    lines = page.locator("#planner-starts pre").evaluate_all("all => all.map(p => p.textContent)")
    assert lines == [line for _, line in found.fleet.commands]
    assert "decode=unit.resized(tp=" in page.evaluate("window.inferenceMathPlanner.asPython()")
    put(page, tp="auto", goal="unit")
    complete(page)
    assert_card(page, search(case, 8)[0].card)
    given = DEFAULT | PAIRED | {"tp": "4", "prefill": "TP 1, DP 8, EP 8", "goal": "unit"}
    put(page, tp="4", prefill="TP 1, DP 8, EP 8")
    complete(page)
    assert_card(page, planned(given).card)


def test_a_goal_shows_its_own_fields(page):
    shown = {"serve": (True, False), "have": (False, True), "unit": (False, False)}
    for goal, visible in shown.items():
        put(page, goal=goal)
        assert tuple(page.locator(f"input[name={name}]").is_visible() for name in ("traffic", "have")) == visible
    complete(page)
    assert page.locator("#planner-said").text_content().startswith("Disaggregated serving gives ")
    put(page, goal="have")
    page.locator("input[name=traffic]").evaluate("one => { one.value = ''; }")  # hidden: it may be anything
    set_to(page, have="24")
    page.locator("input[name=have]").fill("1")
    assert "must be at least 2, those of a unit" in page.locator("#planner-headline").inner_text()


def test_a_link_with_strange_names_or_a_word_for_a_number_says_so(open_page):
    page = open_page(PAGE + "#plan:gpu=h900&engine=vllm&prompt=700&answer=5&output=abc")
    complete(page)
    assert page.locator("input[name=prompt]").input_value() == "700"
    for told in ("gpu h900 (now h100-sxm)", "output abc (now 170)", "No field here is called answer"):
        assert told in page.locator("#planner-link").inner_text()
    assert "gpu=h100-sxm" in page.evaluate("location.hash")  # a link says everything, whatever defaults come
    page.get_by_role("button", name="Reset").click()
    assert page.locator("#planner-link").inner_text() == ""
    assert shown(page) == OPENED


@pytest.mark.parametrize("named", [{}, {"prompt": "2200"}, {"prompt": "700", "tp": "4"}], ids=str)
def test_what_a_link_leaves_out_is_as_the_page_opens(open_page, named):
    link = "&".join(f"{name}={value}" for name, value in named.items())
    page = open_page(PAGE + (f"#plan:{link}" if link else ""))
    complete(page)
    assert shown(page) == OPENED | named


def test_a_link_has_the_means_of_a_mix_as_the_form_shows_them(open_page):
    page = open_page(PAGE + "#plan:lengths=azure-code")
    complete(page)
    shown = page.locator("input[name=prompt]").input_value()
    assert f"prompt={shown}&" in page.evaluate("location.hash")
    assert shown.isdigit()
    assert abs(float(page.evaluate("window.inferenceMathPlanner.state().prompt")) - float(shown)) <= 0.5


@pytest.mark.parametrize(
    "changes", [{"prompt": "500", "stored": "90", "ttft": "300", "engine": "trtllm"}, {"ttft": "100", "tpot": "10"}]
)
def test_the_page_says_what_the_package_prints(page, changes):
    set_to(page, **changes, goal="unit")  # what one unit does at full load
    expected = planned(DEFAULT | changes)
    for name, *_ in ANSWERS:
        shown = page.locator(f"[data-value={name}]").text_content()
        if name in expected.answers:
            assert shown == text.shown(expected.answers[name])
            assert page.locator(f"[data-why={name}]").text_content() == expected.answers[name].why
            assert page.locator(f"[data-by={name}]").text_content() == expected.answers[name].by
            assert page.locator(f"[data-said={name}]").text_content() == text.headline(expected.answers[name])
        else:
            assert shown == "–"
    if expected.feasible:
        assert_card(page, expected.card)
    else:
        assert page.locator("#planner-headline").inner_text() == text.sentence(expected.card.headline)
        assert page.locator("#planner-notes").is_visible()  # why, and what would do
    told = page.locator("#planner-settings").text_content()
    assert told == (text.start(record_of(expected, runner_up=False)) if expected.settings else "")
    assert page.locator("#planner-runner").text_content().rstrip(".").lower() == expected.runner_up.lower()
    begun = page.locator("#planner-starts > details")
    assert begun.count() == len(expected.starts)
    for name, start in expected.starts.items():
        one = begun.filter(has=page.get_by_text(f"To start {name} at full load", exact=True))
        assert one.locator("pre").evaluate_all("all => all.map(p => p.textContent)") == [c for _, c in start.commands]
    notes = page.locator("#planner-notes li").all_text_contents()
    never = [f"not calibrated: {line}" for line in expected.outside]
    never += [f"no {name} at full load: {reason}" for name, reason in expected.hindered.items()]
    missed = [line for line in expected.advice if "meet the SLA" not in line]  # what would is a button
    said = [*missed, *never, *expected.cautions]
    assert sorted(note.lower() for note in notes) == sorted(f"{line}.".lower() for line in said)


PICTURED = """name => {
    const view = window.inferenceMathPlanner.views[name];
    return view.data(name).map((row) => ({ ...row }));
}"""


def test_pictures_show_the_plan(page):
    set_to(page)
    for holder in page.locator(".planner-picture").all():
        holder.scroll_into_view_if_needed()
    page.wait_for_function("document.querySelectorAll('.planner-picture[data-drawn=true]').length === 2")
    unit, expected = unit_of(DEFAULT), planned(DEFAULT)
    row = expected.compared.set_index("architecture").loc[expected.best]
    step = pd.DataFrame(page.evaluate(PICTURED, "step")).groupby("what", sort=False)["ms"].sum()
    context = 2200 + 170 / 2
    assert step.iloc[0] == pytest.approx(1e3 * unit.step_time(row.decodes, context), rel=1e-3)
    assert step.iloc[1] == pytest.approx(1e3 * unit.prefill_time(2200), rel=1e-3)  # the plan disaggregates
    speeds = pd.DataFrame(page.evaluate(PICTURED, "speeds"))
    chosen = speeds[speeds.chosen].iloc[0]
    assert (chosen.architecture, chosen.user) == (expected.best, pytest.approx(25))
    assert chosen.gpu == pytest.approx(expected["tokens_per_gpu"], rel=1e-9)
    assert (speeds.low <= speeds.gpu).all()
    assert (speeds.gpu <= speeds.high).all()
    assert speeds["at"].notna().sum() == speeds.architecture.nunique()  # each line is named once
    set_to(page, prompt="500")
    again = pd.DataFrame(page.evaluate(PICTURED, "step")).groupby("what", sort=False)["ms"].sum()
    assert again.max() < step.max()


def test_a_token_costs_what_the_package_says_at_your_prices(page):
    set_to(page, prices="b200=5, H200=3.2")
    found = planned(DEFAULT)
    expected = across(found, prices={"b200": 5, "h200-sxm": 3.2})
    rows = rows_of(page, "gpus")
    assert [row[0] for row in rows] == expected.gpu.tolist()
    assert [row[1] for row in rows] == expected.standing.tolist()
    assert [row[2] for row in rows] == expected.architecture.tolist()
    told = text.gpus_table(as_record(found, gpus=expected))
    for at, title in ((3, "requests/s of a GPU"), (4, "as many of yours"), (5, "break-even (USD/hour)"),
                      (6, "price (USD/hour)"), (7, "USD per million output tokens")):  # fmt: skip
        assert [row[at] for row in rows] == told[title].tolist(), title
    assert "prices=b200" in page.evaluate("location.hash")


def test_drafts_stand_beside_none(page):
    complete(page)
    assert not page.locator("#planner-drafting").is_visible()
    changes = {"model": "deepseek-v3", "gpu": "h200-sxm", "tp": "8", "ttft": "2000", "drafts": "2"}
    set_to(page, **changes, weights="fp8")
    told = text.tables(as_record(planned(DEFAULT | changes)))["With drafts and without, one unit at full load"]
    assert rows_of(page, "drafting") == told.to_numpy().tolist()


def test_what_is_chosen_in_a_link_is_in_sight(browser, site):
    page = browser.new_page()
    page.goto((site / PAGE).as_uri() + "#plan:drafts=1")
    folds = "[...document.querySelectorAll('#planner-form fieldset > details')].map((one) => one.open)"
    assert page.evaluate(folds) == [False, True, False]
    page.close()


def test_the_answer_stands_beside_what_is_asked(open_page):
    at = "['#planner-form', '.planner-answer'].map((one) => document.querySelector(one).getBoundingClientRect())"
    form, answer = open_page(PAGE, width=1400).evaluate(at)
    assert answer["x"] > form["x"] + form["width"]
    assert answer["y"] + answer["height"] < 900


def test_the_report_says_what_the_page_says(page):
    set_to(page, goal="unit")
    report, expected = page.evaluate("window.inferenceMathPlanner.asMarkdown()"), planned(DEFAULT)
    own = text.as_markdown(as_record(expected, runner_up=True))
    for line in (
        expected.card.headline[1:],
        expected.card.why,
        expected.runner_up[1:],
        *(c for _, c in expected.starts["chunked"].commands),
    ):
        assert line in report
    assert report.count("```bash") == own.count("```bash") == 5
    put(page, goal="serve", units="2")
    sized(page)
    expected = planned(DEFAULT | {"units": "2"})
    report, many = page.evaluate("window.inferenceMathPlanner.asMarkdown()"), fleet(expected, 40)
    assert f"**{text.sentence(many.card.headline)}** {many.architecture.capitalize()}, {many.card.what}" in report
    for title, line in many.commands:  # the page's commands are now the fleet's, as the report's first are
        assert line in report
        assert f"{title}:\n\n```" in report
    assert ", ".join(f"{name} {value}" for name, value in many.settings.items()) in report
    for name in ("rate", "pdd_gain", "t_w"):
        assert f"| {expected.answers[name].title} | {text.shown(expected.answers[name])} |" in report


def test_examples_are_links_that_fill_the_form(page):
    links = page.locator("#planner-examples a").evaluate_all("all => all.map((one) => one.hash)")
    assert len(links) >= 4
    for link in links:
        page.evaluate("delete document.getElementById('planner-form').dataset.answered")
        page.evaluate("hash => { location.hash = hash + '&goal=unit'; }", link)
        page.wait_for_selector("#planner-form[data-answered]")
        assert page.locator("#planner-answer").get_attribute("data-state") == "answer"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"tp": "1", "weights": "bf16"}, "does not fit"),
        ({"gpu": "a100-80gb"}, "which has no FP8"),
        ({"units": "2.5"}, "must be a whole number"),
        ({"prompt": ""}, "Prompt (tokens) must be"),
        ({"output": "1"}, "Output (tokens) must be"),
        ({"stored": "120"}, "prompt (%) must be"),
        ({"prices": "b200=free"}, "Prices of other GPUs must be like b200=5, with a GPU of the list, not b200=free"),
        ({"prices": "b300x=5"}, "not b300x=5"),
        ({"prices": "h100=5"}, "not h100=5"),
        ({"prompt": "140000"}, "a request of 140,170 tokens is longer than the 131,072 that llama-3-70b was made for"),
        ({"imbalance": "1.5"}, "must be left empty: llama-3-70b has no routed experts"),
        (
            {"model": "mixtral-8x7b", "tp": "4", "dp": "4", "experts": "whole"},
            "together they share each layer among 16 GPUs, of which a node joins 8",
        ),
    ],
)  # fmt: skip
def test_what_is_no_deployment_is_refused_in_words(page, changes, complaint):
    put(page, **changes)
    assert complaint in page.locator("#planner-headline").inner_text()
    assert page.locator("[data-value=rate]").text_content() == "–"
    assert not page.locator("#planner-architectures").is_visible()  # no numbers of another question are left


def test_the_copied_lines_give_the_same_plan(page, capsys):
    put(page, stored="50", promise="0.9", tier="local_ssd", units="2", output="50")
    sized(page)
    exec(page.evaluate("window.inferenceMathPlanner.asPython()"), {})
    printed = capsys.readouterr().out
    assert page.locator("[data-value=rate]").text_content() in printed
    assert page.locator("#planner-settings").text_content().partition(": ")[2].replace(",", "") in printed


def test_a_slider_is_answered_and_the_page_is_light(open_page, site):
    """Whoever moves on before the queues are simulated gets the answer at full load all the same."""
    page = open_page(PAGE)
    complete(page)
    slider, shown = page.locator("input[data-for=prompt]"), set()
    for place in range(300, 800, 50):
        slider.evaluate(
            "(s, v) => { delete s.form.dataset.answered; s.value = v; "
            "s.dispatchEvent(new Event('input', {bubbles: true})); }",
            place,
        )
        page.wait_for_selector("#planner-form[data-answered]")
        shown.add(page.locator("[data-value=delta_p]").text_content())
    assert len(shown) == 10
    own = [
        site / PAGE,
        *(site / "_static" / f"{name}.js" for name in ("inference_math", "planner", "share")),
        *(site / "_static" / f"planner-{name}.js" for name in ("form", "pictures", "crowd", "answer")),
    ]
    assert sum(path.stat().st_size for path in own) <= 505_000  # of which some 30,000 are the theme's navigation


def test_a_narrow_screen_has_a_bar_that_opens_and_covers_no_field(open_page):
    page = open_page(PAGE, width=390)
    complete(page)
    page.evaluate("window.scrollTo(0, 0)")
    card, more = page.locator("#planner-answer"), page.locator("#card-more")
    assert card.bounding_box()["height"] < 80
    assert card.bounding_box()["y"] + card.bounding_box()["height"] <= 900
    assert not more.is_visible()
    for name in ("prompt", "output", "tpot"):
        field = page.locator(f"#planner-form input[name={name}]").first
        field.focus()
        field.scroll_into_view_if_needed()
        page.wait_for_function(
            "name => document.querySelector(`input[name=${name}]`).getBoundingClientRect().bottom"
            " <= document.querySelector('#planner-answer').getBoundingClientRect().top",
            arg=name,
        )
    page.evaluate("window.scrollTo(0, 0)")
    page.get_by_role("button", name="More").click()
    assert page.locator("#card-sure").is_visible()
    page.locator("input[name=prompt]").focus()
    assert not more.is_visible()
    page.locator("#card-place").scroll_into_view_if_needed()
    page.locator("#card-sure").wait_for()  # in its own place it is whole


def test_what_starts_the_answer_is_a_click_away(page):
    set_to(page, goal="unit")
    commands, button = page.locator("#planner-starts"), page.get_by_role("button", name="Start it")
    assert not commands.is_visible()
    button.click()
    assert "vllm serve" in commands.inner_text()
    assert button.get_attribute("aria-expanded") == "true"
    button.click()
    assert not commands.is_visible()


def test_a_gpu_that_was_never_served_has_a_range_and_no_evidence_of_another(page):
    changes = {"goal": "unit", "gpu": "l40s", "tp": "4", "ttft": "2000"}
    set_to(page, **changes)
    expected = planned(DEFAULT | changes).card
    assert expected.ranged
    assert_card(page, expected)
    told = f"planned and priced for {digits(expected.value.value)} requests/s of a unit"
    assert page.locator("#planner-headline").text_content().partition("; these settings")[0].endswith(told)
    assert page.locator("#card-evidence").text_content().startswith("No measurement")
