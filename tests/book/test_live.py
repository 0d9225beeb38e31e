"""What stands under a live figure: presets, reset, the link, the curves as Python."""

import re
from pathlib import Path

import numpy as np
import pytest
from grids import rest_long

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
# Figures with curves that Python can draw again, by page and name.
FIGURES = [
    (page.relative_to(ROOT).with_suffix(".html").as_posix(), "".join(name))
    for page in sorted((ROOT / "book").rglob("*.md"))
    for name in re.findall(
        r"name: (fig-[\w-]+)(?:(?!```).)*?explore\.Live\(|explore\.Live\((?:(?!```).)*?show\(\s*\w+,\s*\"(fig-[\w-]+)",
        page.read_text(encoding="utf-8"),
        re.S,
    )
]
FIGURES = [one for start in range(5) for one in FIGURES[start::5]]
SPEEDUP = ("book/02-load-or-recompute.html", "fig-speedup")
MAP = ("book/09-which-of-the-three.html", "fig-map")
ROWS = """id => {
    const view = document.querySelector(`#${id} .live-figure`).view;
    const names = Object.keys(view.getState({data: () => true, signals: () => false}).data);
    return names.map(n => view.data(n)).flat().filter(r => "curve" in r && "value" in r);
}"""


MOVED = """f => {
    for (const one of f.querySelectorAll(".vega-bind input[type=range]")) {
        one.value = Number(one.min) + 0.3 * (one.max - one.min);
        one.dispatchEvent(new Event("input", {bubbles: true}));
    }
    return f.view.runAsync().then(() => null);
}"""


def figure(page, name):
    return page.locator(f"#{name} .live-figure")


def signal(page, name, parameter):
    return figure(page, name).evaluate("(f, p) => f.view.signal(p)", parameter)


def until(page, name, parameter, value):
    """Wait for a parameter to have a value."""
    page.wait_for_function(
        "([id, p, v]) => document.querySelector(`#${id} .live-figure`).view.signal(p) === v",
        arg=[name, parameter, value],
    )


def test_every_live_figure_is_found():
    assert len(FIGURES) >= 18


@pytest.mark.parametrize(("page", "name"), rest_long(FIGURES, 6))
def test_it_asks_a_question_and_the_copied_lines_draw_the_same_curves_wherever_sliders_are(kept_page, page, name):
    opened = kept_page(page)
    assert figure(opened, name).locator(".live-question").inner_text().endswith("?")
    if not figure(opened, name).locator("button", has_text="Copy as Python").count():
        pytest.skip("its marks are no curves")
    figure(opened, name).evaluate(MOVED)
    scope: dict[str, object] = {}
    with np.errstate(all="ignore"):
        exec(figure(opened, name).evaluate("f => f.toPython()"), scope)
    rows = opened.evaluate(ROWS, name)
    axis = figure(opened, name).evaluate("f => f.view.signal('in_python').axis")
    compared = 0
    for label, values in scope["curves"].items():
        own = [r for r in rows if r["curve"] == label and axis in r and "setup" not in r]  # no measured points
        drawn = {round(float(np.log(r[axis] + 1e-9)), 6): r["value"] for r in own}
        for place, value in zip(*np.broadcast_arrays(scope[axis], values), strict=True):
            key = round(float(np.log(place + 1e-9)), 6)
            if key in drawn and drawn[key] is not None and np.isfinite(value):
                assert drawn[key] == pytest.approx(value, rel=1e-4, abs=1e-9), (label, place)
                compared += 1
    assert compared >= 20


def test_a_link_sets_the_controls_and_reset_takes_them_back(open_page):
    page = open_page(f"{SPEEDUP[0]}#{SPEEDUP[1]}:e=3")
    until(page, SPEEDUP[1], "e", 3)
    assert page.evaluate("id => Math.abs(document.getElementById(id).getBoundingClientRect().top) < 400", SPEEDUP[1])
    figure(page, SPEEDUP[1]).get_by_role("button", name="Reset").click()
    until(page, SPEEDUP[1], "e", 9)
    slider = figure(page, SPEEDUP[1]).locator("input[type=range]").first
    assert slider.input_value() == "9"


@pytest.mark.parametrize(("wrong", "e"), [("e=1000&model=none", 19), ("e=-3", 0.5), ("e=15&e=abc", 9)])
def test_a_link_out_of_range_goes_to_the_nearest_end(open_page, wrong, e):
    page = open_page(f"{SPEEDUP[0]}#{SPEEDUP[1]}:{wrong}")
    page.wait_for_selector(f"#{SPEEDUP[1]} .live-figure[data-drawn]")
    until(page, SPEEDUP[1], "e", e)


def test_presets_set_the_controls_and_the_copied_link_opens_the_same_figure(open_page):
    page = open_page(SPEEDUP[0])
    figure(page, SPEEDUP[1]).locator(".live-presets select").select_option("e = 15")
    until(page, SPEEDUP[1], "e", 15)
    page.evaluate("() => { window.copied = []; navigator.clipboard.writeText = async (t) => window.copied.push(t); }")
    figure(page, SPEEDUP[1]).get_by_role("button", name="Copy link").click()
    page.wait_for_function("window.copied.length === 1")
    link = page.evaluate("window.copied[0]")
    until(open_page(SPEEDUP[0] + link[link.index("#") :]), SPEEDUP[1], "e", 15)


def test_the_ring_of_the_map_goes_where_a_link_says_and_where_it_is_dragged(open_page):
    page = open_page(f"{MAP[0]}#{MAP[1]}:ring_log_x=3")
    until(page, MAP[1], "ring_log_x", 3)
    assert signal(page, MAP[1], "b_S") == 8
    box = figure(page, MAP[1]).locator("svg.marks").bounding_box()
    across, up = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(across, up)
    page.mouse.down()
    page.wait_for_function(
        "id => document.querySelector(`#${id} .live-figure`).view.signal('ring_log_x') > 4", arg=MAP[1]
    )
    pressed = [signal(page, MAP[1], name) for name in ("ring_log_x", "ring_log_y")]
    page.mouse.move(across + 60, up - 60, steps=5)
    page.mouse.up()
    page.mouse.move(across - 100, up + 60, steps=3)  # with no button down nothing moves
    dragged = [signal(page, MAP[1], name) for name in ("ring_log_x", "ring_log_y")]
    assert all(4 > now - before > 0.2 for before, now in zip(pressed, dragged, strict=True))
    slider = figure(page, MAP[1]).locator("input[type=range][name=ring_log_x]")
    assert float(slider.input_value()) == pytest.approx(dragged[0], abs=0.05)
    figure(page, MAP[1]).get_by_role("button", name="Reset").click()
    until(page, MAP[1], "ring_log_x", 7.13)
