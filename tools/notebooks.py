"""Re-execute the twins: every chapter's and appendix's text in book/ becomes an executed notebook in notebooks/.

The text is the source. A twin whose text, package and data are unchanged comes out byte for byte the
same: cell ids are derived from the cells, timings are not recorded. made_from.json keeps what each twin was
made from - the modules and tables that its kernel loaded - and a digest of both, so that a build knows which outputs it
can take from there, and an edit makes those twins stale that it may change.

Chapters are the numbered texts of book/ itself, appendices those of book/appendix/. Other pages with cells have their
twins in _build/ alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import jupytext
import nbformat
import yaml
from nbclient import NotebookClient

BOOK, TWINS = Path("book"), Path("notebooks")
PAGES = Path("_build", "pages")  # twins of what readers do not open as notebooks
MADE_FROM = "made_from.json"
CHAPTER = re.compile(r"\d\d-")
RUN = ("src/**/*.py", "data/**/*", "requirements.txt")  # what the outputs of a cell may depend on
ALWAYS = "requirements.txt"
# Run in the kernel, before and after a chapter: which files of the checkout it opened, and which modules it imported.
LISTEN = (
    "import sys; _opened = set(); sys.addaudithook("
    "lambda event, args: _opened.add(args[0]) if event == 'open' and isinstance(args[0], str) else None)"
)
TELL = (
    "import json, os, sys\n"
    "print(json.dumps(sorted({os.path.abspath(path) for path in _opened} | "
    "{module.__file__ for module in list(sys.modules.values()) if getattr(module, '__file__', None)})))"
)
SLOW = 15.0  # seconds; a chapter slower than this should compute less
INSTALL = re.compile(r"https://raw\.githubusercontent\.com/[^/\s]+/[^/\s]+/")


def texts() -> list[Path]:
    """Return the texts with cells: those whose header names a kernel."""
    return sorted(p for p in BOOK.rglob("*.md") if "\nkernelspec:" in p.read_text(encoding="utf-8")[:800])


def is_chapter(text: Path) -> bool:
    """Tell whether a text is one of the ten."""
    return text.parent == BOOK and CHAPTER.match(text.name) is not None


def is_paired(text: Path) -> bool:
    """Tell whether a text is a chapter or an appendix, whose twin readers open."""
    return is_chapter(text) or text.parent == BOOK / "appendix"


def paired() -> list[Path]:
    """Return the texts that are notebooks, too: the chapters, then the appendices."""
    return [text for text in texts() if is_paired(text)]


def twin_of(text: Path) -> Path:
    """Return where the executed twin of `text` lies."""
    return (TWINS if is_paired(text) else PAGES) / text.relative_to(BOOK).with_suffix(".ipynb")


def notes_of(twin: Path) -> Path:
    """Return the file that says from what a twin was made."""
    return (TWINS if twin.is_relative_to(TWINS) else PAGES) / MADE_FROM


def digest_of(patterns: Iterable[str]) -> str:
    """Return the SHA-256 over the names and bytes of every file of the patterns, hidden ones and caches left out."""
    digest = hashlib.sha256()
    for path in sorted(p for pattern in patterns for p in Path().glob(pattern) if p.is_file()):
        if not any(part.startswith((".", "__pycache__")) for part in path.parts):
            digest.update(path.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def stamp_of(twin: Path, behind: Iterable[str]) -> str:
    """Return the digest of a twin's own bytes, for it may be edited or merged, and of the files behind it."""
    return hashlib.sha256(digest_of((ALWAYS, *behind)).encode() + twin.read_bytes()).hexdigest()


def stamps(notes: Path) -> dict[str, dict[str, str]]:
    """Return what was noted when the twins were made, by the twin's path: a digest, and the files behind it."""
    return dict(json.loads(notes.read_text())) if notes.exists() else {}


def stamp(twin: Path, digest: str, behind: Iterable[str]) -> None:
    """Note from what a twin was made; forget twins that are gone."""
    notes = notes_of(twin)
    known = {name: value for name, value in stamps(notes).items() if Path(name).exists()}
    known[twin.as_posix()] = {"digest": digest, "from": " ".join(behind)}
    notes.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def is_fresh(twin: Path) -> bool:
    """Tell whether a twin is as it was made, and made from what is here today."""
    noted = stamps(notes_of(twin)).get(twin.as_posix())
    return noted is not None and twin.exists() and noted["digest"] == stamp_of(twin, noted["from"].split())


def behind(files: Iterable[str]) -> list[str]:
    """Return which of the files belong to the checkout's package, data and texts, relative to it."""
    here, rooms = Path.cwd(), {BOOK.name, *(pattern.split("/")[0] for pattern in RUN)}
    own = (Path(file).relative_to(here) for file in files if Path(file).is_relative_to(here))
    return sorted(p.as_posix() for p in own if p.parts[0] in rooms and p.suffix != ".pyc" and p.is_file())


