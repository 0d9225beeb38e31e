"""The ledger of claims: verdicts at a glance, then a section for each claim."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes

from inference_math_book.extension.citing import bibtex, folded
from inference_math_book.extension.formulas import Generated

if TYPE_CHECKING:
    from inference_math_book.claims import Claim

__all__ = ["ClaimsLedger", "Errata"]


PAGE = "book/reference/claims.html"


class ClaimsLedger(Generated):
    """Directive: the verdicts at a glance, then a section for each claim with the anchor ``c01`` and so on."""

    CITED: ClassVar[dict[str, str]] = {"A": "hillel2026principles", "B": "hillel2025cpp", "C": "hillel2025sdc"}

    def text(self) -> list[str]:
        from inference_math_book.claims import VERDICTS, load_claims

        claims = load_claims()
        lines = ["| verdict | number | it means | claims |", "|---|---|---|---|"]
        for verdict, meaning in VERDICTS.items():
            judged = [c for c in claims if c.verdict == verdict]
            links = ", ".join(map(entry_of, judged)) or "none"
            lines.append(f"| {self.verdict(verdict)} | {len(judged)} | {meaning} | {links} |")
        lines += [
            "",
            "| claim | what it is about | verdict | source | evidence | derived in |",
            "|---|---|---|---|---|---|",
        ]
        for c in claims:
            kinds = " ".join(f"{{badge}}`{kind}`" for kind in dict.fromkeys(e.kind for e in c.evidence))
            row = (
                entry_of(c),
                c.title,
                self.verdict(c.verdict),
                ", ".join(c.seeds) or "this book",
                kinds or "–",
                self.link(c.derivation) if c.derivation else "–",
            )
            lines.append(f"| {' | '.join(row)} |")
        return lines

    def run(self) -> list[nodes.Node]:
        from inference_math_book.claims import load_claims

        found = super().run()
        for claim in load_claims():
            title, anchor = f"{claim.id} · {claim.title}", claim.id.lower()
            section = nodes.section("", nodes.title(title, title), ids=[anchor], names=[anchor], classes=["claim"])
            self.state.document.note_explicit_target(section, section)  # so that {ref}`C06 <c06>` leads here
            section += addnodes.index(entries=[("single", claim.id, anchor, "main", None)])  # and the search for C06
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
            label = "Our answer" if claim.verdict == "answered" else "As derived"
            lines += ["", f"**{label}.** {claim.corrected}"]
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
        lines += ["", *answered(claim, self.config.html_theme_options["repository_url"]), ""]
        key, title = claim.id.lower(), f"Claim {claim.id}: {claim.title}"
        entry = bibtex(self.config, key, title, "ledger of claims", f"{PAGE}#{key}")
        return [*lines, *folded("Cite this claim", entry)]

    def printed(self, claim: Claim) -> str:
        """Return the sources of a claim with their slides or sections."""
        from inference_math_book.claims import SEEDS

        cited = {letter: f"{{cite}}`{key}`" for letter, key in self.CITED.items()}
        return "; ".join(f"{cited.get(letter, SEEDS[letter])}, *{place}*" for letter, place in claim.seeds.items())

    @staticmethod
    def verdict(text: str) -> str:
        """Return a verdict as a span: words first, colour second."""
        return f"[{text}]{{.verdict .verdict-{nodes.make_id(text)}}}"

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


class Errata(Generated):
    """Directive: what changes in the talks, with counts, then a section for each kind of change."""

    def text(self) -> list[str]:
        from inference_math_book.claims import CHANGES

        lines = ["| what changes | claims | |", "|---|---|---|"]
        for change, claims in changed().items():
            title, meaning = CHANGES[change]
            lines.append(f"| **{title}**: {meaning} | {len(claims)} | {', '.join(map(entry_of, claims))} |")
        return lines

    def run(self) -> list[nodes.Node]:
        from inference_math_book.claims import CHANGES

        found = super().run()
        for change, claims in changed().items():
            title, _ = CHANGES[change]
            named = f"{title} ({len(claims)})"
            section = nodes.section("", nodes.title(named, named), ids=[nodes.make_id(title)], names=[named])
            self.state.document.note_implicit_target(section, section)
            lines = ["| claim | as printed | as derived | where |", "|---|---|---|---|"]
            for claim in claims:
                said = claim.erratum
                assert said is not None
                lines.append(f"| {entry_of(claim)} | {said.printed} | {said.derived} | {said.where} |")
            self.state.nested_parse(StringList(lines, source="data/claims.toml"), self.content_offset, section)
            found.append(section)
        return found


def answered(claim: Claim, repository: str) -> list[str]:
    """Return what an author of the source says to an entry, or the link to say it; the book's own claims have none."""
    if claim.answer:
        when = f", {claim.answer.date.day} {claim.answer.date:%B %Y}" if claim.answer.date else ""
        return [f"**Author's answer** ({claim.answer.who}{when}). {claim.answer.text}"]
    new = f"{repository}/issues/new?title=Answer%20to%20claim%20{claim.id}"
    return [f"**Author's answer:** none yet ([Answer]({new}))."] if claim.seeds else []


def entry_of(claim: Claim) -> str:
    """Return the reference to a claim's entry, by its ID."""
    return f"{{ref}}`{claim.id} <{claim.id.lower()}>`"


def changed() -> dict[str, list[Claim]]:
    """Return the claims that have an erratum by what changes, in the order of `CHANGES`."""
    from inference_math_book.claims import CHANGES, load_claims

    found: dict[str, list[Claim]] = {change: [] for change in CHANGES}
    for claim in load_claims():
        if claim.erratum:
            found[claim.erratum.change].append(claim)
    return found
