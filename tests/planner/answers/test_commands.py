"""Command lines: every option that a plan decides stands in them, as the engine calls it."""

import json
import shlex
import subprocess

import pytest
import yaml

from inference_math import SLA, Unit, Workload
from inference_math.catalogue.tiers import tier
from inference_math.evidence.sentences import render
from inference_math.optimiser import answers
from inference_math.optimiser.case import Case
from inference_math.optimiser.starts import settings
from inference_math.unit.mixing import told_kv
from inference_math_planner import plan
from inference_math_planner.answers.commands import commands
from inference_math_planner.answers.deployment import Plan

CASES: dict[str, Case] = {}


def lines(engine, architecture, *, tier="", kv="fp8", lengths="fixed", longest=0, **layout):
    """Return the commands of an architecture; what its engine is told; its row."""
    unit = Unit.of("deepseek-v3", "h200-sxm", kv=kv, engine=engine, **({"tp": 8} | layout))
    case = Case(unit, Workload(2000, 200, 0.5, lengths, longest), SLA(2, 0.1))
    row = Plan.of(case, 0).solved.each[architecture][0]
    assert row.rate > 0
    told = settings(case.problem, architecture, row)
    CASES[engine] = case
    return said(case, architecture, told, told_kv(kv, unit.usual_kv), tier), told, row


def said(case, architecture, told, kv, tier):
    """Return the command lines by their titles."""
    return {render(title): render(line) for title, line in commands(case.problem, architecture, told, kv, tier, 1)}


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (
            "vllm",
            "--tensor-parallel-size 8 --gpu-memory-utilization 0.9 --kv-cache-dtype fp8 "
            "--max-model-len ${LONGEST:-2200}",
        ),
        (
            "sglang",
            "--tp-size 8 --mem-fraction-static 0.897 --kv-cache-dtype fp8_e4m3 --context-length ${LONGEST:-2200}",
        ),
        ("trtllm", "--tp_size 8 --max_seq_len ${LONGEST:-2200}"),
    ],
)
def test_a_unit_starts_with_its_layout_memory_and_limits(engine, words):
    found, told, _ = lines(engine, "chunked")
    (line,) = found.values()
    assert words in line
    for name, value in told.items():
        assert str(value) in line
        assert name.lstrip("-") in line
    assert ("kv_cache_config:\n  dtype: fp8" in line) == (engine == "trtllm")
    assert "$MODEL" in shlex.split(line)


@pytest.mark.parametrize(("longest", "told"), [(0, 2200), (100, 2200), (9000.0, 9000)])
def test_a_server_takes_the_longest_request_that_is_known(longest, told):
    found, _, _ = lines("vllm", "chunked", longest=longest)
    assert f"--max-model-len ${{LONGEST:-{told}}}" in found["each unit"]


@pytest.mark.parametrize("told", [None, True, False])
def test_vllm_is_told_whether_to_plan_ahead_only_where_somebody_says(told):
    found, _, _ = lines("vllm", "disaggregated", async_scheduling=told)
    option = {None: "", True: " --async-scheduling ", False: " --no-async-scheduling "}[told]
    for title, line in found.items():
        if "vllm serve" in line:
            assert option in line, title
            assert ("async-scheduling" in line) == (told is not None), title


def test_no_engine_is_told_what_it_does_not_support():
    """vLLM warns that going without chunks may crash: its budget holds a whole prompt instead."""
    found, told, row = lines("vllm", "aggregated")
    assert "--no-enable-chunked-prefill" not in found["each unit"]
    assert told["--max-num-batched-tokens"] == 1000 + row.batch


