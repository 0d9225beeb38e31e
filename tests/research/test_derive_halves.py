"""Rows that choose and rows that score: what is made of three sources, and which half a row is in."""

from __future__ import annotations

import derive_halves as derive
import pandas as pd
import pytest
from recipes import unit_of

from inference_math.evidence import load

POINT = {
    "gpu": "mi300x", "engine": "sglang", "precision": "fp8", "drafts": "none", "disagg": 0, "isl": 1024, "osl": 1024,
    "users": 4, "date": "2026-02-27", "image": None, "ttft_mean_s": None, "ttft_p50_s": 0.1, "tpot_mean_s": None,
    "tpot_p50_s": 0.01, "out_tok_s_gpu": 10.0, "num_prefill_gpu": 8, "num_decode_gpu": 8,
    "run_url": "https://x/actions/runs/17/attempts/1",
}  # fmt: skip
POOL = {"num_workers": 1, "tp": 8, "ep": 1, "dp_attention": 0}
LISTED = {
    "date": "2026-02-27", "model": "DeepSeek-R1/V3", "gpu": "b200_sxm", "engine": "trtllm", "precision": "fp8",
    "n_gpus": 8, "ep": 0, "isl": 1024, "osl": 1024, "concurrency": 4, "tpot_mean_ms": 10.2,
}  # fmt: skip
BLOCK = {
    "page": "glm-5.2/h200.md", "model": "zai-org/GLM-5.2-FP8", "hardware": "NVIDIA H200x8", "engine": "sglang",
    "version": "v0.5.14", "tp": 8.0, "dp": 8.0, "ep": "on", "pp": None, "dp_attention": 1, "budget": 8192.0,
    "max_seqs": 256.0, "drafts": 0, "kv": "fp8_e4m3", "step": "DeepEP", "profile": "Balanced", "requests": 1000.0,
    "users": 512.0, "isl": 8204.0, "osl": 1024.0, "out_tok_s": 700.0, "ttft_mean_ms": 500.0, "ttft_p50_ms": 400.0,
    "tpot_mean_ms": 90.0, "tpot_p50_ms": 80.0, "itl_mean_ms": 50.0, "itl_p50_ms": 40.0, "tool": "guidellm (use ITL)",
    "command": "python3 -m sglang.launch_server --model-path x --tp-size=8 --dp-size=8 --enable-dp-attention "
    "--moe-a2a-backend=deepep --mem-fraction-static=0.85 --chunked-prefill-size=8192",
}  # fmt: skip
AT_ONCE = {"tool": "vllm bench serve", "users": None}
CELL = {
    "model": "glm-5.2", "variant": "default", "gpu": "b200", "weights": "fp8", "tp": 8.0,
    "dp": 8.0, "drafts": "yes", "engine": "sglang",
    "version": "0.5.15", "isl": 8192, "osl": 1024, "users": 64, "num_prompts": None, "ttft_mean_ms": 5000.0,
    "tpot_mean_ms": 20.0, "tok_s_gpu": 900.0, "serve_flags": None,
    "note": "EAGLE 1-1-2, acceptance length pinned to 2; DP attention, DeepEP, --chunked-prefill-size 32768 (divided "
    "by dp), max-running 256, mem 0.85; tok_s_gpu: total tok/s/GPU",
}  # fmt: skip
GROUP = ["source", "gpu", "model", "weights", "engine"]


def points(*rows, listed=()):
    told = [POINT | {f"{p}_{n}": v for p in ("prefill", "decode") for n, v in POOL.items()} | row for row in rows]
    return derive.inferencex(pd.DataFrame(told), pd.DataFrame([LISTED, *listed]))


def block(**changes):
    return derive.gpustack(pd.DataFrame([BLOCK | changes])).iloc[0]


def cell(**changes):
    return derive.cookbook(pd.DataFrame([CELL | changes])).iloc[0]


def groups(rows, stratum="dense, vllm"):
    return pd.DataFrame({"name": [f"group {number}" for number in rows.index], "stratum": stratum, "rows": rows})


