"""Check the book on paper: each equation has the number that it has on the web. Run by `make pdf`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

WEB, PAPER = Path("_build/html/book"), Path("_build/latex/inference-math.aux")
_ON_PAPER = re.compile(r"\\newlabel\{equation:[^}]*:([\w-]+)\}\{\{([\d.]+)\}")
_ON_WEB = re.compile(r'<span class="eqno">\(([\d.]+)\)<a class="headerlink" href="#equation-([\w-]+)"')


def numbers_on_paper(aux: str) -> dict[str, str]:
    """Return the number of each equation by its label, from LaTeX's auxiliary file."""
    return {label.replace("_", "-"): number for label, number in _ON_PAPER.findall(aux)}


def numbers_on_the_web(pages: list[str]) -> dict[str, str]:
    """Return the same from the built pages."""
    return {label: number for page in pages for number, label in _ON_WEB.findall(page)}


def main() -> int:
    """Compare both; print where they differ."""
    paper = numbers_on_paper(PAPER.read_text(encoding="utf-8"))
    web = numbers_on_the_web([page.read_text(encoding="utf-8") for page in WEB.rglob("*.html")])
    differing = [f"{label}: ({web.get(label)}) on the web, ({paper.get(label)}) on paper" for label in sorted(web)]
    differing = [line for line, label in zip(differing, sorted(web), strict=True) if web[label] != paper.get(label)]
    print(*differing, sep="\n") if differing else print(f"{len(web)} equations have the same number on web and paper")
    return 1 if differing or not web else 0


if __name__ == "__main__":
    sys.exit(main())
