"""Cards of links have the shape that sites show, weigh little, and say what the package computes now."""

import json

import matplotlib.pyplot as plt
import pytest
from cards import CARDS, SIZE, STATIC
from grids import rest_long
from PIL import Image


@pytest.mark.parametrize("name", rest_long(CARDS))
def test_a_card_has_its_shape_and_shows_the_numbers_of_today(name):
    path = STATIC / f"{name}.png"
    assert path.stat().st_size < 60_000
    with Image.open(path) as picture:
        assert picture.size == SIZE
        shown = json.loads(picture.text["numbers"])
    figure, ax = plt.subplots()
    assert shown == pytest.approx(CARDS[name][2](ax), abs=0.01)  # else: python tools/cards.py
    plt.close(figure)
