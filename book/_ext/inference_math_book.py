"""What the book needs of Sphinx beyond its extensions.

* MathJax and Vega are taken from installed PyPI packages, so that pages load nothing from elsewhere.
* Launch buttons lead to the executed twin (.ipynb) of a chapter; edit links lead to its text.
* The `badge` role names the evidence of a figure; the `formula` directive prints one of the package's,
  `notation-table` and `formula-table` print all of them, `claims-ledger` judges the claims,
  `citation` prints the BibTeX entry.
* Every page carries the book's version and the digest of its data.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.directives.patches import MathDirective
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from inference_math.claims import Claim

EVIDENCE = ("measured", "projected", "simulated", "published", "schematic", "exact")
THEBE = "THEBE_JS_URL"


def prepare(app: Sphinx, config: Config) -> None:
    """Put third-party scripts where `html_static_path` finds them; fill in the footer."""
    vendor = Path(app.outdir).parent / "vendor"
    _mathjax(vendor / "mathjax")
    _vega(vendor / "vega.js")
    config.html_static_path.append(os.path.relpath(vendor, app.confdir))
    config.html_theme_options["extra_footer"] = _footer()


def _mathjax(target: Path) -> None:
    if target.exists():
        return
    files = importlib.metadata.files("sphinx-mathjax-offline") or []
    script = next(Path(str(f.locate())) for f in files if f.name == "tex-chtml-full.js")
    fonts = script.parent / "output" / "chtml" / "fonts" / "woff-v2"
    target.mkdir(parents=True)
    shutil.copy(script, target)
    shutil.copytree(fonts, target / "output" / "chtml" / "fonts" / "woff-v2")


def _vega(target: Path) -> None:
    if target.exists():
        return
    import vl_convert

    # A function call keeps the bundle's names out of the page; `vegaEmbed` is put on `window` by it.
    bundle = vl_convert.javascript_bundle(vl_version="6.4")  # type: ignore[call-arg]  # its stub errs
    target.write_text(f"(function(){{{bundle}}})();", encoding="utf-8")


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
        app.add_js_file("vega.js")
        app.add_js_file("live.js")
    twin = Path("notebooks", *Path(page).parts[1:]).with_suffix(".ipynb")
    if page.startswith("book/") and (Path(app.srcdir) / twin).exists():
        _point_to_twin(context.get("header_buttons", []), page, twin)


def _point_to_twin(buttons: list[dict[str, Any]], page: str, twin: Path) -> None:
    for group in buttons:
        if group.get("label") == "launch-buttons":
            for entry in group["buttons"]:
                entry["url"] = entry["url"].replace(f"{page}.md", twin.as_posix())


def badge(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = None
) -> Any:
    """Role: the evidence badge of a figure, ``{badge}`measured` ``."""
    if text not in EVIDENCE:
        message = inliner.reporter.error(f"badge {text!r} is none of {', '.join(EVIDENCE)}", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    return [nodes.inline(rawtext, text, classes=["badge", f"badge-{text}"])], []


class FormulaDirective(MathDirective):
    """Directive: a numbered equation printed from the package, ``{formula} crossover``.

    Its label is the formula's name, so ``{eq}`crossover` `` refers to it. Below stand the claim and the call.
    """

    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        from inference_math import theory
        from inference_math.theory import BOOK

        self.arguments: list[str]
        name = self.arguments[0].strip()
        if name not in theory.CATALOGUE:
            raise self.error(f"no formula {name!r} in the catalogue")
        formula = theory.CATALOGUE[name]
        self.arguments = [formula.latex]
        self.options["label"] = name
        note = nodes.paragraph(classes=["formula-note"])
        own = formula.source == BOOK
        note += nodes.Text(f"{'This book, on claim' if own else 'Claim'} {formula.claim}. In the package: ")
        note += nodes.literal(text=f"theory.{formula.usage}")
        return [*super().run(), note]


class Generated(SphinxDirective):
    """A table that the package writes: a subclass returns it as MyST text."""

    def text(self) -> list[str]:
        """Return the table's lines."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        content = nodes.container(classes=["generated"])
        self.state.nested_parse(StringList(self.text(), source="inference_math"), self.content_offset, content)
        return [content]


class NotationTable(Generated):
    """Directive: every symbol with its unit, meaning and accepted range."""

    def text(self) -> list[str]:
        from inference_math.notation import QUANTITIES

        rows = [f"| ${q.latex}$ | `{q.name}` | {q.meaning} | {q.unit} | {q.accepted} |" for q in QUANTITIES.values()]
        return ["| symbol | in Python | meaning | unit | accepts |", "|---|---|---|---|---|", *rows]


class FormulaTable(Generated):
    """Directive: every formula, with its claim, its source and a link to its derivation."""

    def text(self) -> list[str]:
        from inference_math.theory import CATALOGUE

        lines = []
        for claim in sorted({f.claim for f in CATALOGUE.values()}):
            lines += [f"**{claim}**", ""]
            for f in (f for f in CATALOGUE.values() if f.claim == claim):
                lines += [
                    f"`theory.{f.usage}`", f": {f.meaning[0].upper()}{f.meaning[1:]}. Unit: {f.unit}. "
                    f"Equation {{eq}}`{f.name}`. Source: {f.source}.", "", f"  ${f.latex}$", "",
                ]  # fmt: skip
        return lines


