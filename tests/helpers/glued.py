"""What chapters glued: the numbers that their prose shows, as their executed twins hold them."""

from pathlib import Path

import nbformat

__all__ = ["glued"]

MIME = "application/papermill.record/text/plain"


def glued(twin: Path) -> dict[str, str]:
    """Return the texts that a twin glued, by key."""
    outputs = [output for cell in nbformat.read(twin, as_version=4).cells for output in cell.get("outputs", ())]
    named = [(output.get("metadata", {}).get("scrapbook", {}).get("name", ""), output) for output in outputs]
    return {name: output["data"][MIME].strip("'") for name, output in named if name}