@pytest.mark.parametrize("rows", [[30, 28, 5, 4], [9, 1, 7, 7, 2, 2]])
def test_of_each_two_neighbours_by_size_one_scores(rows):
    told = groups(pd.Series(rows))
    parts = derive.draw(told)[told.sort_values("rows", ascending=False, kind="stable").index].tolist()
    assert [set(pair) for pair in zip(parts[::2], parts[1::2], strict=True)] == [{"choose", "score"}] * (len(rows) // 2)


@pytest.mark.parametrize("number", range(8))
def test_the_hash_says_which_of_two_scores_and_what_a_group_alone_does(number):
    first, second = f"group {number}", f"group {number + 1}"
    lower = derive.hashed(first) < derive.hashed(second)
    assert derive.draw(groups(pd.Series(3, [number, number + 1])))[number] == ("score" if lower else "choose")
    assert derive.draw(groups(pd.Series(3, [number]))).tolist() == [derive.half(first)]


def test_strata_are_drawn_apart_and_what_was_seen_chooses():
    dense, mixed = groups(pd.Series(9, range(4))), groups(pd.Series(99, range(4, 9)), "mixture of experts, vllm")
    seen = groups(pd.Series(50, range(9, 20)), derive.SEEN)
    together = derive.draw(pd.concat([mixed, seen, dense]))
    assert together[dense.index].equals(derive.draw(dense)[dense.index])
    assert together[mixed.index].equals(derive.draw(mixed)[mixed.index])
    assert together[seen.index].eq("choose").all()


def test_groups_that_were_drawn_keep_their_part_whatever_comes_later():
    stored = load("served_halves").frame
    assert derive.parts(stored.iloc[::7]).equals(stored["part"].iloc[::7])
    later = pd.concat([stored, stored.assign(version="99", date=None)], ignore_index=True)
    assert derive.parts(later, seen=stored)[: len(stored)].equals(stored["part"])
    names = derive.names_of(stored)
    assert stored.groupby(names)["part"].nunique().eq(1).all()


def test_a_group_that_comes_later_has_the_parity_of_its_hash_unless_it_was_seen():
    later = load("served_halves").frame.assign(date=None)
    later["version"] = [f"{9 + row % 40}.0.0" for row in range(len(later))]
    names = derive.names_of(later)
    told = derive.parts(later)
    assert told.tolist() == [derive.half(name) for name in names]
    assert set(told) == {"choose", "score"}
    scores = later[told == "score"]
    again = derive.parts(later, seen=scores.iloc[:1])
    assert again[scores.index[0]] == "choose"
    others = derive.names_of(scores)[~derive.known(scores, scores.iloc[:1])]
    apart = others[~others.isin(names[derive.known(later, scores.iloc[:1])])]
    assert (again[apart.index] == "score").all()


def test_the_groups_that_were_drawn_are_drawn_so_again():
    drawn = pd.read_csv(derive.DRAWN)
    assert derive.draw(drawn).equals(drawn["part"])
    stored = load("served_halves").frame
    told = derive.groups_of(stored, load("served").frame).set_index("name").loc[drawn["name"]]
    assert told["stratum"].tolist() == drawn["stratum"].tolist()
    assert (told["rows"].to_numpy() >= drawn["rows"].to_numpy()).all()


def test_halves_are_those_that_are_stored():
    stored = load("served_halves").frame
    assert derive.parts(stored, load("served").frame).equals(stored["part"])
    lengths = load("served_lengths").frame
    named = lengths.assign(
        source="InferenceX, long prompts", gpu="h200-sxm", engine="vllm", version="", date="2026-02-13"
    )
    assert derive.parts(named).equals(lengths["part"])


@pytest.mark.parametrize(
    ("engine", "version", "found"),
    [
        ("vllm", "0.11.0", "0.11"), ("trtllm", "1.2.0rc6.post2", "1.2"), ("sglang", "0.5.5.post1", "0.5.5"),
        ("sglang", "0.5.10", "0.5.10"), ("sglang", "947927bdb", "unstated"), ("vllm", "", "unstated"),
    ],
)  # fmt: skip
def test_a_generation_is_the_first_numbers_of_a_version(engine, version, found):
    assert derive.generation(engine, version) == found


def test_dated_runs_have_a_quarter_for_a_generation():
    table = pd.DataFrame(
        {"engine": "sglang", "version": ["0.5.9", None, "0.5.9"], "date": ["2026-02-27", "2025-12-31", None]}
    )
    assert derive.generations(table).tolist() == ["2026Q1", "2025Q4", "0.5.9"]


def test_points_have_medians_and_the_version_of_their_run():
    image = "lmsysorg/sglang:v0.5.9-rocm700-mi30x"
    table = points({"image": image, "tpot_mean_s": 0.012}, {"users": 8}, {"date": "2026-05-18"})
    assert table["version"].fillna("").tolist() == ["0.5.9", "0.5.9", ""]
    assert table[["tpot_p50_s", "tpot_s"]].iloc[0].tolist() == [0.01, 0.012]
    assert table[["users", "requests", "rate"]].iloc[1].tolist() == [8, 80, 80]


def test_points_that_other_tables_have_are_left_out():
    same = {"gpu": "b200", "engine": "trt"}
    elsewhere = [same | {"date": "2026-02-28"}, same | {"decode_ep": 8}, same | {"tpot_p50_s": 0.02}]
    assert points(same, *elsewhere)["left_out"].tolist() == ["in served", "", "", ""]
    split = {"disagg": 1, "engine": "mori-sglang"}
    assert points({}, split)["left_out"].tolist() == ["in served_splits"]


def test_attention_apart_and_whole_experts_make_a_layout():
    assert block()[["tp", "dp", "ep"]].tolist() == [1, 8, 8]
    assert block(dp=None, ep=None)[["tp", "dp", "ep"]].tolist() == [8, 1, 1]
    assert block()[["kv", "memory", "told"]].tolist() == ["fp8", "0.85", "moe-a2a-backend=deepep"]


def test_tokens_of_the_second_tool_are_those_between_the_first_and_the_last():
    assert block()[["tpot_s", "tpot_p50_s", "users"]].tolist() == [0.05, 0.04, 512]
    assert block(hardware="NVIDIA H100 80GB HBM3", page="glm-5.2/h100.md")["gpu"] == "h100-sxm"
    assert block(page="glm-5.2/h100.md")["gpu"] == "h100-pcie"
    assert block(**AT_ONCE)[["tpot_s", "tpot_p50_s", "users"]].tolist() == [0.09, 0.08, 1000]


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("", {}),
        ("GPU not in the catalogue", {"page": "glm-5.2/910b.md"}),
        ("model not in the catalogue", {"page": "glm-4.x/h200.md", "model": "zai-org/GLM-4.6"}),
        ("precision that the GPU does not compute in", {"page": "glm-5.2/a100.md"}),
        ("another page's model", {"model": "Qwen/Qwen3-14B"}),
        ("another engine's section", {"step": "Baseline > SGLang", "engine": "vllm"}),
        ("tokens came together", {"itl_p50_ms": 0.0}),
        ("open loop", {"users": 77.0}),
        ("drafts of another model, in trees", {"command": "x --speculative-draft-model-path y"}),
        ("pipeline", {"command": "vllm serve x -pp 2"}),
        ("more GPUs than the page has", {"hardware": "4 × NVIDIA H200 SXM GPUs on a single node."}),
    ],
)
def test_blocks_are_left_out_for_a_reason(reason, changes):
    assert block(**changes)["left_out"] == reason


