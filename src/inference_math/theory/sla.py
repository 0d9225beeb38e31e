"""The largest batch that keeps its promises, and what faster prefills gain (claims C15–C17, C30)."""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK, A, B, C
from inference_math.theory.formula import Formula
from inference_math.theory.notation import (
    alpha,
    cv,
    delta_h,
    delta_p,
    e,
    hbm_bytes,
    kv_token,
    n_in,
    n_out,
    q,
    sla_tpot,
    sla_ttft,
    t_w,
    tpot_1,
    ttft_1,
    weight_bytes,
    x,
)
from inference_math.theory.notation import kv_capacity as _kv_capacity

__all__ = [
    "batch_gain",
    "batch_gain_async",
    "gain_bound",
    "kv_capacity",
    "max_batch",
    "max_batch_growing",
    "max_batch_memory",
    "max_batch_printed",
    "max_batch_reserved",
    "max_batch_ttft",
    "max_batch_ttft_full",
    "max_batch_undisturbed",
    "sla_ttft_matching",
]

_both = delta_p + delta_h

max_batch = Formula(
    name="max_batch",
    arguments=(sla_tpot, tpot_1, delta_p, delta_h),
    expr=sp.Max(0, 1 + sp.floor((sla_tpot - tpot_1) / _both)),
    latex_name=r"B_{\max}",
    unit="1",
    claim="C15",
    source=BOOK,
    meaning="largest batch whose mean TPOT meets its limit; 0 where a request alone misses it",
)
max_batch_printed = Formula(
    name="max_batch_printed",
    arguments=(sla_tpot, tpot_1, delta_p, delta_h),
    expr=sp.floor((sla_tpot - tpot_1) / _both),
    latex_name=r"B_{\max}^{\mathrm{printed}}",
    unit="1",
    claim="C15",
    source=f"{B}; {C}",
    meaning="the same as printed: it counts the requests beside the first, so it is one too small",
)
max_batch_ttft = Formula(
    name="max_batch_ttft",
    arguments=(sla_ttft, ttft_1, n_out),
    expr=sp.Max(0, sp.floor(1 + n_out * (sla_ttft / ttft_1 - 1))),
    latex_name=r"B_{\max}^{\mathrm{TTFT}}",
    unit="1",
    claim="C15",
    source=BOOK,
    meaning="largest batch whose mean TTFT, as printed in C13, meets its limit",
)
max_batch_ttft_full = Formula(
    name="max_batch_ttft_full",
    arguments=(sla_ttft, n_out, ttft_1, delta_h, t_w),
    expr=sp.Max(0, 1 + sp.floor((sla_ttft - ttft_1 - t_w) / (ttft_1 / n_out + (1 - 1 / n_out) * delta_h))),
    latex_name=r"\overline{B}_{\max}^{\mathrm{TTFT}}",
    unit="1",
    claim="C15",
    source=BOOK,
    meaning="largest batch whose mean TTFT meets its limit, with the KV-cache reads and the weight read of the step",
)
kv_capacity = Formula(
    name="kv_capacity",
    arguments=(hbm_bytes, weight_bytes, kv_token),
    expr=sp.Max(0, hbm_bytes - weight_bytes) / kv_token,
    latex_name=r"C_{\mathrm{KV}}",
    unit="token",
    claim="C15",
    source=BOOK,
    meaning="tokens whose KV cache fits in HBM beside the weights",
)
max_batch_memory = Formula(
    name="max_batch_memory",
    arguments=(_kv_capacity, n_in, n_out),
    expr=sp.floor(_kv_capacity / (n_in + n_out)),
    latex_name=r"B_{\max}^{\mathrm{HBM}}",
    unit="1",
    claim="C15",
    source=BOOK,
    meaning="largest batch whose KV cache fits when every request keeps room for its last token, answers all alike",
)
# Who is met in a batch has a longer answer than who comes: n_out (1 + cv²) tokens on average, and half of them are
# there. The spread of what is there is that of a random moment in a gamma-distributed answer.
_met = n_out * (1 + cv**2)
_held, _spread, _sure = sp.symbols("kbar sigma zeta", positive=True)
_GROWING = {
    _held: n_in + _met / 2,
    _spread: n_out * sp.sqrt((1 + cv**2) * (1 + 5 * cv**2) / 12),
    _sure: sp.Rational(233, 100),  # standard deviations: full in one moment of a hundred
}
_root = (sp.sqrt((_sure * _spread) ** 2 + 4 * _held * _kv_capacity) - _sure * _spread) / (2 * _held)
max_batch_reserved = Formula(
    name="max_batch_reserved",
    arguments=(_kv_capacity, n_in, n_out, cv),
    expr=sp.floor(_kv_capacity / (n_in + _met)),
    latex_name=r"B_{\max}^{\mathrm{reserved}}",
    unit="1",
    claim="C15",
    source=BOOK,
    meaning="the same for answers of varying length: those that are met in a batch are longer than those that come",
)
max_batch_growing = Formula(
    name="max_batch_growing",
    arguments=(_kv_capacity, n_in, n_out, cv),
    expr=sp.Piecewise((sp.Max(1, sp.floor(_root**2)), _kv_capacity >= n_in + n_out), (0, True)),
    latex_name=r"B_{\max}^{\mathrm{growing}}",
    unit="1",
    claim="C15",
    source=BOOK,
    meaning="the same where caches grow block by block: what is there on average, and room for 2.33 standard "
    "deviations of it: for dozens of requests they are too full in about one moment of a hundred",
    where=_GROWING,
)
sla_ttft_matching = Formula(
    name="sla_ttft_matching",
    arguments=(sla_tpot, ttft_1, delta_h),
    expr=sla_tpot + ttft_1 - delta_h,
    latex_name=r"S_{\mathrm{TTFT}}^{*}",
    unit="s",
    claim="C15",
    source=BOOK,
    meaning="limit on TTFT that allows the same batch as the limit on TPOT; a tighter one binds first",
)
max_batch_undisturbed = Formula(
    name="max_batch_undisturbed",
    arguments=(q, n_out),
    expr=sp.floor(1 + sp.log(q) / sp.log(1 - 1 / n_out)),
    latex_name=r"B_{q}",
    unit="1",
    claim="C30",
    source=BOOK,
    meaning="largest batch in which the share q of the tokens is delayed by no prefill at all",
)
batch_gain = Formula(
    name="batch_gain",
    arguments=(delta_p, delta_h, x),
    expr=_both / (delta_p / x + delta_h),
    latex_name=r"B_{KV}/B_{V}",
    unit="1",
    claim="C16",
    source=B,
    meaning="gain in batch at a TPOT limit when prefills are x times faster, as printed: exact for B − 1",
)
batch_gain_async = Formula(
    name="batch_gain_async",
    arguments=(delta_p, delta_h, alpha, e),
    expr=_both / sp.Max((1 - alpha) * delta_p + delta_h, alpha * delta_p / e),
    latex_name=r"B_{KV}^{\mathrm{async}}/B_{V}",
    unit="1",
    claim="C16",
    source=BOOK,
    meaning="the same when loading does not hold up the engine: the store's pipe is a limit of its own",
)
gain_bound = Formula(
    name="gain_bound",
    arguments=(delta_p, delta_h),
    expr=1 + delta_p / delta_h,
    latex_name=r"\lim_{x \to \infty} B_{KV}/B_{V}",
    unit="1",
    claim="C17",
    source=f"{A}; {B}; {C}",
    meaning="what faster prefills can gain at most",
)
