"""The pages beside the book: the door that leads into it, old addresses, one for those that never were, robots.txt."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from sphinx.application import Sphinx

__all__ = ["write"]

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
{head}
<style>body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 4rem auto; padding: 0 1rem; }}</style>
</head>
<body>
<main>
<h1>{heading}</h1>
{body}
</main>
</body>
</html>
"""


MOVED = """<script>location.replace("{target}" + location.hash)</script>
<meta http-equiv="refresh" content="0; url={target}">
<link rel="canonical" href="{base}book/{page}.html">
<meta name="robots" content="noindex">"""


def _redirects(app: Sphinx, out: Path) -> None:
    """Write a page at each address of an earlier edition, which leads to where that page is now."""
    table = Path(app.srcdir, "book", "redirects.toml")
    for old, new in tomllib.loads(table.read_text(encoding="utf-8")).items():
        place, there = (out / "book" / f"{name}.html" for name in (old, new))
        target = os.path.relpath(there, place.parent)
        if not there.exists():
            raise ValueError(f"book/redirects.toml: {old!r} leads to {new!r}, which is no page")
        head = MOVED.format(target=target, base=app.config.html_baseurl, page=new)
        body = f'<p><a href="{target}">To where this page is now</a></p>'
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            PAGE.format(title="Moved", heading="This page has moved", head=head, body=body), encoding="utf-8"
        )


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the pages; links of the one for lost addresses are absolute, for it is shown at any depth."""
    if error is not None or app.builder.format != "html":
        return
    out, title = Path(app.outdir), str(app.config.html_title or app.config.project)
    base = urlsplit(app.config.html_baseurl).path.rstrip("/") + "/"
    head = (
        '<meta http-equiv="refresh" content="0; url=book/index.html">\n'
        f'<link rel="canonical" href="{app.config.html_baseurl}book/index.html">'
    )
    door = PAGE.format(title=title, heading=title, head=head, body='<p><a href="book/index.html">To the book</a></p>')
    places = {"book/index.html": "the front page", "book/planner.html": "the planner", "search.html": "search"}
    links = "".join(f'<li><a href="{base}{page}">{name}</a></li>\n' for page, name in places.items())
    lost = PAGE.format(
        title=f"Not found – {title}",
        heading="This page is not here",
        head='<meta name="robots" content="noindex">',
        body=f"<p>The address may be old, or mistyped. From here it goes on to</p>\n<ul>\n{links}</ul>",
    )
    robots = f"User-agent: *\nAllow: /\nSitemap: {app.config.html_baseurl}sitemap.xml\n"
    for name, text in {"index.html": door, "404.html": lost, "robots.txt": robots}.items():
        (out / name).write_text(text, encoding="utf-8")
    _redirects(app, out)
