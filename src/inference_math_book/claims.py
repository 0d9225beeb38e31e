"""The claims of the talks: how the book reads each, what it found, and where to check that.

To read the ledger, `data/claims.toml`, is to check it: no claim holds without a derivation and a test.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

from inference_math.evidence import data_dir
from inference_math.evidence.checks import as_one_of
from inference_math.theory import CATALOGUE
from inference_math.theory._talks import A, B, C, D, E

__all__ = [
    "CHANGES", "EVIDENCE", "SEEDS", "VERDICTS", "Answer", "Claim", "Erratum", "Evidence", "load_claims", "load_slides"
]  # fmt: skip

SEEDS: Mapping[str, str] = MappingProxyType({"A": A, "B": B, "C": C, "D": D, "E": E})
VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "holds": "right as printed, under the assumptions of its source",
        "holds if": "right under one more condition, which stands beside the verdict",
        "off by one": "the derivation is sound, the count at its end is one too small; the entry has the right one",
        "ambiguous in transcription": "the text that we have can be read in two ways; the entry says which one holds",
        "refuted": "wrong under its own assumptions; the entry says what is right",
        "answered": "the source asks; the entry says how we read the question, and answers it",
        "derived, not measured": "holds in algebra and in a simulator with the same assumptions; nobody measured it",
        "not checkable": "we have neither a derivation nor data that could decide it",
    }
)
EVIDENCE = (
    "measured on a GPU",
    "measured on a CPU engine",
    "kernels summed",
    "published",
    "simulated",
    "projected",
    "exact",
    "schematic",
)
CHANGES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "ambiguous in transcription": (
            "Ambiguous in transcription",
            "a symbol or a word of the text that we have can be read in two ways",
        ),
        "off by one": ("Off by one", "the count at the end is one too small"),
        "answered": ("Questions, answered", "the source asks, and does not say"),
        "formula": ("Another formula or number", "a term, a factor, a unit, or what is counted"),
        "condition": ("A condition that was not printed", "right as printed where it is kept, and nowhere else"),
        "remark": ("Right, with a remark", "right as printed; what one may read into it is not"),
    }
)
_CORRECTED = (
    "off by one",
    "ambiguous in transcription",
    "refuted",
    "answered",
)  # verdicts that owe the reader what is right
_CHANGED = {"holds": ("remark",), "holds if": ("formula", "condition")}  # what an erratum of a verdict may change
_PLAIN = ("holds", "derived, not measured", "not checkable")  # verdicts that need no erratum
_COUNT, _QUOTED = 60, 25
_TEST = re.compile(r"tests/[\w/]+\.py::test_\w+(\[.+\])?")
_PAGE = re.compile(r"book/[\w/-]+(#[\w-]+)?")


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence: its badge, the page (with the figure's anchor) where it is, and what it says."""

    kind: str
    page: str
    says: str


@dataclass(frozen=True)
class Erratum:
    """What changes (a key of `CHANGES`), as it is printed, as it is derived, and where: each in a line of MyST."""

    change: str
    printed: str
    derived: str
    where: str


@dataclass(frozen=True)
class Answer:
    """What an author of the source says to an entry (MyST), who says it, and when, if that is known."""

    text: str
    who: str
    date: date | None = None


@dataclass(frozen=True)
class Claim:
    """One entry of the ledger; texts are MyST.

    `seeds` maps the letter of a source in `SEEDS` to slides or sections, several with a semicolon between them. The
    book's own claims have neither seeds nor quote. `condition` completes "holds if"; `corrected` is what the
    derivation gives where that differs, and `erratum` says so in a line. `paper` is the claim's equation in the paper
    under review, `answer` is what an author says to the entry.
    """

    id: str
    title: str
    reading: str
    assumptions: tuple[str, ...]
    verdict: str
    seeds: Mapping[str, str] = field(default_factory=dict)
    quote: str = ""
    condition: str = ""
    corrected: str = ""
    erratum: Erratum | None = None
    formulas: tuple[str, ...] = ()
    derivation: str = ""
    checks: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    paper: str = ""
    answer: Answer | None = None

    def slides(self, letter: str) -> tuple[str, ...]:
        """Return the slides or sections of a source that print this claim.

        >>> [claim.slides("C") for claim in load_claims()[:2]]
        [('Prefill Acceleration By KV-Cache Retrieval',), ('Prefill Acceleration By KV-Cache Retrieval',)]
        """
        place = self.seeds.get(letter)
        return tuple(place.split("; ")) if place else ()


_KEYS = tuple(key.name for key in fields(Claim))  # the first five have no default


def load_claims(path: Path | None = None) -> tuple[Claim, ...]:
    """Return the claims of the ledger at `path` (default: that of the package): C01 to C60, then E01 and on.

    The E are this book's own, on what engines have done since the talks.

    Raises
    ------
    TypeError
        For a value of the wrong kind or an empty one, naming claim and key.
    ValueError
        For a ledger that cannot be read or lacks claims, and for what is not accepted, naming claim, key and value.
    """
    path = path or data_dir() / "claims.toml"
    entries = _toml(path).get("claim", [])
    talks = [entry for entry in entries if not str(entry.get("id", "")).startswith("E")]
    if len(talks) != _COUNT:
        raise ValueError(f"{path} must have {_COUNT} tables [[claim]], C01 to C{_COUNT}, not {len(talks)}")
    own = (f"E{number:02}" for number in range(1, len(entries) - _COUNT + 1))
    ids = [*(f"C{number:02}" for number in range(1, _COUNT + 1)), *own]
    return tuple(_claim(expected, entry) for expected, entry in zip(ids, entries, strict=True))


