"""Pictures of live figures as they open, for wherever nothing draws them: a repository's page, a viewer, paper."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import vl_convert
from PIL import Image

__all__ = ["RELEASE", "lighter", "png"]

RELEASE = "6.4"  # of Vega-Lite, here and on the page
_COLOURS = 64  # of a picture: lines, their soft edges, text


def png(spec: Mapping[str, Any], width: int, scale: float = 1) -> bytes:
    """Return a Vega-Lite specification's picture (PNG) on white, its axes so many pixels wide, `scale` dots a pixel."""
    whole = {**spec, "width": width, "background": "white"}
    return vl_convert.vegalite_to_png(whole, vl_version=RELEASE, scale=scale)


def lighter(shot: bytes) -> bytes:
    """Return a drawing's PNG with few colours, a fifth of its size."""
    found = io.BytesIO()
    drawing = Image.open(io.BytesIO(shot)).convert("RGB")
    drawing.quantize(_COLOURS, dither=Image.Dither.NONE).save(found, "PNG", optimize=True)
    return found.getvalue()