def repository() -> str:
    """Return the address of the repository, from _config.yml."""
    return str(yaml.safe_load(Path("_config.yml").read_text(encoding="utf-8"))["repository"]["url"])


def name_repository(text: Path) -> None:
    """Write the repository's address into the cell that installs the package elsewhere."""
    old = text.read_text(encoding="utf-8")
    new = INSTALL.sub(repository().replace("github.com", "raw.githubusercontent.com") + "/", old)
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
    """Execute one chapter, write its twin and note from what; tell whether the file changed."""
    changed, digest, files = run(text)
    stamp(twin_of(text), digest, files)
    return changed


def run(text: Path) -> tuple[bool, str, list[str]]:
    """Execute one chapter and write its twin; return whether the file changed, its digest, and the files behind it."""
    begun = time.time()
    name_repository(text)
    notebook = jupytext.read(text)
    give_stable_ids(notebook)
    folder = twin_of(text).parent
    folder.mkdir(parents=True, exist_ok=True)
    notebook.cells.append(nbformat.v4.new_code_cell(TELL))  # type: ignore[no-untyped-call]
    NotebookClient(
        notebook,
        record_timing=False,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=[f"--InteractiveShellApp.exec_lines={[LISTEN]!r}"],
    ).execute()
    files = behind(json.loads(notebook.cells.pop().outputs[0].text))
    notebook.metadata.pop("language_info", None)  # names the Python version, which differs by machine
    nbformat.validate(notebook)
    old = twin_of(text).read_bytes() if twin_of(text).exists() else b""
    nbformat.write(notebook, twin_of(text))  # type: ignore[no-untyped-call]
    edited = any(Path(file).stat().st_mtime > begun for file in files)  # while the chapter ran: its twin is stale
    return twin_of(text).read_bytes() != old, "" if edited else stamp_of(twin_of(text), files), files


def pair(text: Path) -> bool | None:
    """Write a fresh twin's prose anew, its outputs as they are; tell whether the file changed, None if it must run."""
    twin = twin_of(text)
    if not is_fresh(twin):
        return None
    old, new = nbformat.read(twin, as_version=4), jupytext.read(text)  # type: ignore[no-untyped-call]
    ran, cells = ([c for c in notebook.cells if c.cell_type == "code"] for notebook in (old, new))
    if [(c.source, c.metadata) for c in ran] != [(c.source, c.metadata) for c in cells]:
        return None
    for cell, done in zip(cells, ran, strict=True):
        cell.outputs, cell.execution_count = done.outputs, done.execution_count
    give_stable_ids(new)
    before, files = twin.read_bytes(), stamps(notes_of(twin))[twin.as_posix()]["from"].split()
    new.metadata = old.metadata
    nbformat.write(new, twin)  # type: ignore[no-untyped-call]
    stamp(twin, stamp_of(twin, files), files)
    return twin.read_bytes() != before


def timed(text: Path) -> tuple[tuple[bool, str, list[str]], float]:
    """Return what `run` does, and the seconds that it took."""
    start = time.perf_counter()
    return run(text), time.perf_counter() - start


def renew(asked: list[Path]) -> None:
    """Write the twins of texts whose code or what stands behind it has changed, on all processors."""
    paired = {text: pair(text) for text in asked}
    print("".join(f"{twin_of(text)}: written\n" for text, changed in paired.items() if changed), end="")
    execute_all([text for text, changed in paired.items() if changed is None])


def execute_all(asked: list[Path]) -> None:
    """Execute texts on all processors, and say of each whether its twin changed."""
    with ProcessPoolExecutor(min(len(asked), os.cpu_count() or 1) or 1, mp_context=get_context("spawn")) as pool:
        begun = {pool.submit(timed, text): text for text in asked}
        for done in as_completed(begun):
            text, ((changed, digest, files), seconds) = begun[done], done.result()
            stamp(twin_of(text), digest, files)
            note = "  slow: aim below 15 s" if seconds > SLOW else ""
            print(f"{twin_of(text)}: {'written' if changed else 'unchanged'}, {seconds:.1f} s{note}", flush=True)


def main() -> None:
    """Execute the texts named on the command line, or all chapters and appendices that are not fresh."""
    named = [Path(a) for a in sys.argv[1:]]
    if named:
        execute_all(named)
    else:
        renew(paired())
    known = {twin_of(t) for t in paired()}
    for orphan in sorted(set(TWINS.rglob("*.ipynb")) - known):
        if ".ipynb_checkpoints" not in orphan.parts:
            print(f"{orphan}: no text in {BOOK}/ any more, removed")
            orphan.unlink()


if __name__ == "__main__":
    main()
