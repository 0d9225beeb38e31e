"""Which of the two weighs more, ΔP or ΔH: short prompts, long prompts, long answers (claims C18–C20).

All rates are datasheet rates or measured ones; the ratio needs only that prefill is bound by compute
and decode attention by bandwidth.
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK, B, C
from inference_math.theory.formula import Formula
from inference_math.theory.notation import d_att, flops, hbm_bw, kv_token, n_in, n_layers, n_out, n_params

__all__ = [
    "break_even_output",
    "break_even_output_growing",
    "cost_ratio",
    "cost_ratio_long",
    "cost_ratio_long_printed",
    "cost_ratio_short",
]

# Seconds of compute per FLOP over seconds of reading per byte of one token's cache.
_exchange = hbm_bw / (flops * kv_token)
_even = 2 * n_params * _exchange

cost_ratio_short = Formula(
    name="cost_ratio_short",
    arguments=(n_params, kv_token, hbm_bw, flops, n_out),
    expr=_even / n_out,
    latex_name=r"(\Delta P/\Delta H)_{\mathrm{short}}",
    unit="1",
    claim="C18",
    source=f"{B}; {C}",
    meaning="ΔP/ΔH of prompts whose attention is negligible: the prompt's length cancels",
)
cost_ratio_long = Formula(
    name="cost_ratio_long",
    arguments=(n_layers, d_att, kv_token, hbm_bw, flops, n_in, n_out),
    expr=4 * n_layers * d_att * n_in * _exchange / n_out,
    latex_name=r"(\Delta P/\Delta H)_{\mathrm{long}}",
    unit="1",
    claim="C19",
    source=BOOK,
    meaning="ΔP/ΔH of prompts that are all attention, every token seeing the whole prompt",
)
cost_ratio_long_printed = Formula(
    name="cost_ratio_long_printed",
    arguments=(n_params, kv_token, hbm_bw, flops, n_in, n_out),
    expr=sp.sqrt(n_params / kv_token) * hbm_bw / flops * n_in / n_out,
    latex_name=r"(\Delta P/\Delta H)_{\mathrm{long}}^{\mathrm{printed}}",
    unit="byte^0.5*token^0.5/FLOP",
    claim="C19",
    source=f"{B}; {C}",
    meaning="the same in the transcription we have, a misprint: it changes with the model's width, and has a unit",
)
cost_ratio = Formula(
    name="cost_ratio",
    arguments=(n_params, n_layers, d_att, kv_token, hbm_bw, flops, n_in, n_out),
    expr=(2 * n_params + 2 * n_layers * d_att * n_in) * _exchange / n_out,
    latex_name=r"\Delta P/\Delta H",
    unit="1",
    claim="C20",
    source=BOOK,
    meaning="ΔP/ΔH of a causal prompt of any length, ΔH at a context of the prompt's length",
)
break_even_output = Formula(
    name="break_even_output",
    arguments=(n_params, kv_token, hbm_bw, flops),
    expr=_even,
    latex_name=r"N_{\mathrm{out}}^{*}",
    unit="token",
    claim="C18",
    source=BOOK,
    meaning="output tokens at which ΔP = ΔH for short prompts, the answer's own cache left out",
)
break_even_output_growing = Formula(
    name="break_even_output_growing",
    arguments=(n_in, n_params, kv_token, hbm_bw, flops),
    expr=sp.sqrt(n_in**2 + 2 * n_in * _even) - n_in,
    latex_name=r"N_{\mathrm{out}}^{**}",
    unit="token",
    claim="C18",
    source=BOOK,
    meaning="output tokens at which ΔP = ΔH for short prompts when the answer's own cache is read, too",
)
