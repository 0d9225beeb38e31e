"""Print how many words a reader of each chapter sees: its text, its captions, and the code that is not folded.

    python tools/words.py

What opens at a click (folded code, solutions, notes in a dropdown) does not count, nor does what nobody reads: options,
comments of the source, targets of links.
"""

from __future__ import annotations

import re
from pathlib import Path

import jupytext

FOLDED = {"remove-cell", "remove-input", "hide-input", "hide-cell"}
MOST = 3200  # words of a chapter
# A directive from its fence to the same fence that closes it, which has the class that folds it.
_DROPDOWN = re.compile(
    r"^(?P<fence>:{3,}|`{3,})\{(?:solution|admonition|note|dropdown|prf:proof)\}[^\n]*\n"
    r"(?:(?!(?P=fence)$).*\n)*?(?P=fence)$",
    re.M,
)
_BADGE = r"\{badge\}`[^`]*`"  # a mark, not prose
_UNSEEN = (
    _BADGE,
    r"^\(.+\)=$",
    r"^[:`]{3,}.*$",
    r"^:\w[^\n]*$",
    r"^%.*$",
    r"(?<=\])\([^)]*\)",
    r"\{[\w:-]+\}(?=`)",
    r"^#+ ",
)


def seen(path: Path) -> int:
    """Return the words that a reader of a chapter sees."""
    total = 0
    for cell in jupytext.read(path).cells:
        if cell.cell_type == "markdown":
            total += len(text_of(cell.source).split())
        else:
            caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
            shown = "" if FOLDED & set(cell.metadata.get("tags", [])) else cell.source
            total += len(re.sub(_BADGE, "", f"{caption} {shown}").split())
    return total


def text_of(source: str) -> str:
    """Return what of a text cell is read: without what is folded, and without marks."""
    source = _DROPDOWN.sub(lambda found: "" if "dropdown" in found[0].split("\n\n")[0] else found[0], source)
    for pattern in _UNSEEN:
        source = re.sub(pattern, "", source, flags=re.M)
    return source


def chapters() -> list[Path]:
    """Return the numbered chapters of the book, in its order."""
    names = re.findall(r"- file: (book/\w+/\d\d\w?-[\w-]+)", Path("_toc.yml").read_text(encoding="utf-8"))
    return [Path(f"{name}.md") for name in names]


def main() -> None:
    """Print the table."""
    for path in chapters():
        words = seen(path)
        print(f"{words:6,d}{' !' if words > MOST else '  '} {path.as_posix()}")


if __name__ == "__main__":
    main()
