"""What a store brings to an engine, what its path costs, and when it collapses (E07, E08, E09)."""

from __future__ import annotations

import sympy as sp

from inference_math.theory._talks import BOOK
from inference_math.theory.formula import Formula
from inference_math.theory.notation import (
    R,
    T,
    again,
    brought,
    e,
    kv_capacity,
    left,
    loaded,
    missed,
    missed_without,
    n_out,
    prompt_share,
    served,
    t_w,
    think,
    turn_away,
    turn_busy,
    users,
    write,
)

__all__ = ["break_even_reads", "held_share", "link_rate", "prefill_left", "store_gain", "turn_rate", "users_collapse"]

store_gain = Formula(
    name="store_gain",
    arguments=(prompt_share, left),
    expr=1 / (1 - prompt_share * (1 - left)),
    latex_name=r"\frac{X_{\mathrm{store}}}{X}",
    unit="1",
    claim="E07",
    source=BOOK,
    meaning="rate of a busy engine with a store over that without it, if as many requests decode: Amdahl's law",
)
prefill_left = Formula(
    name="prefill_left",
    arguments=(missed, missed_without, loaded, e, write),
    expr=(missed * (1 + write) + loaded / e) / missed_without,
    latex_name=r"r",
    unit="1",
    claim="E08",
    source=BOOK,
    meaning="time that prompts take with a store over that without it, where loading and storing keep the engine",
)
break_even_reads = Formula(
    name="break_even_reads",
    arguments=(write, e),
    expr=write / (1 - 1 / e),
    latex_name=r"n_{\mathrm{read}}",
    unit="1",
    claim="E08",
    source=BOOK,
    meaning="times that a stored token must be loaded to repay what storing it took",
    domain=e > 1,
)
link_rate = Formula(
    name="link_rate",
    arguments=(again, R),
    expr=1 / (again * R),
    latex_name=r"X_{\mathrm{link}}",
    unit="1/s",
    claim="E08",
    source=BOOK,
    meaning="turns per second that a link to a store carries at most, where each turn loads all that it reads again "
    "and the engine goes on meanwhile",
)
_room = kv_capacity / (users * (again + brought))
held_share = Formula(
    name="held_share",
    arguments=(kv_capacity, users, again, brought, served, think),
    expr=sp.Max(0, sp.Min(1, _room - (1 - _room) * served / think)),
    latex_name=r"G(t_{\mathrm{served}})",
    unit="1",
    claim="E09",
    source=BOOK,
    meaning="share of the turns that find their session in what turns in flight leave of a store: exponential "
    "thinking, sessions that have ended not counted",
)
users_collapse = Formula(
    name="users_collapse",
    arguments=(kv_capacity, again, brought, think, T),
    expr=kv_capacity / (again + brought) + think / (again * T),
    latex_name=r"U^{**}",
    unit="1",
    claim="E09",
    source=BOOK,
    meaning="users from whom on a busy engine's store cannot keep up what it finds: each miss makes more of them",
)
# Users who think, compute their prompt, and take N_out steps of t_w / (1 - X t_busy), where X t_busy is the share of
# the time that prompts and reads take: a quadratic equation in the rate X.
_sum = users * turn_busy + turn_away + n_out * t_w
turn_rate = Formula(
    name="turn_rate",
    arguments=(users, turn_away, turn_busy, n_out, t_w),
    expr=2 * users / (_sum + sp.sqrt(_sum**2 - 4 * users * turn_away * turn_busy)),
    latex_name=r"X(U)",
    unit="1/s",
    claim="E09",
    source=BOOK,
    meaning="turns per second of users in a closed loop whose prompts never wait for each other",
)
