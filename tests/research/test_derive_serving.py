"""The three tables of disaggregated and tiered serving, derived from a few made-up lines."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import derive_serving as serving
import pandas as pd
import pytest

TRANSFER = ["prompt_len,mean_ttft_ms,kv_size_MB,transfer_ms,bw_GBps", "64,12.3456,10,0.5,20", "16,9,4,0.25,15.5"]
EIGHT = "16xH100 (8 engines TP2; gpu_mem_util 0.65)"
TIERS = [
    "scenario,model,hw,engine,sys_prompt,question,output,concurrency,config,mean_ttft_s,mean_e2e_s,total_tok_s",
    f"KV>>HBM+CPU 1.3TiB,Qwen3-32B,{EIGHT},vLLM,700,25,10,4,cpu+lustre_18TB,2.5,8.25,2165.6",
    "KV>HBM+CPU 994GiB,Llama-3.3-70B,16xH100 (4 engines TP4),vLLM,500,25,10,4,cpu_offload_320GB,3,9,1896.2",
    f"HBM<KV<HBM+CPU,Qwen3-32B,{EIGHT},vLLM,300,25,10,4,cpu_offload_100GB,1,4,4666",
    f"KV<HBM,Qwen3-32B,{EIGHT},vLLM,300,25,10,4,baseline,0.5,3,5000",
]
RATIOS = [
    "prefill,decode,conc,isl,osl,date,completed,total_output_tokens,request_throughput,mean_ttft_ms,mean_tpot_ms",
    "3,1,64,128,256,20250101-000000,500,34567,6.123456,99.87654,10.5",
    "1,3,64,128,256,20250102-000000,300,30000,5,100,9",
    "1,3,32,128,256,20250103-000000,500,50000,4,80,8",
]


def _files(folder: Path) -> list[str]:
    """Write the three raw files into `folder`."""
    names = "transfer.csv", "tiers.csv", "ratios.csv"
    for name, lines in zip(names, (TRANSFER, TIERS, RATIOS), strict=True):
        (folder / name).write_text("\n".join(lines) + "\n")
    return [str(folder / name) for name in names]


def test_script_writes_three_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["", *_files(tmp_path), "--out", str(tmp_path / "out")])
    serving.main()
    transfer, tiers, ratios = (
        (tmp_path / "out" / f"{name}.csv").read_text().splitlines()
        for name in ("kv_transfer", "tiered_cache", "pd_ratio")
    )
    # 4 and 10 MiB at 15.5 and 20 GiB/s.
    assert transfer == [
        "prompt_tokens,ttft_ms,kv_bytes,transfer_ms,bandwidth",
        "16,9,4194000,0.25,1.664e+10",
        "64,12.35,10490000,0.5,2.147e+10",
    ]
    assert tiers == [
        "model,gpus_per_engine,engines,fits,prefix_tokens,question_tokens,output_tokens,concurrency,tier,store_gb,"
        "ttft_mean_s,e2e_mean_s,tokens_per_s",
        "llama-3-70b,4,4,neither,500,25,10,4,host,320,3,9,1896",
        "qwen3-32b,2,8,HBM,300,25,10,4,hbm,,0.5,3,5000",
        "qwen3-32b,2,8,HBM and host,300,25,10,4,host,100,1,4,4666",
        "qwen3-32b,2,8,neither,700,25,10,4,host and shared store,18000,2.5,8.25,2166",
    ]
    assert ratios == [
        "prefill_workers,decode_workers,concurrency,prompt_tokens,output_tokens,completed,requests_per_s,"
        "output_tokens_made,ttft_mean_ms,tpot_mean_ms",
        "1,3,32,128,256,500,4,100,80,8",
        "1,3,64,128,256,300,5,100,100,9",
        "3,1,64,128,256,500,6.123,69.13,99.88,10.5",
    ]


def test_nothing_is_written_where_one_file_is_spoilt(tmp_path, monkeypatch):
    files = _files(tmp_path)
    Path(files[2]).write_text("\n".join([*RATIOS, RATIOS[1]]))
    monkeypatch.setattr(sys, "argv", ["", *files, "--out", str(tmp_path / "out")])
    with pytest.raises(ValueError, match="more than one run per prefill_workers"):
        serving.main()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("model", "GPT-2", "model must be one of Qwen3-32B, Llama-3.3-70B, not GPT-2"),
        ("scenario", "KV=HBM", "scenario must be one of .* not KV=HBM"),
        ("config", "tape", "config must be one of .* not tape"),
        ("hw", "16xH100", "hw must say"),
    ],
)
def test_an_unknown_name_is_refused(column, value, message):
    with pytest.raises(ValueError, match=message):
        serving.tiered_cache(pd.read_csv(StringIO("\n".join(TIERS))).assign(**{column: value}))
