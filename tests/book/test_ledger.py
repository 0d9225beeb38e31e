"""The page of the claims: its links lead somewhere, its tests pass, and all pages give a claim the same verdict."""

import dataclasses
import datetime
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import jupytext
import pytest
import yaml
from bs4 import BeautifulSoup
from words import FOLDED

from inference_math.theory import CATALOGUE
from inference_math_book.claims import CHANGES, Answer, load_claims
from inference_math_book.extension.ledger import answered

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


HOME = "https://code.example/x"


def test_an_author_s_answer_is_printed_with_its_name_and_date():
    c06 = next(claim for claim in CLAIMS if claim.id == "C06")
    said = dataclasses.replace(c06, answer=Answer("It is so.", "E. Hillel", datetime.date(2026, 12, 1)))
    assert answered(said, HOME) == ["**Author's answer** (E. Hillel, 1 December 2026). It is so."]
    said = dataclasses.replace(c06, answer=Answer("It is so.", "E. Hillel"))
    assert answered(said, HOME) == ["**Author's answer** (E. Hillel). It is so."]


@built
def test_a_claim_without_an_answer_says_where_to_give_one_and_our_own_do_not():
    home = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]
    for claim in CLAIMS:
        links = soup(PAGE).find(id=claim.id.lower()).find_all("a", href=re.compile("/issues/new"))
        due = claim.seeds and not claim.answer
        assert [link["href"] for link in links] == [f"{home}/issues/new?title=Answer%20to%20claim%20{claim.id}"] * bool(
            due
        )


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


DERIVED = re.compile(r"\btheory\.(\w+)\.derived\(")  # `derived` raises where SymPy cannot show it


def test_every_formula_is_derived_once_in_a_cell_in_view_or_says_why_it_is_not():
    texts = [*ROOT.glob("book/[0-9][0-9]-*.md"), *ROOT.glob("book/appendix/*.md")]
    cells = [cell for text in texts for cell in jupytext.read(text).cells if cell.cell_type == "code"]
    seen = [cell.source for cell in cells if not FOLDED & set(cell.metadata.get("tags", ()))]
    given = {name: formula.given for name, formula in CATALOGUE.items() if formula.given}
    assert sorted([*given, *DERIVED.findall("\n".join(seen))]) == sorted(CATALOGUE)
    assert all(re.match("(Definition|Cited): .", reason) for reason in given.values())
    assert len(given) <= 4, "more are derived rather than marked"
    deriving = {path for path in ROOT.glob("book/**/*.md") if DERIVED.search(path.read_text(encoding="utf-8"))}
    assert deriving == set(texts) - {ROOT / "book" / "10-the-talks-plots.md"}, "no page derives out of sight"


VERDICT_OF = {claim.id: claim.verdict for claim in CLAIMS}
PAGES = sorted(path.relative_to(ROOT / "book").as_posix() for path in (ROOT / "book").rglob("*.md"))
NEAR = 120  # characters between a verdict and the claim that it judges
# A verdict in running text, and in the form (C15: off by one). Plain words such as "right" are nobody's verdict.
TOLD = re.compile(
    r"\b(?P<ambiguous_in_transcription>ambiguous in transcription)\b|\b(?P<refuted>refuted)\b"
    r"|\b(?P<off_by_one>off[ -]by[ -]one)\b"
)
LABELLED = re.compile(r"\((C\d\d): (holds if|holds|answered|not checkable)\b")


def strange(text: str) -> list[str]:
    """Return where a text gives a claim another verdict than the ledger does."""
    text = re.sub(r"```\{(?!code-cell).*?```", " ", text, flags=re.S)  # between a claim and its verdict
    text = re.sub(r"\bC\d\d to C\d\d\b", " ", text)  # a range is no claim
    text = " ".join(re.sub(r"```.*?```", "#" * 2 * NEAR, text, flags=re.S).split())
    claims = list(re.finditer(r"\bC\d\d\b", text))
    told = [(one[1], one[2], one.start()) for one in LABELLED.finditer(text)]
    for one in TOLD.finditer(text):
        far = {claim: max(claim.start() - one.end(), one.start() - claim.end()) for claim in claims}
        if far and min(far.values()) <= NEAR:
            told.append((min(far, key=far.__getitem__)[0], one.lastgroup.replace("_", " "), one.start()))
    return [
        f"{claim} {verdict!r}, in the ledger {VERDICT_OF[claim]!r}: {text[max(0, at - 80) : at + 80]}"
        for claim, verdict, at in told if VERDICT_OF[claim] != verdict
    ]  # fmt: skip


@pytest.mark.parametrize("page", [page for page in PAGES if page != "reference/errata.md"])
def test_a_page_gives_a_claim_the_verdict_of_the_ledger(page):
    assert strange((ROOT / "book" / page).read_text(encoding="utf-8")) == []


def test_the_errata_are_what_changes():
    """A verdict that asks for an erratum has one of its kind, which reading the ledger checks; here, what it says."""
    rows = [c.erratum for c in CLAIMS if c.erratum]
    assert {row.change for row in rows} == set(CHANGES)
    for row in rows:
        assert row.printed != row.derived
        assert re.search(r"\{(eq|ref|prf:ref)\}`|\]\(/book/", row.where), row


def test_the_pages_know_how_many_claims_are_the_book_s_own():
    printed = [claim.id for claim in CLAIMS if claim.id.startswith("C")]
    for page in ("claims", "citing"):
        text = (ROOT / "book" / "reference" / f"{page}.md").read_text(encoding="utf-8")
        assert f"to {printed[-1]}" in text
        assert f"E01 to {CLAIMS[-1].id}" in text


def run_pytest(folder, *arguments):
    """Run pytest by itself: it must not take itself for a worker of this run."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)


def test_every_named_test_exists():
    """That each runs and is not skipped, tests/conftest.py sees to; of one case of a test pytest is asked."""
    every = list(dict.fromkeys(name for claim in CLAIMS for name in claim.checks))
    for path, _, test in (name.partition("[")[0].partition("::") for name in every):
        assert f"\ndef {test}(" in (ROOT / path).read_text(encoding="utf-8"), (path, test)
    done = run_pytest(ROOT, "--collect-only", *(name for name in every if "[" in name))
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def test_a_named_test_that_is_skipped_has_failed(tmp_path):
    """With a claim that names it, and without."""
    (tmp_path / "data").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "data" / "claims.toml").write_text('[[claim]]\nchecks = ["tests/test_a.py::test_a"]\n')
    skips = "    pytest.skip('not today')\n"
    (tmp_path / "tests" / "test_a.py").write_text(f"import pytest\ndef test_a():\n{skips}def test_b():\n{skips}")
    done = run_pytest(tmp_path, "--rootdir", tmp_path, "tests")
    assert "1 failed, 1 skipped" in done.stdout, done.stdout
