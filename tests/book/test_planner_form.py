"""The planner's forms: layouts that are searched, what is refused and what would do, models by name, three pages."""

from __future__ import annotations

import re

import pytest
from forms import DEFAULT, case_of, unit_of
from grids import rest_long

import inference_math_planner as planner
from inference_math import SLA, Unit, Workload
from inference_math.evidence.numerals import digits
from inference_math_planner import search, size
from inference_math_planner.answers import text

pytestmark = pytest.mark.browser
PAGE = "book/planner.html"
# Set-ups with which people began, and none of which has an answer, or that they asked for, as it stands.
NEWCOMERS = {
    "a 70B on the smallest GPU": "model=llama-3-70b&gpu=l40s&weights=bf16&goal=unit",  # its fleets take minutes
    "DeepSeek on the default GPU": "model=deepseek-v3",
    "long prompts at the talks' limits": "prompt=16000&output=500",
    "a model that nobody can run": "model=gpt-4o",
    "a name nearly right": "model=lama-3-8b&weights=bf16",
    "one GPU for a 70B": "goal=have&have=1&weights=bf16",
    "too few GPUs for what is needed": "goal=have&have=4&need=30",
    "a 405B on the smallest GPU": "model=llama-3-405b&gpu=l40s",
    "FP8 on an A100": "gpu=a100-80gb&goal=unit",
    "an engine on another maker's GPU": "gpu=mi300x&engine=trtllm&goal=unit",
    "tokens faster than the weights are read": "tpot=5&goal=unit",
    "a trillion parameters": "model=kimi-k2&prompt=4000&output=1000&ttft=2000&goal=unit",
    "nothing in a field": "prompt=&goal=unit",
    "more than a model was made for": "prompt=200000&goal=unit",
}


def offered(page):
    page.wait_for_selector("#planner-form[data-offered]")
    return page.locator("#planner-fixes button")


@pytest.mark.parametrize("link", rest_long(list(NEWCOMERS.values()), 8))
def test_a_newcomer_ends_in_an_answer(open_page, link):
    """Each first button leads on, and the second refusal at the latest is the last; the address has what was asked.

    The answer and the buttons are there before pictures and tables, which nothing here looks at.
    """
    page = open_page(f"{PAGE}#plan:{link}")
    named = re.search(r"model=([^&]*)", link)
    for _ in range(3):
        page.wait_for_selector("#planner-form:is([data-sized], [data-offered])")
        buttons = page.locator("#planner-fixes button")
        assert not named or f"model={named[1]}" in page.evaluate("location.hash") or _
        if page.locator("#planner-answer").get_attribute("data-state") == "answer" and not buttons.count():
            break
        assert buttons.count() > 0, page.locator("#planner-headline").inner_text()
        buttons.first.click()
    assert page.locator("#planner-answer").get_attribute("data-state") == "answer"
    assert page.locator("#card-value").inner_text()


def test_a_button_sets_the_field_and_the_address(open_page):
    page = open_page(f"{PAGE}#plan:prompt=16000&output=500&goal=unit")
    button = offered(page).filter(has_text=re.compile("^TTFT limit: "))
    limit = button.inner_text().removeprefix("TTFT limit: ").removesuffix(" ms").replace(",", "")
    button.click()
    offered(page)
    assert page.locator("[name=ttft]").input_value() == limit
    assert f"ttft={limit}&" in page.evaluate("location.hash")
    assert page.evaluate("document.activeElement.name") == "ttft"
    # It is found within 5 % and rounded up to two digits, with one layout for all units: a sixth less would not do.
    given = DEFAULT | {"prompt": "16000", "output": "500", "ttft": str(0.84 * float(limit)), "tp": "2"}
    case = case_of(given)
    assert not any(planner.plan(one, case.work, case.sla).feasible for one in planner.layouts(case.unit, 8))


