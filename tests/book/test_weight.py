"""What a reader waits for: pages are light until somebody scrolls, formulas need no script, figures come when near."""

import re

import pytest

pytestmark = pytest.mark.browser
MOST = 1_600_000  # bytes of a page with what it loads at once, figures aside
VEGA, SIGNAL = "vega.js", "document.querySelector('#fig-means .live-figure').view.signal"
FONT = """document.fonts.load('16px "STIX Two Math"').then((found) => found.length)"""


def loaded(page) -> list[str]:
    """Return the address of each file that a page has asked for."""
    return page.evaluate("performance.getEntriesByType('resource').map((one) => one.name.split('?')[0])")


def bytes_of(site, page) -> int:
    """Return the bytes of the page's own file and of those that it names in its head and loads at once."""
    names = [name.removeprefix(site.as_uri() + "/") for name in set(loaded(page))]
    own = [site / page.url.removeprefix(site.as_uri() + "/").split("#")[0]]
    return sum(path.stat().st_size for path in (*own, *(site / name for name in names)) if path.is_file())


@pytest.mark.parametrize(
    "name", ["02-load-or-recompute", "handbook/split-pools", "reference/formulas", "reference/claims"]
)
def test_a_page_is_light_before_anybody_scrolls(plain, site, name):
    page = plain(name)
    assert not [file for file in loaded(page) if VEGA in file or "fontawesome.js" in file or "searchindex" in file]
    assert bytes_of(site, page) < MOST
    assert page.evaluate(FONT) == 1


def test_the_front_is_light_with_its_figure_drawn(plain, site):
    page = plain("index")
    page.wait_for_selector("#fig-front .live-figure[data-drawn]")
    assert bytes_of(site, page) < 2_600_000


def test_seconds_are_typed_in_milliseconds_and_what_is_no_number_is_not_taken(plain):
    page = plain("03-what-one-more-request-costs")
    figure = page.locator("#fig-means .live-figure")
    figure.scroll_into_view_if_needed()
    page.wait_for_selector("#fig-means .live-figure[data-drawn]")
    row = page.locator("#fig-means .vega-bind", has=page.locator("input[name=ttft_1]"))
    assert row.locator(".live-unit").inner_text() == "ms"
    field = row.locator(".live-value")
    assert field.input_value() == "181"
    for typed, kept in (("250", 0.25), ("99999", 1.0), ("", 1.0), ("-5", 0.01)):
        field.fill(typed)
        page.keyboard.press("Enter")
        page.wait_for_function(f"Math.abs({SIGNAL}('ttft_1') - {kept}) < 1e-9")


def test_every_page_keeps_its_icons_and_the_search_its_index(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert "scripts/fontawesome.js" not in text, path
        assert bool(re.search(r"<script[^>]*searchindex", text)) == (path.name == "search.html"), path
    assert list((site / "_static").rglob("fa-solid-900.woff2"))
