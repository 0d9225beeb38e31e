"""The table of the closed loop, derived from a few made-up lines."""

from __future__ import annotations

import sys

import derive_silybench as silybench
import pandas as pd
import pytest

HEADER = "precision,isl,osl,conc,num_prompts,ttft_p95_ms,tpot_p95_ms,itl_median_ms,req_per_s,out_tok_s"
LINES = [
    "fp8,8192,512,48,96,9.500,2.0,1.5,1.50000,768.00",  # 417,792 tokens: 97.1 % of the cache
    "fp8,8192,512,47,94,9.500,2.0,1.5,1.50000,768.00",  # 409,088: 95.1 %
    "bf16,8192,512,42,84,9.500,2.0,1.5,1.50000,768.00",  # 365,568: 96.96 %
    "bf16,8192,512,43,86,9.500,2.0,1.5,1.50000,768.00",  # 374,272: 99.3 %
    "bf16,128,128,257,257,1,1,1,3,384",
    "bf16,128,128,256,256,1,1,1,3,384",
    "bf16,128,128,7,50,1,1,1,3,384",
    "bf16,128,128,4,50,14.2340,6.8390,6.8250,0.20910,26.76",
]


def test_script_keeps_the_digits_and_adds_two_columns(tmp_path, monkeypatch):
    (tmp_path / "raw.csv").write_text("\n".join([HEADER, *LINES]) + "\n")
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "raw.csv"), "--out", str(tmp_path / "out")])
    silybench.main()
    assert (tmp_path / "out" / "silybench.csv").read_text().splitlines() == [
        "precision,prompt_tokens,output_tokens,concurrency,requests,ttft_p95_ms,tpot_p95_ms,itl_median_ms,"
        "requests_per_s,output_tokens_per_s,e2e_s,used",
        # 50 requests of 4 users are 13 waves, of 7 users 8.
        "bf16,128,128,4,50,14.2340,6.8390,6.8250,0.20910,26.76,18.394,true",
        "bf16,128,128,7,50,1,1,1,3,384,2.0833,false",
        "bf16,128,128,256,256,1,1,1,3,384,85.333,true",
        "bf16,128,128,257,257,1,1,1,3,384,85.667,false",
        "bf16,8192,512,42,84,9.500,2.0,1.5,1.50000,768.00,28,true",
        "bf16,8192,512,43,86,9.500,2.0,1.5,1.50000,768.00,28.667,false",
        "fp8,8192,512,47,94,9.500,2.0,1.5,1.50000,768.00,31.333,true",
        "fp8,8192,512,48,96,9.500,2.0,1.5,1.50000,768.00,32,false",
    ]


def test_an_unknown_precision_and_a_setting_that_occurs_twice_are_refused():
    frame = pd.DataFrame([line.split(",") for line in LINES], columns=HEADER.split(","))
    with pytest.raises(ValueError, match="precision must be one of bf16, fp8, not int4"):
        silybench.derive(frame.assign(precision="int4"))
    with pytest.raises(ValueError, match="more than one point per precision, prompt_tokens"):
        silybench.derive(pd.concat([frame, frame.tail(1)]))
