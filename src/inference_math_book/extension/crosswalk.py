"""The crosswalk: from each slide to the equations, claims, figures and tests that stand behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from inference_math_book.extension.formulas import Generated
from inference_math_book.extension.ledger import ClaimsLedger, entry_of

if TYPE_CHECKING:
    from inference_math_book.claims import Claim

__all__ = ["Crosswalk", "rows"]


HEAD = ("slide", "equation", "paper", "claim", "figure", "test")


class Crosswalk(Generated):
    """Directive: a row for each slide and claim, by talk and in the talk's order."""

    def text(self) -> list[str]:
        from inference_math_book.claims import load_claims, load_slides

        table = [HEAD, *rows(load_claims(), load_slides())]
        return [
            '<div class="table-search" data-label="Show rows with" data-example="c22 chunked">',
            "",
            "```{list-table}",
            ":header-rows: 1",
            ":class: crosswalk",
            ":widths: 16 15 8 19 14 28",
            "",
            *(line for row in table for number, cell in enumerate(row) for line in _cell(cell, first=number == 0)),
            "```",
            "",
            "</div>",
        ]


def rows(claims: Sequence[Claim], slides: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return a row of MyST for each slide of each source and each claim on it."""
    return [
        (
            f"{letter} · {slide}",
            _equations(claim, letter),
            claim.paper,
            f"{entry_of(claim)} {claim.title} {ClaimsLedger.verdict(claim.verdict)}",
            _figures(claim),
            _tests(claim),
        )
        for letter, names in slides.items()
        for slide in names
        for claim in claims
        if slide in claim.slides(letter)
    ]


def _cell(text: str, *, first: bool) -> list[str]:
    """Return the lines of a cell, the first of a row or another."""
    start, *rest = text.split("\n")
    return [f"{'* ' if first else '  '}- {start}".rstrip(), *(f"    {line}".rstrip() for line in rest)]


def _equations(claim: Claim, letter: str) -> str:
    """Return the equations that a source prints, then those of the claim that it does not."""
    from inference_math.theory import CATALOGUE
    from inference_math_book.claims import SEEDS

    printed = [name for name in claim.formulas if SEEDS[letter] in CATALOGUE[name].source.split("; ")]
    others = [name for name in claim.formulas if name not in printed]
    lists = [" ".join(f"{{eq}}`{name}`" for name in names) for names in (printed, others)]
    return "; ".join(part for part in (lists[0], lists[1] and f"not printed: {lists[1]}") if part)


def _figures(claim: Claim) -> str:
    """Return what has an anchor in evidence and derivation, and is no equation: figures, sections, theorems."""
    places = dict.fromkeys(place for place in (*(e.page for e in claim.evidence), claim.derivation) if "#" in place)
    return ", ".join(ClaimsLedger.link(place) for place in places if "#equation-" not in place)


def _tests(claim: Claim) -> str:
    """Return the tests of a claim, folded; on paper, where nothing folds, how many there are."""
    if not claim.checks:
        return ""
    names = "".join(f"<li><code>{test}</code></li>" for test in claim.checks)
    count = len(claim.checks)
    said = f"{count} test{'s' * (count > 1)}"
    return f"<details><summary>\n\n{said}\n\n</summary><ul>{names}</ul></details>"
