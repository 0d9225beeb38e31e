"""Prefill acceleration by KV-cache offloading (claims C04–C10).

A share alpha of the prompt has its KV cache in a store. Loading a token is e times faster than
computing it. Where the prompt's length cancels, times are in units of its full compute time: 1 - alpha is computed,
alpha / e is loaded.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory._talks import B_AND_C, TALKS, A
from inference_math.theory.formula import formula


@formula(r"\mathrm{TTFT}^{V}", unit="s", claim="C04", source=B_AND_C)
def ttft_vanilla(n_in, T):
    """Time to first token when the whole prompt is computed."""
    return n_in * T


@formula(r"\mathrm{TTFT}^{KV}", unit="s", claim="C04", source=B_AND_C)
def ttft_kv(n_in, T, alpha, e, W):
    """Time to first token when loading, writing and computing overlap perfectly."""
    return n_in * sp.Max(alpha * T / e, (1 - alpha) * W, (1 - alpha) * T)


@formula("x", claim="C05", source=TALKS)
def speedup_layerwise(alpha, e):
    """Prefill speedup with loading hidden behind computing, prefill linear in the prompt."""
    return 1 / sp.Max(1 - alpha, alpha / e)


@formula(r"x_{\mathrm{causal}}", claim="C05")
def speedup_layerwise_causal(alpha, e, phi):
    """Prefill speedup with loading hidden behind computing, the suffix attending to the loaded prefix."""
    return 1 / sp.Max((1 - alpha) * (1 + alpha * phi), alpha / e)


@formula(r"\alpha^{*}", claim="C06", source=TALKS)
def crossover(e):
    """Stored share at which loading takes as long as computing the rest, the best share to load."""
    return e / (1 + e)


@formula(r"\alpha^{*}_{\mathrm{causal}}", claim="C06")
def crossover_causal(e, phi):
    """The crossover when the computed suffix attends to the loaded prefix."""
    slope = 1 / e + 1 - phi
    return 2 / (slope + sp.sqrt(slope**2 + 4 * phi))


@formula(r"x_{\mathrm{step}}", claim="C05")
def speedup_step(alpha, e, beside):
    """Speedup of a prompt's whole step where its parts add: what it takes beside the prompt is not saved, and hides
    loading.
    """
    return (1 + beside) / sp.Max(beside + 1 - alpha, alpha / e)


@formula(r"\alpha^{*}_{\mathrm{step}}", claim="C06")
def crossover_step(e, beside):
    """The crossover when loading also hides under what a step takes beside the prompt, where the parts of the step add;
    1 where all of it hides.
    """
    return sp.Min(1, (1 + beside) * e / (1 + e))


@formula(r"x_{\mathrm{root}}", claim="C05")
def speedup_root(alpha, e, beside):
    """Speedup of a prompt's whole step where reading weights and computing share it in quadrature, as plans count."""
    return sp.sqrt(beside**2 + 1) / sp.Max(sp.sqrt(beside**2 + (1 - alpha) ** 2), alpha / e)


@formula(r"\alpha^{*}_{\mathrm{root}}", claim="C06")
def crossover_root(e, beside):
    """The crossover when loading hides under a step whose weight read and computing share it in quadrature; 1 where
    all of it hides.
    """
    meets = sp.Max(0, 1 - (1 - 1 / e**2) * (1 + beside**2))  # below 0 loading is the shorter at every share
    return sp.Min(1, (1 + beside**2) / (1 + sp.sqrt(meets)))


@formula(r"x_{\mathrm{mixed}}", claim="C07")
def speedup_mixed(alpha, e):
    """Prefill speedup when no more than the crossover share is loaded and the rest recomputed."""
    return 1 / sp.Max(1 - alpha, 1 / (1 + e))


@formula(r"\alpha^{*}_{\mathrm{link}}", claim="C08")
def crossover_shared_link(e, T, W):
    """Stored share from which a link shared by reads and writes is slower than computing; 0 for W ≥ T."""
    reads = sp.Max(0, 1 - W / T)  # what writes leave of the link
    return reads / (reads + 1 / e)


@formula(r"e_{\min}", claim="C09")
def acceleration_needed(alpha):
    """Token acceleration from which faster IO brings nothing more, with perfect overlap."""
    return alpha / (1 - alpha)


@formula(r"e_{\min,\mathrm{root}}", claim="C09")
def acceleration_needed_root(alpha, beside):
    """Token acceleration from which faster IO brings nothing more when loading hides under a step whose weight read and
    computing share it in quadrature.
    """
    return alpha / sp.sqrt(beside**2 + (1 - alpha) ** 2)


@formula(r"x_{\mathrm{whole}}", claim="C10", source=A)
def speedup_whole(alpha, e):
    """Prefill speedup when everything is loaded before computing starts."""
    return 1 / (1 - alpha + alpha / e)


@formula("x_{L}", claim="C10")
def speedup_pipelined(alpha, e, n_layers):
    """Prefill speedup when loads follow each other and a layer is computed once it is loaded."""
    return n_layers / (alpha / e + 1 - alpha + (n_layers - 1) * sp.Max(1 - alpha, alpha / e))


@formula(r"x/x_{\mathrm{whole}}", claim="C10")
def pipelining_gain(alpha, e):
    """What perfect overlap gains over loading everything first."""
    return 1 + sp.Min(1 - alpha, alpha / e) / sp.Max(1 - alpha, alpha / e)


@formula(r"\max_{\alpha}\, x_{L}/x_{\mathrm{whole}}", claim="C10")
def pipelining_gain_layers(n_layers):
    """The largest gain of an L-layer pipeline, reached at the crossover."""
    return 2 * n_layers / (n_layers + 1)


@formula(r"\alpha_{K}", claim="C11")
def reuse_conversation(turns):
    """Share of all prompt tokens of a conversation that earlier turns had, for turns of equal length."""
    return (turns - 1) / (turns + 1)


@formula(r"\alpha_{K,w}", claim="C32")
def reuse_local(turns, units):
    """The same when each turn goes to a unit at random and finds what that unit has kept itself."""
    elsewhere = 1 - 1 / units  # chance that a turn goes to another unit than the one before
    return 1 - 2 * units / (turns * (turns + 1)) * (turns - (units - 1) * (1 - elsewhere**turns))
