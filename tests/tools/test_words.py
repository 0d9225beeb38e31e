"""A chapter or an appendix reads in 20 minutes, and its answer can be read aloud."""

from contextlib import chdir
from pathlib import Path

import pytest
from words import ALL, BOX, MOST, answer, seen, text_of

from notebooks import is_chapter, paired, twin_of

ROOT = Path(__file__).parents[2]
with chdir(ROOT):
    NOTEBOOKS = [(ROOT / text, ROOT / twin_of(text)) for text in paired()]
    CHAPTERS = [ROOT / twin_of(text) for text in paired() if is_chapter(text)]


@pytest.mark.parametrize(("text", "twin"), NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_and_so_is_its_answer(text, twin):
    assert seen(twin) <= MOST
    said, numbers = answer(text)
    assert said <= BOX[0]
    assert numbers <= BOX[1]


def test_all_chapters_read_in_four_hours():
    assert sum(map(seen, CHAPTERS)) <= ALL


def test_what_opens_at_a_click_does_not_count():
    source = "See [this](other.md), **it**.\n\n<details><summary>More</summary>\n\nfolded\n\n</details>\n\n## On"
    assert text_of(source).split() == ["See", "[this],", "it.", "On"]


def test_an_answer_is_counted_without_the_names_of_things(tmp_path):
    text = tmp_path / "01-x.md"
    text.write_text("# X\n\n> **Answer.** With 2 H100 and Llama-3-70B it is\n> 1.5 times, or $1 + e$.\n\nAnd 7 more.\n")
    assert answer(text) == (13, 2)
    text.write_text("# X\n\nNo answer.\n")
    with pytest.raises(ValueError, match="has no answer"):
        answer(text)