def test_a_block_says_what_its_engine_was_told_besides():
    told = "vllm serve x -tp 4 --max-model-len 32768 --async-scheduling --max-num-batched-tokens 4096"
    assert derive.settings(told, "", "ShareGPT") == "async-scheduling"
    fixed = "vllm serve x --attention-backend=fa3"
    assert derive.settings(fixed, "", "--attention-backend=triton") == "attention-backend=triton"
    assert derive.settings("vllm serve x -tp 8", "2. Turn off DeepGEMM in vLLM", "ShareGPT") == "no DeepGEMM"


def test_notes_of_a_cell_become_columns():
    one = cell()
    assert one[["tp", "dp", "ep", "drafted"]].tolist() == [1, 8, 8, 1]
    assert one[["accepted", "budget", "seqs", "memory"]].tolist() == ["2", "32768", "256", "0.85"]
    assert one[["rate", "tpot_s", "left_out"]].tolist() == [800.0, 0.02, ""]  # a ninth of all tokens, of eight GPUs
    flags = "--tp 8 --speculative-num-steps 5 --mem-fraction-static 0.8 --max-running-requests 80 --page-size 64"
    other = cell(note=None, serve_flags=flags, dp=None, tok_s_gpu=250.0)
    assert other[["tp", "dp", "ep", "drafted", "seqs", "told"]].tolist() == [8, 1, 1, 5, "80", ""]
    assert other[["rate", "left_out"]].tolist() == [2000.0, ""]


