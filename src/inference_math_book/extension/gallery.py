"""The gallery of the talks' plots: pictures and numbers taken from the executed twins of the chapters."""

from __future__ import annotations

import base64
import io
import re
import struct
import tomllib
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from docutils.statemachine import StringList
from PIL import Image
from sphinx.util.docutils import SphinxDirective
from vl_convert import svg_to_png

from inference_math_book.explore.live import on_page
from inference_math_book.extension.pictures import drawn
from inference_math_book.notebook import CAPTION, VEGA_LITE

__all__ = ["Gallery"]

_CSV = re.compile(r"base64,([\w+/=]+)")
_COLOURS = 64  # of a picture: lines, their soft edges, text
_BADGE = re.compile(r"\{badge\}`([\w ]+)`")


class Gallery(SphinxDirective):
    """Directive: a section for each plot of `gallery.toml`, with the anchor ``p01`` to ``p20``."""

    def run(self) -> list[nodes.Node]:
        source = Path(self.env.srcdir, "book", "gallery.toml")
        self.env.note_dependency(str(source))
        sections: list[nodes.Node] = []
        for plot in tomllib.loads(source.read_text(encoding="utf-8"))["plot"]:
            title, anchor = f"{plot['id']} · {plot['title']}", plot["id"].lower()
            section = nodes.section("", nodes.title(title, title), ids=[anchor], names=[anchor], classes=["plot"])
            self.state.document.note_explicit_target(section, section)
            lines = StringList(self.entry(plot), source=str(source))
            self.state.nested_parse(lines, self.content_offset, section)
            sections.append(section)
        return sections

    def entry(self, plot: dict[str, Any]) -> list[str]:
        """Return the lines of one plot."""
        (page, figure), *others = plot["figures"]
        cell, after = self.cells(page, figure)
        name = plot["id"].lower()
        shot, caption, alt, numbers_of = told(cell, after)
        size = 'width="{}" height="{}"'.format(*struct.unpack(">II", shot[16:24]))  # a PNG's first chunk says so
        self.save(f"{name}.png", lighter(shot))
        numbers = f"the buttons under {{numref}}`{figure}`"
        if numbers_of:
            self.save(f"{name}.csv", numbers_of)
            numbers = f"<a href='../_static/gallery/{name}.csv' download>{name}.csv</a>"
        badges = " ".join(f"{{badge}}`{kind}`" for kind in dict.fromkeys(_BADGE.findall(caption)))
        alt = escape(alt or plot["title"], quote=True)
        also = "".join(f", {{numref}}`{figure}`" for _, figure in others)
        return [
            f'<img class="plot" loading="lazy" src="../_static/gallery/{name}.png" {size} alt="{alt}">',
            "",
            badges,
            "",
            f"**The slide.** {plot['says']} *({plot['slide']})*",
            "",
            f"**What we find.** {plot['find']}",
            "",
            f"**Where.** {{numref}}`{figure}` in [](/book/{page}.md){also}. **Numbers:** {numbers}.",
        ]

    def cells(self, page: str, figure: str) -> tuple[Any, Any]:
        """Return the twin's cell that draws a figure, and the one after it."""
        twin = Path(self.env.srcdir, "notebooks", page).with_suffix(".ipynb")
        if not twin.exists():  # of a page that is no chapter
            twin = Path(self.env.srcdir, "_build", "pages", page).with_suffix(".ipynb")
        self.env.note_dependency(str(twin))
        cells = nbformat.read(twin, as_version=4).cells  # type: ignore[no-untyped-call]
        for cell, after in zip(cells, [*cells[1:], None], strict=True):
            if figure in (cell.metadata.get("mystnb", {}).get("figure", {}).get("name"), captioned(cell).get("name")):
                return cell, after
        raise self.error(f"no figure {figure!r} in {twin}")

    def save(self, name: str, content: bytes) -> None:
        """Write a file where `html_static_path` finds it."""
        target = Path(self.env.app.outdir).parent / "vendor" / "gallery" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def lighter(shot: bytes) -> bytes:
    """Return a drawing's PNG with few colours, a fifth of its size."""
    found = io.BytesIO()
    drawing = Image.open(io.BytesIO(shot)).convert("RGB")
    drawing.quantize(_COLOURS, dither=Image.Dither.NONE).save(found, "PNG", optimize=True)
    return found.getvalue()


def captioned(cell: Any) -> dict[str, str]:
    """Return what a cell says below its figure; nothing where it has none."""
    for output in cell.get("outputs", ()):
        if CAPTION in output.get("data", {}):
            return dict(output.data[CAPTION])
    return {}


def told(cell: Any, after: Any) -> tuple[bytes, str, str, bytes]:
    """Return a figure's picture (PNG), its caption with its badge, what it shows in words, and its numbers (CSV)."""
    caption = captioned(cell)
    if not caption:
        shown, found = cell.metadata["mystnb"], _CSV.search(html(after))
        numbers = base64.b64decode(found[1]) if found else b""
        return picture(cell), shown["figure"]["caption"], shown.get("image", {}).get("alt", ""), numbers
    first = next(output.data for output in cell.outputs if {VEGA_LITE, "image/svg+xml"} & set(output.get("data", {})))
    shot = (
        drawn(on_page(first[VEGA_LITE])) if VEGA_LITE in first else svg_to_png("".join(first["image/svg+xml"]), scale=2)
    )
    assert shot is not None
    return shot, f"{{badge}}`{caption['badge']}`", "".join(first["text/plain"]), caption["csv"].encode()


def html(cell: Any) -> str:
    """Return the HTML that a cell put out."""
    outputs = cell.get("outputs", []) if cell else []
    return "".join("".join(output.get("data", {}).get("text/html", "")) for output in outputs)


def picture(cell: Any) -> bytes:
    """Return the picture that a cell drew; of a live figure, as it is before anybody moves a slider."""
    for output in cell.outputs:
        if "image/png" in output.get("data", {}):
            return base64.b64decode(output.data["image/png"])
    found = drawn(html(cell))
    if found is None:
        raise ValueError(f"no picture in the cell of {cell.metadata['mystnb']['figure']['name']}")
    return found
