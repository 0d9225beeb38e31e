"""The tables of `data/` and their origin (`datapackage`), what arguments may be (`checks`), how numbers are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_math import door

if TYPE_CHECKING:
    from inference_math.evidence.datapackage import Table, data_dir, digest, load, read, tables
else:  # who checks an argument reads no table
    __getattr__ = door(__name__, datapackage="Table data_dir digest load read tables")

__all__ = ["Table", "data_dir", "digest", "load", "read", "tables"]


def __dir__() -> list[str]:
    return __all__
