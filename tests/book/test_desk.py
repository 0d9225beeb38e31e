"""The reviewer's desk: the ledger's filters, citations, the crosswalk, the gallery of plots."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from inference_math_book.claims import load_claims

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
CLAIMS = {claim.id: claim for claim in load_claims()}
LEDGER, CROSSWALK = "book/reference/claims.html", "book/reference/crosswalk.html"
GALLERY = "book/gallery.html"


def shown(page):
    return page.locator("section.claim:not([hidden])").evaluate_all("all => all.map(s => s.id.toUpperCase())")


def test_filters_show_the_claims_of_a_verdict_and_a_source(kept_page):
    page = kept_page(LEDGER)
    assert shown(page) == list(CLAIMS)
    page.locator(".ledger-filters").get_by_label("Verdict").select_option("ambiguous in transcription")
    expected = [i for i, claim in CLAIMS.items() if claim.verdict == "ambiguous in transcription"]
    assert shown(page) == expected
    assert page.locator(".ledger-filters output").inner_text() == f"{len(expected)} of {len(CLAIMS)} claims"
    page.locator(".ledger-filters").get_by_label("Source").select_option("A")
    assert shown(page) == [i for i in expected if "A" in CLAIMS[i].seeds]
    page.get_by_role("button", name="Reset").click()
    page.locator(".ledger-filters").get_by_label("Evidence").select_option("published")
    assert shown(page) == [i for i, c in CLAIMS.items() if "published" in {e.kind for e in c.evidence}]
    page.get_by_role("button", name="Reset").click()
    page.locator(".ledger-filters").get_by_label("Words").fill(
        "none yet"
    )  # stands under every claim, and says nothing of it
    assert len(shown(page)) < len(CLAIMS) / 4
    page.get_by_role("button", name="Reset").click()


def test_a_link_sets_the_filter_and_a_link_to_a_hidden_claim_lifts_it(open_page):
    page = open_page(f"{LEDGER}#ledger:verdict=ambiguous%20in%20transcription")
    assert shown(page) == [i for i, claim in CLAIMS.items() if claim.verdict == "ambiguous in transcription"]
    hidden = next(i for i, claim in CLAIMS.items() if claim.verdict != "ambiguous in transcription")
    page.evaluate("hash => { location.hash = hash; }", hidden.lower())
    page.wait_for_function("id => !document.getElementById(id).hidden", arg=hidden.lower())
    assert shown(page) == list(CLAIMS)


@pytest.mark.parametrize("place", ["claims.html#c06", "formulas.html#formula-crossover"])
def test_a_click_shows_an_entry_and_another_copies_it(open_page, place):
    page = open_page(f"book/reference/{place}")
    page.evaluate("document.addEventListener('copy', () => { window.copied = document.activeElement.value; })")
    name = place.partition("#")[2]
    home = page.locator(f"section#{name}" if name == "c06" else f"dt:has(#{name}) + dd")
    entry = home.locator("details.cite pre")
    assert not entry.is_visible()
    home.locator("details.cite summary").click()
    assert entry.is_visible()
    home.locator(".highlight").hover()
    home.locator("button.copybtn").click()
    page.wait_for_function("window.copied")
    assert page.evaluate("window.copied").strip() == entry.inner_text().strip()


def test_the_crosswalk_shows_the_rows_of_a_claim_and_their_tests(open_page):
    page = open_page(CROSSWALK)
    table = page.locator("table.crosswalk")
    page.get_by_label("Show rows with").fill("c22 chunked")
    lines = table.locator("tbody tr").filter(visible=True)
    texts = lines.all_inner_texts()
    assert texts
    assert all("C22" in text and "chunked" in text.lower() for text in texts)
    test = lines.first.locator("code").first
    assert not test.is_visible()
    lines.first.locator("summary").click()
    assert test.is_visible()
    assert test.inner_text() == CLAIMS["C22"].checks[0]
    lines.first.get_by_role("link", name="C22").click()
    page.wait_for_url("**/claims.html#c22")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_crosswalk_fits_its_box_with_all_tests_shown(open_page, width):
    page = open_page(CROSSWALK, width)
    page.locator("table.crosswalk details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    box = page.locator("table.crosswalk").evaluate("t => [t.parentElement.scrollWidth, t.parentElement.clientWidth]")
    assert box[0] <= box[1]
    assert page.locator("table.crosswalk tr").first.is_visible() == (width > 600)  # the names of the columns


def test_the_gallery_has_twenty_plots_with_pictures_and_numbers(open_page, site):
    plots = tomllib.loads((ROOT / "book" / "gallery.toml").read_text(encoding="utf-8"))["plot"]
    assert [plot["id"] for plot in plots] == [f"P{i:02}" for i in range(1, 21)]
    page = open_page(GALLERY)
    for plot in plots:
        section = page.locator(f"#{plot['id'].lower()}")
        section.scroll_into_view_if_needed()
        picture = section.locator("img.plot")
        picture.evaluate("i => i.decode()")
        assert picture.evaluate("i => i.naturalWidth") > 300
        assert len(picture.get_attribute("alt")) > 20
        assert section.locator(".badge").count() >= 1
        for link in section.locator("a[download]").all():
            assert (site / "book" / link.get_attribute("href")).resolve().read_text(encoding="utf-8").count("\n") > 2


def test_the_gallery_weighs_less_than_a_megabyte(site):
    pictures = list((site / "_static" / "gallery").glob("*.png"))
    assert len(pictures) == 20
    assert sum(path.stat().st_size for path in (site / GALLERY, *pictures)) < 600_000
