"""Drop what the book remembers of earlier runs when what stands behind it changed, and hand it the twins' outputs.

The execution cache knows the text of a chapter, not the package that it imports; the read pages know not the
package. A text whose twin was made from what is here today need not run again. Pages that are no chapters are executed
here, on all processors, where their twins in _build/ are not fresh.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import jupytext
import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn, JupyterCacheAbstract

from notebooks import RUN, digest_of, execute_all, is_fresh, pair, paired, texts, twin_of

BUILD = Path("_build")
CACHE = BUILD / ".jupyter_cache"  # where jupyter-book looks for it
READ = (*RUN, "book/*.toml", "_config.yml")  # what a page depends on
REMEMBERED = {".jupyter_cache": RUN, ".doctrees": READ, "html/.doctrees": READ}


def drop_outdated() -> None:
    """Compare with the last build's digests; drop what stands on others."""
    BUILD.mkdir(exist_ok=True)
    for name, patterns in REMEMBERED.items():
        stamp, now = BUILD / f"{name.replace('/', '-')}.sha256", digest_of(patterns)
        if not stamp.exists() or stamp.read_text() != now:
            shutil.rmtree(BUILD / name, ignore_errors=True)
            stamp.write_text(now)


def seed(cache: JupyterCacheAbstract) -> None:
    """Give the cache the outputs of every fresh twin; it finds them where a text's cells are still the twin's."""
    for text in texts():
        if is_fresh(twin_of(text)):
            notebook = nbformat.read(twin_of(text), as_version=4)  # type: ignore[no-untyped-call]
            # A twin does not say which Python ran it; an executed chapter does, and is coloured by that.
            notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
            bundle = CacheBundleIn(notebook, str(text.absolute()))
            # Not valid to jupyter-cache: its cells must all have run, ours may be tagged skip-execution.
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def unknown(cache: JupyterCacheAbstract) -> list[Path]:
    """Return the chapters and appendices that the cache has no outputs for."""
    missing = []
    for text in paired():
        try:
            cache.match_cache_notebook(jupytext.read(text))
        except KeyError:
            missing.append(text)
    return missing


def main() -> None:
    """Make the cache what a build may use; execute what it lacks, which takes minutes."""
    drop_outdated()
    missing = [text for text in texts() if text not in paired() and pair(text) is None]
    if missing:
        print(f"Executing {len(missing)} pages. This takes minutes, once.", flush=True)
        execute_all(missing)
    cache = get_cache(CACHE)
    seed(cache)
    if stale := unknown(cache):
        print(f"Executing {len(stale)} of {len(paired())} notebooks, for which notebooks/ has no fresh twin.")


if __name__ == "__main__":
    main()
