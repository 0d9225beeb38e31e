"""The published site: the newest edition at the root, and each at an address of its own."""

import os
import subprocess
from zipfile import ZipFile

LIST = "printf 'v0.10.0\\nv0.5.1\\nv0.5.0\\n'"
GH = f'#!/bin/sh\nif [ "$2" = list ]; then {LIST}; else cp "$3.zip" "$7"; fi\n'


def test_the_site_has_every_edition_and_the_newest_at_its_root(root, tmp_path):
    for tag in ("v0.5.0", "v0.5.1", "v0.10.0"):
        with ZipFile(tmp_path / f"{tag}.zip", "w") as book:
            book.writestr("html/book/index.html", tag)
    (tmp_path / "gh").write_text(GH, encoding="utf-8")
    (tmp_path / "gh").chmod(0o755)
    found = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["sh", root / "tools" / "editions.sh"], cwd=tmp_path, env=found, check=True)
    site = {page.relative_to(tmp_path / "site").parts[0]: page.read_text() for page in tmp_path.glob("site/**/*.html")}
    assert site == {"v0.5": "v0.5.1", "v0.10": "v0.10.0", "book": "v0.10.0"}
