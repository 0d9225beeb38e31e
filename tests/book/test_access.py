"""Everybody can use the pages: axe-core finds no serious violation, in light and in dark."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
TOC = (Path(__file__).parents[2] / "_toc.yml").read_text(encoding="utf-8")
PAGES = [f"{page}.html" for page in re.findall(r"(?:file|root): (\S+)", TOC)]
RUN = """([context, rules]) => axe.run(context, {resultTypes: ["violations"], preload: false, ...rules})
    .then(found => found.violations
    .filter(v => v.impact === "serious" || v.impact === "critical")
    .map(v => `${v.impact} ${v.id}: ${v.nodes.slice(0, 4).map(n => n.target.join(" ")).join(" | ")}`))"""
# Contrast takes nearly all of the time, most of it on parts of formulas and signatures, which have the colours of the
# text around them or look alike on all pages: these are looked at on one page each.
LOOKED_AT = {"math": "book/prefill/01-cost-of-a-token.html", ".sig": "book/reference/api.html"}
CONTRAST = ["color-contrast"]

FADED = """() => Promise.allSettled(
    document.getAnimations().filter(a => a instanceof CSSTransition).map(a => a.finished)).then(() => null)"""


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_violation(open_page, name):
    page = open_page(name)
    page.add_script_tag(content=files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    everything = [{"include": [["html"]]}, {"rules": {rule: {"enabled": False} for rule in CONTRAST}}]
    assert page.evaluate(RUN, everything) == []
    left_out = [[part] for part, looked_at in LOOKED_AT.items() if looked_at != name]
    contrast = [{"include": [["html"]], "exclude": left_out}, {"runOnly": CONTRAST}]
    assert page.evaluate(RUN, contrast) == []
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.evaluate(FADED)
    assert page.evaluate(RUN, contrast) == []