def test_whether_gpus_are_enough_is_said(open_page):
    page = open_page(f"{PAGE}#plan:goal=have&have=8&need=2")
    offered(page)
    said = page.locator("#planner-enough")
    assert said.inner_text().startswith("Enough: 8 GPUs serve ")
    page.locator("[name=need]").fill("900")
    offered(page).filter(has_text="GPUs for 900 requests/s").wait_for()
    assert said.inner_text().startswith("Not enough: 8 GPUs serve ")


@pytest.mark.parametrize(
    "changes",
    rest_long([
        {}, {"goal": "have", "have": "4", "model": "gpt-oss-120b", "weights": "mxfp4", "ttft": "2000"},
    ]),
)  # fmt: skip
def test_layouts_are_searched_as_on_the_command_line(open_page, changes):
    page = open_page(f"{PAGE}#plan:{'&'.join(f'{name}={value}' for name, value in changes.items())}")
    page.wait_for_selector("#planner-form[data-sized]")
    given = DEFAULT | changes
    have = int(given["have"]) if given["goal"] == "have" else None
    most = min(have or 8, 8)
    asked = {"have": have} if have else {"rate": float(given["traffic"])}
    case = case_of(given | {"tp": "1"} if changes else given)
    assert page.locator("#planner-said").text_content() == text.sentence(size(case, most, **asked).fleet.card.headline)
    page.locator("[name=goal]").select_option("unit")
    page.wait_for_selector("#planner-form[data-answered]")
    best, _ = search(case, 8)
    assert page.locator("[data-value=rate]").text_content().split()[0] == digits(best["rate"])


def test_a_model_that_no_node_holds_lies_on_the_fewest_nodes(page):
    page.locator("[name=goal]").select_option("unit")
    page.locator("[name=model]").fill("deepseek-v3")
    offered(page)
    best, _ = search(case_of(DEFAULT | {"model": "deepseek-v3", "tp": "8", "pp": "2"}), 16)
    assert page.locator("#planner-headline").text_content().endswith(best.card.what)
    assert "PP 2" in best.card.what
    held = page.locator("label:has([name=pp])")
    assert held.get_attribute("data-held") == "Choose a TP first"
    page.locator("[name=tp]").select_option("8")
    assert held.get_attribute("data-held") == ""
    assert offered(page).first.inner_text() == "TP auto"
    page.locator("[name=have]").evaluate("one => { one.value = '8'; }")
    page.locator("[name=tp]").select_option("auto")
    page.locator("[name=goal]").select_option("have")
    assert offered(page).first.inner_text() == "GPUs: 16"


def test_the_usual_promise_and_the_same_in_words_have_one_answer(page):
    said = []
    for promise in ("usual", "0.9"):
        page.locator("[name=promise]").select_option(promise)
        page.wait_for_selector("#planner-form[data-complete]")
        said.append([page.locator(f"#{one}").text_content() for one in ("planner-answer", "planner-why")])
    assert said[0] == said[1]
    page.evaluate("location.hash = '#plan:promise=mean&goal=unit'")  # as old links have it
    offered(page)
    assert page.locator("[name=promise]").input_value() == "usual"
    assert page.locator("#planner-link").inner_text() == ""


def test_a_model_is_found_by_its_repository_s_name(page):
    model = page.locator("[name=model]")
    assert page.locator("#names-of-model option").count() > 140
    page.locator("[name=goal]").select_option("unit")
    model.fill("Qwen/Qwen2.5-72B-Instruct")
    offered(page)
    assert page.evaluate("window.inferenceMathPlanner.state().model") == "qwen2.5-72b"
    model.blur()
    assert model.input_value() == "qwen2.5-72b"
    model.fill("deepseek-ai/DeepSeek-R1")
    assert page.locator("[name=tp]").input_value() == "auto"


