"""Engines are records: a made-up one is added and planned with, and nothing else knows an engine by its name."""

import re

import pytest

import inference_math_planner as planner
from inference_math import SLA, Unit, Workload, evidence
from inference_math.catalogue import engines as room
from inference_math_planner import plan

TEXT = (evidence.data_dir() / "engines.toml").read_text(encoding="utf-8")
MADE_UP = """
[mine]
title = "Mine"
like = "trtllm"
[mine.cli]
program = "mine --checkpoint $MODEL"
seqs = "--at-once"
tokens = "--tokens-of-a-step"
longest = "--longest"
tp = "--tp {tp}"
"""


@pytest.fixture
def mine(monkeypatch):
    """Add an engine: nine lines, and nothing else."""
    known = room.parsed(TEXT + MADE_UP)
    monkeypatch.setattr(room, "engines", lambda: known)
    return "mine"


@pytest.mark.parametrize("model", ["llama-3-70b", "deepseek-v3"])
def test_a_made_up_engine_is_planned_with(monkeypatch, mine, model):
    monkeypatch.setattr("inference_math.unit.unit.engines", room.engines)
    gpu, tp = ("h100-sxm", 2) if model == "llama-3-70b" else ("h200-sxm", 8)
    unit = Unit.of(model, gpu, tp, "fp8", "fp8", mine)
    like = Unit.of(model, gpu, tp, "fp8", "fp8", "trtllm")
    assert unit.calibration.coefficients == like.calibration.coefficients
    found = plan(unit, Workload(1000, 200), SLA(2, 0.08))
    assert found.feasible
    for start in found.starts.values():
        assert any("mine --checkpoint $MODEL" in line for _, line in start.commands)
        assert any("--at-once" in line and "  " not in line for _, line in start.commands)
    assert planner.foresee(unit, planner.Benchmark(500, 100, prompts=20, concurrency=4)).rate > 0


def test_a_record_that_lacks_or_adds_something_is_refused_by_name():
    with pytest.raises(ValueError, match="vllm must be an engine's record: Object missing required field `title`"):
        room.parsed(TEXT.replace('title = "vLLM"', "", 1))
    with pytest.raises(ValueError, match=r"Object contains unknown field `pages` - at `\$\.scheduler`"):
        room.parsed(TEXT.replace("page = 1 ", "pages = 1 ", 1))
    with pytest.raises(ValueError, match=r"vllm must be.*: Expected `int`, got `str` - at `\$\.scheduler\.page`"):
        room.parsed(TEXT.replace("page = 1 ", 'page = "1" ', 1))
    with pytest.raises(ValueError, match="engine must be one of vllm, trtllm, sglang, not 'triton'"):
        room.engine("triton")


def test_no_code_asks_for_an_engine_by_its_name(root):
    """What differs between engines stands in their records; tables of kernels name the engine whose they are."""
    asks = re.compile(r"""(?:==|!=|\bin) *[\[("']+(?:vllm|trtllm|sglang)""")
    folders = ("inference_math/optimiser", "inference_math/simulate", "inference_math_planner/answers")
    for folder in (*folders, "inference_math_planner/fleets", "inference_math_planner/cli"):
        for path in (root / "src" / folder).rglob("*.py"):
            for line in path.read_text(encoding="utf-8").splitlines():
                assert not asks.search(line), f"{path.name}: {line.strip()}"
