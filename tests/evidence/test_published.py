"""The published numbers agree with each other and with the models' shapes, as far as they can be checked."""

import numpy as np
import pytest

from inference_math.catalogue import GPUS, MODELS
from inference_math.evidence import load


def test_sarathi_steps_are_the_sum_of_their_parts() -> None:
    table = load("sarathi").frame
    steps = table[table.place == "Table 2"].pivot_table(index="step", columns="quantity", values="value", sort=False)
    assert list(steps.index) == ["prefill", "decode", "mixed"]
    np.testing.assert_allclose(steps.linear_time + steps.attention_time, steps.step_time, rtol=1e-9)
    prefill, decode, mixed = (steps.loc[step] for step in steps.index)
    assert prefill.step_time / 1024 == pytest.approx(prefill.prefill_token_time, rel=2e-3)
    assert decode.step_time / 4 == pytest.approx(decode.decode_token_time, rel=1e-3)
    # The decodes of a mixed step pay what they add to the prefill of as many tokens.
    assert (mixed.step_time - prefill.step_time) / 3 == pytest.approx(mixed.decode_token_time, rel=1e-3)


def test_sarathi_cost_ratios_follow_from_its_step_times() -> None:
    table = load("sarathi").frame
    printed = table[table.quantity == "decode_over_prefill_cost"].set_index("batch").value
    assert list(printed.index) == [1, 2, 18]
    for batch, ratio in printed.items():
        assert (44.28 + 5.68 / 4 * batch) / batch / 0.229 == pytest.approx(ratio, rel=0.03)


def test_sarathi_gains_are_smaller_for_longer_sequences() -> None:
    table = load("sarathi").frame
    gains = table[table.place.isin(["Table 4", "Figure 11a"])]
    for _, rows in gains.groupby(["place", "model"]):
        assert list(rows.context) == [1024, 2048, 3072]
        assert rows.value.is_monotonic_decreasing
    assert set(table[table.quantity.isin(["gain", "peak_gain"])].unit) == {"1"}


def test_distserve_rates_and_kv_cache_add_up() -> None:
    table = load("distserve").frame
    rate = table[table.quantity == "rate_per_gpu"].set_index("serves").value
    assert rate["disaggregated"] == pytest.approx(min(2 * rate["prefill"], rate["decode"]) / 3, abs=0.005)
    cache = table[table.quantity == "kv_cache"].iloc[0]
    size = cache.prompt_tokens * MODELS[cache.model].kv_token("bf16")
    assert cache.unit == "GiB"
    assert size / 2**30 == pytest.approx(cache.value, abs=0.006)


def test_cake_halves_add_up_in_eight_settings_of_ten() -> None:
    table = load("cake").frame
    whole = 1 / table.over_load + 1 / table.over_compute
    assert len(whole) == 10
    assert ((whole - 1).abs() < 0.05).sum() == 8
    assert set(table.setting[(whole - 1).abs() >= 0.05]) == {"4K", "70B at 12.5 %"}


def test_kv_tiers_are_those_of_eight_h100() -> None:
    tiers = load("kv_tiers").frame.set_index("tier")
    h100 = GPUS["h100-sxm"]
    bandwidth = [h100.hbm_bw, h100.pcie_bw, 14e9, 400e9 / 8]
    assert tiers.read_bw.to_dict() == dict(zip(["hbm", "dram", "local_ssd", "network_store"], bandwidth, strict=True))
    assert tiers.read_bw["local_ssd"] < h100.pcie_bw / 4  # four lanes of sixteen
    assert tiers.capacity_node["hbm"] == 8 * h100.hbm_bytes
    assert tiers.capacity_node["local_ssd"] == pytest.approx(8 * 3.84e12)
    assert tiers.capacity_node.dropna().is_monotonic_increasing
    # Only what is a class of sharable tiers is shared.
    assert (tiers.shared == tiers.classification.isin(["S2", "S3"])).all()
