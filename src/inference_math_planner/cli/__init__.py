"""The command line: one command for each question."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from inference_math import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status.

    0, 2 for bad input; 1 where no architecture meets the SLA, or an engine is not as predicted; 130 after Ctrl-C.
    """
    if (sys.argv[1:] if arguments is None else list(arguments)) == ["--version"]:
        print(f"inference-math {__version__}")  # as `options.parser` has it, which takes longer to load than this
        return 0
    try:
        from inference_math_planner.cli.commands import main as run  # seconds, in which somebody may press it, too

        return run(arguments)
    except KeyboardInterrupt:
        return 130
