"""A wrong or missing Python is named in one line."""

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tools" / "venv.sh"


def test_no_supported_python_is_one_line_that_says_what_to_do(tmp_path):
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": str(old)}
    done = subprocess.run(
        ["/bin/sh", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Python 3.11, 3.12 or 3.13 is needed" in done.stderr
    assert not (tmp_path / ".venv").exists()
