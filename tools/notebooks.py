"""Re-execute the twins: every chapter's text in book/ becomes an executed notebook in notebooks/.

The text is the source. A twin whose text, package and data are unchanged comes out byte for byte the
same: cell ids are derived from the cells, timings are not recorded.
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections import Counter
from pathlib import Path

import jupytext
import nbformat
import yaml
from nbclient import NotebookClient

BOOK, TWINS = Path("book"), Path("notebooks")
SLOW = 15.0  # seconds; a chapter slower than this should compute less
INSTALL = re.compile(r"""git\+https?://[^\s"]+""")  # a quote ends it, too


def chapters() -> list[Path]:
    """Return the texts that are notebooks: those whose header names a kernel."""
    return sorted(p for p in BOOK.rglob("*.md") if "\nkernelspec:" in p.read_text(encoding="utf-8")[:800])


def twin_of(text: Path) -> Path:
    """Return where the executed twin of `text` lies."""
    return TWINS / text.relative_to(BOOK).with_suffix(".ipynb")


def repository() -> str:
    """Return the address of the repository, from _config.yml."""
    return str(yaml.safe_load(Path("_config.yml").read_text(encoding="utf-8"))["repository"]["url"])


def name_repository(text: Path) -> None:
    """Write the repository's address into the cell that installs the package elsewhere."""
    old = text.read_text(encoding="utf-8")
    new = INSTALL.sub(f"git+{repository()}", old)
    if new != old:
        text.write_text(new, encoding="utf-8")


def give_stable_ids(notebook: nbformat.NotebookNode) -> None:
    """Derive each cell's id from its source, numbered where sources repeat."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        digest = hashlib.sha256(cell.source.encode()).hexdigest()[:10]
        seen[digest] += 1
        cell["id"] = f"{digest}-{seen[digest]}"


def execute(text: Path) -> bool:
    """Execute one chapter and write its twin; tell whether the file changed."""
    name_repository(text)
    notebook = jupytext.read(text)
    give_stable_ids(notebook)
    folder = twin_of(text).parent
    folder.mkdir(parents=True, exist_ok=True)
    NotebookClient(
        notebook,
        record_timing=False,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    notebook.metadata.pop("language_info", None)  # names the Python version, which differs by machine
    nbformat.validate(notebook)
    old = twin_of(text).read_bytes() if twin_of(text).exists() else b""
    nbformat.write(notebook, twin_of(text))  # type: ignore[no-untyped-call]
    return twin_of(text).read_bytes() != old


def main() -> None:
    """Execute the chapters named on the command line, or all."""
    for text in [Path(a) for a in sys.argv[1:]] or chapters():
        start = time.perf_counter()
        changed = execute(text)
        seconds = time.perf_counter() - start
        note = "  slow: aim below 15 s" if seconds > SLOW else ""
        print(f"{twin_of(text)}: {'written' if changed else 'unchanged'}, {seconds:.1f} s{note}")
    known = {twin_of(t) for t in chapters()}
    for orphan in sorted(set(TWINS.rglob("*.ipynb")) - known):
        if ".ipynb_checkpoints" not in orphan.parts:
            print(f"{orphan}: no text in {BOOK}/ any more, removed")
            orphan.unlink()


if __name__ == "__main__":
    main()
