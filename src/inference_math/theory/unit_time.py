"""What an output token costs in each architecture, in seconds of an inference unit (claims C27, C31).

All at an equal limit S on TPOT, with batches as real numbers. One unit of work is one output token and its share
of a prompt. The fewer seconds, the higher the rate. A store that makes prefills x times faster puts ΔP/x in the place
of ΔP. It saves no weight read: a prompt that shares no step with whole answers, on a unit of its own or in chunks,
takes t_w besides.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory.formula import formula
from inference_math.theory.notation import delta_h, delta_p, n_out, sla_tpot, t_w, x

_u = 1 - t_w / sla_tpot
_above_weights = sla_tpot > t_w
_prompt = delta_p / x + t_w / n_out  # of a prompt alone, behind a store


@formula(r"\theta_{\mathrm{agg}}", unit="s", claim="C27", domain=_above_weights)
def unit_time_aggregated(delta_p, delta_h, t_w, sla_tpot):
    """Seconds of a unit for one output token with its share of a prompt, aggregated."""
    return (delta_p + delta_h) / _u


@formula(r"\theta_{\mathrm{PDD}}", unit="s", claim="C27", domain=_above_weights)
def unit_time_disaggregated(delta_p, delta_h, t_w, sla_tpot):
    """The same, prefill and decode apart, prefill units hiding the weight read."""
    return delta_p + delta_h / _u


@formula(r"\theta_{\mathrm{PDD}}^{\mathrm{same}}", unit="s", claim="C27", domain=_above_weights)
def unit_time_disaggregated_same(delta_p, delta_h, t_w, sla_tpot, n_out):
    """The same on the same hardware, one prompt at a time: a prefill unit reads the weights for each, too."""
    return unit_time_disaggregated.expr + t_w / n_out


@formula(r"\theta_{\mathrm{full}}", unit="s", claim="C23", domain=_above_weights)
def unit_time_chunked(delta_p, delta_h, t_w, sla_tpot):
    """The same with balanced chunks, when everything overlaps."""
    return sp.Max(delta_p, delta_h / _u)


@formula(r"\theta_{\mathrm{serial}}", unit="s", claim="C24", domain=_above_weights)
def unit_time_chunked_serial(delta_p, delta_h, t_w, sla_tpot):
    """The same with balanced chunks, when only the weight read hides."""
    return sp.Max(delta_p + delta_h, delta_h / _u)


@formula(r"G_{\mathrm{PDD}}(x)", claim="C31", domain=_above_weights)
def offload_gain_pdd(delta_p, delta_h, t_w, sla_tpot, n_out, x):
    """Gain over aggregated of disaggregated serving with x times faster prefills."""
    return (delta_p + delta_h) / (_u * _prompt + delta_h)


@formula(r"G_{\mathrm{full}}(x)", claim="C31", domain=_above_weights)
def offload_gain_chunked(delta_p, delta_h, t_w, sla_tpot, n_out, x):
    """The same of chunked prefill when everything overlaps."""
    return sp.Min((delta_p + delta_h) / (_u * _prompt), (delta_p + delta_h) / delta_h)


@formula(r"G_{\mathrm{serial}}(x)", claim="C31", domain=_above_weights)
def offload_gain_chunked_serial(delta_p, delta_h, t_w, sla_tpot, n_out, x):
    """The same of chunked prefill when only the weight read hides."""
    return sp.Min((delta_p + delta_h) / (_u * (_prompt + delta_h)), (delta_p + delta_h) / delta_h)


@formula(r"x_{S}", claim="C31", domain=sp.And(_above_weights, delta_h * n_out > _u * t_w))
def masking_speedup(delta_p, delta_h, t_w, sla_tpot, n_out):
    """Prefill speedup with which chunks hide entirely at an equal limit on TPOT; more gains nothing."""
    return delta_p / (delta_h / _u - t_w / n_out)
