"""What one more request adds to every decode step (claim C14)."""

from __future__ import annotations

from inference_math.formula import Formula
from inference_math.notation import B, hbm_bw, kv_token, n_in, n_out, tpot_1, ttft_1
from inference_math.notation import delta_h as _delta_h
from inference_math.notation import delta_p as _delta_p
from inference_math.theory import _talks

__all__ = ["delta_h", "delta_p", "expected_tpot"]

_SOURCE = f"{_talks.B}; {_talks.C}"

delta_p = Formula(
    name="delta_p",
    arguments=(ttft_1, n_out),
    expr=ttft_1 / n_out,
    latex_name=r"\Delta P",
    unit="s",
    claim="C14",
    source=_SOURCE,
    meaning="prefill of one more request, spread over the steps of its decode",
)
delta_h = Formula(
    name="delta_h",
    arguments=(n_in, kv_token, hbm_bw),
    expr=n_in * kv_token / hbm_bw,
    latex_name=r"\Delta H",
    unit="s",
    claim="C14",
    source=_SOURCE,
    meaning="time to read the KV cache of one more request",
)
expected_tpot = Formula(
    name="expected_tpot",
    arguments=(B, tpot_1, _delta_p, _delta_h),
    expr=tpot_1 + (B - 1) * (_delta_p + _delta_h),
    latex_name=r"\mathrm{TPOT}(B)",
    unit="s",
    claim="C14",
    source=_SOURCE,
    meaning="mean time per output token with B concurrent requests, as printed",
)
