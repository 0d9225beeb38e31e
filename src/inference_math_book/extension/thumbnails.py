"""A chapter's figure, small, on another page: its picture is taken from the chapter's executed twin."""

from __future__ import annotations

import io
import struct
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from PIL import Image
from vl_convert import svg_to_png

from inference_math_book.explore.live import on_page
from inference_math_book.extension.pictures import drawn
from inference_math_book.notebook import CAPTION, VEGA_LITE

__all__ = ["thumbnail"]

_WIDTH = 420  # pixels of a live figure: its words stay legible when it is small
_COLOURS = 64  # of a picture: lines, their soft edges, text


def thumbnail(env: Any, chapter: str, figure: str) -> str:
    """Return the HTML of a figure's picture with its badge, which leads to the figure.

    Raises
    ------
    ValueError
        Where the chapter has no such figure.
    """
    twin = Path(env.srcdir, "notebooks", chapter).with_suffix(".ipynb")
    env.note_dependency(str(twin))
    shot, badge, alt = seen(twin, figure)
    width, height = struct.unpack(">II", shot[16:24])  # a PNG's first chunk says so
    name = f"{figure.removeprefix('fig-')}.png"
    target = Path(env.app.outdir).parent / "vendor" / "plots" / name  # where `html_static_path` finds it
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lighter(shot))
    return (
        f'<div class="drawn ours"><a href="{chapter}.html#{figure}">'
        f'<img loading="lazy" src="../_static/plots/{name}" '
        f'width="{width}" height="{height}" alt="{escape(alt, quote=True)}"></a>'
        f'<span class="badge badge-{nodes.make_id(badge)}">{badge}</span></div>'
    )


def seen(twin: Path, figure: str) -> tuple[bytes, str, str]:
    """Return the picture (PNG) of a chapter's figure as it opens, its badge, and what it shows in words."""
    for cell in nbformat.read(twin, as_version=4).cells:  # type: ignore[no-untyped-call]
        bundles = [output.data for output in cell.get("outputs", ()) if "data" in output]
        caption = next((data[CAPTION] for data in bundles if data.get(CAPTION, {}).get("name") == figure), None)
        if caption is None:
            continue
        data = next(data for data in bundles if {VEGA_LITE, "image/svg+xml"} & set(data))
        if VEGA_LITE in data:
            shot = drawn(on_page(data[VEGA_LITE]), width=_WIDTH)
        else:
            shot = svg_to_png("".join(data["image/svg+xml"]), scale=2)
        assert shot is not None
        return shot, caption["badge"], "".join(data["text/plain"])
    raise ValueError(f"no figure {figure!r} in {twin.name}")


def lighter(shot: bytes) -> bytes:
    """Return a drawing's PNG with few colours, a fifth of its size."""
    found = io.BytesIO()
    drawing = Image.open(io.BytesIO(shot)).convert("RGB")
    drawing.quantize(_COLOURS, dither=Image.Dither.NONE).save(found, "PNG", optimize=True)
    return found.getvalue()