@pytest.mark.parametrize("name", ["planner", "planner-sessions", "planner-benchmark"])
def test_a_precision_stays_when_the_model_changes_or_the_page_says_why_not(open_page, name):
    page = open_page(f"book/{name}.html")
    model, weights = page.locator("[name=model]"), page.locator("[name=weights]")
    held = page.locator("label:has([name=weights])")

    def changed(to):
        model.fill(to)
        return weights.input_value(), held.get_attribute("data-held")

    model.fill("llama-3-7")
    assert changed("llama-3-70b") == ("fp8", "")
    assert changed("Qwen/Qwen2.5-72B-Instruct") == ("fp8", "")
    assert changed("gpt-oss-120b") == ("mxfp4", "As gpt-oss-120b is stored, not in FP8")  # nothing gives bits back
    page.locator("[name=tp]").select_option("2")
    model.fill("gpt-oss-120")
    assert changed("gpt-oss-120b")[0] == "mxfp4"
    assert page.locator("[name=tp]").input_value() == "2"  # it is the same model
    assert changed("llama-3-70b") == ("fp8", "")
    assert page.locator("[name=tp]").input_value() == "auto"
    weights.select_option("bf16")
    assert changed("llama-3-8b") == ("bf16", "")
    assert changed("deepseek-v3") == ("fp8", "As deepseek-v3 is stored, not in BF16")
    weights.select_option("bf16")
    assert held.get_attribute("data-held") == ""  # asked for by hand


def test_at_most_ten_fields_are_open_and_each_note_is_a_disclosure(open_page, site):
    for name in ("planner", "planner-sessions", "planner-benchmark"):
        page = open_page(f"book/{name}.html")
        page.evaluate(
            "document.querySelectorAll('#planner-form fieldset > details').forEach((one) => { one.open = false; })"
        )
        fields = page.locator("#planner-form :is(input:not([type=range]), select)")
        assert 5 < sum(field.is_visible() for field in fields.all()) <= 10, name
        note = page.locator(".planner-note").first
        note.locator("summary").press("Enter")
        assert note.locator("p").is_visible()
        assert page.locator(".planner-tabs a").count() == 3
        assert page.locator(".planner-tabs [aria-current]").count() == 1


def test_links_of_old_lead_to_their_pages_and_tabs_take_the_set_up_along(open_page):
    page = open_page(f"{PAGE}#plan:model=llama-3-8b&weights=bf16&sessions.users=20&traffic=3")
    page.wait_for_url(re.compile("planner-sessions.html"))
    page.wait_for_selector("#planner-form[data-answered]")
    assert page.locator("[name='sessions.users']").input_value() == "20"
    assert page.locator("#planner-link").inner_text() == ""  # it knows the fields of other pages
    page.locator(".planner-tabs a", has_text="Plan").click()
    page.wait_for_selector("#planner-form[data-sized]")
    assert (page.locator("[name=model]").input_value(), page.locator("[name=traffic]").input_value()) == (
        "llama-3-8b",
        "3",
    )
    page = open_page(f"{PAGE}#planner-bench")
    page.wait_for_url(re.compile("planner-benchmark.html"))


def test_it_says_that_it_loads_what_it_needs_and_that_a_part_was_lost(browser, site):
    """Default content claims nothing; without scripts, and where one is lost, it says so in words."""
    source = (site / PAGE).read_text(encoding="utf-8")
    assert '<p id="planner-headline">Loading …</p>' in source
    (without,) = re.findall("<noscript>.*?Without JavaScript.*?</noscript>", source, re.DOTALL)
    assert "#planner-headline { display: none; }" in without
    for lost in ("inference_math.js", "planner-form.js"):
        page = browser.new_page()
        page.route(re.compile(re.escape(lost)), lambda route: route.abort())
        page.goto((site / PAGE).as_uri())
        page.get_by_text("A part of this page was lost on the way").wait_for()
        page.close()


def cache_of(page):
    """Return the precision of the KV cache that the form has, and why."""
    field = page.locator("[name=kv]")
    return field.input_value(), page.locator("label:has([name=kv])").get_attribute("data-held")


