"""What a reader clicks: the built pages in headless Chromium, without a network.

That the curves of every live figure are the package's formulas, wherever its sliders are, `test_live.py` sees to; here
are the figures whose numbers have been computed on the way to a curve, or are none.
"""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from contents import pages_of
from grids import rest_long

from inference_math import catalogue, theory
from inference_math.simulate import StepCost
from inference_math_book.figures import engine
from inference_math_planner.laws import latency

# One page of each kind comes first, the others are long.
PAGES = pages_of(
    "01-what-does-a-token-cost",
    "planner",
    "10-the-talks-plots",
    "reference/claims",
    "reference/formulas",
    "reference/api",
)

pytestmark = pytest.mark.browser


def values(page, figure: str) -> dict[str, np.ndarray]:
    """Return what the figure drew: by curve, rows of (axis value, value)."""
    rows = page.evaluate(
        """id => {
            const view = document.querySelector(`#${id} .live-figure`).view;
            const names = Object.keys(view.getState({data: () => true, signals: () => false}).data);
            return names.map(n => view.data(n)).flat().filter(r => "curve" in r && "value" in r);
        }""",
        figure,
    )
    axis = next(name for name in ("k", "n_in", "sla_tpot") if name in rows[0])
    return {
        c: np.unique(np.array([(r[axis], r["value"]) for r in rows if r["curve"] == c and "ms" not in r]), axis=0)
        for c in {r["curve"] for r in rows}
    }


def settle(page, figure: str) -> None:
    """Wait until a figure has drawn what was asked of it."""
    page.evaluate("id => document.querySelector(`#${id} .live-figure`).view.runAsync().then(() => null)", figure)


def set_slider(page, figure: str, name: str, value: float) -> None:
    """Move a slider as a hand would: the input's value, then its event."""
    page.locator(f"#{figure} .vega-bind input[type=range][name={name}]").evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', {bubbles: true})); }", value
    )
    settle(page, figure)


