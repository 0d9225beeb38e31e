"""Which architecture finishes most requests within an SLA: one unit's numbers, three ways to serve with them.

All slots are always full and the queue of prompts never runs dry, as in `theory`; batches and pools are whole
numbers, and HBM is finite. What a prompt hides beside the weight read of its step is the same for whole prompts and
for chunks; a unit of its own pays the weight read for each prompt.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
import pandas as pd

from inference_math import latency, theory
from inference_math.checks import ANY_POSITIVE, SHARE, as_number, as_one_of, as_whole
from inference_math.costs import Costs

__all__ = ["ARCHITECTURES", "compare"]

ARCHITECTURES = ("aggregated", "chunked", "disaggregated")
_MOST = 4096  # decodes in a step
_CHUNKS = 60
_OVERLAPS = ("quadrature", "serial-kv", "full")


def compare(
    numbers: Costs,
    sla_tpot: float,
    sla_ttft: float,
    *,
    units: int = 8,
    quantile: float | None = None,
    overlap: str = "quadrature",
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
        disaggregated decode steps are all alike, so for them it makes no difference.
    overlap
        What hides in a step with a prompt or a chunk, as in `simulate.StepCost`: "quadrature", weight read and
        matrices as in H100 kernels; "serial-kv", all of the weight read; "full", all reads [C23, C24].

    Returns
    -------
    pandas.DataFrame
        A row for each of `ARCHITECTURES`: rate (requests/s per unit, 0 where none fits), batch (mean decodes of a unit
        that decodes), chunk (tokens), prefill_units, ttft and step (s; NaN where none fits).

    Raises
    ------
    ValueError
        For a limit that is not positive, fewer than 2 units, a quantile outside (0, 1], another overlap.
    """
    tpot, ttft = as_number("sla_tpot", sla_tpot, ANY_POSITIVE), as_number("sla_ttft", sla_ttft, ANY_POSITIVE)
    pool = as_whole("units", units, 2)
    share = None if quantile is None else as_number("quantile", quantile, SHARE)
    as_one_of("overlap", overlap, _OVERLAPS)
    rows = {
        "aggregated": _aggregated(numbers, tpot, ttft, share, overlap),
        "chunked": _chunked(numbers, tpot, ttft, overlap),
        "disaggregated": _disaggregated(numbers, tpot, ttft, pool),
    }
    columns = ["rate", "batch", "chunk", "prefill_units", "ttft", "step"]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return frame.rename_axis("architecture").reset_index()


_NONE: dict[str, float] = {"rate": 0.0, "batch": 0, "ttft": np.nan, "step": np.nan}


def _alone(numbers: Costs) -> float:
    """Return the seconds of a prompt that nothing runs beside."""
    return float(numbers.ttft_1 + numbers.t_w)


def _compute(numbers: Costs, overlap: str) -> float:
    """Return the seconds of a prompt's own compute, such that it takes `_alone` beside the weight read."""
    alone = _alone(numbers)
    return float(np.sqrt(alone**2 - numbers.t_w**2)) if overlap == "quadrature" else alone


def _in_memory(numbers: Costs) -> int:
    return int(theory.max_batch_memory(kv_capacity=numbers.kv_capacity, n_in=numbers.n_in, n_out=numbers.n_out))


def _aggregated(numbers: Costs, tpot: float, ttft: float, share: float | None, overlap: str) -> dict[str, Any]:
    """Take the largest batch; who prefills beside whom is the binomial law of `latency.prefills_beside`."""
    compute, read, n_out = _compute(numbers, overlap), float(numbers.read), numbers.n_out

    def steps(B: int, own: int) -> Any:
        """Return the law of the prefills beside a request, and the steps they make with its `own` (0 or 1)."""
        law = latency.prefills_beside(B, n_out)
        beside = np.arange(B)
        return law, _mixed_step(overlap, numbers.t_w, (own + beside) * compute, (B - own - beside) * read)

    def seen(B: int, own: int) -> float:
        law, seconds = steps(B, own)
        return float(seconds @ law.pmf(np.arange(B)) if share is None else seconds[int(law.ppf(share))])

    def misses(B: int) -> bool:
        return seen(B, 0) > tpot or seen(B, 1) > ttft

    batch = bisect_left(range(1, _in_memory(numbers) + 1), True, key=misses)
    if not batch:
        return _NONE
    # Each of B requests prefills in one of n_out steps: the mean over both kinds of step.
    step = ((n_out - 1) * _mean(steps(batch, 0)) + _mean(steps(batch, 1))) / n_out
    return {"rate": batch / (n_out * step), "batch": batch, "ttft": seen(batch, 1), "step": step}


def _mean(law_and_steps: Any) -> float:
    law, seconds = law_and_steps
    return float(seconds @ law.pmf(np.arange(seconds.size)))


def _chunked(numbers: Costs, tpot: float, ttft: float, overlap: str) -> dict[str, Any]:
    """Take the batch and the chunk with the highest rate, among all batches and `_CHUNKS` sizes beside the balance."""
    n_in, n_out, t_w, read = (float(v) for v in (numbers.n_in, numbers.n_out, numbers.t_w, numbers.read))
    b = np.arange(1, min(_in_memory(numbers), _MOST) + 1, dtype=float)[:, None]
    if not b.size:
        return _NONE
    balance = theory.chunk_size(b=b, n_in=n_in, n_out=n_out)
    sizes = np.broadcast_to(np.geomspace(1, 4 * n_in, _CHUNKS), (b.size, _CHUNKS))
    chunk = np.hstack([balance, sizes])
    fed = np.minimum(b, chunk * n_out / n_in)  # a chunk that is too small starves decodes
    mixed = _mixed_step(overlap, t_w, chunk / n_in * _compute(numbers, overlap), fed * read)
    bare = t_w + fed * read
    mean = bare + np.minimum(1, balance / chunk) * (mixed - bare)  # not every step has a chunk that is too large
    prompt = np.maximum(1, n_in / chunk) * mixed
    good = (mixed <= tpot) & (bare <= tpot) & (prompt <= ttft)
    rate = np.where(good, fed / (n_out * mean), 0)
    best = np.unravel_index(np.argmax(rate), rate.shape)
    if not rate[best]:
        return _NONE
    found = {"rate": rate, "batch": fed, "chunk": chunk, "ttft": prompt, "step": mean}
    return {name: float(values[best]) for name, values in found.items()}


def _mixed_step(overlap: str, t_w: float, compute: Any, reads: Any) -> Any:
    """Return the seconds of a step with a chunk; see `simulate.StepCost`, whose overlaps these are."""
    if overlap == "full":
        return np.maximum(compute, t_w + reads)
    return (np.hypot(t_w, compute) if overlap == "quadrature" else np.maximum(t_w, compute)) + reads


def _disaggregated(numbers: Costs, tpot: float, ttft: float, units: int) -> dict[str, Any]:
    """Take the pools of which the slower one finishes most. The first token is the prefill's."""
    alone = _alone(numbers)
    batch = min(int((tpot - numbers.t_w) / numbers.read), _in_memory(numbers)) if tpot > numbers.t_w else 0
    if batch < 1 or alone > ttft:
        return _NONE
    step = float(numbers.t_w + batch * numbers.read)
    decode = batch / (max(numbers.n_out - 1, 1) * step)
    prefill_units = np.arange(1, units)
    rates = np.minimum(prefill_units / alone, (units - prefill_units) * decode) / units
    best = int(np.argmax(rates))
    return {
        "rate": float(rates[best]), "batch": batch, "prefill_units": int(prefill_units[best]),
        "ttft": alone, "step": step,
    }  # fmt: skip
