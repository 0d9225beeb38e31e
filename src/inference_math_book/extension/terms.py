"""Terms of the glossary, where a page of the handbook uses them first: links that tell the definition to a pointer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["link_terms"]

GLOSSARY = "book/reference/glossary"
HANDBOOK = "book/handbook/"
# Text inside of these is a name, a link or a heading, or stands elsewhere than in the flow of the text.
ELSEWHERE = (
    nodes.reference, nodes.title, nodes.literal, nodes.caption, nodes.math, nodes.raw, nodes.term, nodes.footnote,
    nodes.table, nodes.figure, nodes.Inline,
)  # fmt: skip


class Term(NamedTuple):
    """A term: where the glossary has it, and what it says of it."""

    anchor: str
    definition: str


def link_terms(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make links of the first of each term in the paragraphs of a page (`doctree-resolved`)."""
    if app.builder.format != "html" or not docname.startswith(HANDBOOK):
        return
    terms = glossary(app)
    pattern = pattern_of(list(terms))
    page, seen = app.builder.get_relative_uri(docname, GLOSSARY), set[str]()
    for paragraph in list(doctree.findall(nodes.paragraph)):
        for text in list(paragraph.findall(nodes.Text)):
            if not any(isinstance(one, ELSEWHERE) for one in ancestors(text)):
                replace(text, pattern, terms, page, seen)


def glossary(app: Sphinx) -> dict[str, Term]:
    """Return the terms by how they are written."""
    found = {}
    for item in app.env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
        definition = next(item.findall(nodes.definition)).astext()
        for term in item.findall(nodes.term):
            found[term.astext()] = Term(term["ids"][0], definition)
    return {term: one for term, one in found.items() if len(term) > 1}


def pattern_of(terms: list[str]) -> re.Pattern[str]:
    """Return what finds a term, the longest first, with an s or without; in capitals as it stands there."""
    ways = (
        f"{re.escape(term)}s?" if term.upper() == term else f"(?i:{re.escape(term)}s?)"
        for term in sorted(terms, key=len, reverse=True)
    )
    return re.compile(rf"(?<![\w-])({'|'.join(ways)})(?![\w-])")


def ancestors(node: nodes.Node) -> list[nodes.Node]:
    """Return what a node lies in."""
    found, at = [], node.parent
    while at is not None:
        found.append(at)
        at = at.parent
    return found


def replace(text: nodes.Text, pattern: re.Pattern[str], terms: dict[str, Term], page: str, seen: set[str]) -> None:
    """Put links into a text, for terms that were not yet seen."""
    said, parts, end = text.astext(), list[nodes.Node](), 0
    by_case = {term.lower(): term for term in terms}
    for match in pattern.finditer(said):
        written = match[0]
        term = by_case.get(written.lower()) or by_case[written.lower().removesuffix("s")]
        if term in seen:
            continue
        seen.add(term)
        where, definition = terms[term]
        link = nodes.reference("", written, internal=True, refuri=f"{page}#{where}", reftitle=definition)
        link["classes"].append("term")
        parts += [nodes.Text(said[end : match.start()]), link]
        end = match.end()
    if parts:
        text.parent.replace(text, [*parts, nodes.Text(said[end:])])
