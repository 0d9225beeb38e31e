"""What one token costs: its load, its compute, its write (claims C01–C03)."""

from __future__ import annotations

from inference_math.theory._talks import BOOK, B, C
from inference_math.theory.formula import Formula
from inference_math.theory.notation import R, T, d_att, flops, io_bw, kv_token, n_in, n_layers, n_params

__all__ = [
    "attention_share_causal",
    "attention_threshold",
    "attention_threshold_causal",
    "kv_load_time",
    "token_acceleration",
    "token_time",
    "token_time_causal",
    "write_bandwidth",
]

# One multiplication and one addition for each parameter; the same for each query-key product and each
# weighted value, d_att of both in every layer. A causal mask leaves half of the prompt on average.
_linear = 2 * n_params
_attention = 4 * n_layers * d_att * n_in
_attention_causal = _attention / 2

kv_load_time = Formula(
    name="kv_load_time",
    arguments=(kv_token, io_bw),
    expr=kv_token / io_bw,
    latex_name="R",
    unit="s/token",
    claim="C01",
    source=f"{B}; {C}",
    meaning="time to load the KV cache of one token from the store",
)
token_acceleration = Formula(
    name="token_acceleration",
    arguments=(T, R),
    expr=T / R,
    latex_name="e",
    unit="1",
    claim="C01",
    source=f"{B}; {C}",
    meaning="how many tokens can be loaded in the time of computing one",
)
write_bandwidth = Formula(
    name="write_bandwidth",
    arguments=(kv_token, T),
    expr=kv_token / T,
    latex_name=r"\mathrm{BW_{write}}",
    unit="byte/s",
    claim="C08",
    source=BOOK,
    meaning="write bandwidth that keeps up with the prefill (W = T)",
)
token_time = Formula(
    name="token_time",
    arguments=(n_params, n_layers, d_att, n_in, flops),
    expr=(_linear + _attention) / flops,
    latex_name="T",
    unit="s/token",
    claim="C02",
    source=f"{B}; {C}",
    meaning="prefill compute time of one token when every token sees the whole prompt",
)
token_time_causal = Formula(
    name="token_time_causal",
    arguments=(n_params, n_layers, d_att, n_in, flops),
    expr=(_linear + _attention_causal) / flops,
    latex_name=r"T_{\mathrm{causal}}",
    unit="s/token",
    claim="C02",
    source=BOOK,
    meaning="prefill compute time of one token, averaged over a causal prompt",
)
attention_threshold = Formula(
    name="attention_threshold",
    arguments=(n_params, n_layers, d_att),
    expr=_linear / (_attention / n_in),
    latex_name=r"N_{\mathrm{in}}^{*}",
    unit="token",
    claim="C03",
    source=f"{B}; {C}",
    meaning="prompt length at which attention costs as much as the matrices",
)
attention_threshold_causal = Formula(
    name="attention_threshold_causal",
    arguments=(n_params, n_layers, d_att),
    expr=_linear / (_attention_causal / n_in),
    latex_name=r"N_{\mathrm{in,causal}}^{*}",
    unit="token",
    claim="C03",
    source=BOOK,
    meaning="prompt length at which causal attention costs as much as the matrices",
)
attention_share_causal = Formula(
    name="attention_share_causal",
    arguments=(n_params, n_layers, d_att, n_in),
    expr=_attention_causal / (_linear + _attention_causal),
    latex_name=r"\varphi",
    unit="1",
    claim="C05",
    source=BOOK,
    meaning="share of attention in the prefill time of a causal prompt, all compute used",
)
