"""One step of a real unit, term by term: what the hardware must do, over the share of its rates that it reaches.

Every term is bytes over bandwidth or FLOPs over rate, divided by an efficiency in (0, 1]: no step is shorter than
the datasheet allows (claim C14, extended).
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK
from inference_math.theory.formula import Formula
from inference_math.theory.notation import (
    cached,
    d_att,
    eff_compute,
    eff_memory,
    flops,
    hbm_bw,
    link_bw,
    n_in,
    n_layers,
    n_params,
    step_bytes,
    sum_bytes,
    t_c,
    t_read,
    t_rest,
    t_w,
    tokens,
    tp,
)

__all__ = [
    "allreduce_time",
    "attention_time",
    "decode_share",
    "matrix_time",
    "read_time",
    "step_additive",
    "step_full",
    "step_serial",
    "step_time",
]

_products = sp.sqrt(t_w**2 + t_c**2)

read_time = Formula(
    name="read_time",
    arguments=(step_bytes, hbm_bw, eff_memory),
    expr=step_bytes / (eff_memory * hbm_bw),
    latex_name=r"t_{\mathrm{read}}",
    unit="s",
    claim="C14",
    source=BOOK,
    meaning="time to read bytes from HBM: the weights (t_w), KV caches, activations",
)
matrix_time = Formula(
    name="matrix_time",
    arguments=(n_params, tokens, flops, eff_compute),
    expr=2 * n_params * tokens / (eff_compute * flops),
    latex_name="t_{c}",
    unit="s",
    claim="C14",
    source=BOOK,
    meaning="compute time of the matrix products for all tokens of a step",
)
attention_time = Formula(
    name="attention_time",
    arguments=(n_layers, d_att, n_in, cached, flops, eff_compute),
    expr=4 * n_layers * d_att * n_in * (cached + n_in / 2) / (eff_compute * flops),
    latex_name=r"t_{\mathrm{att}}",
    unit="s",
    claim="C14",
    source=BOOK,
    meaning="causal attention of prompt tokens that also see the cached ones before them",
)
allreduce_time = Formula(
    name="allreduce_time",
    arguments=(sum_bytes, tp, link_bw),
    expr=2 * (1 - 1 / tp) * sum_bytes / link_bw,
    latex_name=r"t_{\mathrm{ar}}",
    unit="s",
    claim="C37",
    source=BOOK,
    meaning="ring all-reduce of these bytes among the GPUs of a unit, at the full rate of their links",
)
step_time = Formula(
    name="step_time",
    arguments=(t_w, t_c, t_rest),
    expr=_products + t_rest,
    latex_name=r"t_{\mathrm{step}}",
    unit="s",
    claim="C14",
    source=BOOK,
    meaning="a step: weight read and matrix compute share it in quadrature, everything else adds",
)
step_additive = Formula(
    name="step_additive",
    arguments=(t_w, t_c, t_rest),
    expr=t_w + t_c + t_rest,
    latex_name=r"t_{\mathrm{step}}^{\mathrm{none}}",
    unit="s",
    claim="C14",
    source=BOOK,
    meaning="a step of which nothing hides: the talks' interference",
)
step_serial = Formula(
    name="step_serial",
    arguments=(t_w, t_c, t_rest),
    expr=sp.Max(t_w, t_c) + t_rest,
    latex_name=r"t_{\mathrm{step}}^{\mathrm{serial}}",
    unit="s",
    claim="C24",
    source=BOOK,
    meaning="a step whose weight read hides under its matrices or the other way round; all else adds, KV reads too",
)
step_full = Formula(
    name="step_full",
    arguments=(t_w, t_read, t_c, t_rest),
    expr=sp.Max(t_w + t_read, t_c + t_rest),
    latex_name=r"t_{\mathrm{step}}^{\mathrm{full}}",
    unit="s",
    claim="C23",
    source=BOOK,
    meaning="a step whose reads all hide under its compute or the other way round; t_rest is the prompts' attention",
)
decode_share = Formula(
    name="decode_share",
    arguments=(t_w, t_c),
    expr=t_c / _products,
    latex_name="z",
    unit="1",
    claim="C14",
    source=BOOK,
    meaning="how much of one more token's compute lengthens the step: its slope, between 0 and 1",
)
