import pytest
from matplotlib.figure import Figure

from inference_math import Unit
from inference_math_book.figures import unit as plots

UNIT = Unit.of("llama-3-70b", "h100-sxm", tp=2, weights="fp8", kv="fp8")


def test_bars_are_as_long_as_their_steps():
    steps = {"one": (1, 2048, 0), "chunk": (64, 2048, 512)}
    frame = plots.step_parts(Figure().subplots(), UNIT, steps).set_index("step")
    for name, step in steps.items():
        assert frame.loc[name].sum() == pytest.approx(UNIT.step_time(*step))
