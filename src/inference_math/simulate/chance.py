"""Numbers by chance that are the same in every language: the page draws with them, too."""

from __future__ import annotations

from math import floor, log, sqrt

PRIME = 2**31 - 1  # of the generator of Park and Miller, whose numbers are exact in every language
FIRST_ROLLS = 3  # that hang on the seed too plainly


class Dice:
    """Numbers between 0 and 1, one after the other, that hang on a seed between 0 and 1."""

    def __init__(self, seed: float) -> None:
        self._state = floor(seed * (PRIME - 2)) + 1
        for _ in range(FIRST_ROLLS):
            self.roll()

    def roll(self) -> float:
        """Return the next number."""
        self._state = self._state * 16807 % PRIME
        return self._state / PRIME

    def normal(self) -> float:
        """Return a normal variate, by Marsaglia's polar method."""
        while True:
            one, other = 2 * self.roll() - 1, 2 * self.roll() - 1
            square = one * one + other * other
            if 0 < square < 1:
                return one * sqrt(-2 * log(square) / square)


def gamma_of(shape: float, dice: Dice) -> float:
    """Return a gamma variate of mean `shape`, by the method of Marsaglia and Tsang (2000)."""
    if shape < 1:
        smaller: float = dice.roll() ** (1 / shape)
        return gamma_of(shape + 1, dice) * smaller
    d = shape - 1 / 3
    while True:
        x = dice.normal()
        v = (1 + x / sqrt(9 * d)) ** 3
        if v > 0 and log(dice.roll()) < x * x / 2 + d - d * v + d * log(v):
            return d * v