@pytest.mark.parametrize("name", rest_long(PAGES, 6))
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_pages_load_alone_fit_the_width_and_typeset(open_page, name, width, scheme):
    page = open_page(name, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    formulas = page.locator("span.math, div.math")
    assert page.locator("span.math > math, div.math > math").count() == formulas.count()
    assert page.locator("merror").count() == 0
    assert not any("\\" in text for text in formulas.all_inner_texts())
    for figure in page.locator(".live-figure").all():
        box, drawing = figure.bounding_box(), figure.locator("svg.marks").bounding_box()
        assert drawing["width"] > 200
        assert drawing["x"] + drawing["width"] <= box["x"] + box["width"] + 1
    assert all(
        page.locator("main img:not([loading=lazy])").evaluate_all(
            "all => all.map(i => i.complete && i.naturalWidth > 0)"
        )
    )


# The smallest letters that a page draws, in pixels of the screen, and what they say.
SMALLEST = """() => [...document.querySelectorAll("main svg :is(text, tspan)")].flatMap((e) => {
    const { b, d } = (e.getClientRects().length && e.firstChild?.data?.trim() && e.getScreenCTM()) || {};
    return d === undefined ? [] : [[parseFloat(getComputedStyle(e).fontSize) * Math.hypot(b, d), e.textContent]];
}).sort((one, other) => one[0] - other[0]).slice(0, 1)"""


@pytest.mark.parametrize("name", [name for name in PAGES if re.match(r"book/(\d\d-|handbook/|index)", name)])
def test_on_a_phone_every_letter_of_a_picture_is_legible_and_a_wide_picture_scrolls(open_page, name):
    page = open_page(name, 390)
    page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
    assert all(size > 10.99 for size, _ in page.evaluate(SMALLEST)), page.evaluate(SMALLEST)
    for box in page.locator("figure:has(> .beside > .drawn > svg)").all():
        assert box.evaluate("one => one.clientWidth <= 358 && getComputedStyle(one).overflowX === 'auto'")


def test_choosing_a_model_changes_the_token_time(kept_page):
    page = kept_page("book/01-what-does-a-token-cost.html")
    page.locator("#fig-token-time .vega-bind", has_text="model").locator("select").select_option("llama-3-8b")
    page.locator("#fig-token-time .vega-bind", has_text="unit").locator("select").select_option("1 H100, BF16")
    settle(page, "fig-token-time")
    points = values(page, "fig-token-time")["T"]
    model, gpu = catalogue.model("llama-3-8b"), catalogue.gpu("h100-sxm")
    expected = theory.token_time_causal(
        n_params=model.n_params, n_layers=model.n_layers, d_att=model.d_att, n_in=points[:, 0], flops=gpu.flops("bf16")
    )
    np.testing.assert_allclose(points[:, 1], 1e6 * expected, rtol=1e-9)


@pytest.mark.parametrize(("B", "n_out"), [(1, 170), (192, 8)])
def test_the_gap_figure_draws_the_binomial_law(kept_page, B, n_out):
    page = kept_page("book/handbook/promise-a-percentile.html")
    set_slider(page, "fig-gaps-live", "B", B)
    set_slider(page, "fig-gaps-live", "n_out", n_out)
    points = values(page, "fig-gaps-live")["tokens"]
    expected = latency.prefills_beside(B, n_out).pmf(points[:, 0])
    np.testing.assert_allclose(points[:, 1], expected, rtol=1e-7, atol=1e-9)


ENGINE = "document.querySelector('#fig-play .live-figure')"


def lanes(page):
    """Return the rows of both data sets that the engine's figure draws now."""
    return page.evaluate(f"['rows-0', 'rows-1'].map((name) => {ENGINE}.view.data(name))")


def test_the_page_plays_the_engine_as_the_package_does(kept_page):
    page, moved = kept_page("book/03-what-one-more-request-costs.html"), {}
    for more in ({"units": 4, "split": 2, "rate": 40}, {"stored": 0.9, "e": 2.5, "batch": 2, "prompt": 1500}):
        moved |= more
        for name, value in more.items():
            set_slider(page, "fig-play", name, value)
        page.wait_for_function(
            f"""moved => Object.entries(moved).every(
                ([name, value]) => JSON.parse({ENGINE}.dataset.played || '{{}}')[name] === value
            )""",
            arg=moved,
        )
        told = page.evaluate(f"{ENGINE}.view.signal('engine')")
        fields = {field.name: told[field.name] for field in dataclasses.fields(StepCost)}
        at = {name: page.evaluate(f"{ENGINE}.view.signal('{name}')") for name in engine.SETTINGS}
        assert at.items() >= moved.items()
        bars, tokens = engine.played(StepCost(**fields), **at)
        drawn, came = map(pd.DataFrame, lanes(page))
        key = ["architecture", "request", "start", "end"]
        ours, theirs = (frame.sort_values(key).reset_index(drop=True) for frame in (bars, drawn))
        pd.testing.assert_frame_equal(ours, theirs[list(ours)], check_dtype=False, atol=0.0021)
        for name in ("ttft", "gap"):
            both = [frame[name].dropna().sort_values().to_numpy() for frame in (tokens, came)]
            np.testing.assert_allclose(*both, atol=0.0021)


def test_the_engine_plays_pauses_and_steps(kept_page):
    page = kept_page("book/03-what-one-more-request-costs.html")
    figure = page.locator("#fig-play")
    figure.scroll_into_view_if_needed()
    figure.get_by_role("button", name="Play").click()
    page.wait_for_function(f"{ENGINE}.view.signal('played') > 15 && {ENGINE}.view.signal('played') < 90")
    figure.get_by_role("button", name="Pause").click()
    before = page.evaluate(f"{ENGINE}.view.signal('now')")
    ends = [row["end"] for row in lanes(page)[0]]
    following = min(end for end in ends if end > before + 0.004 * max(ends))
    figure.get_by_role("button", name="Step").click()
    page.wait_for_function(f"{ENGINE}.view.signal('now') > {before}")
    assert page.evaluate(f"{ENGINE}.view.signal('now')") == pytest.approx(following)
    assert "aggregated (ms): TTFT" in figure.locator("svg.marks").text_content()


SCENES = "document.querySelector('#fig-front-scenes .live-figure')"


def test_scenes_go_on_by_keyboard_and_can_be_read_on_a_phone(open_page):
    page = open_page("book/index.html", 390, reduced_motion="reduce")
    figure = page.locator("#fig-front-scenes")
    assert page.evaluate(f"[{SCENES}.view.signal('scene'), {SCENES}.playing ?? 0]") == [4, 0]
    figure.get_by_role("button", name="Step").focus()
    tops = []
    for scene, words in ((1, "16.9 ms"), (2, "P = 181 ms"), (3, "181 ms / 170 = 1.06 ms")):
        page.keyboard.press("Enter")
        page.wait_for_function(f"{SCENES}.view.signal('scene') === {scene}")
        said = figure.locator("svg.marks"), figure.get_by_role("status")
        assert all(words in part.text_content() for part in said)
        bars = figure.locator("svg.marks .layer_0_marks path").evaluate_all("all => all.map((bar) => bar.getBBox().y)")
        tops.append(min(bars))
    assert tops[1] < tops[2] < tops[0]  # the prompt's bar, then a lower axis
    of = "all => all.map((text) => [parseFloat(getComputedStyle(text).fontSize), text.getBoundingClientRect().right])"
    texts = figure.locator("svg.marks text").evaluate_all(of)
    assert min(size for size, _ in texts) >= 11
    assert max(right for _, right in texts) <= 390
    page.evaluate(f"void {SCENES}.view.signal('clock', {{...{SCENES}.view.signal('clock'), seconds: 0.2}})")
    figure.get_by_role("button", name="Play").click()
    page.wait_for_function(f"{SCENES}.view.signal('scene') === 4 && !{SCENES}.playing")


FRONT = "document.querySelector('#fig-front .live-figure')"
FRAMES = """n => new Promise((done) => {
    const frame = () => (n-- > 0 ? requestAnimationFrame(frame) : done(null));
    frame();
})"""


def test_the_front_plays_by_itself_once_and_can_be_paused(open_page):
    page = open_page("book/index.html")
    figure = page.locator("#fig-front")
    assert figure.locator(".vega-bind:visible").count() == 0
    page.wait_for_function(f"{FRONT}.view.signal('played') > 0 && {FRONT}.view.signal('played') < 100")
    figure.get_by_role("button", name="Pause").click()
    paused = page.evaluate(f"{FRONT}.view.signal('played')")
    page.evaluate(FRAMES, 5)
    assert page.evaluate(f"{FRONT}.view.signal('played')") == paused < 100
    page.evaluate(f"void {FRONT}.view.signal('clock', {{...{FRONT}.view.signal('clock'), seconds: 0.2}})")
    figure.get_by_role("button", name="Play").click()
    page.wait_for_function(f"{FRONT}.view.signal('played') === 100")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")  # which plays nothing again
    page.evaluate(FRAMES, 20)
    assert page.evaluate(f"{FRONT}.view.signal('played')") == 100
    assert figure.get_by_role("button", name="Play").count() == 1


def test_where_motion_is_unwelcome_the_front_stands_at_its_end(open_page):
    page = open_page("book/index.html", reduced_motion="reduce")
    page.locator("#fig-front svg.marks").scroll_into_view_if_needed()
    page.evaluate(FRAMES, 20)
    assert page.evaluate(f"[{FRONT}.view.signal('played'), {FRONT}.playing ?? 0]") == [100, 0]


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_the_first_screen_has_a_title_a_sentence_buttons_and_the_figure(open_page, width, height):
    page = open_page("book/index.html", width)
    page.set_viewport_size({"width": width, "height": height})
    for place in ("h1", "section > p", ".doors"):
        box = page.locator(f"article {place}").first.bounding_box()
        assert box["y"] + box["height"] < height
    plot, doors = page.locator("#fig-front svg.marks").bounding_box(), page.locator(".doors").bounding_box()
    assert plot["y"] < 0.7 * height
    beside = plot["x"] >= doors["x"] + doors["width"]
    assert beside == (width > 1100)
    assert not page.locator(".bd-sidebar-secondary").is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_more_opens_and_the_plot_stays_in_sight_of_what_moves_it(open_page, width):
    page = open_page("book/03-what-one-more-request-costs.html", width)
    rows = page.locator("#fig-play .vega-bind")
    assert rows.locator("visible=true").count() == 3
    page.locator("#fig-play").get_by_text("more", exact=True).click()
    assert rows.locator("visible=true").count() == len(engine.SETTINGS) + 1
    for row in (rows.first, rows.last):
        row.evaluate("one => one.scrollIntoView({block: 'end'})")
        plot, box = page.locator("#fig-play svg.marks").bounding_box(), row.bounding_box()
        assert 0 <= plot["y"] < plot["y"] + plot["height"] <= box["y"] < box["y"] + box["height"] <= 901


def test_a_slider_moves_by_keyboard(kept_page):
    page = kept_page("book/02-load-or-recompute.html")
    set_slider(page, "fig-speedup", "e", 9)
    slider = page.locator("#fig-speedup .vega-bind input[type=range][name=e]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert float(slider.input_value()) == 9.5
    page.wait_for_function("document.querySelector('#fig-speedup .live-figure').view.signal('e') === 9.5")


def test_the_theme_can_change_and_the_slider_keeps_its_value(kept_page):
    page = kept_page("book/02-load-or-recompute.html")
    set_slider(page, "fig-speedup", "e", 15)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(
        "document.querySelector('#fig-speedup .vega-bind input') && "
        "document.querySelector('#fig-speedup .live-figure').view.signal('e') === 15"
    )
    label = page.locator("#fig-speedup svg.marks .role-axis-title text").first
    assert label.evaluate("one => getComputedStyle(one).fill") == page.evaluate("getComputedStyle(document.body).color")


def test_the_csv_button_saves_the_drawn_numbers(kept_page):
    page = kept_page("book/02-load-or-recompute.html")
    with page.expect_download() as download:
        page.locator("#fig-speedup .live-csv").click()
    frame = pd.read_csv(download.value.path())
    assert download.value.suggested_filename == "fig-speedup.csv"
    assert set(frame.curve) == {"load all that is stored"}
    assert len(frame) == 401
