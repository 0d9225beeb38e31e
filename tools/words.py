"""Print how many words a reader of each chapter and appendix sees, and how many words and numbers its answer has.

    python tools/words.py

Text, captions and what cells print count, and the code that is not folded. What opens at a click does not: folded code,
answers to exercises.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

from notebooks import paired, twin_of

FOLDED = {"remove-cell", "remove-input", "hide-input", "hide-cell"}
MOST = 3200  # words of a chapter
ALL = 28_000  # words of all chapters
HANDBOOK = 25_000  # words of the handbook, those of its appendices among them, whose code in view is no prose
BOX = (60, 3)  # words and numbers of an answer
_UNSEEN = (r"<details>.*?</details>", r"(?<=\])\([^)]*\)", r"^[#>*-]+ ", r"(?<!\S)\|[:|-]*(?!\S)", r"[*_`]{1,2}")
_MATHS = r"\$[^$]+\$"
_NUMBER = re.compile(r"\d[\d,.]*")


def seen(twin: Path, *, code: bool = True) -> int:
    """Return the words that a reader of a notebook sees; those of its code, too, unless told otherwise."""
    total, folded = 0, False
    for cell in nbformat.read(twin, as_version=4).cells:  # type: ignore[no-untyped-call]
        if cell.cell_type == "markdown":
            # A fold may begin in one cell and end in another: what is before it and behind it is read.
            source = f"<details>{cell.source}" if folded else cell.source
            folded = source.count("<details>") > source.count("</details>")
            total += len(text_of(f"{source}</details>" if folded else source).split())
            continue
        if folded:
            continue
        if code and not FOLDED & set(cell.metadata.get("tags", [])):
            total += len(cell.source.split())
        for output in cell.outputs:
            total += len(text_of("".join(output.get("data", {}).get("text/markdown", ""))).split())
    return total


def text_of(source: str) -> str:
    """Return what of a text is read: without what is folded, and without marks."""
    for pattern in _UNSEEN:
        source = re.sub(pattern, "", source, flags=re.M | re.S)
    return source


def answer(text: Path) -> tuple[int, int]:
    """Return the words and the numbers of a notebook's answer, the quoted block that begins with it."""
    found = re.search(r"^> \*\*Answer\.\*\* (.*?)\n\n", text.read_text(encoding="utf-8"), re.M | re.S)
    if not found:
        raise ValueError(f"{text} has no answer: a block that begins with '> **Answer.**'")
    said = text_of(found[1].replace("\n> ", " "))
    return len(said.split()), len(_NUMBER.findall(re.sub(rf"{_MATHS}|[A-Z]\w*(?:-[\w.]+)+|[A-Z]+\d+", "", said)))


def main() -> None:
    """Print the table."""
    for text in paired():
        words, (said, numbers) = seen(twin_of(text)), answer(text)
        mark = " !" if words > MOST else "  "
        print(f"{words:6,d}{mark} answer {said:3d} words {numbers} numbers  {text.as_posix()}")


if __name__ == "__main__":
    main()
