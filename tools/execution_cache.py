"""Drop what the book remembers of earlier runs when the code or the data behind it changed.

The execution cache knows the text of a chapter, not the package it imports.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

BUILD = Path("_build")
STAMP = BUILD / "inputs.sha256"
WATCHED = ("src/**/*.py", "data/**/*", "book/_ext/**/*.py", "requirements.txt", "_config.yml")
REMEMBERED = (".jupyter_cache", ".doctrees", "html/.doctrees")


def inputs_digest() -> str:
    """Return the SHA-256 over the names and bytes of every watched file."""
    digest = hashlib.sha256()
    for path in sorted(p for pattern in WATCHED for p in Path().glob(pattern) if p.is_file()):
        if "__pycache__" not in path.parts:
            digest.update(path.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    """Compare with the last build's digest; drop the caches when they differ."""
    now = inputs_digest()
    if not STAMP.exists() or STAMP.read_text() != now:
        for name in REMEMBERED:
            shutil.rmtree(BUILD / name, ignore_errors=True)
        BUILD.mkdir(exist_ok=True)
        STAMP.write_text(now)


if __name__ == "__main__":
    main()
