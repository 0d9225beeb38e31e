"""Everybody can use the pages: axe-core finds no serious violation, in light and in dark."""

from importlib.resources import files

import pytest
from contents import pages_of
from grids import rest_long

pytestmark = pytest.mark.browser
# One page of each kind comes first, the others are long.
PAGES = pages_of(
    "01-what-does-a-token-cost", "planner", "questions", "reference/claims", "reference/formulas", "reference/api"
)
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
# Parts of formulas and signatures are by the thousand and alike on all pages: they are looked at on one page each.
LOOKED_AT = {"math": "book/01-what-does-a-token-cost.html", ".sig": "book/reference/api.html"}
# Rules about colours take nearly all of the time, and colours are the same on most pages.
COLOURS = ["color-contrast", "link-in-text-block"]
TOLD = """found => found.violations.filter(v => v.impact === "serious" || v.impact === "critical")
    .map(v => `${v.impact} ${v.id}: ${v.nodes.slice(0, 4).map(n => n.target.join(" ")).join(" | ")}`)"""
RULES = f"""([off, without]) => axe.run({{include: [["html"]], exclude: without}},
    {{resultTypes: ["violations"], preload: false,
    rules: Object.fromEntries(off.map(rule => [rule, {{enabled: false}}]))}}).then({TOLD})"""
# One element of each look that no page before had: colours and size of its text, all that lies behind it, the text
# around it where it is a link.
NEW = f"""([rules, known]) => {{
  const looks = new Map(), seen = new Set(known);
  for (const e of document.querySelectorAll("body *")) {{
    if (![...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.data.trim())) continue;
    const own = getComputedStyle(e), parts = [own.color, own.fontSize, own.fontWeight];
    for (let b = e; b; b = b.parentElement) {{
      const s = getComputedStyle(b);
      parts.push(s.backgroundColor, s.backgroundImage, s.opacity);
      if (!/^rgba\\(.*, 0\\)$/.test(s.backgroundColor)) break;
    }}
    const link = e.closest("a");
    if (link) parts.push(getComputedStyle(link).textDecorationLine, getComputedStyle(link.parentElement).color);
    const look = parts.join("; ");
    if (!seen.has(look) && !looks.has(look)) looks.set(look, e);
  }}
  const found = looks.size ? axe.run({{include: [...looks.values()]}},
    {{resultTypes: ["violations"], preload: false, runOnly: rules}}).then({TOLD}) : Promise.resolve([]);
  return found.then(violations => [violations, [...looks.keys()]]);
}}"""
FADED = """() => Promise.allSettled(
    document.getAnimations().filter(a => a instanceof CSSTransition).map(a => a.finished)).then(() => null)"""


@pytest.fixture(scope="module")
def known():
    """Looks that were found good on a page before."""
    return set()


def colours(page, known) -> list[str]:
    violations, looks = page.evaluate(NEW, [COLOURS, sorted(known)])
    if not violations:
        known.update(looks)
    return violations


@pytest.mark.parametrize("name", rest_long(PAGES, 6))
def test_axe_finds_no_serious_violation(open_page, known, name):
    page = open_page(name)
    page.add_script_tag(content=AXE)
    without = [[part] for part, looked_at in LOOKED_AT.items() if looked_at != name]
    assert page.evaluate(RULES, [COLOURS, without]) == []
    assert colours(page, known) == []
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.evaluate(FADED)
    assert colours(page, known) == []
