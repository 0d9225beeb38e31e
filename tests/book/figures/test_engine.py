"""The engine, seen: requests and their tokens as the simulator has them, whatever moves."""

import json

import pytest
from hypothesis import given, settings, strategies as st

from inference_math.simulate import StepCost
from inference_math_book.explore import Live
from inference_math_book.figures import engine

COST = StepCost(t_w=0.016, T=5e-5, pair=4e-9, kv_read=3.5e-8)


@settings(max_examples=12, deadline=None)
@given(
    rate=st.integers(2, 60), prompt=st.integers(1, 40), answer=st.integers(3, 30), batch=st.integers(1, 12),
    chunk=st.integers(1, 64), units=st.integers(2, 4), split=st.integers(1, 3), stored=st.integers(0, 19),
)  # fmt: skip
def test_every_request_has_its_tokens_and_fills_its_time(rate, prompt, answer, batch, chunk, units, split, stored):
    moved = {"rate": rate, "prompt": 100 * prompt, "answer": answer, "batch": batch, "chunk": 32 * chunk}
    bars, tokens = engine.played(COST, units=units, split=split, stored=stored / 20, **moved)
    assert set(bars.architecture) == set(engine.ARCHITECTURES)
    firsts = tokens.groupby("architecture").ttft.count()
    assert (firsts == 12).all()
    assert tokens.groupby("architecture").gap.count().nunique() == 1  # the same answers everywhere
    for _, own in bars.groupby(["architecture", "request"]):
        rows = own.sort_values(["start", "end"])
        assert rows.start.to_numpy()[1:] == pytest.approx(rows.end.to_numpy()[:-1], abs=0.003)
    pools = bars[bars.architecture == "disaggregated"]
    assert pools[pools.curve == "bubble"].value.sum() < 0.01
    assert (tokens.gap.dropna() > 0).all()


def test_the_chart_is_json_and_lays_lanes_apart():
    spec = Live(engine.seen(COST), alt_text="lanes", presets={"long": {"prompt": 3000}}).spec()
    text = json.dumps(spec, allow_nan=False)
    assert "Infinity" not in text
    first, second = spec["datasets"].values()
    assert {row["request"] for row in first} == set(range(1, 13))
    assert len({row["y"] for row in second}) == 3
    assert set(engine.SETTINGS) < {param["name"] for param in spec["params"]}
