"""Scripts of a page, from installed packages and from ours: no page loads anything from elsewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import vl_convert
from sphinx.application import Sphinx
from sphinx.config import Config

from inference_math_book.colours import css
from inference_math_book.explore.stills import RELEASE
from inference_math_book.extension import mathml
from inference_math_book.extension.pictures import with_stills

__all__ = ["finish_page", "lighten", "prepare"]

THEBE = "THEBE_JS_URL"
# What the theme puts on every page: pictures of icons that its font has already, code that runs nowhere here, other
# names than are written on a button or a fold, and the index of the search, which only the page that searches needs.
_ICONS = re.compile(
    r"\s*<script[^>]*scripts/fontawesome\.js[^>]*></script>|\s*<(?:script|link)[^>]*sphinx-thebe[^>]*/?>(?:</script>)?"
    r'|(?<=<summary) aria-label="Toggle hidden content"|(?<=title="Search") aria-label="Search"'
)
_MARGINS = re.compile(r"^[ ]*(?://.*\n)?", re.MULTILINE)  # of a script: indents, and lines of remarks
_SEARCH = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js"></script>')


def prepare(app: Sphinx, config: Config) -> None:
    """Put third-party scripts where `html_static_path` finds them; fill in the footer."""
    vendor = Path(app.outdir).parent / "vendor"
    mathml.font(vendor / "mathematics.woff2")
    _vega(vendor / "vega.js")
    _planner(vendor)
    config.html_static_path.append(os.path.relpath(vendor, app.confdir))
    config.html_theme_options["extra_footer"] = _footer()
    config.ogp_site_url = config.html_baseurl  # the address stands in _config.yml alone


def _vega(target: Path) -> None:
    if target.exists():
        return
    # A function call keeps the bundle's names out of the page; `vegaEmbed` is put on `window` by it.
    bundle = vl_convert.javascript_bundle(vl_version=RELEASE)  # type: ignore[call-arg]  # its stub errs
    target.write_text(f"(function(){{{bundle}}})();", encoding="utf-8")


def _planner(vendor: Path) -> None:
    from inference_math_book.explore import browser

    vendor.mkdir(parents=True, exist_ok=True)
    (vendor / "inference_math.js").write_text(browser.script(), encoding="utf-8")


def _footer() -> str:
    from inference_math import __version__, evidence

    return (
        f"<p class='edition'>Inference Math {__version__}, data {evidence.digest()}. "
        "Text CC BY 4.0, code BSD-3-Clause.</p>"
    )


def finish_page(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Mend what the theme makes of a page built from text, and load scripts where they are used."""
    scripts = context["script_files"]  # changed in place: Sphinx keeps adding to this very list
    scripts[:] = [s for s in scripts if THEBE not in str(getattr(s, "attributes", ""))]
    if 'class="live-figure"' in context.get("body", ""):
        played = '"name": "clock"' in context["body"]
        for script in ("share.js", *(["engine.js"] if played else []), "live.js"):
            app.add_js_file(script, loading_method="defer")
        context["body"] = with_stills(app, context["body"], context["pathto"]("_static/live", resource=True))
    if 'class="table-search"' in context.get("body", ""):
        app.add_js_file("tables.js", loading_method="defer")
    if 'class="claim"' in context.get("body", ""):
        for script in ("share.js", "ledger.js"):
            app.add_js_file(script, loading_method="defer")
    if 'id="planner-form"' in context.get("body", ""):
        context["metatags"] = context.get("metatags", "") + f"<style>{css()}</style>"
        (of,) = re.findall(r'id="planner-form" data-page="(\w+)"', context["body"])
        plan = ("-pictures", "-crowd", "-answer", "")
        parts = {"plan": plan, "sessions": ("-crowd", "-sessions"), "benchmark": ("-bench",)}[of]
        for script in ("inference_math.js", "share.js", *(f"planner{part}.js" for part in ("-form", *parts))):
            app.add_js_file(script, loading_method="defer")
    # Docutils calls the bibliography a list, but not its entries list items.
    context["body"] = context.get("body", "").replace('role="list" class="citation-list"', 'class="citation-list"')
    twin = Path("notebooks", *Path(page).parts[1:]).with_suffix(".ipynb")
    if page.startswith("book/") and (Path(app.srcdir) / twin).exists():
        _point_to_twin(context.get("header_buttons", []), page, twin)
    else:
        buttons = context.get("header_buttons", [])
        buttons[:] = [group for group in buttons if group.get("label") != "launch-buttons"]


def lighten(app: Sphinx, error: Exception | None) -> None:
    """Take from the built pages the scripts that they do not use, two megabytes of each; from ours what nobody runs."""
    if error is not None or app.builder.format != "html":
        return
    for name in ("share.js", *(path.name for path in Path(app.srcdir, "book", "_static").glob("planner*.js"))):
        script = Path(app.outdir, "_static", name)
        script.write_text(_MARGINS.sub("", script.read_text(encoding="utf-8")), encoding="utf-8")
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        light = _ICONS.sub("", text).replace('data-theme="auto"', 'data-theme="light"', 1)  # what no script changes
        if page.name != "search.html":
            light = _SEARCH.sub("", light)
        if light != text:
            page.write_text(light, encoding="utf-8")


def _point_to_twin(buttons: list[dict[str, Any]], page: str, twin: Path) -> None:
    for group in buttons:
        if group.get("label") == "launch-buttons":
            for entry in group["buttons"]:
                entry["url"] = entry["url"].replace(f"{page}.md", twin.as_posix())
