"""The reviewer's desk: the ledger's filters, citations, the crosswalk, the talks' plots."""

import pytest
from bs4 import BeautifulSoup

from inference_math_book.claims import load_claims

pytestmark = pytest.mark.browser
CLAIMS = {claim.id: claim for claim in load_claims()}
LEDGER, CROSSWALK = "book/reference/claims.html", "book/reference/crosswalk.html"
PLOTS = "book/10-the-talks-plots.html"


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
    table = [row.locator("th, td").all_inner_texts() for row in page.locator("table tbody tr").all()]
    rests = {plot: on for on, _, which in table for plot in which.split(", ")}
    heads = {"measured on a GPU": "H100", "kernels summed": "H100"}
    for number, kind in enumerate(kinds, 1):
        assert rests[f"P{number:02}"].startswith(heads.get(kind, kind))
    words = "Twelve rest on points measured on an H100: six from an engine"
    assert words in page.locator("blockquote").first.inner_text()
    assert [int(many) for on, many, _ in table if "H100" in on] == [6, 6]


def test_the_plots_weigh_less_than_a_megabyte(site):
    pictures = list((site / "_static" / "plots").glob("*.png"))
    assert len(pictures) == 19  # one shows two plots
    assert sum(path.stat().st_size for path in (site / PLOTS, *pictures)) < 900_000
