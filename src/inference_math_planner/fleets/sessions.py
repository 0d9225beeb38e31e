"""Users who come back: what a store of a size finds of what they said before [E05, E06].

Plain Python, but for two functions of SciPy that the page has of its own: the book prints it as JavaScript.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf

from scipy.optimize import brentq
from scipy.special import gammainc

from inference_math_planner.fleets.types import SessionNumbers, TurnNumbers

EQUAL = 1e-3  # of a coefficient of variation: times are as good as equal


def session_of(turns: TurnNumbers, served: float) -> SessionNumbers:
    """Return the means of sessions of equal turns, each of which waits and is served for so many seconds.

    The first prompt has `first` tokens beside the shared ones, each further one all that was said before and a
    `message`.
    """
    each, first, message, answer = turns.turns, turns.first, turns.message, turns.answer
    again = (each - 1) / each * (first + answer) + (message + answer) * (each - 1) * (each - 2) / (2 * each)
    return SessionNumbers(
        again=max(again, 0.0),
        brought=(first + (each - 1) * message) / each + answer,
        gap=turns.think + served,
        cv=turns.cv,
        answer=answer,
        shared=turns.shared,
        served=served,
    )


def prompt_of(one: SessionNumbers) -> float:
    """Return the mean tokens of a prompt."""
    return one.shared + one.again + one.brought - one.answer


def come_back(one: SessionNumbers, seconds: float) -> float:
    """Return the share of the turns that come within so many seconds after the answer before."""
    think = one.gap - one.served
    if one.cv < EQUAL or think <= 0:
        return 1.0 if seconds >= think else 0.0
    shape = one.cv**-2
    return float(gammainc(shape, shape * seconds / think))


def mean_think(one: SessionNumbers, most: float) -> float:
    """Return the mean of the times that users think, of which none counts more than so many seconds."""
    think = one.gap - one.served
    if one.cv < EQUAL or think <= 0 or most == inf:
        return min(think, most)
    shape = one.cv**-2
    shorter = float(gammainc(shape + 1, shape * most / think))
    return think * shorter + most * (1 - come_back(one, most))


def border(one: SessionNumbers, capacity: float) -> float:
    """Return for how many users a store of so many tokens holds all that their next turns read [E06]."""
    return max(0.0, capacity - one.shared) / (one.brought + one.again)


def working_set(one: SessionNumbers, users: float, seconds: float) -> float:
    """Return the different tokens that are held by turns in flight, or were within so many seconds."""
    held = (one.again + one.brought) * one.served
    moved = one.brought * seconds + one.again * mean_think(one, seconds)
    return one.shared + users / one.gap * (held + moved)


def kept_for(one: SessionNumbers, users: float, capacity: float) -> float:
    """Return the seconds for which a store of so many tokens keeps what no turn in flight holds."""
    if capacity <= working_set(one, users, 0.0):
        return 0.0
    longest = one.gap * capacity / (users * one.brought)
    most = longest * (1 + 1e-9)
    return root(lambda t: working_set(one, users, t) - capacity, 0.0, most, 1e-12 * longest)


def used_within(one: SessionNumbers, seconds: float) -> float:
    """Return the share of all prompt tokens that were used within so many seconds before.

    What all prompts share is used all the time.
    """
    return (one.shared + one.again * come_back(one, seconds)) / prompt_of(one)


def found_within(one: SessionNumbers, users: float, lifetime: float) -> float:
    """Return the share of all prompt tokens that a store finds which drops what was not used for its lifetime.

    What all prompts share is there if any turn came within it.
    """
    common = one.shared * (1 - exp(-users * lifetime / one.gap))
    return (common + one.again * come_back(one, lifetime)) / prompt_of(one)


def found_by(one: SessionNumbers, users: float, capacity: float, lifetime: float) -> float:
    """Return the share of all prompt tokens that a store of so many tokens finds [E05].

    It drops what was not used for longest, and what was not used for its `lifetime` in seconds.
    """
    if capacity < one.shared:
        return 0.0
    if capacity < working_set(one, users, 0.0):  # turns in flight have no room, and leave none
        return one.shared / prompt_of(one)
    kept = kept_for(one, users, capacity)
    return used_within(one, kept) if kept <= lifetime else found_within(one, users, lifetime)


def needed_tokens(one: SessionNumbers, users: float, share: float, lifetime: float) -> float:
    """Return the tokens of a store that finds a share of what one finds which drops nothing before its `lifetime`."""
    wanted = share * found_within(one, users, lifetime) * prompt_of(one) - one.shared
    if wanted <= 0:  # what all prompts share is enough
        return working_set(one, users, 0.0)
    think, back = one.gap - one.served, wanted / one.again
    if one.cv < EQUAL or think <= 0:
        return working_set(one, users, think) * (1 + 1e-9)  # all of the sessions, or nothing
    last = think
    while come_back(one, last) < back:
        last = 2 * last
    return working_set(one, users, root(lambda t: come_back(one, t) - back, 0.0, last, 1e-12 * last))


def root(height: Callable[[float], float], low: float, high: float, near: float) -> float:
    """Return where a function of which both ends have unlike signs is 0."""
    return float(brentq(height, low, high, (), near, 1e-12))
