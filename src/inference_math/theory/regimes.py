"""Which of the two weighs more, ΔP or the KV read: short prompts, long prompts, long answers (claims C18–C20).

All rates are datasheet rates or measured ones; the ratio needs only that prefill is bound by compute
and decode attention by bandwidth. hbm_bw / (flops * kv_token) is the time of one FLOP over that of reading the cache
of one token.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory._talks import B_AND_C
from inference_math.theory.formula import formula


@formula(r"(\Delta P/h_{\mathrm{KV}})_{\mathrm{short}}", claim="C18", source=B_AND_C)
def cost_ratio_short(n_params, kv_token, hbm_bw, flops, n_out):
    """ΔP over the KV read of prompts whose attention is negligible: the prompt's length cancels."""
    return 2 * n_params * hbm_bw / (flops * kv_token) / n_out


@formula(r"(\Delta P/h_{\mathrm{KV}})_{\mathrm{long}}", claim="C19")
def cost_ratio_long(n_layers, d_att, kv_token, hbm_bw, flops, n_in, n_out):
    """ΔP over the KV read of prompts that are all attention, every token seeing the whole prompt."""
    return 4 * n_layers * d_att * n_in * hbm_bw / (flops * kv_token) / n_out


@formula(
    r"(\Delta P/h_{\mathrm{KV}})_{\mathrm{long}}^{\mathrm{printed}}",
    unit="byte^0.5*token^0.5/FLOP",
    claim="C19",
    source=B_AND_C,
)
def cost_ratio_long_printed(n_params, kv_token, hbm_bw, flops, n_in, n_out):
    """The same with the root over both, as transcribed: it changes with the model's width, and has a unit."""
    return sp.sqrt(n_params / kv_token) * hbm_bw / flops * n_in / n_out


@formula(r"\Delta P/h_{\mathrm{KV}}", claim="C20")
def cost_ratio(n_params, n_layers, d_att, kv_token, hbm_bw, flops, n_in, n_out):
    """ΔP over the KV read of a causal prompt of any length, the read at a context of the prompt's length."""
    return (2 * n_params + 2 * n_layers * d_att * n_in) * hbm_bw / (flops * kv_token) / n_out


@formula(r"N_{\mathrm{out}}^{*}", unit="token", claim="C18")
def break_even_output(n_params, kv_token, hbm_bw, flops):
    """Output tokens at which ΔP is the KV read for short prompts, the answer's own cache left out."""
    return 2 * n_params * hbm_bw / (flops * kv_token)


@formula(r"N_{\mathrm{out}}^{**}", unit="token", claim="C18")
def break_even_output_growing(n_in, n_params, kv_token, hbm_bw, flops):
    """Output tokens at which ΔP is the KV read for short prompts when the answer's own cache is read, too."""
    return sp.sqrt(n_in**2 + 2 * n_in * break_even_output.expr) - n_in