@pytest.mark.parametrize(
    ("flags", "layout"),
    [
        ("--tp 8 --dp 8 --moe-a2a-backend megamoe", [1, 8, 8]), ("--tp 8 --dp 8 --moe-a2a-backend deepep", [1, 8, 8]),
        ("--tp 8 --dp 8 --moe-runner-backend flashinfer_mxfp4 --deepep-config '{}'", [1, 8, 1]),
    ],
)  # fmt: skip
def test_experts_are_whole_where_they_are_spread(flags, layout):
    one = cell(note=None, serve_flags=flags, model="deepseek-v4", variant="flash", weights="fp4")
    assert one[["tp", "dp", "ep"]].tolist() == layout
    assert one[["model", "weights", "lengths", "n_in"]].tolist() == ["deepseek-v4-flash", "mxfp4", "0 to 1", 4096.5]


def test_a_rate_of_all_tokens_is_told_by_the_requests_under_way():
    told = {"note": "DeepEP", "users": 1, "ttft_mean_ms": 464.0, "tpot_mean_ms": 8.0}  # 8.648 s of a request
    output, all_tokens = (cell(**told, tok_s_gpu=rate / 8 / 8.648) for rate in (1024, 9216))
    assert output["rate"] == pytest.approx(1024 / 8.648)
    assert all_tokens["rate"] == pytest.approx(output["rate"])
    assert output["left_out"] == all_tokens["left_out"] == ""
    for rate in (700, 1300):  # of a user who asks again at once, and of more requests than there are users
        assert cell(**told, tok_s_gpu=rate / 8 / 8.648)["left_out"] == "rate and times contradict"


def test_cells_say_how_lengths_were_drawn_and_which_time_they_state():
    drawn = cell(isl=1000, osl=1000, note="ep 2, KV fp8; lengths uniform 1..1000; tok_s_gpu: output tok/s/GPU")
    assert drawn[["lengths", "n_in", "ep", "kv"]].tolist() == ["0 to 1", 500.5, 2, "fp8"]
    median = cell(note="medians; MTP 5-1-6; tok_s_gpu: total tok/s/GPU", dp=1.0)
    assert pd.isna(median["tpot_s"])
    assert median[["tpot_p50_s", "drafted"]].tolist() == [0.02, 5]
    assert cell(model="laguna-m1")["left_out"] == "model not in the catalogue"
    assert cell(note="medians; MTP 2-1-3", dp=8.0)["left_out"] == "layout not stated"


def test_layouts_of_long_prompts():
    raw = pd.DataFrame(
        {
            "model": "MiniMax-M2.5 FP8", "layout": ["tp8", "tep8", "dep8"], "drafts": ["mtp1", "none", "none"],
            "date": "20260213-141321", "isl": 1024, "users": 4, "output_throughput": 99.0, "median_ttft_s": 0.2,
            "median_tpot_s": 0.02,
        }
    )  # fmt: skip
    found = derive.long_prompts(raw)
    assert found[["tp", "dp", "ep"]].to_numpy().tolist() == [[8, 1, 1], [8, 1, 8], [1, 8, 8]]
    assert found["drafts"].tolist() == ["mtp", "none", "none"]


@pytest.mark.parametrize("name", ["served_halves", "served_lengths"])
def test_each_row_names_a_unit(name):
    set_ups = load(name).frame.reindex(columns=["model", "gpu", *derive.LAYOUT, "engine", "weights"])
    constant = {"gpu": "h200-sxm", "engine": "vllm"} if name == "served_lengths" else {}
    for row in set_ups.assign(version="", **constant).drop_duplicates().to_dict("records"):
        foreign = {"engine": "vllm"} if row["engine"] == "atom" else {}
        assert unit_of(row, **foreign).gpus == row["tp"] * row["dp"]


def test_no_row_is_in_another_table_and_none_that_scores_was_seen():
    stored, key = load("served_halves").frame, ["run", "gpu", "tp", "dp", "ep", "users", "n_in", "n_out", "drafts"]
    rivals = load("served_splits").frame.query("prefill_workers == 0")
    dated = stored[stored["source"] == "InferenceX"]
    assert not pd.MultiIndex.from_frame(dated[key]).isin(pd.MultiIndex.from_frame(rivals[key])).any()
    scoring, seen = stored[stored["part"] == "score"], load("served").frame
    assert (
        not pd.MultiIndex.from_frame(scoring[derive.SET_UP]).isin(pd.MultiIndex.from_frame(seen[derive.SET_UP])).any()
    )
