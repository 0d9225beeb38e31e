"""Which architecture finishes most requests within an SLA: one unit's numbers, three ways to serve with them.

All slots are always full and the queue of prompts never runs dry, as in `theory`; batches and pools are whole
numbers, and HBM is finite. What a prompt hides beside the weight read of its step is the same for whole prompts, for
chunks and on a unit of its own. Queues before the first token are not counted, for none of the three.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot, inf

import pandas as pd

from inference_math import theory
from inference_math.checks import ANY_POSITIVE, SHARE, as_number, as_one_of, as_whole
from inference_math.perf import search
from inference_math.unit.costs import Costs

__all__ = ["ARCHITECTURES", "as_frame", "compare", "largest_batch"]

ARCHITECTURES = ("aggregated", "chunked", "disaggregated")
_OVERLAPS = ("quadrature", "serial-kv", "full")


def compare(
    numbers: Costs,
    sla_tpot: float,
    sla_ttft: float,
    *,
    units: int = 8,
    quantile: float | None = None,
    overlap: str | None = None,
) -> pd.DataFrame:
    """Return what each architecture does at its best within limits on TPOT and TTFT (seconds).

    Parameters
    ----------
    numbers
        What requests cost; one prompt and output length.
    units
        Inference units of the deployment: disaggregation splits them, the others run the same on each.
    quantile
        Which share of the gaps and of the TTFTs must be within the limits; None: their means. Chunked and
        disaggregated serving keep every step within its limit in either case.
    overlap
        What hides in a step with a prompt or a chunk, as in `simulate.StepCost`: "quadrature", weight read and
        matrices as in H100 kernels; "serial-kv", all of the weight read; "full", all reads [C23, C24]. None: as the
        numbers' own `mixed` says, else "quadrature".

    Returns
    -------
    pandas.DataFrame
        A row for each of `ARCHITECTURES`: rate (requests/s per unit, 0 where none fits), batch (mean decodes of a unit
        that decodes, at most 4,096), chunk (prompt tokens in a step, on a prefill unit where there is one),
        prefill_units, ttft, mean step and mean time between a request's tokens, tpot (s; NaN where none fits).

    Raises
    ------
    ValueError
        For a limit that is not positive, fewer than 2 units, a quantile outside (0, 1], another overlap, and numbers
        of answers of a single token, which have no gaps.
    """
    tpot, ttft = as_number("sla_tpot", sla_tpot, ANY_POSITIVE), as_number("sla_ttft", sla_ttft, ANY_POSITIVE)
    pool = as_whole("units", units, 2)
    share = _share(quantile)
    step = _stepper(numbers, overlap)
    if not numbers.n_out > 1:
        raise ValueError(f"numbers must be of answers of more than one token, not {numbers.n_out}")
    n_in, n_out, capacity, places = _room(numbers)
    return as_frame(
        {
            "aggregated": search.aggregated(step, places, n_out, tpot, ttft, share),
            "chunked": search.chunked(step, places, n_in, n_out, tpot, ttft),
            "disaggregated": search.disaggregated(step, capacity, places, n_in, n_out, tpot, ttft, pool),
        }
    )


def as_frame(rows: Mapping[str, search.Row]) -> pd.DataFrame:
    """Return the rows of `solver` as the table of `compare`."""
    columns = ["rate", "batch", "chunk", "prefill_units", "ttft", "step", "tpot"]
    frame: pd.DataFrame = pd.DataFrame.from_dict(dict(rows), orient="index", columns=columns)
    return frame.rename_axis("architecture").reset_index()


def _share(quantile: float | None) -> float:
    return 0.0 if quantile is None else as_number("quantile", quantile, SHARE)


def _room(numbers: Costs) -> tuple[float, float, float, float]:
    """Return prompt and output length, KV capacity, and the requests that it holds."""
    n_in, n_out, capacity = float(numbers.n_in), float(numbers.n_out), float(numbers.kv_capacity)
    return n_in, n_out, capacity, theory.max_batch_memory(kv_capacity=capacity, n_in=n_in, n_out=n_out)


def _stepper(numbers: Costs, overlap: str | None) -> search.Step:
    """Return the seconds of a step with decodes and prompts; see `simulate.StepCost`, whose overlaps these are."""
    if overlap is None and numbers.mixed is not None:
        return numbers.mixed
    kind = as_one_of("overlap", overlap or "quadrature", _OVERLAPS)
    t_w, one_compute, one_read = float(numbers.t_w), float(numbers.compute), float(numbers.read)

    def step(decodes: float, prompts: float) -> float:
        compute, reads = prompts * one_compute, decodes * one_read
        if kind == "full":
            return max(compute, t_w + reads)
        return (hypot(t_w, compute) if kind == "quadrature" else max(t_w, compute)) + reads

    return step


def largest_batch(
    numbers: Costs, sla_tpot: float = inf, sla_ttft: float = inf, *, quantile: float | None = None
) -> int:
    """Return the largest batch within limits, prefill first; parameters as in `compare`, no limit by default."""
    _, n_out, _, places = _room(numbers)
    return search.largest_within(_stepper(numbers, None), places, n_out, sla_tpot, sla_ttft, _share(quantile))
