"""What one token costs: its load, its compute, its write (claims C01–C03)."""

# mypy: allow-untyped-defs

from inference_math.theory._talks import B_AND_C
from inference_math.theory.formula import formula


@formula("R", unit="s/token", claim="C01", source=B_AND_C)
def kv_load_time(kv_token, io_bw):
    """Time to load the KV cache of one token from the store."""
    return kv_token / io_bw


@formula("e", claim="C01", source=B_AND_C)
def token_acceleration(T, R):
    """How many tokens can be loaded in the time of computing one."""
    return T / R


@formula(r"\mathrm{BW_{write}}", unit="byte/s", claim="C08")
def write_bandwidth(kv_token, T):
    """Write bandwidth that keeps up with the prefill (W = T)."""
    return kv_token / T


# One multiplication and one addition for each parameter; the same for each query-key product and each
# weighted value, d_att of both in every layer. A causal mask leaves half of the prompt on average.
@formula("T", unit="s/token", claim="C02", source=B_AND_C)
def token_time(n_params, n_layers, d_att, n_in, flops):
    """Prefill compute time of one token when every token sees the whole prompt."""
    return (2 * n_params + 4 * n_layers * d_att * n_in) / flops


@formula(r"T_{\mathrm{causal}}", unit="s/token", claim="C02")
def token_time_causal(n_params, n_layers, d_att, n_in, flops):
    """Prefill compute time of one token, averaged over a causal prompt."""
    return (2 * n_params + 2 * n_layers * d_att * n_in) / flops


@formula(r"N_{\mathrm{in}}^{*}", unit="token", claim="C03", source=B_AND_C)
def attention_threshold(n_params, n_layers, d_att):
    """Prompt length at which attention costs as much as the matrices."""
    return 2 * n_params / (4 * n_layers * d_att)


@formula(r"N_{\mathrm{in,causal}}^{*}", unit="token", claim="C03")
def attention_threshold_causal(n_params, n_layers, d_att):
    """Prompt length at which causal attention costs as much as the matrices."""
    return 2 * n_params / (2 * n_layers * d_att)


@formula(r"\varphi", claim="C05")
def attention_share_causal(n_params, n_layers, d_att, n_in):
    """Share of attention in the prefill time of a causal prompt, all compute used."""
    return 2 * n_layers * d_att * n_in / (2 * n_params + 2 * n_layers * d_att * n_in)