@pytest.mark.parametrize("name", ["planner", "planner-sessions", "planner-benchmark"])
def test_a_kv_cache_follows_what_the_package_takes_untold(open_page, name):
    """Until a reader chooses another, which stays; in a link that leaves it out, too."""
    page = open_page(f"book/{name}.html")
    for model, gpu, engine in (
        ("glm-5", "h200-sxm", "sglang"), ("glm-5", "b200", "sglang"), ("glm-5", "b200", "vllm"),
        ("deepseek-v4-flash", "b200", "vllm"), ("llama-3-8b", "b200", "sglang"),
    ):  # fmt: skip
        page.locator("[name=model]").fill(model)
        page.locator("[name=gpu]").select_option(gpu)
        page.locator("[name=engine]").select_option(engine)
        unit = Unit.of(model, gpu, 8, engine=engine)
        assert cache_of(page) == (unit.kv, unit.name.partition(f"KV {unit.kv}")[2].partition(")")[0].removeprefix(", "))
    page.locator("[name=kv]").select_option("fp8")
    page.locator("[name=gpu]").select_option("h200-sxm")
    assert cache_of(page) == ("fp8", "")
    page.locator("#planner-form").get_by_role("button", name="Reset").click()
    assert cache_of(page) == ("bf16", "")
    for link, found in (("", "fp8"), ("&kv=bf16", "bf16")):
        page.evaluate(f"location.hash = '#plan:model=glm-5&gpu=b200&engine=sglang{link}'")
        page.wait_for_function(f"document.querySelector('[name=kv]').value === '{found}'")
    page.locator("[name=engine]").select_option("vllm")
    page.locator("[name=engine]").select_option("sglang")
    assert cache_of(page) == ("bf16", "")  # another than usual, chosen by the link


def test_a_cache_untold_is_planned_as_on_the_command_line(open_page):
    """The same numbers, notes and commands; and of the other precision, which the commands name."""
    for kv in (None, "bf16"):
        told = f"&kv={kv}" if kv else ""
        page = open_page(f"{PAGE}#plan:model=glm-5&gpu=b200&engine=sglang&tp=8&ttft=3000&goal=unit{told}")
        page.wait_for_selector("#planner-form[data-complete]")
        unit = Unit.of("glm-5", "b200", 8, "fp8", kv, "sglang")
        found = planner.plan(unit, Workload(2200, 170), SLA(3, 0.04), price=2.5)
        assert page.locator("#planner-headline").text_content().endswith(found.card.what)
        lines = page.locator("#planner-starts pre").evaluate_all("all => all.map(p => p.textContent)")
        assert lines == [line for start in found.starts.values() for _, line in start.commands]
        notes = [note.lower() for note in page.locator("#planner-notes li").all_text_contents()]
        assert {f"{line}.".lower() for line in found.cautions} <= set(notes)
        assert f"({unit.weights}, KV {unit.name.partition('KV ')[2].partition(')')[0]})" in page.evaluate(
            "window.inferenceMathPlanner.asMarkdown()"
        )


def test_groups_that_leave_no_memory_are_refused_with_fewer(open_page):
    """SGLang keeps more the more groups there are: the page, which has no field for its share, says what to change."""
    link = "model=qwen3-235b-a22b&weights=bf16&gpu=h100-sxm&engine=sglang&tp=1&dp=8&experts=whole&ttft=3000&goal=unit"
    page = open_page(f"{PAGE}#plan:{link}")
    buttons = offered(page)
    said = page.locator("#planner-headline").inner_text()
    assert "in 8 groups, where SGLang leaves 59% of the memory" in said
    assert said.endswith("take fewer groups or another GPU.")
    with pytest.raises(ValueError, match="at 59% of its memory, not 1 "):
        unit_of(DEFAULT | {"kv": "bf16"} | dict(part.split("=") for part in link.split("&")))
    assert page.evaluate("[...document.querySelectorAll('[aria-invalid]')].map((one) => one.name)") == ["dp"]
    buttons.first.click()
    assert offered(page).count() == 0
    assert [page.locator(f"[name={name}]").input_value() for name in ("tp", "dp")] == ["4", "2"]
