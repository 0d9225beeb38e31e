"""Formulas as MathML, typeset when the book is built: a page needs no script to show them."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

from docutils import nodes
from fontTools import subset
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

__all__ = ["CHARACTERS", "font", "mathml", "setup"]

# What formulas may consist of: ASCII, Greek, signs, and the italic letters that browsers put for single ones.
_GREEK, _SIGNS = "ΔΛΣΦΨΩαβγδεζηθκλμνξπρστφχψωϕϵϑ", "ℓ∑∏√∞≤≥≠≈∼·×−±∈→⌊⌋⌈⌉∂∗′…⋯|‖‾¯―ℎ"
_ITALIC = (*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C))
CHARACTERS = frozenset([*map(chr, (*range(32, 127), *_ITALIC)), *_GREEK, *_SIGNS])

# One letter a time would be read out letter by letter; a word is one upright identifier.
_LETTERS = re.compile(r'(?:<mi mathvariant="normal">\w</mi>){2,}')
_LETTER = re.compile(r"<mi[^>]*>(\w)</mi>")
_WIDE = 200  # characters of LaTeX
# As TeX does: a function's name stands close to its bracket, capital Greek letters are upright.
_LIKE_TEX = (
    (re.compile(r"<mo>(max|min|ln|log|exp)</mo>"), r'<mo lspace="0.1em" rspace="0">\1</mo>'),
    (re.compile(r"<mover>((?:(?!</?mover>).)*)<mo[^>]*>&#x02015;</mo></mover>"), r'<mrow class="overline">\1</mrow>'),
    (re.compile(r"<mi>(&#x003(?:9[1-9A-F]|A[0-9]);)</mi>"), r'<mi mathvariant="normal">\1</mi>'),
)


def setup(app: Sphinx) -> None:
    """Make MathML what formulas become on a page."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))


def mathml(latex: str, *, block: bool = False) -> str:
    """Return a formula as MathML, with its LaTeX beside it for whoever copies it."""
    found = convert(latex, display="block" if block else "inline")
    found = _LETTERS.sub(lambda run: f"<mi>{''.join(_LETTER.findall(run[0]))}</mi>", found)
    for pattern, like in _LIKE_TEX:
        found = pattern.sub(like, found)
    return found.replace("<math ", f'<math alttext="{_quoted(latex)}" ', 1)


def font(target: Path) -> None:
    """Write the mathematical font, STIX Two Math, with `CHARACTERS` alone: 80 kB instead of 1.5 MB."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    options = subset.Options(flavor="woff2", layout_features=["ssty", "kern", "ccmp", "mark", "mkmk"])
    files = importlib.metadata.files("ziamath") or []  # the package itself is not imported: it does much else
    path = next(str(file.locate()) for file in files if file.name == "STIXTwoMath-Regular.ttf")
    with subset.load_font(path, options) as whole:
        one = subset.Subsetter(options)
        one.populate(text="".join(sorted(CHARACTERS)))
        one.subset(whole)
        subset.save_font(whole, str(target), options)


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _inline(page: HTML5Translator, node: nodes.math) -> None:
    page.body.append(f'<span class="math notranslate nohighlight">{mathml(node.astext())}</span>')
    raise nodes.SkipNode


def _block(page: HTML5Translator, node: nodes.math_block) -> None:
    # What is wider than the text scrolls within itself, and must be reached by keys.
    wide = {"tabindex": "0"} if len(node.astext()) > _WIDE else {}
    page.body.append(page.starttag(node, "div", CLASS="math notranslate nohighlight", **wide))
    if node["number"]:
        page.body.append(f'<span class="eqno">({get_node_equation_number(page, node)})')
        page.add_permalink_ref(node, "Link to this equation")
        page.body.append("</span>")
    page.body.append(mathml(node.astext(), block=True))
    page.body.append("</div>")
    raise nodes.SkipNode
