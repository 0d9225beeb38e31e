"""How sure a gain is: what was predicted, within the error that does not cancel, as a chance and one of three words.

All verdicts have their words from here: those of plans, of layouts' pools, of stores and of cadences. The page prints
this module.
"""

from __future__ import annotations

from math import floor

from inference_math.optimiser.choice import CAREFUL, LIKELY
from inference_math.optimiser.gain_error import chance_of
from inference_math.optimiser.types import Verdict
from inference_math.unit.types import ComparisonError, Message

MOST_TOLD = 99  # of a hundred: a few pairs cannot tell more
UNSAID = Verdict()  # of what is compared with itself, or was never compared


def word_of(chance: float) -> str:
    """Return the word for the chance that the likelier of two ways is the better one: "sure", "likely" or "open"."""
    if chance >= CAREFUL:
        return "sure"
    return "likely" if chance >= LIKELY else "open"


def hundredths(share: float) -> int:
    """Return a share as so many of a hundred, rounded down: what is not likely yet is not told as if it were."""
    return floor(100 * share + 1e-6)


def verdict(first: list[float], second: list[float], own: list[float]) -> Verdict:
    """Return the chance that the first way gives more than the second, and how sure it is which of them does.

    Both by draw; `own` is how far off the logarithm of their ratio may be, as of `gain_error.gain_error`. Draws in
    which neither gives anything tell nothing; without any there is no verdict.
    """
    count, won = 0, 0.0
    for i in range(len(first)):
        if max(first[i], second[i]) > 0:
            count += 1
            won += chance_of(first[i], second[i], own)
    if count < 1:
        return UNSAID
    chance = won / count
    return Verdict(chance=chance, sure=word_of(max(chance, 1 - chance)))


def worded(key: str, one: Verdict) -> Message:
    """Return the sentence `key` of a verdict: its word, so many of 100 times, if it is a gain, and if it is open."""
    chance = one.chance
    won = min(hundredths(max(chance, 1 - chance)), MOST_TOLD)
    return {"key": key, "word": one.sure, "won": won, "more": chance >= 0.5, "open": one.sure == "open"}


def cell(one: Verdict) -> list[Message]:
    """Return a verdict as a table has it."""
    return [worded("sure.cell", one)] if one.sure != "" else []


def stands_on(known: ComparisonError) -> Message:
    """Say how many pairs of runs tell how far such gains are off."""
    return {"key": "sure.stands", "pairs": known.pairs, "setups": known.setups}
