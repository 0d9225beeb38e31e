"""Axes to draw on."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes

mpl.use("Agg")


@pytest.fixture
def ax() -> Iterator[Axes]:
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)
