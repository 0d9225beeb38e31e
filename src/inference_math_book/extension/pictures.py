"""The book on paper: live figures as they are before anybody moves a slider, chapters with their numbers of the web."""

from __future__ import annotations

import hashlib
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

__all__ = ["OnPaper", "drawn"]

_UNNUMBERED = r"\setcounter{secnumdepth}{-2}"
_SPEC = re.compile(r'<script type="application/json">(.*?)</script>', re.S)


def drawn(html: str, width: int = 640) -> bytes | None:
    """Return a live figure's picture (PNG), as it opens, from its HTML; None where that is none."""
    import vl_convert

    found = _SPEC.search(html) if "live-figure" in html else None
    if not found:
        return None
    text = {"labelFontSize": 13, "titleFontSize": 13}
    spec: dict[str, Any] = json.loads(unescape(found[1]))
    spec |= {"width": width, "background": "white", "config": {"axis": text, "legend": text}}
    return vl_convert.vegalite_to_png(spec, vl_version="6.4", scale=2)


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
            picture = drawn(html)
            if picture:
                bundle.replace_self(self.image(picture))
            elif "figure-data" in html:
                bundle.parent.remove(bundle)

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
        return nodes.image(uri=uri, candidates={"*": uri})
