"""What all charts of Vega-Lite share: how their numbers are printed, and that a page's charts write with its ink."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["EVERYWHERE", "PAGE"]

_INK = "currentColor"  # a page's text is dark on light or light on dark, and may change
_TEXT = {"labelColor": _INK, "titleColor": _INK, "labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": 500}

EVERYWHERE: Mapping[str, Any] = MappingProxyType({"numberFormat": ",.10~r", "axis": {"labelFlush": False}})
"""The configuration of every chart. Numbers are those of `figures.ticks.plain`, and stand under their ticks."""

PAGE: Mapping[str, Any] = MappingProxyType(
    {
        **EVERYWHERE,
        "background": "transparent",
        "axis": EVERYWHERE["axis"]
        | _TEXT
        | {"gridColor": _INK, "gridOpacity": 0.2, "domainColor": _INK, "domainOpacity": 0.6}
        | {"tickColor": _INK, "tickOpacity": 0.6},
        "legend": _TEXT,
        "title": {"color": _INK},
        "text": {"color": _INK},
        "rule": {"color": _INK},
        "view": {"stroke": None},
    }
)
"""That of a chart on a page."""
