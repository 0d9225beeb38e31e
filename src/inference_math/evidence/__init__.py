"""The tables of `data/`: read, checked against `datapackage.json`, and handed out with their origin."""

from __future__ import annotations

from inference_math.evidence.datapackage import Table, data_dir, digest, load, read, tables

__all__ = ["Table", "data_dir", "digest", "load", "read", "tables"]
