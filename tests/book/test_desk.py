"""The reviewer's desk: the ledger's filters, the citations of claims, the gallery of plots."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from inference_math_book.claims import load_claims

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
CLAIMS = {claim.id: claim for claim in load_claims()}
LEDGER, GALLERY = "book/reference/claims.html", "book/gallery.html"


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


def test_a_link_sets_the_filter_and_a_link_to_a_hidden_claim_lifts_it(open_page):
    page = open_page(f"{LEDGER}#ledger:verdict=ambiguous%20in%20transcription")
    assert shown(page) == [i for i, claim in CLAIMS.items() if claim.verdict == "ambiguous in transcription"]
    hidden = next(i for i, claim in CLAIMS.items() if claim.verdict != "ambiguous in transcription")
    page.evaluate("hash => { location.hash = hash; }", hidden.lower())
    page.wait_for_function("id => !document.getElementById(id).hidden", arg=hidden.lower())
    assert shown(page) == list(CLAIMS)


def test_every_claim_has_a_bibtex_entry_with_its_address(site):
    soup = BeautifulSoup((site / LEDGER).read_text(encoding="utf-8"), "html.parser")
    for section in soup.find_all("section", class_="claim"):
        entry = section.find_all("details")[-1].get_text()
        key = section["id"]
        assert f"@misc{{inferencemath-{key}," in entry
        assert re.search(rf"url\s+= {{https://\S+/{re.escape(LEDGER)}#{key}}}", entry)


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
