from __future__ import annotations

import fit_comparisons
import numpy as np
import pandas as pd
import pytest
import splits

from inference_math.evidence import load

KNOWN = load("comparison_error").frame.set_index("kind")


def errors(engines, setups, pairs, sds, seed=1):
    rng = np.random.default_rng(seed)
    rows = []
    for engine in range(engines):
        of_engine = rng.normal(0, sds[0])
        for setup in range(setups):
            of_setup = rng.normal(0, sds[1])
            rows += [
                (f"{engine}", f"{engine} {setup}", of_engine + of_setup + rng.normal(0, sds[2])) for _ in range(pairs)
            ]
    table = pd.DataFrame(rows, columns=["engine", "setup", "error"])
    return table.assign(kind="k", n_in=1.0, n_out=2.0, models="dense", generations="Hopper")


@pytest.mark.parametrize("sds", [(0.0, 0.0, 0.3), (0.0, 0.4, 0.1), (0.5, 0.1, 0.1)])
def test_parts_of_an_error_are_found_again(sds):
    found = fit_comparisons.fitted(errors(12, 6, 8, sds))
    assert found["sd"] == pytest.approx(np.linalg.norm(sds), rel=0.3)
    assert found["between_engines"] == pytest.approx(sds[0], abs=0.15)
    assert found["between_setups"] == pytest.approx(sds[1], abs=0.1)


def test_of_few_set_ups_all_that_is_off_is_scatter():
    rows = errors(1, 1, 5, (0.0, 0.0, 0.1)).assign(error=[0.2, 0.3, 0.2, 0.3, 0.25])
    found = fit_comparisons.fitted(rows)
    assert (found["bias"], found["sd"]) == (0.0, pytest.approx(np.sqrt((rows["error"] ** 2).mean())))


def test_own_runs_are_set_beside_the_first_of_their_kind():
    found = fit_comparisons.lab()
    assert found.groupby("kind").size().to_dict() == {
        "cadence": 4, "cadence, gap": 4, "cadence, p50": 4, "cadence, p90": 4, "chunks": 6, "store": 4,
    }  # fmt: skip
    for kind in found["kind"].unique():
        again = fit_comparisons.fitted(found[found["kind"] == kind])
        assert again["sd"] == pytest.approx(KNOWN.loc[kind, "sd"], abs=6e-4)


def test_pools_are_fitted_to_the_part_that_chooses_alone(monkeypatch):
    gains = load("predicted_split_gains").frame

    def compared(frame):
        assert frame["part"].unique().tolist() == ["choose"]
        return gains[gains["part"] == "choose"]

    monkeypatch.setattr(splits, "compared", compared)
    found = fit_comparisons.pools()
    for kind, rows in found.groupby("kind"):
        again = fit_comparisons.fitted(rows)
        for name in ("bias", "sd"):
            assert again[name] == pytest.approx(KNOWN.loc[kind, name], abs=2e-3)
        assert (again["pairs"], again["setups"]) == (KNOWN.loc[kind, "pairs"], KNOWN.loc[kind, "setups"])


def test_pools_planned_are_off_by_more_than_pools_played():
    assert KNOWN.loc["pools, planned", "sd"] > 1.5 * KNOWN.loc["pools, played", "sd"]
