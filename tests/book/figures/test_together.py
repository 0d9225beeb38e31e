from itertools import product

import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import SLA, catalogue
from inference_math.optimiser import architectures
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math_book.figures import together as plots

LLAMA = catalogue.model("llama-3-70b")
UNIT = Operators(LLAMA, tp=2, weights="fp8", kv="fp8")


def test_best_of_names_the_highest_rate_and_its_margin():
    frame = pd.DataFrame({"architecture": list(architectures.ARCHITECTURES), "rate": [1.0, 3.0, 2.0]})
    assert plots.best_of(frame) == ("chunked", pytest.approx(0.5))
    assert plots.best_of(frame.assign(rate=0.0)) == ("none fits", 0.0)
    assert plots.best_of(frame.assign(rate=[0.0, 0.0, 2.0])) == ("disaggregated", float("inf"))


def test_the_map_holds_what_compare_finds_and_clear_is_what_leads_however_steps_err():
    def numbers(n, m):
        return costs.measured(UNIT, n, m)

    def decided(close):
        rows = product((512, 2048), (64, 512))
        limits = SLA(1.0, 0.04)
        return pd.DataFrame({"n_in": n, "n_out": m} | plots.decided(numbers(n, m), limits, close) for n, m in rows)

    frame = decided(0.09)
    plots.decision_map(Figure().subplots(), frame)
    for row in frame.to_dict("records"):
        of = numbers(row["n_in"], row["n_out"])
        found = [plots.best_of(architectures.compare(of, 0.04 / f, 1.0 / f)) for f in (1, 1 / 1.09, 1.09)]
        clear = len({name for name, _ in found}) == 1 and min(lead for _, lead in found) >= 0.09
        assert (row["leader"], pytest.approx(row["margin"])) == found[0]
        assert row["best"] == (row["leader"] if clear else "too close to call")
    assert (decided(0.0).best == frame.leader).all()
