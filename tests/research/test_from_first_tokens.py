"""The front of requests, fitted to mean TTFTs."""

from __future__ import annotations

import from_first_tokens as first
import numpy as np
import pandas as pd
import pytest
import served

from inference_math import catalogue
from inference_math.evidence import load
from inference_math.unit.front import front_of, levels_of_front
from inference_math.unit.mixing import FRONTS

LLAMA, H200 = catalogue.model("llama-3-70b"), catalogue.gpu("h200-sxm")


def made(seconds, engines=("a", "b"), count=40):
    """Rows whose TTFT is the front and a tenth of a second of steps, of engines with a front each."""
    tables = []
    for engine, front in zip(engines, seconds, strict=True):
        levels = {"base": "all", "kind": "dense", "model": "m", "engine": engine, "engine, model": f"{engine}/m",
                  "engine, model, gpu": f"{engine}/m/g"}  # fmt: skip
        steps = np.linspace(0.05, 0.15, count)
        table = pd.DataFrame({f"at {each}": each + steps for each in first.FRONTS})
        told = table.assign(ttft_s=front + steps, model="m", gpu="g", engine=engine, weights="w", drafts="none")
        tables.append(told.assign(**{f"level: {name}": level for name, level in levels.items()}))
    return pd.concat(tables, ignore_index=True)


def test_a_fit_finds_the_fronts_that_made_the_times():
    table = made((0.03, 0.09))
    found = first.fit(table)
    seconds = first.seconds_of(table, found)
    assert seconds[0] == pytest.approx(0.03, rel=0.05)
    assert seconds[-1] == pytest.approx(0.09, rel=0.05)
    assert first.ttft_of(table, seconds) == pytest.approx(table.ttft_s.to_numpy(), rel=0.02)
    assert set(found) == {(factor, level) for factor in FRONTS for level in table[f"level: {factor}"]}
    spoiled = table.assign(ttft_s=table.ttft_s.where(table.index != 3, 50.0))
    assert first.seconds_of(table, first.fit(spoiled))[0] == pytest.approx(0.03, rel=0.1)  # one warm-up pulls nothing


def test_rows_that_something_held_up_set_no_front():
    table = made((0.03, 0.09))
    slowed = table.index % 2 == 0
    late = table.assign(slowed=slowed, ttft_s=table.ttft_s.where(~slowed, 10.0))
    assert first.fit(late) == first.fit(table[~slowed])


def test_in_between_times_are_interpolated():
    table = made((0.03,), ("a",), 5)
    assert first.ttft_of(table, np.full(5, 0.04)) == pytest.approx(table["at 0.04"].to_numpy())
    between = first.ttft_of(table, np.full(5, 0.06))
    assert ((between > table["at 0.04"]) & (between < table["at 0.08"])).all()
    assert first.ttft_of(table, np.full(5, 9.0)) == pytest.approx(table["at 0.32"].to_numpy())
    assert first.ttft_of(table, np.full(5, 1e-3)) == pytest.approx(table["at 0.004"].to_numpy())


def test_left_out_rows_are_predicted_by_the_others():
    table = made((0.03, 0.09))
    apart = first.left_out(table)
    own = first.ttft_of(table, first.seconds_of(table, first.fit(table)))
    assert np.abs(np.log(apart / table.ttft_s)).mean() > 5 * np.abs(np.log(own / table.ttft_s)).mean()
    with pytest.raises(ValueError, match="two engines, or one on two GPUs"):
        first.left_out(made((0.03,), ("a",)))


def test_spreads_are_those_of_nine_tenths():
    table = made((0.03,), ("a",), 100)
    logs = np.concatenate([np.linspace(-0.1645, 0.1645, 91), np.full(9, 3.0)])
    wide = first.spreads(table, table.ttft_s.to_numpy() * np.exp(logs))
    assert wide == {"dense": pytest.approx(0.1, rel=0.03)}
    drafting = table.assign(drafts=["mtp"] * 50 + ["none"] * 50)
    assert set(first.spreads(drafting, drafting.ttft_s.to_numpy())) == {"dense", "drafting"}


def test_rows_are_played_at_every_front():
    rows = served.points("calibration").query(
        "left_out == '' and model == 'llama-3-70b' and engine == 'vllm' and tp == 8 and users <= 8 and n_in < 1000"
    )
    table = first.grid(list(served.loops(rows)))
    times = table[[f"at {front}" for front in first.FRONTS]].to_numpy()
    assert (np.diff(times, axis=1) > 0).all()
    assert table.index.equals(rows.index)
    assert set(table["level: engine"]) == {"vllm-2025"}


def test_the_shipped_front_is_composed_of_its_levels():
    frame = load("served_front").frame
    moves = {(row.factor, row.level): row.moved for row in frame.itertuples()}
    told = levels_of_front(LLAMA, H200, "vllm", "0.11")
    seconds = front_of(LLAMA, H200, "vllm", "0.11").seconds
    assert seconds == pytest.approx(np.exp(sum(moves[name, level] for name, level in told.items())))
    assert front_of(LLAMA, H200, "vllm", "0.11").spread == moves["spread", "dense"]
    # What was never measured moves nothing.
    other = front_of(catalogue.model("llama-3-8b"), catalogue.gpu("a100-80gb"), "trtllm").seconds
    parts = [("base", "all"), ("kind", "dense"), ("model", "llama-3-8b"), ("engine", "trtllm")]
    assert other == pytest.approx(np.exp(sum(moves[part] for part in parts)))
    assert all(0.005 < np.exp(moves["base", "all"] + moves["kind", kind]) < 1.2 for kind in ("dense", "MLA", "hybrid"))
