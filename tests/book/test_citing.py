"""BibTeX entries: they can be read by what reads BibTeX, and lead to what they name."""

import re
from pathlib import Path
from types import SimpleNamespace

import pybtex.database
import pytest
import yaml
from bs4 import BeautifulSoup

from inference_math import __version__, evidence
from inference_math.theory import CATALOGUE
from inference_math_book.claims import load_claims
from inference_math_book.extension.citing import bibtex, folded

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
SETTINGS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
CONFIG = SimpleNamespace(html_baseurl="https://books.example/", copyright="2030")
built = pytest.mark.skipif(not SITE.exists(), reason="no built book: run 'make book'")


def read(text: str) -> dict[str, pybtex.database.Entry]:
    return dict(pybtex.database.parse_string(text, "bibtex").entries.items())


def test_an_entry_names_place_edition_and_data_and_escapes_what_latex_would_take_for_a_command():
    lines = bibtex(CONFIG, "c99", "R&D_KV: 5 % of #1, for $2", "a note", "page.html#c_99")
    ((key, entry),) = read("\n".join(lines)).items()
    assert (key, entry.type) == ("inferencemath-c99", "misc")
    assert entry.fields["title"] == r"{R\&D\_KV: 5 \% of \#1, for \$2}"
    assert entry.fields["note"] == f"a note, Inference Math, version {__version__}, data {evidence.digest()}"
    assert entry.fields["url"] == "https://books.example/page.html#c_99"
    assert entry.fields["year"] == "2030"
    ((key, entry),) = read("\n".join(bibtex(CONFIG, "", "A book", "", ""))).items()
    assert (key, entry.fields["url"]) == ("inferencemath", CONFIG.html_baseurl)
    assert entry.fields["note"].startswith("Inference Math, version")


def test_a_folded_entry_says_the_same():
    lines = bibtex(CONFIG, "c99", "n < 2", "", "p")
    fold = BeautifulSoup("\n".join(folded("Cite", lines)), "html.parser").details
    assert fold.summary.get_text() == "Cite"
    assert fold.pre.get_text().splitlines() == lines


def entries(page: str) -> list[tuple[BeautifulSoup, str, pybtex.database.Entry]]:
    """Return each entry of a built page with its fold and its key."""
    soup = BeautifulSoup((SITE / page).read_text(encoding="utf-8"), "html.parser")
    return [(fold, *one) for fold in soup.select("details.cite") for one in read(fold.pre.get_text()).items()]


@built
@pytest.mark.parametrize(
    ("page", "anchors"),
    [
        ("claims", {claim.id.lower() for claim in load_claims()}),
        ("formulas", {f"formula-{name.replace('_', '-')}" for name in CATALOGUE}),
    ],
)
def test_every_claim_and_every_equation_has_an_entry_that_leads_to_it(page, anchors):
    page = f"book/reference/{page}.html"
    soup = BeautifulSoup((SITE / page).read_text(encoding="utf-8"), "html.parser")
    cited = set()
    for fold, key, entry in entries(page):
        address, _, anchor = entry.fields["url"].partition("#")
        assert address == SETTINGS["html"]["baseurl"] + page
        assert soup.find(id=anchor)
        home = fold.find_parent("section", class_="claim") or fold.find_parent("dd").find_previous("dt").code
        assert home["id"] == anchor
        assert key == f"inferencemath-{anchor.removeprefix('formula-')}"
        assert not re.search(r"(?<!\\)[#$%&_]", entry.fields["title"]), entry.fields["title"]
        assert f"Inference Math, version {__version__}, data {evidence.digest()}" in entry.fields["note"]
        assert entry.fields["year"] == SETTINGS["copyright"]
        cited.add(anchor)
    assert cited == anchors


@built
def test_the_page_on_citing_has_the_book_s_own_entry():
    soup = BeautifulSoup((SITE / "book/reference/citing.html").read_text(encoding="utf-8"), "html.parser")
    ((key, entry),) = read(soup.select_one("div.highlight-bibtex pre").get_text()).items()
    assert (key, entry.fields["url"]) == ("inferencemath", SETTINGS["html"]["baseurl"])
