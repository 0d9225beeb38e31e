"""Re-execute the twins: every chapter's text in book/ becomes an executed notebook in notebooks/.

The text is the source. A twin whose text, package and data are unchanged comes out byte for byte the
same: cell ids are derived from the cells, timings are not recorded. notebooks/made_from.json keeps a digest of each
twin and of what it was made from, so that a build knows which outputs it can take from there.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import jupytext
import nbformat
import yaml
from nbclient import NotebookClient

BOOK, TWINS = Path("book"), Path("notebooks")
MADE_FROM = TWINS / "made_from.json"
RUN = ("src/**/*.py", "data/**/*", "requirements.txt")  # what the outputs of a cell depend on
SLOW = 15.0  # seconds; a chapter slower than this should compute less
INSTALL = re.compile(r"""git\+https?://[^\s"]+""")  # a quote ends it, too


def chapters() -> list[Path]:
    """Return the texts that are notebooks: those whose header names a kernel."""
    return sorted(p for p in BOOK.rglob("*.md") if "\nkernelspec:" in p.read_text(encoding="utf-8")[:800])


def twin_of(text: Path) -> Path:
    """Return where the executed twin of `text` lies."""
    return TWINS / text.relative_to(BOOK).with_suffix(".ipynb")


def digest_of(patterns: Iterable[str]) -> str:
    """Return the SHA-256 over the names and bytes of every file of the patterns, hidden ones and caches left out."""
    digest = hashlib.sha256()
    for path in sorted(p for pattern in patterns for p in Path().glob(pattern) if p.is_file()):
        if not any(part.startswith((".", "__pycache__")) for part in path.parts):
            digest.update(path.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def stamp_of(twin: Path, behind: str) -> str:
    """Return the digest of a twin's own bytes, for it may be edited or merged, and of what stands behind it."""
    return hashlib.sha256(behind.encode() + twin.read_bytes()).hexdigest()


def stamps() -> dict[str, str]:
    """Return what was stamped when the twins were made, by the twin's path."""
    return dict(json.loads(MADE_FROM.read_text())) if MADE_FROM.exists() else {}


def stamp(twin: Path, behind: str) -> None:
    """Note from what a twin was made; forget twins that are gone."""
    known = {name: value for name, value in stamps().items() if Path(name).exists()}
    known[twin.as_posix()] = stamp_of(twin, behind)
    MADE_FROM.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def is_fresh(twin: Path, behind: str) -> bool:
    """Tell whether a twin is as it was made, and made from what is here today, whose digest is `behind`."""
    return twin.exists() and stamps().get(twin.as_posix()) == stamp_of(twin, behind)


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
    behind = digest_of(RUN)  # as it is now: what changes while the chapter runs makes its twin stale
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
    stamp(twin_of(text), behind)
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
