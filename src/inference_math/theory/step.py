"""One step of a real unit, term by term: what the hardware must do, over the share of its rates that it reaches.

Every term is bytes over bandwidth or FLOPs over rate, divided by an efficiency in (0, 1]: no step is shorter than
the datasheet allows (claim C14, extended).
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory.formula import formula


@formula(r"t_{\mathrm{read}}", unit="s", claim="C14", given="Definition: a bandwidth is bytes over their time")
def read_time(step_bytes, hbm_bw, eff_memory):
    """Time to read bytes from HBM: the weights (t_w), KV caches, activations."""
    return step_bytes / (eff_memory * hbm_bw)


@formula("t_{c}", unit="s", claim="C14")
def matrix_time(n_params, tokens, flops, eff_compute):
    """Compute time of the matrix products for all tokens of a step."""
    return 2 * n_params * tokens / (eff_compute * flops)


@formula(r"t_{\mathrm{att}}", unit="s", claim="C14")
def attention_time(n_layers, d_att, n_in, cached, flops, eff_compute):
    """Causal attention of prompt tokens that also see the cached ones before them."""
    return 4 * n_layers * d_att * n_in * (cached + n_in / 2) / (eff_compute * flops)


@formula(r"t_{\mathrm{ar}}", unit="s", claim="C37")
def allreduce_time(sum_bytes, tp, link_bw):
    """Ring all-reduce of these bytes among the GPUs of a unit, at the full rate of their links."""
    return 2 * (1 - 1 / tp) * sum_bytes / link_bw


@formula(r"t_{\mathrm{step}}", unit="s", claim="C14", given="Definition: a choice of form, held against kernels")
def step_time(t_w, t_c, t_rest):
    """A step: weight read and matrix compute share it in quadrature, everything else adds."""
    return sp.sqrt(t_w**2 + t_c**2) + t_rest


@formula(r"t_{\mathrm{step}}^{\mathrm{none}}", unit="s", claim="C14")
def step_additive(t_w, t_c, t_rest):
    """A step of which nothing hides: the talks' interference."""
    return t_w + t_c + t_rest


@formula(r"t_{\mathrm{step}}^{\mathrm{serial}}", unit="s", claim="C24")
def step_serial(t_w, t_c, t_rest):
    """A step whose weight read hides under its matrices or the other way round; all else adds, KV reads too."""
    return sp.Max(t_w, t_c) + t_rest


@formula(r"t_{\mathrm{step}}^{\mathrm{full}}", unit="s", claim="C23")
def step_full(t_w, t_read, t_c, t_att):
    """A step whose reads all hide under its compute or the other way round."""
    return sp.Max(t_w + t_read, t_c + t_att)


@formula("z", claim="C14")
def decode_share(t_w, t_c):
    """How much of one more token's compute lengthens the step: its slope, between 0 and 1."""
    return t_c / sp.sqrt(t_w**2 + t_c**2)
