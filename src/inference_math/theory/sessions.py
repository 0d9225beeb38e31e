"""Users who come back to a store: what it must hold, and for how many it does (E05, E06).

A store drops what nobody has used for longest, so it keeps everything for some time, θ. In that time it takes in what
prompts bring, and what they read again after longer than θ. Gaps between the turns of a user are exponential here; with
equal ones the store finds all or nothing, on either side of `users_border`.
"""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK
from inference_math.theory.formula import Formula
from inference_math.theory.notation import again, brought, kept, kv_capacity, turn_gap, users

__all__ = ["kept_share", "users_border", "working_set"]

working_set = Formula(
    name="working_set",
    arguments=(users, brought, again, turn_gap, kept),
    expr=users * (brought * kept / turn_gap + again * (1 - sp.exp(-kept / turn_gap))),
    latex_name=r"W(\theta)",
    unit="token",
    claim="E05",
    source=BOOK,
    meaning="different tokens that users touch within a time: what a store must hold to keep them for so long",
)
kept_share = Formula(
    name="kept_share",
    arguments=(turn_gap, kept),
    expr=1 - sp.exp(-kept / turn_gap),
    latex_name=r"G(\theta)",
    unit="1",
    claim="E05",
    source=BOOK,
    meaning="share of the turns that come back before the store has dropped them",
)
users_border = Formula(
    name="users_border",
    arguments=(kv_capacity, brought, again),
    expr=kv_capacity / (brought + again),
    latex_name=r"U^{*}",
    unit="1",
    claim="E06",
    source=BOOK,
    meaning="users beyond whom a store finds nothing any more, if the gaps between their turns are equal",
)
