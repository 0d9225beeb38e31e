"""What an output token costs in each architecture, in seconds of an inference unit (claims C27, C31).

All at an equal limit S on TPOT, with batches as real numbers. One unit of work is one output token and its share
of a prompt. The fewer seconds, the higher the rate. A store that makes prefills x times faster puts ΔP/x in the place
of ΔP. It saves no weight read: a prompt that shares no step with whole answers, on a unit of its own or in chunks,
takes t_w besides.

Four times are those of long answers and many requests: S is the mean step, and N_out decodes make an answer. Where
pools of equal hardware are compared, S is the mean gap, and N_out − 1 decodes follow the prompt's token.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory.formula import formula
from inference_math.theory.notation import delta_h, delta_p, n_out, sla_tpot, t_w, x

_u = 1 - t_w / sla_tpot
_fits = sla_tpot >= t_w + delta_h  # a decode, under the limit
_decodes = sp.And(_fits, n_out > 1)
_prompt = delta_p / x + t_w / n_out  # of a prompt alone, behind a store

# By what the mean step is longer than a request's gaps: its own prompt is in that step, and in none of its gaps.
own = sp.Symbol("delta", real=True)
OWN = {own: delta_p - delta_h / n_out}
aggregated = (delta_h + own) * (sla_tpot + own) / (sla_tpot + own - t_w)


def apart(prompt: sp.Expr) -> sp.Expr:
    """Return the seconds of pools for a token, `prompt` of them for its share of a prompt alone."""
    return prompt + (1 - 1 / n_out) * delta_h / _u


@formula(r"\theta_{\mathrm{agg}}", unit="s", claim="C27", domain=_fits)
def unit_time_aggregated(delta_p, delta_h, t_w, sla_tpot):
    """Seconds of a unit for one output token with its share of a prompt, aggregated."""
    return (delta_p + delta_h) / _u


@formula(r"\theta_{\mathrm{PDD}}", unit="s", claim="C27", domain=_fits)
def unit_time_disaggregated(delta_p, delta_h, t_w, sla_tpot):
    """The same, prefill and decode apart, prefill units hiding the weight read."""
    return delta_p + delta_h / _u


@formula(r"\overline{\theta}_{\mathrm{agg}}", unit="s", claim="C27", domain=_decodes, where=OWN)
def unit_time_aggregated_full(delta_p, delta_h, t_w, sla_tpot, n_out):
    """The same, aggregated, where the limit is on the mean time between a request's own tokens."""
    return aggregated


@formula(r"\theta_{\mathrm{PDD}}^{\mathrm{same}}", unit="s", claim="C27", domain=_decodes)
def unit_time_disaggregated_same(delta_p, delta_h, t_w, sla_tpot, n_out):
    """The same, prefill and decode apart, one prompt at a time: a prefill unit reads the weights for each, too."""
    return apart(delta_p + t_w / n_out)


@formula(r"\theta_{\mathrm{full}}", unit="s", claim="C23", domain=_fits)
def unit_time_chunked(delta_p, delta_h, t_w, sla_tpot):
    """The same with balanced chunks, when everything overlaps."""
    return sp.Max(delta_p, delta_h / _u)


@formula(r"\theta_{\mathrm{serial}}", unit="s", claim="C24", domain=_fits)
def unit_time_chunked_serial(delta_p, delta_h, t_w, sla_tpot):
    """The same with balanced chunks, when only the weight read hides."""
    return sp.Max(delta_p + delta_h, delta_h / _u)


@formula(r"G_{\mathrm{PDD}}(x)", claim="C31", domain=_decodes, where=OWN)
def offload_gain_pdd(delta_p, delta_h, t_w, sla_tpot, n_out, x):
    """Gain over aggregated of disaggregated serving with x times faster prefills, on the same hardware."""
    return aggregated / apart(_prompt)


@formula(r"G_{\mathrm{full}}(x)", claim="C31", domain=_fits)
def offload_gain_chunked(delta_p, delta_h, t_w, sla_tpot, n_out, x):
    """The same of chunked prefill when everything overlaps."""
    return sp.Min((delta_p + delta_h) / (_u * _prompt), (delta_p + delta_h) / delta_h)


@formula(r"G_{\mathrm{serial}}(x)", claim="C31", domain=_fits)
def offload_gain_chunked_serial(delta_p, delta_h, t_w, sla_tpot, n_out, x):
    """The same of chunked prefill when only the weight read hides."""
    return sp.Min((delta_p + delta_h) / (_u * (_prompt + delta_h)), (delta_p + delta_h) / delta_h)


@formula(r"x_{S}", claim="C31", domain=sp.And(_fits, delta_h * n_out > _u * t_w))
def masking_speedup(delta_p, delta_h, t_w, sla_tpot, n_out):
    """Prefill speedup with which chunks hide entirely at an equal limit on TPOT; more gains nothing."""
    return delta_p / (delta_h / _u - t_w / n_out)