def load_slides(path: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Return the slides or sections that print claims, by the letter of their source and in its order.

    Raises
    ------
    TypeError
        For a list of the wrong kind or an empty one, naming the source.
    ValueError
        For a ledger that cannot be read, and for a slide that a claim names and the list lacks, or the reverse.

    >>> load_slides()["E"]
    ('The Math of the Kitchen', 'There is light at the End of the Tunnel')
    """
    path = path or data_dir() / "claims.toml"
    listed = {
        as_one_of("slides: a source", letter, SEEDS): _texts(f"slides: {letter}", names)
        for letter, names in _filled("slides", _toml(path).get("slides"), dict, "a table").items()
    }
    claims = load_claims(path)
    for letter in SEEDS:
        named = [(claim.id, slide) for claim in claims for slide in claim.slides(letter)]
        for claim, slide in named:
            as_one_of(f"{claim}: a slide of {letter}", slide, listed.get(letter, ()))
        for slide in listed.get(letter, ()):
            as_one_of(f"slides: {letter}", slide, dict.fromkeys(slide for _, slide in named))
    return listed


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _claim(expected: str, entry: Mapping[str, Any]) -> Claim:
    if entry.get("id") != expected:
        raise ValueError(f"the claims must be in order: id must be {expected!r} here, not {entry.get('id')!r}")
    for key in entry:
        as_one_of(f"{expected}: a key", key, _KEYS)
    if missing := [key for key in _KEYS[:5] if key not in entry]:
        raise ValueError(f"{expected}: missing {', '.join(missing)}")
    return _checked(Claim(**{key: _read(f"{expected}: {key}", key, value) for key, value in entry.items()}))


def _read(argument: str, key: str, value: Any) -> Any:
    if key == "seeds":
        pairs = _filled(argument, value, dict, "a table").items()
        return {as_one_of(argument, letter, SEEDS): _filled(argument, place, str, "a text") for letter, place in pairs}
    if key == "evidence":
        return tuple(_evidence(argument, item) for item in _filled(argument, value, list, "a list of tables"))
    if key == "erratum":
        return Erratum(**_table(argument, value, Erratum))
    if key == "answer":
        return Answer(**_table(argument, value, Answer))
    if key in ("assumptions", "formulas", "checks"):
        return _texts(argument, value)
    return _filled(argument, value, str, "a text")


def _texts(argument: str, value: Any) -> tuple[str, ...]:
    return tuple(_filled(argument, text, str, "a text") for text in _filled(argument, value, list, "a list of texts"))


def _filled(argument: str, value: Any, kind: type, words: str) -> Any:
    if not isinstance(value, kind) or not value:
        raise TypeError(f"{argument} must be {words} with something in it, not {value!r:.80}")
    return value


def _evidence(argument: str, item: Any) -> Evidence:
    found = Evidence(**_table(argument, item, Evidence))
    as_one_of(f"{argument}: kind", found.kind, EVIDENCE)
    return found


def _table(argument: str, item: Any, kind: type[Answer | Erratum | Evidence]) -> dict[str, Any]:
    keys = {key.name: key.default is MISSING for key in fields(kind)}  # and whether each must be there
    needed = {key for key, must in keys.items() if must}
    if not isinstance(item, dict) or not needed <= set(item) <= set(keys):
        words = ", ".join(key if must else f"{key} (or not)" for key, must in keys.items())
        raise TypeError(f"{argument}: must be a table with {words}, not {item!r:.80}")
    kinds = {"date": (date, "a date like 2026-11-27")}
    return {key: _filled(f"{argument}: {key}", value, *kinds.get(key, (str, "a text"))) for key, value in item.items()}


def _checked(claim: Claim) -> Claim:
    """Hold the values of an entry against each other and against the catalogue."""
    as_one_of(f"{claim.id}: verdict", claim.verdict, VERDICTS)
    pages, words = [item.page for item in claim.evidence], len(claim.quote.split())
    stated = {name: CATALOGUE[as_one_of(f"{claim.id}: formulas", name, CATALOGUE)].claim for name in claim.formulas}
    strange = [f"{name} states {other}" for name, other in stated.items() if other != claim.id]
    strange_tests = [test for test in claim.checks if not _TEST.fullmatch(test)]
    strange_pages = [page for page in [claim.derivation, *pages] if page and not _PAGE.fullmatch(page)]
    change = claim.erratum.change if claim.erratum else ""
    accepted = _CHANGED.get(claim.verdict, (claim.verdict,))
    lacks = [key for key in ("derivation", "checks") if not getattr(claim, key) and claim.verdict != "not checkable"]
    for wrong, message in (
        (bool(claim.seeds) != bool(claim.quote), "seeds and quote go together; a claim of the book's own has neither"),
        (not claim.seeds and (claim.paper or claim.answer), "paper and answer are about what a source printed"),
        (words > _QUOTED, f"quote must have at most {_QUOTED} words, not {words}"),
        (bool(claim.condition) != (claim.verdict == "holds if"), "condition goes with the verdict 'holds if' alone"),
        (claim.verdict in _CORRECTED and not claim.corrected, f"{claim.verdict!r} needs corrected"),
        (change and change not in accepted, f"erratum: change must be {' or '.join(accepted)}, not {change!r}"),
        (bool(claim.seeds) and claim.verdict not in _PLAIN and not change, f"{claim.verdict!r} needs erratum"),
        (strange, f"formulas must state this claim, but {', '.join(strange)}"),
        (strange_tests, f"checks must be like tests/file.py::test_name, not {', '.join(strange_tests)}"),
        (strange_pages, f"pages must be like book/part/page#anchor, not {', '.join(strange_pages)}"),
        (lacks, f"a claim without evidence cannot say {claim.verdict!r}: it lacks {' and '.join(lacks)}"),
    ):
        if wrong:
            raise ValueError(f"{claim.id}: {message}")
    return claim
