"""Drop what the book remembers of earlier runs when what stands behind it changed.

The execution cache knows the text of a chapter, not the package that it imports; the read pages know neither the
package nor the book's own extension.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

BUILD = Path("_build")
RUN = ("src/**/*.py", "data/**/*", "requirements.txt")  # what an executed cell depends on
READ = (*RUN, "book/_ext/**/*.py", "book/*.toml", "_config.yml")  # and a page
REMEMBERED = {".jupyter_cache": RUN, ".doctrees": READ, "html/.doctrees": READ}


def digest_of(patterns: Iterable[str]) -> str:
    """Return the SHA-256 over the names and bytes of every file of the patterns."""
    digest = hashlib.sha256()
    for path in sorted(p for pattern in patterns for p in Path().glob(pattern) if p.is_file()):
        if "__pycache__" not in path.parts:
            digest.update(path.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    """Compare with the last build's digests; drop what stands on others."""
    BUILD.mkdir(exist_ok=True)
    for name, patterns in REMEMBERED.items():
        stamp, now = BUILD / f"{name.replace('/', '-')}.sha256", digest_of(patterns)
        if not stamp.exists() or stamp.read_text() != now:
            shutil.rmtree(BUILD / name, ignore_errors=True)
            stamp.write_text(now)


if __name__ == "__main__":
    main()