@pytest.mark.parametrize(("engine", "ranks"), [("vllm", 8), ("trtllm", 8), ("sglang", 1)])
def test_groups_of_attention_count_for_themselves_where_the_engine_does_so(engine, ranks):
    found, told, row = lines(engine, "aggregated", tp=1, dp=8, ep=8)
    (line,) = found.values()
    name = {"vllm": "--max-num-seqs", "trtllm": "max_batch_size", "sglang": "--max-running-requests"}[engine]
    assert told[name] == -(-row.batch // 8) * 8 / ranks
    *_, chunked = lines(engine, "chunked", tp=1, dp=8, ep=8)
    told = settings(CASES[engine].problem, "chunked", chunked)
    tokens = {"vllm": "--max-num-batched-tokens", "trtllm": "max_num_tokens", "sglang": "--chunked-prefill-size"}[
        engine
    ]
    # SGLang divides it among the groups, in whole pages.
    own = (told[tokens] + 8 * 128) / 8 if engine == "sglang" else told[tokens]
    assert own >= chunked.computed  # a prompt lies on one group: less would make it wait
    marks = {"vllm": "--data-parallel-size 8 --enable-expert-parallel", "trtllm": "enable_attention_dp: true"}
    assert marks.get(engine, "--dp-size 8 --enable-dp-attention --ep-size 8") in line
    assert ("--tp-size 8" in line) == (engine == "sglang")


def test_no_prompt_is_longer_than_tensorrt_llm_takes():
    """Without chunks it refuses a prompt of more than max_num_tokens, of which half is stored here."""
    for architecture, name in (("aggregated", "max_num_tokens"), ("disaggregated", "prefill max_num_tokens")):
        _, told, _ = lines("trtllm", architecture)
        assert told[name] >= 2000


def test_a_shell_makes_json_of_what_vllm_takes_as_json():
    found, *_ = lines("vllm", "disaggregated", tier="dram")
    _, prefill, decode, _ = found.values()
    for line, connector in ((prefill, "MultiConnector"), (decode, "NixlConnector")):
        shown = ["bash", "-c", f'MODEL=m STORE_BYTES=1000; for word in {line}; do echo "$word"; done']
        words = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.splitlines()
        assert json.loads(words[words.index("--kv-transfer-config") + 1])["kv_connector"] == connector


def test_tensorrt_llm_s_file_is_yaml():
    found, *_ = lines("trtllm", "disaggregated", tier="dram", tp=1, dp=8, ep=8)
    prefill, *_ = found.values()
    content = yaml.safe_load(prefill.partition("<<EOF\n")[2].partition("\nEOF\n")[0])
    assert content["kv_cache_config"] == {"dtype": "fp8", "host_cache_size": "$STORE_BYTES"}
    assert content["cache_transceiver_config"] == {"backend": "DEFAULT"}
    assert content["disable_overlap_scheduler"] is content["enable_attention_dp"] is True


def test_the_share_of_memory_is_the_unit_s():
    unit = Unit.of("llama-3-8b", "h100-sxm", memory=0.8)
    start = plan(unit, Workload(500, 50), SLA(1, 0.05), intervals=False).starts["chunked"].commands
    assert "--gpu-memory-utilization 0.8 " in start[0][1]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_pools_have_a_command_each_and_something_in_front(engine):
    found, told, _ = lines(engine, "disaggregated")
    prefill, decode, front = found.items()
    assert prefill[0] == f"{told['prefill units']} x prefill"
    assert decode[0] == f"{told['decode units']} x decode"
    assert front[0] == "in front of them"
    for _, line in (prefill, decode):
        assert any(word in line for word in ("NixlConnector", "--disaggregation-mode", "cache_transceiver_config"))
    stored, *_ = lines(engine, "disaggregated", tier="dram")
    assert ("what is stored" in stored) == (engine == "vllm")  # whose own offloading has a price
    stored.pop("what is stored", None)
    first, second, *_ = stored.values()
    assert "STORE" in first
    assert "STORE" not in second
    if engine == "vllm":  # one connector only: the size of a store would replace the transfer
        assert "MultiConnector" in first
        assert "--kv-offloading-size" not in first


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_what_loads_from_another_tier_stands_in_the_command(engine):
    """Engines load from host memory by themselves, from another tier by a connector."""
    words = {"vllm": "LMCacheConnectorV1", "sglang": "--hicache-storage-backend $BACKEND", "trtllm": "trtllm-serve"}
    for architecture, first in (("chunked", "each unit"), ("disaggregated", "")):
        stored, told, _ = lines(engine, architecture, tier="local_ssd")
        assert stored.pop("what is stored").startswith("# ")
        assert words[engine] in stored[first or f"{told['prefill units']} x prefill"]
        if first == "":
            assert "LMCache" not in stored[f"{told['decode units']} x decode"]


@pytest.mark.parametrize(
    ("engine", "words"),
    [("vllm", "--kv-offloading-size SIZE "), ("sglang", "--hicache-size EACH "), ("trtllm", "host_cache_size: BYTES")],
)
def test_a_store_has_its_size_where_sessions_are_counted(engine, words):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8", engine)
    case = Case(unit, Workload(2000, 200, 0.5), SLA(2, 0.1), tier=tier("dram"), sessions=500)
    told = settings(case.problem, "chunked", Plan.of(case, 0).solved.each["chunked"][0])
    line = said(case, "chunked", told, "fp8", "dram")["each unit"]
    size = 500 * 2200 * unit.model.kv_token("fp8")
    told = {"SIZE": f"{-(-size // 1e9):.0f}", "EACH": f"{-(-size // 2e9):.0f}", "BYTES": f"{size:.0f}"}
    for name, value in told.items():
        words = words.replace(name, value)
    assert words in line
    assert "$STORE" not in line


def test_a_request_longer_than_the_model_was_made_for_is_told_how():
    unit = Unit.of("qwen3-32b", "h200-sxm", weights="fp8", kv="fp8")
    case = Case(unit, Workload(60000, 300), SLA(20, 0.1))
    told = settings(case.problem, "aggregated", Plan.of(case, 0).solved.each["aggregated"][0])
    words = shlex.split(said(case, "aggregated", told, "fp8", "")["each unit"])
    rope = json.loads(words[words.index("--hf-overrides") + 1])["rope_scaling"]
    assert rope["factor"] * rope["original_max_position_embeddings"] >= 60300
    assert (rope["factor"] - 0.1) * rope["original_max_position_embeddings"] < 60300  # and no more than it takes
    short, *_ = lines("vllm", "chunked")
    assert "--hf-overrides" not in short["each unit"]


@pytest.mark.parametrize(
    ("model", "gpu", "page"), [("deepseek-v3", "b200", 128), ("llama-3-8b", "b200", 64), ("llama-3-8b", "h100-sxm", 1)]
)
def test_sglang_takes_whole_pages(model, gpu, page):
    unit = Unit.of(model, gpu, 8, kv="fp8", engine="sglang")
    for n_in in (391, 3001, 13500):
        case = Case(unit, Workload(n_in, 200), SLA(5, 0.1))
        found = Plan.of(case, 0)
        for name in ("chunked", "disaggregated"):
            told = settings(case.problem, name, found.solved.each[name][0])
            (size,) = (value for key, value in told.items() if key.endswith("--chunked-prefill-size"))
            assert size % page == 0
            assert size >= page
            assert size >= n_in or not found.solved.each[name][0].chunk >= n_in  # a whole prompt stays whole


def test_the_longest_request_may_be_longer_than_the_mean():
    found, *_ = lines("vllm", "chunked", lengths="geometric", kv="bf16", tier="dram")
    assert "--max-model-len ${LONGEST:-2200}" in found["each unit"]
    assert "--kv-cache-dtype" not in found["each unit"]
    assert "--kv-offloading-size $STORE_GB" in found["each unit"]


def test_swings_solve_the_question_again():
    case = Case(Unit.of("llama-3-8b", "h100-sxm"), Workload(1000, 200, 0.5), SLA(1, 0.03))
    found = {row.input: row for row in answers.sensitivities(case.problem, case.pairs(0))}
    assert set(found) == {"n_in", "n_out", "alpha", "ttft", "tpot"}
    longer = Plan.of(Case(case.unit, Workload(1200, 200, 0.5), case.sla), 0)
    assert found["n_in"].high == longer["rate"]
    assert found["n_in"].best_high == longer.best
    tighter = Plan.of(Case(case.unit, case.work, SLA(1, 0.024)), 0)
    assert found["tpot"].low == tighter["rate"]
    assert found["n_in"].high < found["n_in"].low


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_drafting_is_asked_for_in_the_engine_s_words(engine):
    found, told, row = lines(engine, "aggregated", drafts=3, accepted=0.7)
    assert "MTP" in found.pop("what drafts")
    (line,) = found.values()
    shown = ["bash", "-c", f'MODEL=m; for word in {line.rpartition(chr(10))[2]}; do echo "$word"; done']
    words = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.splitlines()
    if engine == "vllm":
        asked = json.loads(words[words.index("--speculative-config") + 1])
        assert asked == {"method": "mtp", "num_speculative_tokens": 3}
        assert told["--max-num-batched-tokens"] == 1000 + 4 * row.batch  # drafts count, too
    if engine == "sglang":
        assert words[words.index("--speculative-num-steps") + 1] == "3"
        assert words[words.index("--speculative-num-draft-tokens") + 1] == "4"  # the step's own token with them
    if engine == "trtllm":
        content = yaml.safe_load(line.partition("<<EOF\n")[2].partition("\nEOF\n")[0])
        assert content["speculative_config"] == {"decoding_type": "MTP", "num_nextn_predict_layers": 3}


def test_nobody_drafts_unasked():
    for engine in ("vllm", "sglang", "trtllm"):
        assert "speculative" not in " ".join(lines(engine, "chunked")[0].values())
