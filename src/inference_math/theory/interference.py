"""What one more request adds to every decode step (claim C14)."""

from __future__ import annotations

from inference_math.formula import Formula
from inference_math.notation import hbm_bw, kv_token, n_in, n_out, ttft_1
from inference_math.theory._talks import B, C

__all__ = ["delta_h", "delta_p"]

delta_p = Formula(
    name="delta_p",
    arguments=(ttft_1, n_out),
    expr=ttft_1 / n_out,
    latex_name=r"\Delta P",
    unit="s",
    claim="C14",
    source=f"{B}; {C}",
    meaning="prefill of one more request, spread over the steps of its decode",
)
delta_h = Formula(
    name="delta_h",
    arguments=(n_in, kv_token, hbm_bw),
    expr=n_in * kv_token / hbm_bw,
    latex_name=r"\Delta H",
    unit="s",
    claim="C14",
    source=f"{B}; {C}",
    meaning="time to read the KV cache of one more request",
)
