"""What the datasheet says of ΔP and of the KV read, beside measured H100 operators."""

from __future__ import annotations

import pandas as pd

from inference_math import theory
from inference_math.catalogue import gpu
from inference_math.unit.operators import H100, Operators

__all__ = ["datasheet_deltas"]


def datasheet_deltas(operators: Operators, n_in: pd.Series[int], n_out: float) -> pd.DataFrame:
    """Return ΔP and the KV read in seconds at datasheet rates, for the prompt lengths `n_in`: the theory's lines.

    The KV read is the talks' ΔH; an engine's is more.
    """
    model, unit = operators.model, gpu(H100)
    per_token = theory.token_time_causal(**model.shape, n_in=n_in, flops=operators.tp * unit.flops(operators.weights))
    ttft = theory.ttft_vanilla(n_in=n_in, T=per_token)
    reads = {"kv_token": model.kv_token(operators.kv), "hbm_bw": operators.tp * unit.hbm_bw}
    deltas = {"delta_p": theory.delta_p(ttft_1=ttft, n_out=n_out), "cache_read": theory.cache_read(n_in=n_in, **reads)}
    return pd.DataFrame({"n_in": n_in} | deltas)
