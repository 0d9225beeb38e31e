"""Derive served points of three more sources, half of whose groups choose and half score: data/measured/served_halves.csv.

    python tools/research/derive_halves.py ...

Which half a group is in was fixed, with its seed, before anything was predicted for a row of it; see `parts`.
"""

from __future__ import annotations

import hashlib
import re

import pandas as pd

SEED = 57  # of `parts`: set before anything was predicted for these rows
GROUP = ["source", "gpu", "model", "weights", "engine"]  # and the engine's generation
SET_UP = ["model", "gpu", "engine", "weights", "tp", "ep", "dp", "drafts", "n_in", "n_out", "users"]
PLACES = {"vllm": 2, "trtllm": 2, "sglang": 3}  # numbers of a version that name a generation: each is out for a month or two


def parts(table: pd.DataFrame, seen: pd.DataFrame | None = None) -> pd.Series[str]:
    """Return the part of each row: "choose", by which terms and widths are chosen, or "score", which is scored once.

    Whole groups of a source, a GPU, a model, a precision, an engine and its generation are in one part, by a hash of
    the group's name: rows that come later move no group. A group with a set-up among the rows `seen`, which were fitted
    or scored before, chooses.
    """
    names = table[GROUP].agg(" ".join, axis=1) + " " + generations(table)
    told = names.map(half)
    if seen is not None:
        known = pd.MultiIndex.from_frame(table[SET_UP]).isin(pd.MultiIndex.from_frame(seen[SET_UP]))
        told[names.isin(names[known])] = "choose"
    return told


def half(name: str) -> str:
    """Return the part of a group of this name."""
    return "score" if hashlib.sha256(f"{SEED} {name}".encode()).digest()[0] % 2 else "choose"


def generations(table: pd.DataFrame) -> pd.Series[str]:
    """Return the generation of the engine of each row: first numbers of its version, or the quarter of a dated run.

    Dated runs seldom state a version, and those of one week have one engine.
    """
    quarters = pd.to_datetime(table["date"]).dt.to_period("Q").astype(str)
    versions = [generation(*row) for row in zip(table["engine"], table["version"].fillna(""), strict=True)]
    return pd.Series(versions, table.index).where(table["date"].isna(), quarters)


def generation(engine: str, version: str) -> str:
    """Return the generation of a version, "unstated" where it is none of a release."""
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    if not numbers:
        return "unstated"
    return ".".join([number or "0" for number in numbers.groups()][: PLACES.get(engine, 3)])
