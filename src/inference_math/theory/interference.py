"""What one more request adds to every step, and what a batch of requests waits for (claims C12–C14, C21).

B slots are always full. In every step a slot either prefills its new request (once in N_out steps) or
decodes one token. A step costs the weights, plus one KV-cache read for every decode, plus the prefills.
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK
from inference_math.theory._talks import B as TALK_B
from inference_math.theory._talks import C as TALK_C
from inference_math.theory.formula import Formula
from inference_math.theory.notation import B, T, cv, hbm_bw, kv_token, n_in, n_out, t_w, tpot_1, ttft_1, ttft_alone, z
from inference_math.theory.notation import delta_h as _delta_h
from inference_math.theory.notation import delta_p as _delta_p

__all__ = [
    "concurrent_prefills",
    "delta_h",
    "delta_p",
    "delta_p_net",
    "expected_tpot",
    "expected_tpot_full",
    "expected_ttft",
    "expected_ttft_full",
    "exposed_compute",
    "mean_context",
    "mean_step",
    "prefill_share",
    "request_rate",
    "undisturbed_share",
]

_SOURCE = f"{TALK_B}; {TALK_C}"

# What one slot adds to a step on average: a prefill once in N_out steps, a KV-cache read in all others.
_decoding = 1 - 1 / n_out
_slot = _delta_p + _decoding * _delta_h
_step = t_w + B * _slot

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
delta_p_net = Formula(
    name="delta_p_net",
    arguments=(ttft_alone, t_w, n_out),
    expr=sp.Max(0, ttft_alone - t_w) / n_out,
    latex_name=r"\Delta P_{\mathrm{net}}",
    unit="s",
    claim="C14",
    source=BOOK,
    meaning="ΔP without the weight read, which a prefill in a batch shares with the others' decodes",
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
mean_context = Formula(
    name="mean_context",
    arguments=(n_in, n_out, cv),
    expr=n_in + n_out / 2 + cv**2 * n_out**2 / (2 * (n_out - 1)),
    latex_name=r"\overline{N}",
    unit="token",
    claim="C14",
    source=BOOK,
    meaning="mean context of a decode step: long answers are met more often than short ones",
)
concurrent_prefills = Formula(
    name="concurrent_prefills",
    arguments=(B, n_out),
    expr=(B - 1) / n_out,
    latex_name=r"\mathrm{E}[K]",
    unit="1",
    claim="C12",
    source=_SOURCE,
    meaning="mean number of the other requests that prefill in one step; the number K is Binom(B − 1, 1/N_out)",
)
undisturbed_share = Formula(
    name="undisturbed_share",
    arguments=(B, n_out),
    expr=(1 - 1 / n_out) ** (B - 1),
    latex_name=r"\mathrm{P}(K = 0)",
    unit="1",
    claim="C12",
    source=BOOK,
    meaning="share of the tokens of a request that no other request's prefill delays",
)
expected_ttft = Formula(
    name="expected_ttft",
    arguments=(B, n_out, ttft_1),
    expr=(1 + (B - 1) / n_out) * ttft_1,
    latex_name=r"\mathrm{TTFT}(B)",
    unit="s",
    claim="C13",
    source=_SOURCE,
    meaning="mean time to first token with B concurrent requests, as printed",
)
expected_ttft_full = Formula(
    name="expected_ttft_full",
    arguments=(B, n_out, ttft_1, _delta_h, t_w),
    expr=(1 + (B - 1) / n_out) * ttft_1 + (B - 1) * _decoding * _delta_h + t_w,
    latex_name=r"\overline{\mathrm{TTFT}}(B)",
    unit="s",
    claim="C13",
    source=BOOK,
    meaning="mean time to first token with the others' KV-cache reads and the weight read of the same step",
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
expected_tpot_full = Formula(
    name="expected_tpot_full",
    arguments=(B, n_out, tpot_1, _delta_p, _delta_h, T, z),
    expr=tpot_1 + (B - 1) * (_delta_p + _decoding * (_delta_h + z * T)),
    latex_name=r"\overline{\mathrm{TPOT}}(B)",
    unit="s",
    claim="C14",
    source=BOOK,
    meaning="mean time per output token; a slot that prefills does not decode, and a decode computes, too",
)
exposed_compute = Formula(
    name="exposed_compute",
    arguments=(B, t_w, T),
    expr=B * T / sp.sqrt(t_w**2 + (B * T) ** 2),
    latex_name="z",
    unit="1",
    claim="C14",
    source=BOOK,
    meaning="share of one more decode's compute that lengthens the step, if weights and compute add in quadrature",
)
mean_step = Formula(
    name="mean_step",
    arguments=(B, n_out, t_w, _delta_p, _delta_h),
    expr=_step,
    latex_name=r"\overline{t}_{\mathrm{step}}",
    unit="s",
    claim="C14",
    source=BOOK,
    meaning="mean time of a step with B slots that are always full",
)
request_rate = Formula(
    name="request_rate",
    arguments=(B, n_out, t_w, _delta_p, _delta_h),
    expr=B / (n_out * _step),
    latex_name=r"\lambda(B)",
    unit="1/s",
    claim="C36",
    source=BOOK,
    meaning="requests that B slots finish per second when they are always full",
)
prefill_share = Formula(
    name="prefill_share",
    arguments=(B, n_out, t_w, _delta_p, _delta_h),
    expr=B * _delta_p / _step,
    latex_name=r"s_{P}",
    unit="1",
    claim="C21",
    source=BOOK,
    meaning="share of the unit's time that goes into prefills",
)
