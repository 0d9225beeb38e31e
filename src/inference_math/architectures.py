"""Which architecture finishes most requests within an SLA: one unit's numbers, three ways to serve with them.

All slots are always full and the queue of prompts never runs dry, as in `theory`; batches and pools are whole
numbers, and HBM is finite. What a prompt hides beside the weight read of its step is the same for whole prompts, for
chunks and on a unit of its own. Queues before the first token are not counted, for none of the three.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from inference_math import latency, theory
from inference_math.checks import ANY_POSITIVE, SHARE, as_number, as_one_of, as_whole
from inference_math.costs import Costs

__all__ = ["ARCHITECTURES", "compare", "largest_batch"]

ARCHITECTURES = ("aggregated", "chunked", "disaggregated")
_MOST = 4096  # decodes in a step
_CHUNKS = 60
_NEARLY = 0.99
_OVERLAPS = ("quadrature", "serial-kv", "full")
_Step = Callable[[Any, Any], Any]


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
    share = None if quantile is None else as_number("quantile", quantile, SHARE)
    step = _stepper(numbers, overlap)
    if not numbers.n_out > 1:
        raise ValueError(f"numbers must be of answers of more than one token, not {numbers.n_out}")
    rows = {
        "aggregated": _aggregated(numbers, step, tpot, ttft, share),
        "chunked": _chunked(numbers, step, tpot, ttft),
        "disaggregated": _disaggregated(numbers, step, tpot, ttft, pool),
    }
    columns = ["rate", "batch", "chunk", "prefill_units", "ttft", "step", "tpot"]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return frame.rename_axis("architecture").reset_index()


_NONE: dict[str, float] = {"rate": 0.0, "batch": 0, "ttft": np.nan, "step": np.nan, "tpot": np.nan}


def _in_memory(numbers: Costs) -> int:
    fits = theory.max_batch_memory(kv_capacity=numbers.kv_capacity, n_in=numbers.n_in, n_out=numbers.n_out)
    return min(int(fits), _MOST)


def _stepper(numbers: Costs, overlap: str | None) -> _Step:
    """Return the seconds of a step with decodes and prompts; see `simulate.StepCost`, whose overlaps these are."""
    if overlap is None and numbers.mixed is not None:
        return numbers.mixed
    kind = as_one_of("overlap", overlap or "quadrature", _OVERLAPS)

    def step(decodes: Any, prompts: Any) -> Any:
        compute, reads = prompts * numbers.compute, decodes * numbers.read
        if kind == "full":
            return np.maximum(compute, numbers.t_w + reads)
        return (np.hypot(numbers.t_w, compute) if kind == "quadrature" else np.maximum(numbers.t_w, compute)) + reads

    return step


def largest_batch(
    numbers: Costs, sla_tpot: float = inf, sla_ttft: float = inf, *, quantile: float | None = None
) -> int:
    """Return the largest batch within limits, prefill first; parameters as in `compare`, no limit by default."""
    share = None if quantile is None else as_number("quantile", quantile, SHARE)
    seen = _seen(numbers, _stepper(numbers, None), share)
    return bisect_left(
        range(1, _in_memory(numbers) + 1), True, key=lambda B: seen(B, 0) > sla_tpot or seen(B, 1) > sla_ttft
    )


def _seen(numbers: Costs, step: _Step, share: float | None) -> Callable[[int, int], float]:
    """Return the mean, or a quantile, of the steps that a request sees: of B and its own prefills, 0 or 1.

    Who prefills beside whom is the binomial law of `latency.prefills_beside`.
    """

    def seen(B: int, own: int) -> float:
        beside = np.arange(B)
        shares = latency.prefills_beside(B, numbers.n_out).pmf(beside)
        seconds = np.broadcast_to(step(B - own - beside, own + beside), beside.shape)
        if share is None:
            return float(seconds @ shares)
        order = np.argsort(seconds)
        reached = np.cumsum(shares[order]) >= share * (1 - 1e-12)
        return float(seconds[order][np.argmax(reached)])

    return seen


def _aggregated(numbers: Costs, step: _Step, tpot: float, ttft: float, share: float | None) -> dict[str, Any]:
    """Take the largest batch."""
    seen, mean = _seen(numbers, step, share), _seen(numbers, step, None)
    batch = bisect_left(range(1, _in_memory(numbers) + 1), True, key=lambda B: seen(B, 0) > tpot or seen(B, 1) > ttft)
    if not batch:
        return _NONE
    # Each of B requests prefills in one of n_out steps: the mean over both kinds of step.
    gap = mean(batch, 0)
    whole = ((numbers.n_out - 1) * gap + mean(batch, 1)) / numbers.n_out
    rate = batch / (numbers.n_out * whole)
    return {"rate": rate, "batch": batch, "ttft": seen(batch, 1), "step": whole, "tpot": gap}


def _chunked(numbers: Costs, step: _Step, tpot: float, ttft: float) -> dict[str, Any]:
    """Take the batch and the chunk with the highest rate, among all batches and `_CHUNKS` sizes beside the balance."""
    places = _in_memory(numbers)
    b = np.arange(1, places + 1, dtype=float)[:, None]
    if not b.size:
        return _NONE
    n_in = float(numbers.n_in)
    decoded = float(numbers.n_out) - 1  # the first token is the prompt's
    balance = theory.chunk_size(b=b, n_in=n_in, n_out=decoded)
    sizes = np.broadcast_to(np.geomspace(1, 4 * n_in, _CHUNKS), (b.size, _CHUNKS))
    chunk = np.hstack([balance, sizes])
    with_chunk = np.minimum(1, balance / chunk)  # share of the steps, where the chunk is too large
    under_way = with_chunk * np.maximum(1, chunk / n_in)  # prompts that hold places, too
    fed = np.minimum(np.minimum(b, chunk * decoded / n_in), np.maximum(places - under_way, 0))
    mixed, bare = step(fed, chunk / n_in), step(fed, 0.0)
    mean = bare + np.minimum(1, fed * n_in / (decoded * chunk)) * (mixed - bare)
    prompt = (n_in / chunk + 1) * mixed  # it begins and ends somewhere within a chunk
    good = (mixed <= tpot) & (prompt <= ttft) & (fed > 0)
    rate = np.where(good, fed / (decoded * mean), 0)
    best = np.unravel_index(np.argmax(rate), rate.shape)
    if not rate[best]:
        return _NONE
    found = {"rate": rate, "batch": fed, "chunk": chunk, "ttft": prompt, "step": mean, "tpot": mean}
    return {name: float(values[best]) for name, values in found.items()}


def _disaggregated(numbers: Costs, step: _Step, tpot: float, ttft: float, units: int) -> dict[str, Any]:
    """Take the pools of which the slower one finishes most, prompts computed together as far as that helps."""
    decoding = step(np.arange(1, _in_memory(numbers) + 1), 0.0)
    batch = int(np.searchsorted(decoding, tpot, side="right"))
    together = np.arange(1, max(min(_MOST, numbers.kv_capacity / numbers.n_in), 0) + 1)
    seconds = step(0.0, together)
    together = together[seconds <= ttft]
    if batch < 1 or not together.size:
        return _NONE
    gap = float(decoding[batch - 1])
    decode = batch / ((numbers.n_out - 1) * gap)  # requests/s; the first token is the prefill's
    prefill_units = np.arange(1, units)[:, None]
    rates = np.minimum(prefill_units * together / seconds[: together.size], (units - prefill_units) * decode) / units
    # More prompts together wait for each other: take the fewest that give nearly all.
    prompts = int(np.argmax((rates >= _NEARLY * rates.max()).any(axis=0)))
    split = int(np.argmax(rates[:, prompts]))
    return {
        "rate": float(rates[split, prompts]), "batch": batch, "prefill_units": int(prefill_units[split, 0]),
        "chunk": float(together[prompts] * numbers.n_in), "ttft": float(seconds[prompts]), "step": gap, "tpot": gap,
    }  # fmt: skip
