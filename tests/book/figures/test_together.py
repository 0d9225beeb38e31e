from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from inference_math import catalogue, simulate
from inference_math.optimiser import architectures
from inference_math.unit import costs
from inference_math.unit.operators import Operators
from inference_math.workload import SLA, Workload
from inference_math_book.figures import together as plots
from inference_math_planner import laws

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

    asked = (numbers, (512, 2048), (64, 512), SLA(1.0, 0.04))
    frame = plots.decision_map(Figure().subplots(), *asked, close=0.09)
    for row in frame.to_dict("records"):
        of = numbers(row["n_in"], row["n_out"])
        found = [plots.best_of(architectures.compare(of, 0.04 / f, 1.0 / f)) for f in (1, 1 / 1.09, 1.09)]
        clear = len({name for name, _ in found}) == 1 and min(lead for _, lead in found) >= 0.09
        assert (row["leader"], pytest.approx(row["margin"])) == found[0]
        assert row["best"] == (row["leader"] if clear else "too close to call")
    assert (plots.decision_map(Figure().subplots(), *asked).best == frame.leader).all()


def test_reuse_speeds_the_simulated_cluster_up():
    price = costs.step_cost(UNIT)
    plain = plots.simulated_cluster(price, Workload(2200, 170), None, 2, [8])
    stored = plots.simulated_cluster(price, Workload(2200, 170, alpha=0.8), simulate.Reuse(1e-6), 2, [8])
    assert stored.per_user[0] > plain.per_user[0]
    assert stored.per_gpu[0] > plain.per_gpu[0]


def test_seats_obey_littles_law():
    frame = plots.seats(Figure().subplots(), costs.measured(UNIT, 2200, 170), (1, 8, 64), LLAMA.kv_token("fp8"))
    assert laws.littles_law(rate=frame.rate, latency=frame.stay) == pytest.approx(frame.seats.to_numpy())
    assert (np.diff(frame.rate) > 0).all()
