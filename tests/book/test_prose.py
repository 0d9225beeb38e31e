"""Numbers in prose are computed: what is typed with a unit is a set-up, a quote or a definition, and is listed."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = tomllib.loads((Path(__file__).parent / "typed_numbers.toml").read_text(encoding="utf-8"))
REASONS = {"set-up", "quote", "definition", "source"}
HISTORY = "reference/what-moved.md"  # numbers of versions that are gone: nothing computes them any more
PAGES = sorted(path.relative_to(ROOT / "book").as_posix() for path in (ROOT / "book").rglob("*.md"))
PAGES.remove(HISTORY)

# What is not prose, or is numbered by somebody else; exercises invent their own numbers and work them out, and a
# chapter's cells hold what its answer says.
NOT_PROSE = (
    r"\A---\n.*?\n---\n", r"^> \*\*Answer\.\*\* .*?$", r"^## Try it\n.*?(?=^## )",
    r"\{(?P<kind>exercise|solution)-start\}.*?\{(?P=kind)-end\}",
    r"^(?P<fence>[:`]{3,})\{(?:exercise|solution)\}.*?\n(?P=fence)$",
    r"```\{(?:code-cell|formula|eval-rst|math|planner)[^\n]*\n.*?```",
    r"```(?:bash|python|bibtex|text|console|toml|json)\n.*?```",
    r"^\s*:[\w-]+:[^\n]*$", r"^[`:]{3,}[^\n]*$", r"^#+ [^\n]*$", r"\*\*Time:\*\* \d+ minutes",
    r"\{[\w:-]+\}`[^`]*`", r"\$\$.*?\$\$", r"\$[^$\n]+\$", r"`[^`\n]*`", r"(?<=\])\([^)]*\)",
)  # fmt: skip
UNITS = (
    "%|times|ms|µs|s|seconds?|minutes|GB|GiB|TB|PB|MB|kB|Gbit|Gbps|TFLOP|PFLOP|FLOP|dollars|USD|requests/s|tokens/s|x"
)
TYPED = re.compile(rf"(?<![\w.-])\d[\d,.]*\s?(?:(?:{UNITS})(?![\w])|%|×)")


def prose(page: str) -> str:
    """Return a page's prose on one line."""
    text = (ROOT / "book" / page).read_text(encoding="utf-8")
    for pattern in NOT_PROSE:
        text = re.sub(pattern, " # ", text, flags=re.S | re.M)
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES)
def test_typed_numbers_with_units_are_listed_with_their_reason(page):
    text, listed = prose(page), ALLOWED.get(page, {})
    for words in listed:
        assert words in text, f"{page} no longer says {words!r}"
    for words in sorted(listed, key=len, reverse=True):
        text = text.replace(words, " ")
    assert [text[max(0, m.start() - 60) : m.end() + 20] for m in TYPED.finditer(text)] == []


def test_every_reason_is_one_of_a_few():
    assert set(ALLOWED) <= set(PAGES)
    assert {reason for page in ALLOWED.values() for reason in page.values()} <= REASONS
