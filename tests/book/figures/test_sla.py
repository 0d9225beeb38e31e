import numpy as np
from matplotlib.figure import Figure

from inference_math import catalogue
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math_book.figures import sla


def numbers(n_in, n_out=64, tp=1, memory=0.9):
    operators = Operators(catalogue.model("llama-3-70b"), tp=tp, weights="fp8", kv="fp8")
    return costs.measured(operators, n_in, n_out, memory=memory)


def test_the_map_s_regions_lie_on_the_right_side_of_their_borders():
    unit = numbers(1000).additive  # whose borders are the closed forms
    frame = sla.binding_map(Figure().subplots(), unit, np.linspace(0.02, 0.12, 21), np.linspace(0.05, 0.5, 31))
    alone = frame[frame.binding == "none fits"]
    assert ((alone.sla_tpot < unit.tpot_1 + 1e-12) | (alone.sla_ttft < unit.ttft(1) + 1e-12)).all()
    ttft, tpot = (frame[frame.binding == name] for name in ("TTFT", "TPOT"))
    border, step = unit.ttft_1 - unit.delta_h, unit.delta_p + unit.delta_h  # floors blur the border by one request
    assert (ttft.sla_ttft - ttft.sla_tpot < border + step).all()
    assert (tpot.sla_ttft - tpot.sla_tpot > border - step).all()
