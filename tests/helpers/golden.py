"""Sixty questions and what the command line answers: kept, so that what rebuilds the code moves no number.

`python tests/helpers/golden.py` writes the answers anew. A number that moves is a finding: say which and why.
"""

import contextlib
import io
import json
import lzma
import math
import sys
from pathlib import Path

from inference_math_planner.cli import main

FOLDER = Path(__file__).parents[1] / "golden"
KEPT = FOLDER / "answers.json.xz"


def questions():
    """Return the command lines."""
    return (FOLDER / "questions.txt").read_text("utf-8").splitlines()


def answer(question):
    """Return the exit status and what is printed: of `--json` what it holds."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(question.split())
        except SystemExit as end:  # argparse refuses
            status = end.code
    told = out.getvalue()
    return {"status": status, "out": json.loads(told) if told[:1] in "[{" and told else told, "err": err.getvalue()}


def kept():
    """Return the answers that are kept, by question."""
    return json.loads(lzma.decompress(KEPT.read_bytes()))


def moved(old, new, where=""):
    """Yield where two answers differ: in any word, or in a number by more than a part in 10^7."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key in old and key in new:
                yield from moved(old[key], new[key], f"{where}/{key}")
            else:
                yield f"{where}/{key}", old.get(key, "absent"), new.get(key, "absent")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, pair in enumerate(zip(old, new, strict=True)):
            yield from moved(*pair, f"{where}/{i}")
    elif isinstance(old, float) or isinstance(new, float):
        if not (type(old) in (int, float) and type(new) in (int, float) and alike(old, new)):
            yield where, old, new
    elif old != new:
        yield where, old, new


def alike(old, new):
    """Whether two numbers are the same but for what another processor rounds: 2e-8 with AVX-512, where searches end."""
    return math.isclose(old, new, rel_tol=1e-7, abs_tol=1e-15) or (math.isnan(old) and math.isnan(new))


def write():
    """Write the answers of today, and tell what moved."""
    before = kept() if KEPT.exists() else {}
    now = {question: answer(question) for question in questions()}
    for question in now:
        for where, old, new in moved(before.get(question), now[question]):
            sys.stdout.write(f"{question}\n  {where}: {old!r:.200} -> {new!r:.200}\n")
    KEPT.write_bytes(lzma.compress(json.dumps(now).encode()))


if __name__ == "__main__":
    write()
