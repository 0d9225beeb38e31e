"""A chapter's figure, small, on another page: its picture is taken from the chapter's executed twin."""

from __future__ import annotations

import struct
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from vl_convert import svg_to_png

from inference_math_book.explore.live import on_page
from inference_math_book.explore.stills import lighter
from inference_math_book.extension.pictures import drawn
from inference_math_book.notebook import VEGA_LITE, seen

__all__ = ["thumbnail"]

_WIDTH = 420  # pixels of a live figure: its words stay legible when it is small


def thumbnail(env: Any, chapter: str, figure: str) -> str:
    """Return the HTML of a figure's picture with its badge, which leads to the figure.

    Raises
    ------
    ValueError
        Where the chapter has no such figure.
    """
    twin = Path(env.srcdir, "notebooks", chapter).with_suffix(".ipynb")
    env.note_dependency(str(twin))
    bundles, badge = seen(twin, figure)
    shot, alt = picture(bundles[0]), "".join(bundles[0]["text/plain"])
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


def picture(bundle: dict[str, Any]) -> bytes:
    """Return what an output draws (PNG), as it opens."""
    if VEGA_LITE not in bundle:
        return svg_to_png("".join(bundle["image/svg+xml"]), scale=2)
    shot = drawn(on_page(bundle[VEGA_LITE]), width=_WIDTH)
    assert shot is not None
    return shot
