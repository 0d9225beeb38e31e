"""Which architecture finishes most requests within an SLA: one unit's numbers, three ways to serve with them.

It is the planner's decision (`choice`) under a single draw. All slots are always full and the queue of prompts
never runs dry, as in `theory`: rates are those at saturation. Batches and pools are whole numbers, and HBM is finite.
What a prompt hides beside the weight read of its step is the same for whole prompts, for chunks and on a unit of its
own, and the decodes' tokens are in the matrices of every step. Queues before the first token are not counted, for none
of the three.
"""

from __future__ import annotations

import pandas as pd
from msgspec.structs import asdict

from inference_math.evidence.checks import ANY_POSITIVE, SHARE, as_number, as_one_of, as_whole
from inference_math.optimiser import search
from inference_math.optimiser.choice import decide
from inference_math.optimiser.gain_error import CERTAIN
from inference_math.unit.batch import MOST_TOGETHER
from inference_math.unit.costs import WorkloadCosts
from inference_math.unit.overlap import OVERLAPS
from inference_math.unit.problem import prompts_together
from inference_math.unit.types import SearchConstants, StepCosts

__all__ = ["ARCHITECTURES", "compare"]

ARCHITECTURES = tuple(search.ARCHITECTURES)
SURE = dict.fromkeys(ARCHITECTURES, CERTAIN)
_COLUMNS = ["rate", "batch", "decodes", "chunk", "prefill_units", "decode_units", "ttft", "step", "tpot"]


def compare(
    numbers: WorkloadCosts,
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
        Inference units of the deployment at most: disaggregation splits them, the others run the same on each.
    quantile
        Which share of the gaps and of the TTFTs must be within the limits; None: their means. Chunked and
        disaggregated serving keep every step within its limit in either case.
    overlap
        None: the numbers' own step. Else what hides in a step with a prompt or a chunk, as in `simulate.StepCost`:
        "none"; "quadrature", weight read and matrices; "serial-kv", all of the weight read; "full", all reads
        [C23, C24].

    Returns
    -------
    pandas.DataFrame
        A row for each of `ARCHITECTURES`: rate (requests/s per unit, 0 where none fits), batch (the most decodes of a
        unit at once, at most 4,096), decodes (those in flight at that rate), chunk (prompt tokens in a step, on a
        prefill unit where there is one), prefill_units and decode_units, ttft, mean step and time between a request's
        tokens, tpot (s; NaN where none fits).

    Raises
    ------
    ValueError
        For a limit that is not positive, fewer than 2 units, a quantile outside (0, 1], another overlap, and numbers
        of answers of a single token, which have no gaps.

    Examples
    --------
    >>> from inference_math import Unit, Workload
    >>> from inference_math.optimiser.architectures import compare
    >>> unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
    >>> compare(unit.costs(Workload(2200, 170)), 0.040, 1.0).architecture.tolist()
    ['aggregated', 'chunked', 'disaggregated']
    """
    tpot, ttft = as_number("sla_tpot", sla_tpot, ANY_POSITIVE), as_number("sla_ttft", sla_ttft, ANY_POSITIVE)
    pool = as_whole("units", units, 2)
    share = 0.0 if quantile is None else as_number("quantile", quantile, SHARE)
    step = numbers.step if overlap is None else numbers.overlapping(as_one_of("overlap", overlap, OVERLAPS))
    if not numbers.n_out > 1:
        raise ValueError(f"numbers must be of answers of more than one token, not {numbers.n_out}")
    n_in, kv_seqs = float(numbers.n_in), float(numbers.places)
    constants = SearchConstants(
        n_in=n_in, steps=float(numbers.n_out), step=tpot, ttft=ttft, quantile=share, units=pool, sent=numbers.sent,
        kv_seqs=int(kv_seqs), room=min(kv_seqs, MOST_TOGETHER),
        together=prompts_together(float(numbers.kv_capacity), n_in, numbers.groups),
    )  # fmt: skip
    costs = StepCosts(
        t_w=float(numbers.t_w), ttft_1=float(numbers.ttft_1), cache_read=float(numbers.cache_read),
        own=float(numbers.T_decode), load=numbers.load, step_seconds=step, step_with_chunk_each=step, prefill=step,
    )  # fmt: skip
    rows = {name: asdict(each[0]) for name, each in decide([constants] * 2, [[costs]] * 2, SURE).each.items()}
    frame: pd.DataFrame = pd.DataFrame.from_dict(rows, orient="index", columns=_COLUMNS)
    return frame.rename_axis("architecture").reset_index()
