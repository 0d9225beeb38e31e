"""Axes to draw on."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes


@pytest.fixture
def ax() -> Iterator[Axes]:
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)
