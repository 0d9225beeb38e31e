"""A chapter reads in 25 minutes: what a reader sees of it stays below a number of words."""

from __future__ import annotations

import pytest
from words import MOST, chapters, seen, text_of


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_a_chapter_is_short(path):
    assert seen(path) < MOST


def test_what_opens_at_a_click_does_not_count():
    source = "See [this](other.md), {eq}`one`.\n\n:::{dropdown} More\nfive words that are folded\n:::\n\n"
    source += ":::{solution} ex\n:class: dropdown\n\nfolded\n:::\n\n:::{note}\nseen\n:::\n"
    assert text_of(source).split() == ["See", "[this],", "`one`.", "seen"]
