"""What no schedule of equal units exceeds at a limit S on the mean time between tokens (claim E12, ours).

Tokens see (S − t_w)/ΔH decodes in their steps at most, in the mean over tokens, and steps have no more than tokens see.
So a weight read serves that many decodes at most: with its share of it, a decode takes ΔH/u seconds of a unit.

>>> from inference_math import theory
>>> case = {"n_out": 170, "delta_h": 0.166e-3, "t_w": 16.7e-3, "sla_tpot": 0.040}  # Llama-3-70B on two H100
>>> print(f"{theory.rate_bound(delta_p=1.064e-3, **case):.2f} requests per second of a unit")
4.37 requests per second of a unit
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory.formula import formula
from inference_math.theory.notation import delta_h, n_out, sla_tpot, t_w, u

_decodes = (n_out - 1) * delta_h / u  # of an answer, with their share of the weight reads; its prompt gives one token
_U = {u: 1 - t_w / sla_tpot}
_one_fits = sp.And(sla_tpot >= t_w + delta_h, n_out >= 1)


@formula("X^{*}", unit="1/s", claim="E12", domain=_one_fits, where=_U)
def rate_bound(delta_p, n_out, delta_h, t_w, sla_tpot):
    """Requests per second of a unit that no schedule of equal units exceeds, if the parts of a step add up."""
    return 1 / (n_out * delta_p + _decodes)


@formula(r"X^{*}_{\mathrm{serial}}", unit="1/s", claim="E12", domain=_one_fits, where=_U)
def rate_bound_serial(delta_p_gross, n_out, delta_h, t_w, sla_tpot):
    """The same where the weight read hides under the prompts of its step, or they under it: chunks reach it."""
    return 1 / sp.Max(n_out * delta_p_gross + (n_out - 1) * delta_h, _decodes)
