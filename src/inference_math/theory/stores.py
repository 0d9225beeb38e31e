"""What a store brings to an engine, what its path costs, and when it collapses (E07, E08, E09)."""

# mypy: allow-untyped-defs

import sympy as sp

from inference_math.theory.formula import formula
from inference_math.theory.notation import e


@formula(r"\frac{X_{\mathrm{store}}}{X}", claim="E07")
def store_gain(prompt_share, left):
    """Rate of a busy engine with a store over that without it, if as many requests decode: Amdahl's law."""
    return 1 / (1 - prompt_share * (1 - left))


@formula(r"r", claim="E08")
def prefill_left(missed, missed_without, loaded, e, write):
    """Time that prompts take with a store over that without it, where loading and storing keep the engine."""
    return (missed * (1 + write) + loaded / e) / missed_without


@formula(r"n_{\mathrm{read}}", claim="E08", domain=e > 1)
def break_even_reads(write, e):
    """Times that a stored token must be loaded to repay what storing it took."""
    return write / (1 - 1 / e)


@formula(r"X_{\mathrm{link}}", unit="1/s", claim="E08")
def link_rate(again, R):
    """Turns per second that a link to a store carries at most, where each turn loads all that it reads again and the
    engine goes on meanwhile.
    """
    return 1 / (again * R)


@formula(r"\gamma(t_{\mathrm{served}})", claim="E09")
def held_share(kv_capacity, users, again, brought, served, think):
    """Share of the turns that find their session in what turns in flight leave of a store: exponential thinking,
    sessions that have ended not counted.
    """
    room = kv_capacity / (users * (again + brought))
    return sp.Max(0, sp.Min(1, room - (1 - room) * served / think))


@formula(r"U_{0}", claim="E09")
def users_collapse(kv_capacity, again, brought, think, rate):
    """Users from whom on a store finds nothing, as turns under way alone fill it.

    For exponential thinking. rate is that of turns, of so many users where nothing is found, nearly that of a full
    engine; again and brought in the mean over turns, for sessions that grow too, where prompts are computed one after
    another.
    """
    return kv_capacity / (again + brought) + think * rate


@formula(r"X(U)", unit="1/s", claim="E09")
def turn_rate(users, turn_away, turn_busy, n_out, t_w):
    """Turns per second of users in a closed loop whose prompts never wait for each other."""
    # Users who think, compute their prompt, and take N_out steps of t_w / (1 - X t_busy), where X t_busy is the share
    # of the time that prompts and reads take: a quadratic equation in the rate X.
    total = users * turn_busy + turn_away + n_out * t_w
    return 2 * users / (total + sp.sqrt(total**2 - 4 * users * turn_away * turn_busy))
