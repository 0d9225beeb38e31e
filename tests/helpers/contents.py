"""The pages of the book, as its table of contents lists them."""

import re
from pathlib import Path

__all__ = ["pages_of"]

TOC = (Path(__file__).parents[2] / "_toc.yml").read_text(encoding="utf-8")


def pages_of(*kinds: str) -> list[str]:
    """Return the address of every page, beginning with those named."""
    every = [f"{page}.html" for page in re.findall(r"(?:file|root): (\S+)", TOC)]
    return list(dict.fromkeys([*(f"book/{name}.html" for name in kinds), *every]))
