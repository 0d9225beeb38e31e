"""The command line: one command for each question."""

from __future__ import annotations

from inference_math_planner.cli.commands import main

__all__ = ["main"]
