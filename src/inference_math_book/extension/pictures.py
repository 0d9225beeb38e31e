"""Figures without a script: live ones on the page until they are drawn, as before anybody moves a slider; all on paper.

There chapters have their numbers of the web, too.
"""

from __future__ import annotations

import hashlib
import json
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

import vl_convert
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from inference_math_book.explore.stills import RELEASE, png

__all__ = ["OnPaper", "drawn", "with_stills"]

_UNNUMBERED = r"\setcounter{secnumdepth}{-2}"
_SPEC = re.compile(r'<script type="application/json">(.*?)</script>', re.S)
_UNDRAWN = re.compile(
    rf'<div class="live-figure">(?P<before>(?:(?!<script).)*{_SPEC.pattern}<div class="live-view">)<p>.*?</p></div>',
    re.S,
)
_PAPER, _SCREEN = 640, 480  # pixels of what the axes enclose, there at a size that a telephone can show
# Nothing of this is seen: digits finer than a hundredth of a pixel, and what each mark is called.
_UNSEEN = re.compile(r'(?<=\.\d\d)\d+| (?:aria-[a-z]+|role|class)="[^"]*"')
_OWN = Path(__file__).read_bytes() + RELEASE.encode()
_PAPERS = "<style>svg{color:#222}@media(prefers-color-scheme:dark){svg{color:#e6e6e6}}</style>"


def drawn(html: str, width: int = _PAPER) -> bytes | None:
    """Return a figure's picture (PNG), a live one's as it opens, from its HTML; None where that is none."""
    if '<div class="drawn"' in html:
        return vl_convert.svg_to_png(html[html.index("<svg") : html.index("</div>")], scale=2)
    found = _SPEC.search(html) if "live-figure" in html else None
    return png(json.loads(unescape(found[1])), width, scale=2) if found else None


def with_stills(app: Sphinx, body: str, folder: str) -> str:
    """Return a page's HTML with a picture of each of its live figures, which stays until a script has drawn it.

    Pictures are files of `folder`, as the page calls it. Their names are digests of what is drawn, so that a later
    build draws anew only what has changed.
    """
    target = Path(app.outdir, "_static", "live")
    target.mkdir(parents=True, exist_ok=True)

    def one(found: re.Match[str]) -> str:
        spec = json.loads(found[2])
        path = target / f"{hashlib.sha256(_OWN + found[2].encode()).hexdigest()[:16]}.svg"
        if not path.exists():
            path.write_text(still(spec), encoding="utf-8")
        width, height = re.findall(r'(?:width|height)="([\d.]+)"', path.read_text(encoding="utf-8")[:500])[:2]
        bound = sum("bind" in param for param in spec["params"])
        seen = min(bound, spec.get("usermeta", {}).get("shown", bound))
        return (
            f'<div class="live-figure" style="--drawn:{height}px;--controls:{seen}">'
            f'{found["before"]}</div><img class="live-still dark-light" loading="lazy" src="{folder}/{path.name}" '
            f'width="{width}" height="{height}" alt="{escape(spec["description"], quote=True)}">'
        )

    return _UNDRAWN.sub(one, body)


def still(spec: dict[str, Any]) -> str:
    """Return the picture (SVG) of a live figure, in ink for a light or a dark page."""
    svg = vl_convert.vegalite_to_svg(spec | {"width": _SCREEN}, vl_version=RELEASE)
    return _UNSEEN.sub("", svg).replace(">", f">{_PAPERS}", 1)


class OnPaper(SphinxPostTransform):
    """Put pictures in the place of what needs a browser and number chapters as the web does.

    Links to numbers and folded code are left out.
    """

    default_priority = 3  # before MyST-NB selects an output, which would be a figure's text
    builders = ("latex",)

    def run(self, **kwargs: Any) -> None:
        bundles = [n for n in self.document.findall(nodes.container) if n.get("nb_element") == "mime_bundle"]
        for bundle in bundles:
            html = "".join(raw.astext() for raw in bundle.findall(nodes.raw) if "html" in raw["format"])
            if picture := drawn(html):
                bundle.replace_self(self.image(picture))

        for link in [n for n in self.document.findall(nodes.raw) if 'class="figure-data"' in n.astext()]:
            start = link.parent.index(link)
            del link.parent[start : start + 3]  # with its word, and its end
        for cell in [n for n in self.document.findall(nodes.container) if "tag_hide-input" in n["classes"]]:
            for source in [n for n in cell.children if "cell_input" in n["classes"]]:
                cell.remove(source)
        self.document.insert(0, nodes.raw("", _UNNUMBERED, format="latex"))
        for file in self.document.findall(addnodes.start_of_file):
            file.insert(0, nodes.raw("", self.numbering(file["docname"]), format="latex"))

    def numbering(self, page: str) -> str:
        """Return what makes LaTeX number a page's chapter as the web does: with its number, or not at all."""
        number = self.env.toc_secnumbers.get(page, {}).get("")
        if not number:
            return _UNNUMBERED
        return rf"\setcounter{{secnumdepth}}{{2}}\setcounter{{chapter}}{{{number[0] - 1}}}"

    def image(self, picture: bytes) -> nodes.image:
        """Return the image of a picture, saved where the builder finds it."""
        name = f"{hashlib.sha256(picture).hexdigest()[:16]}.png"
        target = Path(self.env.app.outdir).parent / "pictures" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(picture)
        uri = str(target)
        self.env.images.add_file(self.env.docname, uri)
        return nodes.image(uri=uri, candidates={"*": uri}, classes=["drawn"])
