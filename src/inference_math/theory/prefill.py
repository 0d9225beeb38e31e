"""Prefill acceleration by KV-cache offloading (claims C04–C10).

A share alpha of the prompt has its KV cache in a store. Loading a token is e times faster than
computing it. All times below leave the prompt's length out once it cancels.
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK, A, B, C
from inference_math.theory.formula import Formula
from inference_math.theory.notation import T, W, alpha, beside, e, n_in, n_layers, phi, turns, units

__all__ = [
    "acceleration_needed",
    "acceleration_needed_step",
    "crossover",
    "crossover_causal",
    "crossover_shared_link",
    "crossover_step",
    "pipelining_gain",
    "pipelining_gain_layers",
    "reuse_conversation",
    "reuse_local",
    "speedup_layerwise",
    "speedup_layerwise_causal",
    "speedup_mixed",
    "speedup_pipelined",
    "speedup_step",
    "speedup_whole",
    "ttft_kv",
    "ttft_vanilla",
]

# In units of the full prompt's compute time: what is loaded, what is computed, what is written.
_load = alpha / e
_compute = 1 - alpha
_compute_causal = (1 - alpha) * (1 + alpha * phi)
_causal_slope = 1 / e + 1 - phi
_write_room = sp.Max(0, 1 - W / T)
_elsewhere = 1 - 1 / units  # probability that a turn goes to another unit than the one before

ttft_vanilla = Formula(
    name="ttft_vanilla",
    arguments=(n_in, T),
    expr=n_in * T,
    latex_name=r"\mathrm{TTFT}^{V}",
    unit="s",
    claim="C04",
    source=f"{B}; {C}",
    meaning="time to first token when the whole prompt is computed",
)
ttft_kv = Formula(
    name="ttft_kv",
    arguments=(n_in, T, alpha, e, W),
    expr=n_in * sp.Max(alpha * T / e, (1 - alpha) * W, (1 - alpha) * T),
    latex_name=r"\mathrm{TTFT}^{KV}",
    unit="s",
    claim="C04",
    source=f"{B}; {C}",
    meaning="time to first token when loading, writing and computing overlap perfectly",
)
speedup_layerwise = Formula(
    name="speedup_layerwise",
    arguments=(alpha, e),
    expr=1 / sp.Max(_compute, _load),
    latex_name="x",
    unit="1",
    claim="C05",
    source=f"{A}; {B}; {C}",
    meaning="prefill speedup with loading hidden behind computing, prefill linear in the prompt",
)
speedup_layerwise_causal = Formula(
    name="speedup_layerwise_causal",
    arguments=(alpha, e, phi),
    expr=1 / sp.Max(_compute_causal, _load),
    latex_name=r"x_{\mathrm{causal}}",
    unit="1",
    claim="C05",
    source=BOOK,
    meaning="prefill speedup with loading hidden behind computing, the suffix attending to the loaded prefix",
)
crossover = Formula(
    name="crossover",
    arguments=(e,),
    expr=e / (1 + e),
    latex_name=r"\alpha^{*}",
    unit="1",
    claim="C06",
    source=f"{A}; {B}; {C}",
    meaning="stored share at which loading takes as long as computing the rest, the best share to load",
)
crossover_causal = Formula(
    name="crossover_causal",
    arguments=(e, phi),
    expr=2 / (_causal_slope + sp.sqrt(_causal_slope**2 + 4 * phi)),
    latex_name=r"\alpha^{*}_{\mathrm{causal}}",
    unit="1",
    claim="C06",
    source=BOOK,
    meaning="the crossover when the computed suffix attends to the loaded prefix",
)
speedup_step = Formula(
    name="speedup_step",
    arguments=(alpha, e, beside),
    expr=(1 + beside) / sp.Max(beside + _compute, _load),
    latex_name=r"x_{\mathrm{step}}",
    unit="1",
    claim="C05",
    source=BOOK,
    meaning="speedup of a prompt's whole step: what it takes beside the prompt is not saved, and hides loading",
)
crossover_step = Formula(
    name="crossover_step",
    arguments=(e, beside),
    expr=sp.Min(1, (1 + beside) * e / (1 + e)),
    latex_name=r"\alpha^{*}_{\mathrm{step}}",
    unit="1",
    claim="C06",
    source=BOOK,
    meaning="the crossover when loading also hides under what a step takes beside the prompt; 1 where all of it hides",
)
speedup_mixed = Formula(
    name="speedup_mixed",
    arguments=(alpha, e),
    expr=1 / sp.Max(_compute, 1 / (1 + e)),
    latex_name=r"x_{\mathrm{mixed}}",
    unit="1",
    claim="C07",
    source=BOOK,
    meaning="prefill speedup when no more than the crossover share is loaded and the rest recomputed",
)
crossover_shared_link = Formula(
    name="crossover_shared_link",
    arguments=(e, T, W),
    expr=_write_room / (_write_room + 1 / e),
    latex_name=r"\alpha^{*}_{\mathrm{link}}",
    unit="1",
    claim="C08",
    source=BOOK,
    meaning="stored share from which a link shared by reads and writes is slower than computing; 0 for W ≥ T",
)
acceleration_needed = Formula(
    name="acceleration_needed",
    arguments=(alpha,),
    expr=alpha / (1 - alpha),
    latex_name=r"e_{\min}",
    unit="1",
    claim="C09",
    source=BOOK,
    meaning="token acceleration from which faster IO brings nothing more, with perfect overlap",
)
acceleration_needed_step = Formula(
    name="acceleration_needed_step",
    arguments=(alpha, beside),
    expr=alpha / (1 - alpha + beside),
    latex_name=r"e_{\min,\mathrm{step}}",
    unit="1",
    claim="C09",
    source=BOOK,
    meaning="token acceleration from which faster IO brings nothing more when loading hides under the whole step",
)
speedup_whole = Formula(
    name="speedup_whole",
    arguments=(alpha, e),
    expr=1 / (_compute + _load),
    latex_name=r"x_{\mathrm{whole}}",
    unit="1",
    claim="C10",
    source=A,
    meaning="prefill speedup when everything is loaded before computing starts",
)
speedup_pipelined = Formula(
    name="speedup_pipelined",
    arguments=(alpha, e, n_layers),
    expr=n_layers / (_load + _compute + (n_layers - 1) * sp.Max(_compute, _load)),
    latex_name="x_{L}",
    unit="1",
    claim="C10",
    source=BOOK,
    meaning="prefill speedup when loads follow each other and a layer is computed once it is loaded",
)
pipelining_gain = Formula(
    name="pipelining_gain",
    arguments=(alpha, e),
    expr=1 + sp.Min(_compute, _load) / sp.Max(_compute, _load),
    latex_name=r"x/x_{\mathrm{whole}}",
    unit="1",
    claim="C10",
    source=BOOK,
    meaning="what perfect overlap gains over loading everything first",
)
pipelining_gain_layers = Formula(
    name="pipelining_gain_layers",
    arguments=(n_layers,),
    expr=2 * n_layers / (n_layers + 1),
    latex_name=r"\max_{\alpha}\, x_{L}/x_{\mathrm{whole}}",
    unit="1",
    claim="C10",
    source=BOOK,
    meaning="the largest gain of an L-layer pipeline, reached at the crossover",
)
reuse_conversation = Formula(
    name="reuse_conversation",
    arguments=(turns,),
    expr=(turns - 1) / (turns + 1),
    latex_name=r"\alpha_{K}",
    unit="1",
    claim="C11",
    source=BOOK,
    meaning="share of all prompt tokens of a conversation that earlier turns had, for turns of equal length",
)
reuse_local = Formula(
    name="reuse_local",
    arguments=(turns, units),
    expr=1 - 2 * units / (turns * (turns + 1)) * (turns - (units - 1) * (1 - _elsewhere**turns)),
    latex_name=r"\alpha_{K,w}",
    unit="1",
    claim="C32",
    source=BOOK,
    meaning="the same when each turn goes to a unit at random and finds what that unit has kept itself",
)
