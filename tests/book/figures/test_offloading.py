import pytest
from matplotlib.figure import Figure

from inference_math import evidence
from inference_math_book.figures import offloading as plots


def test_a_pair_is_one_engine_twice():
    pairs = plots.pairs().set_index("pair")
    runs = evidence.load("agent_stores").frame.set_index("run").answers_s
    assert pairs.gain["Kimi-K3, B300, 16 users"] == pytest.approx(runs.kimik3_b300_c16_on / runs.kimik3_b300_c16_off)
    tiered = evidence.load("tiered_cache").frame.query("prefix_tokens == 50000").set_index("tier").tokens_per_s
    assert pairs.gain["llama-3-70b, H100, prefixes of 50,000"] == pytest.approx(
        tiered["host and shared store"] / tiered["host"]
    )


def test_no_pair_gains_more_than_its_misses_allow():
    known = plots.pairs().dropna(subset="ratio_of_misses")
    assert len(known) >= 10
    assert (known.gain <= known.ratio_of_misses).all()


def test_loading_what_pays_never_costs():
    frame = plots.saved_by_acceleration(Figure().subplots(), "mooncake-conversation", {"SSD": 3.0})
    assert (frame.saved_mixed > 0).all()
    assert frame.saved_load_all.min() < 0 < frame.saved_load_all.max()
    assert frame.saved_mixed.is_monotonic_increasing
    assert plots.load_or_compute(Figure().subplots()).e.is_monotonic_increasing
