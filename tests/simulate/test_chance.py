"""Numbers by chance that every language draws alike."""

import numpy as np
import pytest
from scipy import stats

from inference_math.simulate.chance import PRIME, Dice, gamma_of


def rolled(draw, count=20_000, seed=0.3):
    dice = Dice(seed)
    return np.array([draw(dice) for _ in range(count)])


def test_the_generator_is_that_of_park_and_miller():
    """Their check: from 1, the ten-thousandth state is 1043618065."""
    dice = Dice(0.0)  # whose first rolls are taken
    for _ in range(10_000 - 3):
        last = dice.roll()
    assert round(last * PRIME) == 1_043_618_065


def test_rolls_are_even_and_other_seeds_are_other_rolls():
    rolls = rolled(lambda dice: dice.roll())
    assert 0 < rolls.min() < rolls.max() < 1
    assert stats.kstest(rolls, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(rolls[1:], rolls[:-1])[0, 1]) < 0.02
    firsts = [Dice((k + 0.5) / 541).roll() for k in range(541)]
    assert stats.kstest(firsts, "uniform").pvalue > 0.001  # of neighbours, too


def test_normal_variates_are_normal():
    assert stats.kstest(rolled(lambda dice: dice.normal()), "norm").pvalue > 0.001


@pytest.mark.parametrize("shape", [0.02, 0.25, 1.0, 7.5, 400.0])
def test_gamma_variates_have_their_law(shape):
    drawn = rolled(lambda dice: gamma_of(shape, dice))
    assert stats.kstest(drawn, "gamma", args=(shape,)).pvalue > 0.001
    assert drawn.mean() == pytest.approx(shape, rel=0.15)
