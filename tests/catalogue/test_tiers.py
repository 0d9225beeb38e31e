import numpy as np
import pytest

from inference_math import evidence, theory
from inference_math.catalogue import tiers


def test_the_tiers_are_those_of_the_table_the_fastest_first():
    found = tiers.tiers()
    assert list(found) == ["hbm", "dram", "network_store", "local_ssd"]
    speeds = [t.read_bw for t in found.values()]
    assert speeds == sorted(speeds, reverse=True)
    assert [t.name for t in found.values() if t.shared] == ["network_store"]
    assert tiers.tier("network_store").capacity_node is None


@pytest.mark.parametrize("trace", ["mooncake-conversation", "mooncake-synthetic"])
def test_reach_is_the_table_and_never_falls(trace):
    rows = evidence.load("traces_reuse").frame.query("trace == @trace")
    assert tiers.reach(trace, rows.capacity_tokens) == pytest.approx(rows.token_share.to_numpy())
    grid = tiers.reach(trace, np.geomspace(1, 1e12, 200))
    assert (np.diff(grid) >= 0).all()
    assert tiers.reach(trace, 0) == 0
    assert tiers.reach(trace, 1e15) == rows.token_share.iloc[-1]


def test_bad_arguments():
    with pytest.raises(ValueError, match="tier must be one of hbm, dram"):
        tiers.tier("tape")
    with pytest.raises(ValueError, match="trace must be one of"):
        tiers.reach("mine", 10)
    with pytest.raises(ValueError, match="tokens must be"):
        tiers.reach("mooncake-synthetic", -1)


def test_saving_all_that_is_found_needs_the_acceleration_of_the_longest_reuse():
    """The best mix saves at most the share found, and 1/(1+e) of it is lost at least where all is stored."""
    frame = evidence.load("traces_saving").frame
    for trace, rows in frame.groupby("trace"):
        limit = tiers.reach(trace, 1e15)
        assert (rows.saved_mixed <= limit + 1e-4).all()
        assert (rows.saved_mixed >= limit * theory.crossover(e=rows.e.to_numpy()) - 1e-3).all()
        assert (rows.saved_load_all <= rows.saved_mixed + 1e-4).all()