class ClaimsLedger(Generated):
    """Directive: the verdicts at a glance, then a section for each claim with the anchor ``c01`` to ``c37``."""

    CITED: ClassVar[dict[str, str]] = {"A": "hillel2026principles", "B": "hillel2025cpp", "C": "hillel2025sdc"}

    def text(self) -> list[str]:
        from inference_math.claims import VERDICTS, load_claims

        claims = load_claims()
        lines = ["| verdict | number | it means | claims |", "|---|---|---|---|"]
        for verdict, meaning in VERDICTS.items():
            ids = [c.id for c in claims if c.verdict == verdict]
            links = ", ".join(f"{{ref}}`{i} <{i.lower()}>`" for i in ids) or "none"
            lines.append(f"| {self.verdict(verdict)} | {len(ids)} | {meaning} | {links} |")
        lines += ["", "| claim | what it is about | verdict | derived in |", "|---|---|---|---|"]
        for c in claims:
            derived = self.link(c.derivation) if c.derivation else "–"
            lines.append(f"| {{ref}}`{c.id} <{c.id.lower()}>` | {c.title} | {self.verdict(c.verdict)} | {derived} |")
        return lines

    def run(self) -> list[nodes.Node]:
        from inference_math.claims import load_claims

        found = super().run()
        for claim in load_claims():
            title, anchor = f"{claim.id} · {claim.title}", claim.id.lower()
            section = nodes.section("", nodes.title(title, title), ids=[anchor], names=[anchor], classes=["claim"])
            self.state.document.note_explicit_target(section, section)  # so that {ref}`C06 <c06>` leads here
            lines = StringList(self.entry(claim), source="data/claims.toml")
            self.state.nested_parse(lines, self.content_offset, section)
            found.append(section)
        return found

    def entry(self, claim: Claim) -> list[str]:
        """Return the lines of one claim."""
        from inference_math.theory import CATALOGUE

        says = f"{self.verdict(claim.verdict)} {claim.condition}".rstrip()
        lines = [f"{says}.", ""] if claim.condition else [says, ""]
        if claim.quote:
            plain = re.sub(r"([!-/:-@[-`{-~])", r"\\\1", claim.quote)  # no sign of a quote is markup
            lines += [f"> {plain}", "", f"Printed in {self.printed(claim)}.", ""]
        else:
            lines += ["A claim of this book.", ""]
        lines += [f"**As we read it.** {claim.reading}", "", f"**Taken for granted:** {'; '.join(claim.assumptions)}."]
        if claim.corrected:
            lines += ["", f"**As derived.** {claim.corrected}"]
        if claim.derivation:
            page = claim.derivation.partition("#")[0]
            anchor = f", {self.link(claim.derivation)}" if "#" in claim.derivation else ""
            lines += ["", f"**Derived in** [](/{page}.md){anchor}."]
        if claim.formulas:
            formulas = (f"{{eq}}`{name}` `{CATALOGUE[name].usage}`" for name in claim.formulas)
            lines += ["", f"**In the package:** {', '.join(formulas)}."]
        if claim.evidence:
            lines += ["", "**Evidence**", ""]
        lines += [f"* {{badge}}`{e.kind}` {self.link(e.page)}: {e.says}" for e in claim.evidence]
        if claim.checks:
            lines += ["", f"<details><summary>Tests that check it ({len(claim.checks)})</summary>", ""]
            lines += [*(f"* `{test}`" for test in claim.checks), "", "</details>"]
        return lines

    def printed(self, claim: Claim) -> str:
        """Return the sources of a claim with their slides or sections."""
        from inference_math.claims import SEEDS

        cited = {letter: f"{{cite}}`{key}`" for letter, key in self.CITED.items()}
        return "; ".join(f"{cited.get(letter, SEEDS[letter])}, *{place}*" for letter, place in claim.seeds.items())

    @staticmethod
    def verdict(text: str) -> str:
        """Return a verdict as a span: words first, colour second."""
        return f"[{text}]{{.verdict .verdict-{text.replace(' ', '-')}}}"

    @staticmethod
    def link(page: str) -> str:
        """Return the reference to an anchor, numbered where it has a number; to the page where there is none."""
        page, _, anchor = page.partition("#")
        kind, _, name = anchor.partition("-")
        if not anchor:
            return f"[](/{page}.md)"
        if kind == "equation":
            return f"Eq. {{eq}}`{name.replace('-', '_')}`"
        role = {"fig": "numref", "thm": "prf:ref", "cor": "prf:ref"}.get(kind, "ref")
        return f"{{{role}}}`{anchor}`"


class Citation(Generated):
    """Directive: the BibTeX entry of this edition of the book."""

    def text(self) -> list[str]:
        from inference_math import __version__, evidence

        return [
            "```bibtex",
            "@misc{inferencemath,",
            "  author = {{The Inference Math developers}},",
            "  title  = {Inference Math: the mathematics of LLM serving, derived, tested and measured},",
            "  year   = {2026},",
            f"  note   = {{Version {__version__}, data {evidence.digest()}}},",
            f"  url    = {{{self.config.html_theme_options['repository_url']}}}",
            "}",
            "```",
        ]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register everything above."""
    app.add_role("badge", badge)
    app.add_directive("formula", FormulaDirective)
    app.add_directive("notation-table", NotationTable)
    app.add_directive("formula-table", FormulaTable)
    app.add_directive("claims-ledger", ClaimsLedger)
    app.add_directive("citation", Citation)
    app.connect("config-inited", prepare)
    app.connect("html-page-context", finish_page, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": False}
