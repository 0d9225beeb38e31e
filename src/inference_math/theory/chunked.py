"""Chunked prefill: prompts in pieces, each beside the decodes of a step (claims C22–C25).

A chunk hides what runs beside it. Three overlap models: nothing hides (the additive model of interference),
only the weight read hides under the chunk's matrices (serial KV), or all reads do (full, the talk).
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory._talks import A
from inference_math.theory.formula import formula
from inference_math.theory.notation import T, b, chunk, delta_h, delta_p_gross, n_out, pd_ratio, sla_tpot, t_w

# A step of b decodes with all their prefills, nothing hidden; and with the chunk that keeps up with them.
_additive = t_w + b * (delta_p_gross + delta_h)
_full = sp.Max(b * delta_p_gross, t_w + b * delta_h)
_serial = sp.Max(t_w, b * delta_p_gross) + b * delta_h
_u = 1 - t_w / sla_tpot
_fits = sla_tpot >= t_w + delta_h  # a decode, under the limit

# Seconds per output token: aggregated; of a chunk of any size, which feeds min(b, N_c/π) decodes, and
# hides `hidden` seconds of its own time.
_unchunked = t_w / b + pd_ratio * T + delta_h


_fed = sp.Symbol("b_fed", positive=True)
_FED = {_fed: sp.Min(b, chunk / pd_ratio)}  # decodes that are there and that the chunk feeds


def _offbalance(hidden: sp.Expr) -> sp.Expr:
    left = sp.Max(0, chunk * T - hidden)  # of a chunk, beside its step
    return _unchunked / (t_w / _fed + delta_h + pd_ratio / chunk * left)


@formula("N_{c}", unit="token", claim="C22", source=A)
def chunk_size(b, n_in, n_out):
    """Prefill tokens per step that keep b decodes supplied, as printed: every token of an answer takes a decode."""
    return b * n_in / n_out


@formula(r"\overline{N}_{c}", unit="token", claim="C22", domain=n_out > 1)
def chunk_size_full(b, n_in, n_out):
    """Prefill tokens per step that keep b decodes supplied: the first token of an answer is the prompt's."""
    return b * n_in / (n_out - 1)


@formula(r"N_{c}^{\max}", unit="token", claim="C22")
def chunk_budget(b, T, delta_h, t_w, sla_tpot):
    """Largest chunk beside b decodes that keeps a step under the limit, the weight read hidden; 0 if none does."""
    return sp.Piecewise(((sla_tpot - b * delta_h) / T, t_w + b * delta_h <= sla_tpot), (0, True))


@formula("G", claim="C23", source=A)
def chunked_gain(delta_p_gross, delta_h):
    """Gain of chunked over aggregated at equal batch, as printed: everything overlaps, no weight read."""
    return (delta_p_gross + delta_h) / sp.Max(delta_p_gross, delta_h)


@formula(r"G_{\mathrm{full}}", claim="C23")
def chunked_gain_weights(b, t_w, delta_p_gross, delta_h):
    """The same with the weight read."""
    return _additive / _full


@formula(r"G_{\mathrm{serial}}", claim="C24")
def chunked_gain_serial(b, t_w, delta_p_gross, delta_h):
    """Gain when only the weight read hides under the chunk, and the decodes' KV reads add; over aggregated whose
    prompts hide nothing.
    """
    return _additive / _serial


@formula(r"G_{\mathrm{mixed}}", claim="C24", domain=b <= n_out)
def chunked_gain_mixed(b, n_out, t_w, delta_p_gross, delta_h):
    """The same over aggregated where a prompt hides the weight read of its step as a chunk does, one prompt in a step
    at most.
    """
    # The weight read hides under a whole prompt, too: b of N_out steps have one, and its matrices.
    beside = (1 - b / n_out) * t_w + b / n_out * sp.Max(t_w, n_out * delta_p_gross)
    return (beside + b * delta_h) / _serial


@formula("G_{S}", claim="C23", domain=_fits)
def chunked_gain_sla(delta_p_gross, delta_h, t_w, sla_tpot):
    """Gain at an equal limit on TPOT when everything overlaps."""
    return sp.Min((delta_p_gross + delta_h) / (_u * delta_p_gross), (delta_p_gross + delta_h) / delta_h)


@formula(r"G_{S,\mathrm{serial}}", claim="C24", domain=_fits)
def chunked_gain_sla_serial(delta_p_gross, delta_h, t_w, sla_tpot):
    """Gain at an equal limit on TPOT when only the weight read hides."""
    return sp.Min(1 / _u, (delta_p_gross + delta_h) / delta_h)


@formula(r"G_{\mathrm{full}}(N_{c})", claim="C25", where=_FED)
def chunked_gain_offbalance(b, chunk, pd_ratio, T, t_w, delta_h):
    """Gain of a chunk of any size when everything overlaps."""
    return _offbalance(t_w + _fed * delta_h)


@formula(r"G_{\mathrm{serial}}(N_{c})", claim="C25", where=_FED)
def chunked_gain_offbalance_serial(b, chunk, pd_ratio, T, t_w, delta_h):
    """Gain of a chunk of any size when only the weight read hides."""
    return _offbalance(t_w)


@formula(r"\mathrm{TTFT}_{c}/\mathrm{TTFT}(1)", claim="C24")
def ttft_chunked(b, t_w, delta_p_gross, delta_h):
    """Time from a prompt's first chunk to its first token, over its time alone, when everything overlaps."""
    return _full / (b * delta_p_gross)


@formula(r"\mathrm{TTFT}_{c,\mathrm{serial}}/\mathrm{TTFT}(1)", claim="C24")
def ttft_chunked_serial(b, t_w, delta_p_gross, delta_h):
    """The same when only the weight read hides."""
    return _serial / (b * delta_p_gross)
