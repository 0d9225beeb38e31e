"""One letter, one quantity: signs of chapters that are not of the notation have one meaning each, in a table."""

import re
import tomllib
from pathlib import Path

import pytest
import sympy as sp

from inference_math import theory
from inference_math.theory.notation import QUANTITIES
from inference_math_book.explore import plane

BOOK = Path(__file__).parents[2] / "book"
LETTERS = tomllib.loads(Path(__file__).with_name("letters.toml").read_text(encoding="utf-8"))
SYMBOLS = re.compile(r"""sp\.(?:Symbol|symbols)\(\s*["']([^"']+)["']""")
CELL = re.compile(r"^```\{code-cell\}.*?^```", re.M | re.S)
OF_FORMULAS = {"G", r"\theta", "O", "P_g"}  # gains, seconds of a unit for a token, the slides' O(·), the end of ΔP_g
NO_SIGN = (
    r"\\(?:overline|bar|sqrt|frac|mathrm|lvert|rvert|min|max|quad|cdot|in|le|ge|left|right|Delta)\b(?:\{[\w ,]*\})?"
)
SIGN = re.compile(r"(?<![\\A-Za-z{])(?:\\[a-z]+\b|[A-Za-z])(?:_(?:\{[a-z]+\}|[A-Za-z0-9])|(?!_))")


def chapters() -> dict[str, str]:
    return {path.name[:2]: path.read_text(encoding="utf-8") for path in sorted(BOOK.glob("0*.md"))}


def plain(sign: str) -> str:
    return re.sub(r"[ {}]", "", sign)


def printed(name: str) -> str:
    return plain(sp.latex(sp.Symbol(name)))


def used(text: str) -> set[str]:
    """Return the names of the symbols that a chapter's cells define, or take from the map."""
    cells = " ".join(CELL.findall(text))
    names = {name for found in SYMBOLS.findall(cells) for name in found.split()}
    return names | {name for name in ("b_P", "b_S", "b_r", "sigma") if re.search(rf"plane import .*\b{name}\b", cells)}


def unknown(text: str) -> set[str]:
    """Return the letters in a chapter's prose that neither the notation nor the table has."""
    known = {plain(entry.latex) for entry in QUANTITIES.values()} | {printed(name) for name in LETTERS} | OF_FORMULAS
    maths = (re.sub(NO_SIGN, " ", part) for part in re.findall(r"\$([^$\n]+)\$", CELL.sub("", text)))
    return {sign for part in maths for sign in map(plain, SIGN.findall(part))} - known


def test_each_symbol_of_a_chapter_has_one_meaning_in_the_book():
    """The table has it; a chapter that means another thing by a letter takes another letter."""
    names = {chapter: used(text) for chapter, text in chapters().items()}
    assert set.union(*names.values()) == set(LETTERS)
    for name, entry in LETTERS.items():
        assert [chapter for chapter, of in names.items() if name in of] == entry["chapters"], name
    assert len({printed(name) for name in LETTERS}) == len(LETTERS) == len({entry["is"] for entry in LETTERS.values()})


def test_no_symbol_of_a_chapter_prints_as_one_of_the_notation():
    signs = {plain(entry.latex): name for name, entry in QUANTITIES.items()}
    assert {name: signs[printed(name)] for name in LETTERS if printed(name) in signs} == {}


def test_parts_of_formulas_have_the_signs_of_the_table():
    own = {symbol.name for formula in theory.CATALOGUE.values() for symbol in formula.where} - set(QUANTITIES)
    assert own - set(LETTERS) == {"J", "epsilon"}  # which no chapter has
    assert {str(symbol) for symbol in (plane.b_P, plane.b_S, plane.b_r, plane.sigma)} <= set(LETTERS)


@pytest.mark.parametrize("chapter", sorted(chapters()))
def test_prose_has_no_letter_that_is_neither_of_the_notation_nor_of_the_table(chapter):
    assert unknown(chapters()[chapter]) == set()


def test_a_second_meaning_is_found():
    cell = '```{code-cell} ipython3\nm, s = sp.symbols("m s_z", positive=True)\n```'
    assert used(cell) == {"m", "s_z"}
    assert printed("m") in {plain(entry.latex) for entry in QUANTITIES.values()}
    text = r"Let $M$ requests of $N_{\mathrm{in}}$ tokens, $\Delta P$ and $\zeta^2$ share it. Its $\eta$ is $a_z$."
    assert unknown(text) == {"M", r"\eta", "a_z"}
