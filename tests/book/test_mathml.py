"""Formulas on pages: MathML that a browser reads, in the characters of the font that comes with the page."""

import html
import re
from xml.etree import ElementTree

from grids import each

from inference_math import theory
from inference_math_book.extension.mathml import CHARACTERS, font, mathml


def seen(found: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", found))


@each(sorted(theory.CATALOGUE))
def test_every_formula_of_the_catalogue_is_sound_and_in_the_font(name):
    found = mathml(theory.CATALOGUE[name].latex, block=True)
    assert ElementTree.fromstring(found).get("display") == "block"
    assert set(seen(found)) <= CHARACTERS
    assert "\\" not in seen(found)


def test_words_are_one_upright_identifier_and_signs_stand_as_in_tex():
    found = mathml(r"\Delta P = \max\left(t_{\mathrm{step}}, 0\right)")
    assert "<mi>step</mi>" in found
    assert '<mi mathvariant="normal">&#x00394;</mi>' in found
    assert 'rspace="0">max</mo>' in found


def test_the_latex_stays_for_whoever_copies_it():
    found = mathml(r'a < b \text{ "so"}')
    assert ElementTree.fromstring(found).get("alttext") == r'a < b \text{ "so"}'


def test_the_font_is_small(tmp_path):
    font(tmp_path / "it.woff2")
    assert 40_000 < (tmp_path / "it.woff2").stat().st_size < 100_000
