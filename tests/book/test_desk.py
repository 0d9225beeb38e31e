"""The reviewer's desk: the ledger's filters, the citations of claims, the talks' plots."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup

from inference_math_book.claims import load_claims

pytestmark = pytest.mark.browser
CLAIMS = {claim.id: claim for claim in load_claims()}
LEDGER, PLOTS = "book/reference/claims.html", "book/10-the-talks-plots.html"


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


def test_each_plot_of_the_talks_has_a_sketch_and_our_figure_with_its_badge(open_page, site):
    page = open_page(PLOTS)
    kinds = []
    for number in range(1, 21):
        plot = page.locator(f"figure#p{number:02}")
        plot.scroll_into_view_if_needed()
        assert plot.locator("svg[aria-label]").count() == 1
        picture = plot.locator(".ours img")
        picture.evaluate("i => i.decode()")
        assert picture.evaluate("i => i.naturalWidth") > 300
        assert len(picture.get_attribute("alt")) > 20
        kinds.append(plot.locator(".ours .badge").inner_text())
        chapter, _, figure = plot.locator(".ours a").get_attribute("href").partition("#")
        there = BeautifulSoup((site / PLOTS).with_name(chapter).read_text(encoding="utf-8"), "html.parser")
        assert there.find("figure", id=figure).find(class_="badge").get_text() == kinds[-1]
    exact, projected = (sum(kind in group for kind in kinds) for group in (("exact", "simulated"), ("projected",)))
    words = ("Nine follow from formulas or a simulation", "Eight rest on measurements", "Three are projected")
    assert (exact, len(kinds) - exact - projected, projected) == (9, 8, 3)
    assert all(said in page.locator("blockquote").first.inner_text() for said in words)


def test_the_plots_weigh_less_than_a_megabyte(site):
    pictures = list((site / "_static" / "plots").glob("*.png"))
    assert len(pictures) == 20
    assert sum(path.stat().st_size for path in (site / PLOTS, *pictures)) < 900_000
