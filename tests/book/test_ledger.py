"""The page of the claims: every link of it leads somewhere, and every test that it names passes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from inference_math.book.claims import load_claims

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
PAGE = SITE / "book" / "reference" / "claims.html"
CLAIMS = load_claims()
built = pytest.mark.skipif(not PAGE.exists(), reason="no built book: run 'make book'")


@cache
def soup(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def place(link: str) -> tuple[Path, str]:
    page, _, anchor = link.partition("#")
    return SITE / f"{page}.html", anchor


@built
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_has_its_place_with_a_permanent_link(claim):
    anchor = claim.id.lower()
    (section,) = soup(PAGE).find_all(id=anchor)
    heading = section.find(re.compile(r"h\d"))
    assert heading.get_text().replace("’", "'").startswith(f"{claim.id} · {claim.title}")
    assert heading.find("a", class_="headerlink")["href"] == f"#{anchor}"
    assert section.find(class_="verdict").get_text() == claim.verdict
    assert [code.get_text() for code in section.details.find_all("code")] == list(claim.checks)
    assert claim.quote in section.get_text() or not claim.quote
    assert soup(PAGE).select(f"table a[href='#{anchor}']")


@built
def test_every_link_of_the_page_leads_to_a_page_and_a_place_on_it():
    broken = []
    for link in soup(PAGE).find("article").find_all("a", href=True):
        url = urlsplit(link["href"])
        if url.scheme or url.netloc:
            continue
        page = (PAGE.parent / unquote(url.path)).resolve() if url.path else PAGE
        if not page.exists() or (url.fragment and not soup(page).find(id=unquote(url.fragment))):
            broken.append(link["href"])
    assert not broken


@built
def test_derivations_and_evidence_are_on_the_page_that_the_ledger_names():
    """A label may move to another page, and its link with it; the ledger must follow."""
    for claim in CLAIMS:
        for link in (claim.derivation, *(item.page for item in claim.evidence)):
            if link:
                page, anchor = place(link)
                assert page.exists(), (claim.id, link)
                assert not anchor or soup(page).find(id=anchor), (claim.id, link)


@built
def test_evidence_has_the_badge_of_the_figure_that_it_names():
    for claim in CLAIMS:
        for item in claim.evidence:
            page, anchor = place(item.page)
            figure = soup(page).find("figure", id=anchor) if anchor else None
            if figure:
                badges = {badge.get_text() for badge in figure.figcaption.find_all(class_="badge")}
                assert item.kind in badges, (claim.id, item.page, badges)


def test_every_named_test_exists_runs_and_passes():
    names = list(dict.fromkeys(name for claim in CLAIMS for name in claim.checks))
    # A run of its own, which must not take itself for a worker of this one.
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names],
        cwd=ROOT, env=clean, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    summary = done.stdout.strip().splitlines()[-1]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", summary)}
    assert set(counts) == {"passed"}, summary  # none skipped, failed, or expected to fail
    assert counts["passed"] >= len(names)
