"""The tables of recorded requests: derived from small files, and as the data card says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import derive_traces
import numpy as np
import pandas as pd
import pytest

from inference_math.evidence import data_dir, load
from inference_math_planner.fleets import traces
from inference_math_planner.fleets.turns import Turns


def _traces(folder: Path) -> list[str]:
    """Two Mooncake files of one prompt sent twice and another, two of Azure."""
    prompts = [(0, 1000, 10, [0, 1]), (500, 1000, 10, [0, 1]), (4000, 2040, 40, [0, 2, 3, 4])]
    lines = [{"timestamp": t, "input_length": n, "output_length": out, "hash_ids": ids} for t, n, out, ids in prompts]
    for name in ("conversation_trace.jsonl", "synthetic_trace.jsonl"):
        (folder / name).write_text("\n".join(map(json.dumps, lines)))
    rows = ["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:15:46.5,100,3", "2023-11-16 18:15:47.75,200,1"]
    for name in ("AzureLLMInferenceTrace_conv.csv", "AzureLLMInferenceTrace_code.csv"):
        (folder / name).write_text("\r\n".join(rows))
    return [str(folder / name) for name in derive_traces.FILES.values()]


def test_script_writes_four_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["", *_traces(tmp_path), "--out", str(tmp_path / "out")])
    derive_traces.main()
    lengths, reuse, alpha, saving = (
        (tmp_path / "out" / f"traces_{name}.csv").read_text().splitlines()
        for name in ("lengths", "reuse", "alpha", "saving")
    )
    assert lengths[5] == (
        "mooncake-conversation,n_in,3,4.0,1346.67,490.26,1000,1000,1000,1000,1000,1000,2040,2040,2040,2040,2040,1"
    )
    assert lengths[2] == "azure-code,n_out,2,1.25,2.0,1.0,1,1,1,1,1,1,3,3,3,3,3,-1"
    assert len(lengths) == 1 + 2 * 4
    # 999 tokens of the second prompt and 512 of the third, of 4,040, in a cache of all five blocks.
    assert reuse[-1] == "mooncake-synthetic,2560,0.375,0.374,0.4167"
    assert alpha[1] == (
        "mooncake-conversation,3,4040,0.374,0.4167,0.4243,0,0,0,0,0,0.251,0.999,0.999,0.999,0.999,0.999,"
        "0.3333,0.3333,0.3333"
    )
    assert len(alpha) == 3
    # At e = 1 the prompts take 1000 + 999 + 1528 of 4,040 if all is loaded, 1000 + 500 + 1528 if half at most is.
    assert saving[0] == "trace,e,saved_load_all,saved_mixed"
    assert saving[3] == "mooncake-conversation,1,0.127,0.2505"
    assert saving[11] == "mooncake-conversation,1000000000,0.374,0.374"
    assert len(saving) == 1 + 2 * 11
    # Three requests are no hour to foresee another by.
    halves = (tmp_path / "out" / "traces_halves.csv").read_text()
    assert halves == "trace,capacity_tokens,kept_s,law,independent,same,other,best\n"


def test_one_half_of_a_trace_foresees_the_other():
    turns = Turns(turns=6, first=4, message=1, answer=1, think=10.0).drawn(40, 600.0)
    ids = {}
    blocks = [[ids.setdefault(block, len(ids)) for block in t.blocks[: t.n_in]] for t in turns]
    columns = {"arrival": [t.arrival for t in turns], "n_in": [512 * t.n_in for t in turns], "blocks": blocks}
    requests = pd.DataFrame(columns)
    read = traces.Read(requests, requests.iloc[:0], 512)
    table = derive_traces.halves({"drawn": read})
    assert (table.law - table.other).abs().max() < 0.06
    assert (table.law - table.same).abs().max() < 0.03
    assert table.kept_s.is_monotonic_increasing


def test_the_working_set_by_hand():
    """Two prompts that come every second in turn, of 3 and 5 blocks: all that is used within 2 s is 8 blocks."""
    blocks = [[("a", k) for k in range(3)] if i % 2 == 0 else [("b", k) for k in range(5)] for i in range(100)]
    law = derive_traces.Returns(blocks, pd.Series(np.arange(100.0)), pd.Series([len(block) for block in blocks]), 1)
    assert law.kept(3.0) == pytest.approx(3 * 99 / 400)
    assert law.within(1.9) == 0
    assert law.within(2.0) == pytest.approx((49 * 2 + 49 * 4) / 400)  # the last token of a prompt is computed
    assert law.kept(20.0) == np.inf
    assert law.within(law.kept(20.0)) == law.within(2.0)


def test_a_spoilt_file_is_refused(tmp_path, monkeypatch):
    files = _traces(tmp_path)
    Path(files[0]).write_text(Path(files[0]).read_text() + "\n{")
    monkeypatch.setattr(sys, "argv", ["", *files, "--out", str(tmp_path / "out")])
    with pytest.raises(ValueError, match=r"conversation_trace.jsonl, line 4"):
        derive_traces.main()
    assert not (tmp_path / "out").exists()


def test_the_three_tables_agree():
    lengths, reuse, alpha = (load(f"traces_{name}").frame for name in ("lengths", "reuse", "alpha"))
    assert lengths.trace.unique().tolist() == sorted(derive_traces.FILES)
    quantiles = lengths[derive_traces.ALPHA]
    assert (quantiles.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)
    for _, row in alpha.iterrows():
        prompts = lengths[(lengths.trace == row.trace) & (lengths.quantity == "n_in")].iloc[0]
        assert row.requests == prompts.requests
        assert row.prompt_tokens == pytest.approx(prompts["mean"] * prompts.requests, abs=0.005 * prompts.requests)
        curve = reuse[reuse.trace == row.trace]
        assert curve.capacity_tokens.is_monotonic_increasing
        assert (curve[["block_share", "token_share", "mean_alpha"]].diff().dropna() >= 0).all(axis=None)
        assert curve.token_share.iloc[-1] == row.token_share
        assert curve.mean_alpha.iloc[-1] == row["mean"]
        assert (curve.capacity_tokens % 512 == 0).all()


def test_the_data_card_gives_the_lengths():
    card = (data_dir() / "README.md").read_text(encoding="utf-8")
    table = load("traces_lengths").frame.set_index(["trace", "quantity"])
    for trace in derive_traces.FILES:
        prompts, outputs = table.loc[(trace, "n_in")], table.loc[(trace, "n_out")]
        numbers = [row[name] for row in (prompts, outputs) for name in ("mean", "p50", "p99")]
        cells = [trace, f"{prompts.requests:,.0f}", f"{prompts.duration_s:,.0f} s", *(f"{n:,.0f}" for n in numbers)]
        assert f"| {' | '.join(cells)} |" in card
