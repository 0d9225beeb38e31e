"""What is printed from the package: badges, equations, tables of symbols and formulas, the citation."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.directives.patches import MathDirective
from sphinx.util.docutils import SphinxDirective

from inference_math_book.extension.citing import bibtex, folded

__all__ = ["Citation", "FormulaDirective", "FormulaTable", "Generated", "NotationTable", "badge"]


def badge(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = None
) -> Any:
    """Role: the evidence badge of a figure, ``{badge}`measured on a GPU` ``."""
    from inference_math_book.claims import EVIDENCE

    if text not in EVIDENCE:
        message = inliner.reporter.error(f"badge {text!r} is none of {', '.join(EVIDENCE)}", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    return [nodes.inline(rawtext, text, classes=["badge", f"badge-{nodes.make_id(text)}"])], []


@cache
def derived(source: Path) -> dict[str, str]:
    """Return the pages of the chapters and appendices that derive formulas, by the formula's name."""
    texts = [*source.glob("book/[0-9][0-9]-*.md"), *source.glob("book/appendix/*.md")]
    pages = {text.relative_to(source).with_suffix("").as_posix(): text.read_text(encoding="utf-8") for text in texts}
    return {name: page for page, text in pages.items() for name in re.findall(r"theory\.(\w+)\.derived\(", text)}


class FormulaDirective(MathDirective):
    """Directive: an equation printed from the package, ``{formula} crossover``. Below stand the claim and the call.

    It is numbered where it is derived, in a chapter, in an appendix or here. Its label is the formula's name, so
    ``{eq}`crossover` `` refers to it.
    """

    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        from inference_math.theory import BOOK, CATALOGUE

        self.arguments: list[str]
        name = self.arguments[0].strip()
        if name not in CATALOGUE:
            raise self.error(f"no formula {name!r} in the catalogue")
        formula = CATALOGUE[name]
        lines = formula.latex.split(r",\quad ")  # parts with a symbol of their own stand below it
        rows = r"\begin{array}{l} " + r" \\ ".join(lines) + r" \end{array}"
        self.arguments = [rows if len(lines) > 1 else formula.latex]
        if derived(Path(self.env.srcdir)).get(name, self.env.docname) == self.env.docname:
            self.options["label"] = name
        note = nodes.paragraph(classes=["formula-note"])
        own = formula.source == BOOK
        note += nodes.Text(f"{'This book, on claim' if own else 'Claim'} {formula.claim}. In the package: ")
        note += nodes.literal(text=f"{formula.room}.{formula.usage}")
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
        from inference_math.theory.notation import QUANTITIES

        rows = [f"| ${q.latex}$ | `{q.name}` | {q.meaning} | {q.unit} | {q.accepted} |" for q in QUANTITIES.values()]
        return ["| symbol | in Python | meaning | unit | accepts |", "|---|---|---|---|---|", *rows]


class FormulaTable(Generated):
    """Directive: every formula with its claim, source, citation and where it is derived, or why it need not be.

    Each has a permanent anchor here, ``formula-crossover``: chapters move, this page does not.
    """

    PAGE = "book/reference/formulas.html"

    def text(self) -> list[str]:
        from inference_math.theory import CATALOGUE

        lines = []
        for claim in sorted({f.claim for f in CATALOGUE.values()}):
            lines += [f"**{claim}**", ""]
            for f in (f for f in CATALOGUE.values() if f.claim == claim):
                slug = nodes.make_id(f.name)
                cited = (slug, f.meaning.rstrip("."), f"Equation {slug}", f"{self.PAGE}#formula-{slug}")
                page = derived(Path(self.env.srcdir)).get(f.name)
                proof = f"Derived in [](/{page}.md)" if page else f"{f.given}."
                lines += [
                    f"`{f.room}.{f.usage}`{{#formula-{slug}}}",
                    f": {f.meaning} Unit: {f.unit}. Equation {{eq}}`{f.name}`. Source: {f.source}. {proof}",
                    "",
                    f"  ${f.latex}$",
                    "",
                    *(f"  {line}" for line in folded("Cite this equation", bibtex(self.config, *cited))),
                    "",
                ]
        return lines


class Citation(Generated):
    """Directive: the BibTeX entry of this edition of the book."""

    def text(self) -> list[str]:
        return ["```bibtex", *bibtex(self.config, "", self.config.html_title, "", ""), "```"]
