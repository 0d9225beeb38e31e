"""The largest batch that keeps its promises, and what faster prefills gain (claims C15–C17, C30)."""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory._talks import B_AND_C, TALKS, B
from inference_math.theory.formula import formula
from inference_math.theory.notation import cv, n_in, n_out


@formula(r"B_{\max}", claim="C15")
def max_batch(sla_tpot, tpot_1, delta_p, delta_h):
    """Largest batch whose mean TPOT meets its limit; 0 where a request alone misses it."""
    return sp.Max(0, 1 + sp.floor((sla_tpot - tpot_1) / (delta_p + delta_h)))


@formula(r"B_{\max}^{\mathrm{printed}}", claim="C15", source=B_AND_C)
def max_batch_printed(sla_tpot, tpot_1, delta_p, delta_h):
    """The same as printed: it counts the requests beside the first, so it is one too small."""
    return sp.floor((sla_tpot - tpot_1) / (delta_p + delta_h))


@formula(r"B_{\max}^{\mathrm{TTFT}}", claim="C15")
def max_batch_ttft(sla_ttft, ttft_alone, n_out):
    """Largest batch whose mean TTFT, as printed in C13, meets its limit."""
    return sp.Max(0, sp.floor(1 + n_out * (sla_ttft / ttft_alone - 1)))


@formula(r"\overline{B}_{\max}^{\mathrm{TTFT}}", claim="C15")
def max_batch_ttft_full(sla_ttft, n_out, ttft_1, delta_h, t_w):
    """Largest batch whose mean TTFT meets its limit, with the KV-cache reads and the weight read of the step."""
    return sp.Max(0, 1 + sp.floor((sla_ttft - ttft_1 - t_w) / (ttft_1 / n_out + (1 - 1 / n_out) * delta_h)))


@formula(r"C_{\mathrm{KV}}", unit="token", claim="C15")
def kv_capacity(hbm_share, hbm_bytes, workspace, weight_bytes, kv_token):
    """Tokens whose KV cache fits beside the weights, in the share of the HBM that the engine takes."""
    return sp.Max(0, hbm_share * hbm_bytes - workspace - weight_bytes) / kv_token


@formula(r"B_{\max}^{\mathrm{HBM}}", claim="C15")
def max_batch_memory(kv_capacity, n_in, n_out):
    """Largest batch whose KV cache fits when every request keeps room for its last token, answers all alike."""
    return sp.floor(kv_capacity / (n_in + n_out))


@formula(r"B_{\max}^{\mathrm{reserved}}", claim="C15")
def max_batch_reserved(kv_capacity, n_in, n_out, cv):
    """The same for answers of varying length: those that are met in a batch are longer than those that come."""
    return sp.floor(kv_capacity / (n_in + n_out * (1 + cv**2)))


# Who is met in a batch has a longer answer than who comes: n_out (1 + cv²) tokens on average, and half of them are
# there. The spread of what is there is that of a random moment in a gamma-distributed answer.
_held, _spread, _sure = sp.symbols("nbar sigma_n zeta", positive=True)
_GROWING = {
    _held: n_in + n_out * (1 + cv**2) / 2,
    _spread: n_out * sp.sqrt((1 + cv**2) * (1 + 5 * cv**2) / 12),
    _sure: sp.Rational(233, 100),  # standard deviations: full in one moment of a hundred
}


@formula(r"B_{\max}^{\mathrm{growing}}", claim="C15", where=_GROWING)
def max_batch_growing(kv_capacity, n_in, n_out, cv):
    """The same where caches grow block by block: what is there on average, and room for 2.33 standard deviations of it:
    for dozens of requests they are too full in about one moment of a hundred.
    """
    root = (sp.sqrt((_sure * _spread) ** 2 + 4 * _held * kv_capacity) - _sure * _spread) / (2 * _held)
    return sp.Piecewise((sp.Max(1, sp.floor(root**2)), kv_capacity >= n_in + n_out), (0, True))


@formula(r"S_{\mathrm{TTFT}}^{*}", unit="s", claim="C15")
def sla_ttft_matching(sla_tpot, ttft_1, delta_h):
    """Limit on TTFT that allows the same batch as the limit on TPOT; a tighter one binds first."""
    return sla_tpot + ttft_1 - delta_h


@formula(r"B_{q}", claim="C30")
def max_batch_undisturbed(q, n_out):
    """Largest batch in which the share q of the tokens is delayed by no prefill at all."""
    return sp.floor(1 + sp.log(q) / sp.log(1 - 1 / n_out))


@formula(r"B_{KV}/B_{V}", claim="C16", source=B)
def batch_gain(delta_p, delta_h, x):
    """Gain in batch at a TPOT limit when prefills are x times faster, as printed: exact for B − 1."""
    return (delta_p + delta_h) / (delta_p / x + delta_h)


@formula(r"B_{KV}^{\mathrm{async}}/B_{V}", claim="C16")
def batch_gain_async(delta_p, delta_h, alpha, e):
    """The same when loading does not hold up the engine: the store's pipe is a limit of its own."""
    return (delta_p + delta_h) / sp.Max((1 - alpha) * delta_p + delta_h, alpha * delta_p / e)


@formula(r"\lim_{x \to \infty} B_{KV}/B_{V}", claim="C17", source=TALKS)
def gain_bound(delta_p, delta_h):
    """What faster prefills can gain at most."""
    return 1 + delta_p / delta_h
