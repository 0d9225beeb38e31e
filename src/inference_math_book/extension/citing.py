"""How to cite: one function makes every BibTeX entry, of the book, of a claim and of an equation."""

from __future__ import annotations

import html
import re

from sphinx.config import Config

__all__ = ["bibtex", "folded"]

_SPECIAL = re.compile(r"([#$%&_])")  # what LaTeX takes for a command


def bibtex(config: Config, key: str, title: str, note: str, place: str) -> list[str]:
    """Return the lines of an entry: `note` says what of this edition is cited, `place` is its page and anchor.

    All but the title are empty for the book itself.
    """
    from inference_math import __version__, evidence

    safe = _SPECIAL.sub(r"\\\1", title)
    edition = ", ".join(filter(None, (note, f"Inference Math, version {__version__}", f"data {evidence.digest()}")))
    return [
        f"@misc{{{'-'.join(filter(None, ('inferencemath', key)))},",
        "  author = {{The Inference Math developers}},",
        f"  title = {{{{{safe}}}}},",  # in two braces: styles keep its capitals
        f"  year = {{{config.copyright}}},",
        f"  note = {{{edition}}},",
        f"  url = {{{config.html_baseurl}{place}}}",
        "}",
    ]


def folded(summary: str, entry: list[str]) -> list[str]:
    """Return an entry as a fold of a page. It is one piece of HTML: on paper, where nothing folds, it is not there."""
    first, *rest = map(html.escape, entry)
    start = f'<details class="cite"><summary>{summary}</summary><div class="highlight"><pre>{first}'
    return [start, *rest[:-1], f"{rest[-1]}</pre></div></details>"]
