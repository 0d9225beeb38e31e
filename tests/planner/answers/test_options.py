"""Every printed command, read by a parser of the options that its engine knows.

The table is what the engines' own parsers list, vLLM 0.32.0 and SGLang 0.5.23, and what TensorRT-LLM's source at
4c05a748 declares; `tools/research/engine_options.py` writes it.
"""

import argparse
import itertools
import json
import shlex
from pathlib import Path

import pandas as pd
import pytest
import yaml

from inference_math import SLA, Unit, Workload
from inference_math_planner import plan

TABLE = pd.read_csv(Path(__file__).with_name("engine_options.csv"), dtype=str, keep_default_na=False)
PROGRAMS = {"vllm": "vllm serve", "sglang": "python -m sglang.launch_server", "trtllm": "trtllm-serve"}
# Keys of the file that TensorRT-LLM reads, of LlmArgs in tensorrt_llm/llmapi/llm_args.py at the same commit.
FILED = {
    "enable_chunked_prefill", "enable_attention_dp", "disable_overlap_scheduler", "kv_cache_config",
    "cache_transceiver_config", "speculative_config",
}  # fmt: skip
MODELS = {
    "llama-3-70b": [{"tp": 2}, {"tp": 4, "pp": 2}],
    "deepseek-v3": [{"tp": 8}, {"tp": 1, "dp": 8, "ep": 8}, {"tp": 8, "drafts": 2, "accepted": 0.7}],
}


def parser_of(engine: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    if engine != "sglang":
        parser.add_argument("model")
    rows = TABLE[(TABLE.engine == engine) & (TABLE.option != "--help")]
    for option, values, listed in rows[["option", "values", "choices"]].itertuples(index=False):
        choices = listed.split("|") if listed else None
        more = {"choices": choices} if values == "1" else {"action": "store_true"}
        parser.add_argument(option, **more)
    return parser


PARSERS = {engine: parser_of(engine) for engine in PROGRAMS}


def read(engine: str, command: str) -> dict[str, object]:
    """Return what an engine's parser makes of a command, after the file that it may write."""
    *file, line = command.split("\n")
    if file:
        assert engine == "trtllm"
        assert set(yaml.safe_load("\n".join(file[1:-1]))) <= FILED
    assert line.startswith(PROGRAMS[engine])
    words = shlex.split(line.removeprefix(PROGRAMS[engine]).replace("$BACKEND", "file"))
    return vars(PARSERS[engine].parse_args(words))


@pytest.mark.parametrize("engine", PROGRAMS)
def test_every_printed_command_is_understood(engine):
    count = 0
    for model, layouts in MODELS.items():
        for layout, kv, store in itertools.product(layouts, ("bf16", "fp8"), ("", "dram", "local_ssd")):
            unit = Unit.of(model, "h200-sxm", weights="fp8", kv=kv, engine=engine, **layout)
            work = Workload(2000, 200, 0.5 if store else 0.0)
            found = plan(unit, work, SLA(3, 0.2), tier=store or None, intervals=False)
            for start in found.starts.values():
                for title, line in start.commands:
                    if title in ("what is stored", "what drafts", "in front of them"):
                        continue
                    told = read(engine, line)
                    count += 1
                    if engine == "vllm" and told["kv_transfer_config"]:
                        json.loads(str(told["kv_transfer_config"]).replace("$STORE_BYTES", "1"))
    assert count > 40


def test_the_table_refuses_what_an_engine_does_not_know():
    assert read("vllm", "vllm serve $MODEL --kv-cache-dtype fp8")["kv_cache_dtype"] == "fp8"
    for line in ("vllm serve $MODEL --kv-cache-dtype eight", "vllm serve $MODEL --tp-size 2"):
        with pytest.raises((argparse.ArgumentError, SystemExit)):
            read("vllm", line)


def test_options_come_from_the_releases_that_commands_are_for():
    versions = TABLE.groupby("engine").version.unique()
    assert all(len(found) == 1 for found in versions)
    assert versions["vllm"][0].startswith("0.32")
    assert versions["sglang"][0].startswith("0.5")
