"""What one more request adds to every step, and what a batch of requests waits for (claims C12–C14, C21).

B slots are always full. In every step a slot either prefills its new request (once in N_out steps) or
decodes one token. A step costs the weights, plus one KV-cache read for every decode, plus the prefills.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory._talks import B_AND_C
from inference_math.theory.formula import formula


@formula(r"\Delta P", unit="s", claim="C14", source=B_AND_C)
def delta_p(ttft_1, n_out):
    """Prefill of one more request, spread over the steps of its decode."""
    return ttft_1 / n_out


@formula(r"\Delta P_{\mathrm{net}}", unit="s", claim="C14")
def delta_p_net(ttft_alone, t_w, n_out):
    """ΔP without the weight read, which a prefill in a batch shares with the others' decodes."""
    return sp.Max(0, ttft_alone - t_w) / n_out


@formula(r"h_{\mathrm{KV}}", unit="s", claim="C14", source=B_AND_C)
def cache_read(n_in, kv_token, hbm_bw):
    """KV read of one more request, which the talks count as ΔH; an engine adds to it."""
    return n_in * kv_token / hbm_bw


@formula(r"\overline{N}", unit="token", claim="C14")
def mean_context(n_in, n_out, cv):
    """Mean context of a decode step: long answers are met more often than short ones."""
    return n_in + n_out / 2 + cv**2 * n_out**2 / (2 * (n_out - 1))


@formula(r"\mathrm{E}[k]", claim="C12", source=B_AND_C)
def concurrent_prefills(B, n_out):
    """Mean number of the other requests that prefill in one step; the number K is Binom(B − 1, 1/N_out)."""
    return (B - 1) / n_out


@formula(r"\mathrm{P}(k = 0)", claim="C12")
def undisturbed_share(B, n_out):
    """Share of the tokens of a request that no other request's prefill delays."""
    return (1 - 1 / n_out) ** (B - 1)


@formula(r"\mathrm{TTFT}(B)", unit="s", claim="C13", source=B_AND_C)
def expected_ttft(B, n_out, ttft_alone):
    """Mean time to first token with B concurrent requests, as printed."""
    return (1 + (B - 1) / n_out) * ttft_alone


@formula(r"\overline{\mathrm{TTFT}}(B)", unit="s", claim="C13")
def expected_ttft_full(B, n_out, ttft_1, delta_h, t_w):
    """Mean time to first token with the others' KV-cache reads and the weight read of the same step."""
    return (1 + (B - 1) / n_out) * ttft_1 + (B - 1) * (1 - 1 / n_out) * delta_h + t_w


@formula(r"\mathrm{TPOT}(B)", unit="s", claim="C14", source=B_AND_C)
def expected_tpot(B, tpot_1, delta_p, delta_h):
    """Mean time per output token with B concurrent requests, as printed."""
    return tpot_1 + (B - 1) * (delta_p + delta_h)


@formula(r"\overline{\mathrm{TPOT}}(B)", unit="s", claim="C14")
def expected_tpot_full(B, n_out, tpot_1, delta_p, delta_h, T, z):
    """Mean time per output token; a slot that prefills does not decode, and a decode computes, too."""
    return tpot_1 + (B - 1) * (delta_p + (1 - 1 / n_out) * (delta_h + z * T))


@formula("z", claim="C14")
def exposed_compute(B, t_w, T):
    """Share of one more decode's compute that lengthens the step, if weights and compute add in quadrature."""
    return B * T / sp.sqrt(t_w**2 + (B * T) ** 2)


@formula(r"\overline{t}_{\mathrm{step}}", unit="s", claim="C14")
def mean_step(B, n_out, t_w, delta_p, delta_h):
    """Mean time of a step with B slots that are always full."""
    return t_w + B * (delta_p + (1 - 1 / n_out) * delta_h)


@formula(r"\lambda(B)", unit="1/s", claim="C36")
def request_rate(B, n_out, t_w, delta_p, delta_h):
    """Requests that B slots finish per second when they are always full."""
    return B / (n_out * mean_step.expr)


@formula(r"s_{P}", claim="C21")
def prefill_share(B, n_out, t_w, delta_p, delta_h):
    """Share of the unit's time that goes into prefills."""
    return B * delta_p / mean_step.expr
