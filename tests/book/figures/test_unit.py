import pytest
from matplotlib.figure import Figure

from inference_math import Unit, catalogue
from inference_math.unit.operators import Operators
from inference_math_book.figures import unit as plots

UNIT = Unit.of("llama-3-70b", "h100-sxm", tp=2, weights="fp8", kv="fp8")


def test_the_three_combinations_are_ordered_and_meet_at_the_ends():
    frame = plots.combined(Operators(catalogue.model("llama-3-70b"), tp=4))
    assert (frame.maximum <= frame.quadrature).all()
    assert (frame.quadrature <= frame.added).all()
    assert frame.quadrature.iloc[-1] == pytest.approx(frame.gemm.iloc[-1])
    assert frame.quadrature.iloc[0] == pytest.approx(frame.gemm.iloc[0], rel=0.01)


def test_bars_are_as_long_as_their_steps():
    steps = {"one": (1, 2048, 0), "chunk": (64, 2048, 512)}
    frame = plots.step_parts(Figure().subplots(), UNIT, steps).set_index("step")
    for name, step in steps.items():
        assert frame.loc[name].sum() == pytest.approx(UNIT.step_time(*step))
