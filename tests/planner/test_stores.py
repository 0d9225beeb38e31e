"""How big a store: sizes in bytes, what tiers find and bring, errors."""

from __future__ import annotations

import json

import pytest

from inference_math import Unit
from inference_math.catalogue import tiers
from inference_math.planner import size_store
from inference_math.workload.sessions import Sessions

AGENTS = Sessions.of_turns(turns=60, first=15_000, message=1_500, answer=500, gap=30)
UNIT = Unit.of("llama-3-70b", "h100-sxm", 4, weights="fp8", kv="fp8")
TIERS = {"dram": 2e12, "local_ssd": 30e12}


def test_a_ladder_is_the_law_in_bytes():
    found = size_store(UNIT, AGENTS, 500, TIERS, units=8)
    each = UNIT.model.kv_token("fp8")
    rows = found.tiers.set_index("tier")
    assert list(rows.index) == ["hbm", "dram", "local_ssd"]
    assert rows.gb.tolist()[1:] == pytest.approx([2000, 30_000])
    hbm = 8 * UNIT.kv_tokens(AGENTS.prompt)
    assert rows.tokens.tolist() == pytest.approx([hbm, 2e12 / each, 30e12 / each])
    law = AGENTS.of(500)
    assert rows.together.tolist()[1] == pytest.approx(law.found(hbm + 2e12 / each))
    assert found.tiers.users.iloc[0] == pytest.approx(AGENTS.border(hbm))
    assert found.needed[0.9] == pytest.approx(law.size_for(0.9) * each / 1e9)
    assert found.gb == pytest.approx(AGENTS.prompt * each / 1e9)


def test_what_a_tier_brings_is_computed_or_waited_for():
    found = size_store(UNIT, AGENTS, 500, TIERS, units=8).tiers
    assert (found.ttft.diff().dropna() < 0).all()
    whole = UNIT.prefill_time(AGENTS.prompt)
    hbm = found.iloc[0]
    assert hbm.ttft == pytest.approx(UNIT.prefill_time(AGENTS.prompt, cached=hbm.found * AGENTS.prompt))
    assert (found.speedup * found.ttft).tolist() == pytest.approx([whole] * 3)
    small = Unit.of("llama-3-8b", "h100-sxm")  # computes a token as fast as it loads some
    slow = size_store(small, AGENTS, 5000, {"local_ssd": 1e15}).tiers.iloc[-1]
    loaded = slow.found * AGENTS.prompt * small.model.kv_token("bf16") / tiers.tier("local_ssd").read_bw
    assert slow.ttft == pytest.approx(loaded)


def test_more_users_find_less_and_all_is_written():
    few, many = (size_store(UNIT, AGENTS, users, TIERS) for users in (10, 2000))
    assert (few.tiers.together > many.tiers.together).all()
    assert json.loads(json.dumps(many.to_dict(), allow_nan=False))["tiers"][1]["tier"] == "dram"
    text = str(many)
    assert "2,000 users, prompts of 74,000 tokens: 12.1 GB a session." in text
    assert "with gaps that spread they lose slowly" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"users": 0}, "users must be"), ({"tiers": {"tape": 1e12}}, "tier must be|must be one of"),
        ({"tiers": {"dram": -1.0}}, "size of dram must be"), ({"units": 0}, "units must be"),
        ({"tiers": {"dram": 1e30}}, "tiers must have at most"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        size_store(**{"unit": UNIT, "sessions": AGENTS, "users": 5, "tiers": {}} | change)
