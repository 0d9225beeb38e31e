"""The crosswalk: every slide of a claim leads to its equations, figures and tests, in the order of the talk."""

import dataclasses
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from inference_math.theory import CATALOGUE
from inference_math_book.claims import SEEDS, load_claims, load_slides
from inference_math_book.extension.crosswalk import HEAD, rows

CLAIMS = {claim.id: claim for claim in load_claims()}
PAGE = Path(__file__).parents[2] / "_build" / "html" / "book" / "reference" / "crosswalk.html"


def test_a_row_for_each_claim_on_each_slide_in_the_order_of_the_talks():
    walked = [
        (row[0][0], row[0][4:], re.search(r"[CE]\d\d", row[3])[0]) for row in rows(CLAIMS.values(), load_slides())
    ]
    order = {(letter, slide): at for letter, slides in load_slides().items() for at, slide in enumerate(slides)}
    assert walked == sorted(walked, key=lambda row: (row[0], order[row[:2]], row[2]))
    assert sorted(walked) == sorted(
        (letter, slide, claim.id)
        for claim in CLAIMS.values()
        for letter in claim.seeds
        for slide in claim.slides(letter)
    )
    assert {claim.id for claim in CLAIMS.values() if claim.seeds} == {row[2] for row in walked}


def test_what_the_source_prints_comes_first_and_nothing_of_the_claim_is_left_out():
    for slide, equations, _, said, *_ in rows(CLAIMS.values(), load_slides()):
        claim = CLAIMS[said[6:9]]
        printed, _, others = (
            equations.rpartition("not printed: ") if "not printed" in equations else (equations, "", "")
        )
        assert {*re.findall(r"`(\w+)`", equations)} == {*claim.formulas}
        source = SEEDS[slide[0]]
        assert all(source in CATALOGUE[name].source for name in re.findall(r"`(\w+)`", printed))
        assert not any(source in CATALOGUE[name].source for name in re.findall(r"`(\w+)`", others))


def test_the_column_of_the_paper_has_what_the_ledger_knows():
    c06 = dataclasses.replace(CLAIMS["C06"], paper="Eq. (3)")
    found = rows([c06, CLAIMS["C05"]], load_slides())
    column = HEAD.index("paper")
    assert {(row[3][6:9], row[column]) for row in found} == {("C06", "Eq. (3)"), ("C05", "")}


@pytest.mark.skipif(not PAGE.exists(), reason="no built book: run 'make book'")
def test_the_page_has_the_links_and_tests_of_each_claim():
    """That the links lead somewhere, `test_site.py` sees to."""
    table = BeautifulSoup(PAGE.read_text(encoding="utf-8"), "html.parser").find("table", class_="crosswalk")
    assert [cell.get_text() for cell in table.thead.find_all("th")] == list(HEAD)
    made = rows(CLAIMS.values(), load_slides())
    shown = [dict(zip(HEAD, line.find_all("td"), strict=True)) for line in table.tbody.find_all("tr")]
    assert [cells["slide"].get_text(strip=True) for cells in shown] == [row[0] for row in made]
    for cells in shown:
        claim = CLAIMS[cells["claim"].a.get_text()]
        assert cells["claim"].a["href"] == f"claims.html#{claim.id.lower()}"
        anchors = {f"equation-{name.replace('_', '-')}" for name in claim.formulas}
        assert {link["href"].partition("#")[2] for link in cells["equation"].find_all("a")} == anchors
        anchors = {place.partition("#")[2] for place in (claim.derivation, *(item.page for item in claim.evidence))}
        anchors = {name for name in anchors if name and not name.startswith("equation-")}
        assert {link["href"].partition("#")[2] for link in cells["figure"].find_all("a")} == anchors
        assert [name.get_text() for name in cells["test"].find_all("code")] == list(claim.checks)
        counts = [fold.get_text().split()[0] for fold in cells["test"].find_all("summary")]
        assert counts == [str(len(claim.checks))] * bool(claim.checks)
        assert cells["paper"].get_text() == claim.paper
