"""The colours of all figures, typed here and nowhere else: of Matplotlib, of Vega-Lite, and of style sheets.

What has a role has its colour in every figure. Each colour has a contrast of 3 to 1 at least against a white page and
against a dark one; what stands together is told apart with any colour vision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

__all__ = ["COLOURS", "GREY", "ROLES", "colour_of", "colours_of", "css"]

_BLUE, _VERMILION, _GREEN = "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito's
_VIOLET, _BROWN, _CYAN = "#8A47CC", "#99733D", "#2A8CA0"  # in the place of those that are too light for a white page
GREY = "#7A7A7A"

COLOURS = (_BLUE, _VERMILION, _GREEN, _VIOLET, _BROWN, _CYAN)
"""Of what has no role, in order."""

ROLES: Mapping[str, str] = MappingProxyType(
    {
        "prefill": _BLUE,
        "decode": _GREEN,
        "wait": GREY,
        "bubble": _VERMILION,
        "aggregated": _BROWN,
        "chunked": _CYAN,
        "disaggregated": _VIOLET,
    }
)
"""What a request does, and how engines share prompts and decodes."""

# Other words of figures for a role.
_CALLED = {
    "plain": "aggregated",
    "colocated": "aggregated",
    "both for everything": "aggregated",
    "chunks": "chunked",
    "pools": "disaggregated",
    "prefill | decode": "disaggregated",
    "2 prefill + 1 decode": "disaggregated",
}


def colour_of(name: str) -> str | None:
    """Return the colour of a curve's role, None where it has none.

    >>> colour_of("chunked, serial KV") == ROLES["chunked"]
    True
    >>> colour_of("TTFT")
    """
    called = {**ROLES, **{word: ROLES[role] for word, role in _CALLED.items()}}
    return next((called[word] for word in sorted(called, key=len, reverse=True) if name.startswith(word)), None)


def colours_of(names: Iterable[str]) -> list[str]:
    """Return a colour for each curve of a figure: its role's, or the next one that no role of the figure has.

    Where they run out, they begin again.

    >>> colours_of(["prefill", "e = 3"]) == [ROLES["prefill"], COLOURS[1]]
    True
    """
    roles = [colour_of(name) for name in names]
    free = [one for one in COLOURS if one not in roles] or list(COLOURS)
    places = iter(range(len(roles)))
    return [role or free[next(places) % len(free)] for role in roles]


def css() -> str:
    """Return a style sheet that names the colours of roles, as ``var(--prefill)``."""
    return ":root{" + "".join(f"--{role}:{colour};" for role, colour in ROLES.items()) + "}"
