"""What an output token costs in each architecture, in seconds of an inference unit (claims C27, C31).

All at an equal limit S on TPOT, with batches as real numbers. One unit of work is one output token and its share
of a prompt. The fewer seconds, the higher the rate. Faster prefills put ΔP/x in the place of ΔP.
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK
from inference_math.theory.disaggregation import pdd_split
from inference_math.theory.formula import Formula
from inference_math.theory.notation import b, delta_h, delta_p, n_out, sla_tpot, t_w, x

__all__ = [
    "masking_speedup",
    "masking_speedup_batch",
    "offload_gain_chunked",
    "offload_gain_chunked_serial",
    "offload_gain_pdd",
    "unit_time_aggregated",
    "unit_time_chunked",
    "unit_time_chunked_serial",
    "unit_time_disaggregated",
    "unit_time_disaggregated_same",
]

_u = 1 - t_w / sla_tpot
_aggregated = (delta_p + delta_h) / _u
_disaggregated = delta_p + delta_h / _u
_full = sp.Max(delta_p, delta_h / _u)
_serial = sp.Max(delta_p + delta_h, delta_h / _u)
_above_weights = sla_tpot > t_w


def _unit_time(name: str, expr: sp.Expr, mark: str, meaning: str, claim: str = "C27") -> Formula:
    return Formula(
        name=f"unit_time_{name}",
        arguments=(delta_p, delta_h, t_w, sla_tpot),
        expr=expr,
        latex_name=rf"\theta_{{\mathrm{{{mark}}}}}",
        unit="s",
        claim=claim,
        source=BOOK,
        meaning=meaning,
        domain=_above_weights,
    )


unit_time_aggregated = _unit_time(
    "aggregated", _aggregated, "agg", "seconds of a unit for one output token with its share of a prompt, aggregated"
)
unit_time_disaggregated = _unit_time(
    "disaggregated", _disaggregated, "PDD", "the same, prefill and decode apart, prefill units hiding the weight read"
)
unit_time_disaggregated_same = Formula(
    name="unit_time_disaggregated_same",
    arguments=(delta_p, delta_h, t_w, sla_tpot, n_out),
    expr=_disaggregated + t_w / n_out,
    latex_name=r"\theta_{\mathrm{PDD}}^{\mathrm{same}}",
    unit="s",
    claim="C27",
    source=BOOK,
    meaning="the same on the same hardware, one prompt at a time: a prefill unit reads the weights for each, too",
    domain=_above_weights,
)
unit_time_chunked = _unit_time(
    "chunked", _full, "full", "the same with balanced chunks, when everything overlaps", "C23"
)
unit_time_chunked_serial = _unit_time(
    "chunked_serial", _serial, "serial", "the same with balanced chunks, when only the weight read hides", "C24"
)


def _offload_gain(name: str, expr: sp.Expr, mark: str, meaning: str) -> Formula:
    return Formula(
        name=f"offload_gain_{name}",
        arguments=(delta_p, delta_h, t_w, sla_tpot, x),
        expr=expr,
        latex_name=rf"G_{{\mathrm{{{mark}}}}}(x)",
        unit="1",
        claim="C31",
        source=BOOK,
        meaning=meaning,
        domain=_above_weights,
    )


_both = delta_p + delta_h
offload_gain_pdd = _offload_gain(
    "pdd",
    _both / (_u * delta_p / x + delta_h),
    "PDD",
    "gain over plain aggregated serving of disaggregation with x times faster prefills",
)
offload_gain_chunked = _offload_gain(
    "chunked",
    sp.Min(x * _both / (_u * delta_p), _both / delta_h),
    "full",
    "the same of chunked prefill when everything overlaps",
)
offload_gain_chunked_serial = _offload_gain(
    "chunked_serial",
    sp.Min(_both / (_u * (delta_p / x + delta_h)), _both / delta_h),
    "serial",
    "the same of chunked prefill when only the weight read hides",
)
masking_speedup = Formula(
    name="masking_speedup",
    arguments=(delta_p, delta_h, t_w, sla_tpot),
    expr=pdd_split.expr,
    latex_name=r"x_{S}",
    unit="1",
    claim="C31",
    source=BOOK,
    meaning="prefill speedup with which chunks hide entirely at an equal limit on TPOT; more gains nothing",
    domain=_above_weights,
)
masking_speedup_batch = Formula(
    name="masking_speedup_batch",
    arguments=(b, t_w, delta_p, delta_h),
    expr=b * delta_p / (t_w + b * delta_h),
    latex_name=r"x_{b}",
    unit="1",
    claim="C31",
    source=BOOK,
    meaning="the same at an equal batch",
)
