"""Chunked prefill: prompts in pieces, each beside the decodes of a step (claims C22–C25).

A chunk hides what runs beside it. Three overlap models: nothing hides (the additive model of interference),
only the weight read hides under the chunk's matrices (serial KV), or all reads do (full, the talk).
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK, A
from inference_math.theory.formula import Formula
from inference_math.theory.notation import T, b, chunk, delta_h, delta_p, n_in, n_out, pd_ratio, sla_tpot, t_w

__all__ = [
    "chunk_budget",
    "chunk_size",
    "chunked_gain",
    "chunked_gain_mixed",
    "chunked_gain_offbalance",
    "chunked_gain_offbalance_serial",
    "chunked_gain_serial",
    "chunked_gain_sla",
    "chunked_gain_sla_serial",
    "chunked_gain_weights",
    "ttft_chunked",
    "ttft_chunked_serial",
]

# A step of b decodes with all their prefills, nothing hidden; and with the chunk that keeps up with them.
_additive = t_w + b * (delta_p + delta_h)
_full = sp.Max(b * delta_p, t_w + b * delta_h)
_serial = sp.Max(t_w, b * delta_p) + b * delta_h
# Whole prompts beside decodes, the weight read under them: b of N_out steps have one, and its matrices.
_beside = (1 - b / n_out) * t_w + b / n_out * sp.Max(t_w, n_out * delta_p)
_u = 1 - t_w / sla_tpot
_both = delta_p + delta_h

# Seconds per output token: of whole prefills; of a chunk of any size, which feeds min(b, N_c/π) decodes, and
# hides `hidden` seconds of its own time.
_unchunked = t_w / b + pd_ratio * T + delta_h
_fed = sp.Min(b, chunk / pd_ratio)


def _offbalance(hidden: sp.Expr) -> sp.Expr:
    decodes = t_w * sp.Max(1 / b, pd_ratio / chunk) + delta_h
    return _unchunked / (decodes + pd_ratio * sp.Max(0, T - hidden / chunk))


chunk_size = Formula(
    name="chunk_size",
    arguments=(b, n_in, n_out),
    expr=b * n_in / n_out,
    latex_name="N_{c}",
    unit="token",
    claim="C22",
    source=A,
    meaning="prefill tokens per step that keep b decodes supplied",
)
chunk_budget = Formula(
    name="chunk_budget",
    arguments=(b, T, delta_h, t_w, sla_tpot),
    expr=sp.Piecewise(((sla_tpot - b * delta_h) / T, t_w + b * delta_h <= sla_tpot), (0, True)),
    latex_name=r"N_{c}^{\max}",
    unit="token",
    claim="C22",
    source=BOOK,
    meaning="largest chunk beside b decodes that keeps a step under the limit, the weight read hidden; 0 if none does",
)
chunked_gain = Formula(
    name="chunked_gain",
    arguments=(delta_p, delta_h),
    expr=_both / sp.Max(delta_p, delta_h),
    latex_name="G",
    unit="1",
    claim="C23",
    source=A,
    meaning="gain of chunked over whole prefills at equal batch, as printed: everything overlaps, no weight read",
)
chunked_gain_weights = Formula(
    name="chunked_gain_weights",
    arguments=(b, t_w, delta_p, delta_h),
    expr=_additive / _full,
    latex_name=r"G_{\mathrm{full}}",
    unit="1",
    claim="C23",
    source=BOOK,
    meaning="the same with the weight read",
)
chunked_gain_serial = Formula(
    name="chunked_gain_serial",
    arguments=(b, t_w, delta_p, delta_h),
    expr=_additive / _serial,
    latex_name=r"G_{\mathrm{serial}}",
    unit="1",
    claim="C24",
    source=BOOK,
    meaning="gain when only the weight read hides under the chunk, and the decodes' KV reads add; over prompts that "
    "have steps of their own",
)
chunked_gain_mixed = Formula(
    name="chunked_gain_mixed",
    arguments=(b, n_out, t_w, delta_p, delta_h),
    expr=(_beside + b * delta_h) / _serial,
    latex_name=r"G_{\mathrm{mixed}}",
    unit="1",
    claim="C24",
    source=BOOK,
    meaning="the same over whole prompts that share their steps with decodes and hide the weight read as a chunk does, "
    "one prompt in a step at most",
    domain=b <= n_out,
)
chunked_gain_sla = Formula(
    name="chunked_gain_sla",
    arguments=(delta_p, delta_h, t_w, sla_tpot),
    expr=sp.Min(_both / (_u * delta_p), _both / delta_h),
    latex_name="G_{S}",
    unit="1",
    claim="C23",
    source=BOOK,
    meaning="gain at an equal limit on TPOT when everything overlaps",
    domain=sla_tpot > t_w,
)
chunked_gain_sla_serial = Formula(
    name="chunked_gain_sla_serial",
    arguments=(delta_p, delta_h, t_w, sla_tpot),
    expr=sp.Min(1 / _u, _both / delta_h),
    latex_name=r"G_{S,\mathrm{serial}}",
    unit="1",
    claim="C24",
    source=BOOK,
    meaning="gain at an equal limit on TPOT when only the weight read hides",
    domain=sla_tpot > t_w,
)
chunked_gain_offbalance = Formula(
    name="chunked_gain_offbalance",
    arguments=(b, chunk, pd_ratio, T, t_w, delta_h),
    expr=_offbalance(t_w + _fed * delta_h),
    latex_name=r"G_{\mathrm{full}}(N_{c})",
    unit="1",
    claim="C25",
    source=BOOK,
    meaning="gain of a chunk of any size when everything overlaps",
)
chunked_gain_offbalance_serial = Formula(
    name="chunked_gain_offbalance_serial",
    arguments=(b, chunk, pd_ratio, T, t_w, delta_h),
    expr=_offbalance(t_w),
    latex_name=r"G_{\mathrm{serial}}(N_{c})",
    unit="1",
    claim="C25",
    source=BOOK,
    meaning="gain of a chunk of any size when only the weight read hides",
)
ttft_chunked = Formula(
    name="ttft_chunked",
    arguments=(b, t_w, delta_p, delta_h),
    expr=_full / (b * delta_p),
    latex_name=r"\mathrm{TTFT}_{c}/\mathrm{TTFT}(1)",
    unit="1",
    claim="C24",
    source=BOOK,
    meaning="time from a prompt's first chunk to its first token, over its time alone, when everything overlaps",
)
ttft_chunked_serial = Formula(
    name="ttft_chunked_serial",
    arguments=(b, t_w, delta_p, delta_h),
    expr=_serial / (b * delta_p),
    latex_name=r"\mathrm{TTFT}_{c,\mathrm{serial}}/\mathrm{TTFT}(1)",
    unit="1",
    claim="C24",
    source=BOOK,
    meaning="the same when only the weight read hides",
)
