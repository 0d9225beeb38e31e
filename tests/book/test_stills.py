"""Where no script draws a live figure, or none has yet, there is a picture of it."""

import re

import pytest

pytestmark = pytest.mark.browser
CHAPTER = "02-load-or-recompute"
SHOWN = "one => one.complete && one.naturalWidth > 0 && one.getBoundingClientRect().height > 200"
MOST = 220_000  # bytes of a picture: a map has two thousand cells


def loaded(page):
    """Return a page's first picture of a live figure, once it is there."""
    still = page.locator(".live-figure .live-still").first
    still.scroll_into_view_if_needed()
    still.evaluate("one => one.complete || new Promise((done) => { one.onload = () => done(); })")
    return still


def test_without_a_script_a_figure_is_a_picture_with_words(plain):
    page = plain(CHAPTER, java_script_enabled=False, color_scheme="dark")
    still = loaded(page)
    assert still.evaluate(SHOWN)
    assert len(still.get_attribute("alt")) > 30
    # The page is light without a script, and so is the picture, whatever the reader's other pages are.
    assert still.evaluate("one => getComputedStyle(one).colorScheme") == "light"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_script_replaces_it_and_the_page_stays_where_it_is(plain, scheme):
    page = plain(CHAPTER, color_scheme=scheme)
    still, figure = page.locator(".live-still"), page.locator(".live-figure")
    assert still.evaluate("one => getComputedStyle(one).colorScheme") == scheme
    before = figure.bounding_box()["height"]
    figure.scroll_into_view_if_needed()
    page.wait_for_selector(".live-figure[data-drawn] svg.marks")
    assert still.count() == 0
    assert figure.bounding_box()["height"] == pytest.approx(before, rel=0.1)


def test_a_figure_that_cannot_be_drawn_stays_a_picture(plain):
    page = plain(CHAPTER)
    page.evaluate(
        "Object.defineProperty(window, 'vegaEmbed', { value: () => { window.tried = true; return Promise.reject(); } })"
    )
    still = loaded(page)
    page.wait_for_function("window.tried")
    assert still.evaluate(SHOWN)
    assert page.locator(".live-figure[data-drawn]").count() == 0


def test_paper_has_the_picture_of_a_figure_that_nobody_scrolled_to(plain):
    page = plain(CHAPTER, color_scheme="dark")
    whole = len(page.pdf())
    still = page.locator(".live-still")
    assert page.locator(".live-figure[data-drawn]").count() == 0
    page.emulate_media(media="print")
    assert still.evaluate(SHOWN)
    assert still.evaluate("one => getComputedStyle(one).colorScheme") == "light"
    still.evaluate("one => one.remove()")
    assert whole - len(page.pdf()) > 10_000  # of lines and letters


def test_every_live_figure_has_one_and_they_are_light(site):
    named = set()
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        stills = re.findall(r'<img class="live-still[^>]*src="[^"]*_static/live/(\w+\.svg)"', text)
        assert len(stills) == text.count('class="live-figure"'), page
        named |= set(stills)
    assert len(named) > 20
    assert all(0 < (site / "_static/live" / name).stat().st_size < MOST for name in named)
