import numpy as np
from matplotlib.figure import Figure

from inference_math import catalogue
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math_book.figures import sla
from inference_math_planner.laws import latency


def numbers(n_in, n_out=64, tp=1, memory=0.9):
    operators = Operators(catalogue.model("llama-3-70b"), tp=tp, weights="fp8", kv="fp8")
    return costs.measured(operators, n_in, n_out, memory=memory)


def test_percentile_batches_agree_with_latency():
    busy = numbers(2048, 170, tp=2)
    frame = sla.batch_by_limit(Figure().subplots(), busy, [0.03, 0.2]).set_index("sla_tpot")
    law = {"tpot_1": busy.tpot_1, "delta_p": busy.delta_p, "delta_h": busy.delta_h}
    assert frame.loc[0.2, "P99"] == latency.max_batch_quantile(0.99, 0.2, 170, **law)
    assert frame.loc[0.03, "P99"] <= frame.loc[0.03, "P90"] <= frame.loc[0.03, "P50"]


def test_the_map_s_regions_lie_on_the_right_side_of_their_borders():
    unit = numbers(1000).additive  # whose borders are the closed forms
    frame = sla.binding_map(Figure().subplots(), unit, np.linspace(0.02, 0.12, 21), np.linspace(0.05, 0.5, 31))
    alone = frame[frame.binding == "none fits"]
    assert ((alone.sla_tpot < unit.tpot_1 + 1e-12) | (alone.sla_ttft < unit.ttft(1) + 1e-12)).all()
    ttft, tpot = (frame[frame.binding == name] for name in ("TTFT", "TPOT"))
    border = unit.ttft_1 - unit.delta_h
    step = unit.delta_p + unit.delta_h  # floors blur the border by one request
    assert (ttft.sla_ttft - ttft.sla_tpot < border + step).all()
    assert (tpot.sla_ttft - tpot.sla_tpot > border - step).all()
