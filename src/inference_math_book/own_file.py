"""The file of a reader's own GPU; ours for who has none yet."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from inference_math import Unit, evidence
from inference_math.catalogue import Gpu
from inference_math.evidence import Table
from inference_math_planner.calibrate import from_kernels

__all__ = ["Own", "ours", "read"]

_FIRST = "steps_h100_sxm_llama_3_8b_bf16"


class Own(NamedTuple):
    """A unit and its measured times, a row for each point: see `from_kernels.times`. `ours` where no file was there."""

    unit: Unit
    times: pd.DataFrame
    ours: bool


def read(path: str | Path, gpu: Gpu | str | None = None) -> Own:
    """Return what the file at `path` says, as `inference-math measure` wrote it; without one what we measured.

    That is Llama-3-8B in BF16 on one H100. `gpu` names a GPU that the file's driver does not tell.

    Examples
    --------
    >>> own = read("no-such-file.csv")
    >>> own.ours, own.unit.name
    (True, 'llama-3-8b (bf16, KV bf16) on 1 x h100-sxm, vllm')
    """
    if Path(path).exists():
        return _of(evidence.read(path), gpu, ours=False)
    return _of(evidence.load(_FIRST), None, ours=True)


def ours() -> list[Own]:
    """Return every measurement of ours: the tables `steps_*` of the data.

    Examples
    --------
    >>> sorted({own.unit.gpu.name for own in ours()})
    ['h100-sxm', 'h200-sxm']
    """
    return [_of(evidence.load(name), None, ours=True) for name in evidence.tables() if name.startswith("steps_")]


def _of(table: Table, gpu: Gpu | str | None, *, ours: bool) -> Own:
    return Own(from_kernels.unit(table, gpu), from_kernels.times(table), ours)
