"""The file of a reader's own GPU, or a stand-in for who has none yet."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from inference_math import Unit, evidence
from inference_math.calibrate import from_kernels
from inference_math.calibrate.points import Point, points
from inference_math.catalogue import Gpu
from inference_math.unit.operators import Operators

__all__ = ["Own", "read"]


class Own(NamedTuple):
    """A unit, its measured times, and the parts of its mixed steps; `asked` of a stand-in only.

    `times` and `parts` have a row for each point, see `from_kernels.times`; of a file both are all that it has.
    """

    unit: Unit
    times: pd.DataFrame
    parts: pd.DataFrame
    asked: tuple[Point, ...]
    stand_in: bool


def read(path: str | Path, gpu: Gpu | str | None = None) -> Own:
    """Return what the file at `path` says, as `inference-math measure` wrote it; without one the stand-in.

    That is Llama-3-8B in BF16 on one H100, put together from measured operators. `gpu` names a GPU that the file's
    driver does not tell.

    Examples
    --------
    >>> own = read("no-such-file.csv")
    >>> own.stand_in, own.unit.name
    (True, 'llama-3-8b (bf16, KV bf16) on 1 x h100-sxm, vllm')
    """
    if Path(path).exists():
        table = evidence.read(path)
        times = from_kernels.times(table)
        return Own(from_kernels.unit(table, gpu), times, times, (), False)
    unit = Unit.of("llama-3-8b", "h100-sxm")
    asked = points(2**18, 2**13, fp8=False)
    single = [
        p for p in asked if p.what in ("decode", "prefill", "matrices", "attention") and p.prompts <= 1 and not p.cached
    ]
    parts = from_kernels.composed(Operators(unit.model), single)  # with the chunks of mixed steps
    times = parts[(parts.tokens & (parts.tokens - 1)) == 0].reset_index(drop=True)
    return Own(unit, times, parts, asked, True)
