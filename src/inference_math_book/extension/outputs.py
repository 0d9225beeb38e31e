"""What a page makes of a notebook's outputs: numbered equations and figures, live figures, pictures in its own colours.

The same outputs are what JupyterLab shows; it takes their other forms.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from inference_math.theory.formula import DERIVED
from inference_math_book.explore.live import on_page
from inference_math_book.extension.thumbnails import thumbnail
from inference_math_book.notebook import CAPTION, OURS, VEGA_LITE

__all__ = ["Captioned", "Outputs", "Together", "links_on_page"]

_TYPES = (DERIVED, CAPTION, OURS, VEGA_LITE)
_LINK = re.compile(r"\[([^\]\n]+)\]\(([\w./-]+\.ipynb|@/[\w./-]+\.html)?(#[\w-]+)?\)")
_CODE = re.compile(r"(^```\{code-cell\}.*?^```$)", re.M | re.S)
_INK = ("#000000", "#000", "black")  # what Matplotlib and Vega write with: a page has its own
_PAPER = re.compile(r'<g id="patch_1">.*?</g>|<rect[^>]*fill="white"[^>]*/>', re.S)  # white, behind all


class Outputs:
    """MyST-NB's plugin: which form of an output a page takes, and what becomes of it."""

    mime_priority_overrides: ClassVar[Any] = [
        ("html", "text/latex", 5), *((builder, kind, 1) for builder in ("html", "latex") for kind in _TYPES)
    ]  # fmt: skip

    @staticmethod
    def handle_mime(renderer: Any, data: Any, inline: bool) -> list[nodes.Element] | None:
        """Return the nodes of an output of ours, None of any other."""
        env = renderer.renderer.sphinx_env
        if data.mime_type == DERIVED:
            return _parsed(renderer, f"```{{formula}} {data.content['name']}\n```", data)
        if data.mime_type == CAPTION:
            return _parsed(renderer, _caption(**data.content), data)
        if data.mime_type == OURS:
            return [nodes.raw(text=thumbnail(env, **data.content), format="html", classes=["drawn"])]
        if data.mime_type == VEGA_LITE:
            return [nodes.raw(text=on_page(data.content), format="html", classes=["drawn"])]
        if data.mime_type == "image/svg+xml":
            return [nodes.raw(text=picture(data.content), format="html", classes=["drawn"])]
        if data.mime_type == "text/markdown":  # for MyST-NB to render
            data.content = _linked(data.content, env.config.html_baseurl, env.docname)
        return None


def _parsed(renderer: Any, text: str, data: Any) -> list[nodes.Element]:
    found = nodes.Element()
    with renderer.renderer.current_node_context(found):
        renderer.renderer.nested_render_text(text, data.line or 0)
    children: list[nodes.Element] = list(found.children)
    return children


def _caption(name: str, badge: str, caption: str, csv: str) -> str:
    link = ""
    if csv:
        file = f"{name.removeprefix('fig-')}.csv"
        link = f' <a class="figure-data" download="{file}" href="data:text/csv,{quote(csv)}">numbers</a>'
    return f"::::{{captioned}} {name}\n{{badge}}`{badge}` {caption}{link}\n::::"


def picture(svg: str) -> str:
    """Return a picture as part of a page: ink in the page's colour, no paper, named by its title.

    It says how wide it is when its smallest letters are 11 pixels high (`--legible`): on a telephone it scrolls.
    """
    text = _PAPER.sub("", svg, count=1)
    for ink in _INK:
        text = re.sub(rf'((?:fill|stroke): ?|(?:fill|stroke)="){ink}\b', r"\1currentColor", text)
    alt = re.search(r"<dc:title>(.*?)</dc:title>", text, re.S)
    text = re.sub(r"<metadata>.*?</metadata>|(?<=>)\s+(?=<)", "", text, flags=re.S)
    text = re.sub(r"font-family: '[^;\"]*", "font-family: sans-serif", text)  # ten names of fonts at each word
    label = f' role="img" aria-label="{alt[1]}"' if alt else ' role="img"'
    width = float(re.findall(r'viewBox="0 0 ([\d.]+)', text)[0])
    sizes = [float(size) for size in re.findall(r'font-size(?:: |=")([\d.]+)', text)]
    legible = f"--legible:{11 * width / min(sizes, default=11):.1f}px"
    return f'<div class="drawn" style="{legible}">{text.replace("<svg", f"<svg{label}", 1)}</div>'


class Captioned(SphinxDirective):
    """Directive: the caption of the figure above it, ``{captioned} fig-name``, which gives it its number."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        text = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, text)
        figure, caption = nodes.figure(classes=["captioned"]), nodes.caption()
        for paragraph in text.children:
            caption += paragraph.children
        figure += caption
        figure["names"].append(name)
        self.state.document.note_explicit_target(figure, figure)
        return [figure]


def links_on_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links as a notebook has them into a page's: to notebooks, to the published book, to equations.

    Code stays, for outputs are found by it; what it prints is a page's when it is rendered.
    """
    if re.match(r"book/(\d\d-|index|appendix/)", page):
        parts = _CODE.split(source[0])
        parts[::2] = (_linked(prose, app.config.html_baseurl, page) for prose in parts[::2])
        source[0] = "".join(parts)


def _linked(text: str, base: str, page: str) -> str:
    return _LINK.sub(_on_page, text.replace(f"]({base}book/", f"](@/{'../' * (page.count('/') - 1)}"))


def _on_page(link: re.Match[str]) -> str:
    words, file, place = link[1], (link[2] or "").removeprefix("@/"), link[3] or ""
    if place:  # what the package prints has anchors that Markdown does not know
        return f'<a class="reference internal" href="{file.replace(".ipynb", ".html")}{place}">{words}</a>'
    return f"[{words}]({re.sub(r'[.](ipynb|html)$', '.md', file)})"


class Together(SphinxPostTransform):
    """Put what a caption belongs to into its figure: the pictures before it, or the live one."""

    default_priority = 5  # after MyST-NB has selected the form of each output

    def run(self, **kwargs: Any) -> None:
        for figure in list(self.document.findall(nodes.figure)):
            if "captioned" in figure["classes"]:
                parent = figure.parent
                before = parent[: parent.index(figure)]
                drawn = [one for one in before if "drawn" in getattr(one, "attributes", {}).get("classes", ())]
                for one in drawn:
                    parent.remove(one)
                place = nodes.container("", *drawn, classes=["beside"])
                figure.insert(0, place)
