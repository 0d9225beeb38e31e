"""Users who come back to a store: what it must hold, and for how many it does (E05, E06).

A store drops what nobody has used for longest, so it keeps everything for some time. In that time it takes in what
prompts bring, and what they read again after a longer one. Gaps between the turns of a user are exponential here; with
equal ones the store finds all or nothing, on either side of `users_border`.
"""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory.formula import formula


@formula(r"W(t_{\mathrm{kept}})", unit="token", claim="E05")
def working_set(users, brought, again, turn_gap, kept):
    """Different tokens that users touch within a time: what a store must hold to keep them for so long."""
    return users * (brought * kept / turn_gap + again * (1 - sp.exp(-kept / turn_gap)))


@formula(r"\gamma(t_{\mathrm{kept}})", claim="E05")
def kept_share(turn_gap, kept):
    """Share of the turns that come back before the store has dropped them."""
    return 1 - sp.exp(-kept / turn_gap)


@formula(r"U^{*}", claim="E06")
def users_border(kv_capacity, brought, again):
    """Users beyond whom a store finds nothing any more, if the gaps between their turns are equal."""
    return kv_capacity / (brought + again)
