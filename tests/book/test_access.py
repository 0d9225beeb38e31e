"""Everybody can use the pages: axe-core finds no serious violation, in light and in dark."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
TOC = (Path(__file__).parents[2] / "_toc.yml").read_text(encoding="utf-8")
PAGES = [f"{page}.html" for page in re.findall(r"(?:file|root): (\S+)", TOC)]
RUN = """rules => axe.run(document, {resultTypes: ["violations"], preload: false, ...rules})
    .then(found => found.violations
    .filter(v => v.impact === "serious" || v.impact === "critical")
    .map(v => `${v.impact} ${v.id}: ${v.nodes.slice(0, 4).map(n => n.target.join(" ")).join(" | ")}`))"""

FADED = """() => Promise.allSettled(
    document.getAnimations().filter(a => a instanceof CSSTransition).map(a => a.finished)).then(() => null)"""


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_violation(open_page, name):
    page = open_page(name)
    page.add_script_tag(content=files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    assert page.evaluate(RUN, {}) == []
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.evaluate(FADED)
    assert page.evaluate(RUN, {"runOnly": ["color-contrast"]}) == []
