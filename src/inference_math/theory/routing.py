"""Requests that a router sends to one of several equal units: the step that they see (E10)."""

# mypy: allow-untyped-defs

from inference_math.theory.formula import formula


@formula(r"\overline{\mathrm{step}}", unit="s", claim="E10")
def routed_step(t_w, delta_p, delta_h, B, units):
    """Mean step that requests in a closed loop see where each goes to one of the units at random."""
    return t_w + (delta_p + delta_h) * (1 + (B - 1) / units)
