"""The command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from inference_math.__main__ import main
from inference_math.measure.points import points
from inference_math.measure.record import Record, Row, Setup
from inference_math.measure.timing import Sample
from inference_math.unit import Unit
from inference_math.unit.coefficients import Calibration
from inference_math.workload import Workload

UNIT = ["--model", "llama-3-70b", "--gpu", "h100-sxm", "--tp", "2", "--weights", "fp8"]
SENT = ["--prompt", "2200", "--output", "170", "--ttft", "1", "--tpot", "0.04"]


def test_a_plan_prints(capsys):
    assert main(["plan", *UNIT, *SENT]) == 0
    assert "Verdict: " in capsys.readouterr().out


def test_a_plan_in_json_with_a_fleet(capsys):
    assert (
        main(["plan", *UNIT, *SENT, "--json", "--rate", "20", "--price", "2.5", "--alpha", "0.5", "--tier", "dram"])
        == 0
    )
    content = json.loads(capsys.readouterr().out)
    assert content["fleet"]["goodput"] >= 0.9
    assert content["tier"] == "dram"
    assert content["answers"]["usd_per_million"]["value"] > 0


def test_an_impossible_sla_is_exit_status_1(capsys):
    assert main(["plan", *UNIT, "--prompt", "2200", "--output", "170", "--ttft", "0.1", "--tpot", "0.01"]) == 1
    assert "would meet the SLA" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "--model", "llama-9", "--gpu", "h100-sxm", *SENT], "model must be one of"),
        (["plan", *UNIT, *SENT, "--tier", "tape"], "tier must be one of"),
        (["plan", *UNIT, *SENT, "--calibration", "nowhere.toml"], "nowhere.toml"),
        (["profile", *UNIT, "nowhere.json", "--out", "x.toml"], "nowhere.json"),
    ],
)
def test_bad_input_is_exit_status_2(arguments, words, capsys):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_from_runs_to_a_plan(tmp_path, capsys):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8", "fp8")
    lines = ["n_in,n_out,concurrency,e2e"]
    for n_in, n_out in ((512, 128), (4096, 256)):
        lines += [f"{n_in},{n_out},{b},{1.1 * unit.e2e(Workload(n_in, n_out), b)}" for b in (1, 4, 16, 64)]
    lines.append("512,128,4,")
    source, out = tmp_path / "runs.csv", tmp_path / "mine.toml"
    source.write_text("\n".join(lines))
    assert main(["profile", *UNIT, str(source), "--anchor", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "not used: runs.csv#10" in printed
    assert len(Calibration.load(out).anchors) == 2
    assert main(["plan", *UNIT, *SENT, "--calibration", str(out)]) == 0
    assert "profile coefficients" in capsys.readouterr().out


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "inference_math", "plan", "--help"], capture_output=True, text=True, check=True
    )
    assert "--max" not in done.stdout
    assert "--prompt" in done.stdout


def test_from_a_measurement_of_one_s_own_gpu_to_a_plan(tmp_path, capsys):
    """The file is written as `measure` writes it, of a GPU that is exactly a unit."""
    of = Unit.of("llama-3-8b", "h200-sxm")
    setup = Setup("llama-3-8b", 32, 2**17, "bf16", "bf16", "", 0, False, {"device": "NVIDIA H200 of mine"})
    record = Record(tmp_path / "mine.csv", setup)
    for point in points(2**17, 2**13, fp8=False):
        rest = (point.prompts * point.tokens, point.cached)
        parts = {
            "decode": (point.decodes, point.context), "mixed": (point.decodes, point.context, *rest),
            "prefill": (0, 0, *rest), "matrices": (point.fresh, 0),
        }  # fmt: skip
        if point.what == "attention":
            inside = of.parts(point.decodes, point.context, rest[0])
            s = inside["KV cache"] + inside["attention of the prompt"]
        elif asked := parts.get(point.what):
            s = 1.1 * of.step_time(*asked)
        else:
            continue
        record.add(Row(1, point, Sample(s, s, s, 9)))
    table, out = str(record.path), str(tmp_path / "mine.toml")
    assert main(["calibrate", table, "--out", out]) == 2
    assert "gpu must be given: NVIDIA H200 of mine is none of" in capsys.readouterr().err
    datasheet = tmp_path / "mine-gpu.toml"
    rates = "bf16_flops = 989.4e12\nhbm_bw = 4.8e12\nhbm_bytes = 141e9\nlink_bw = 450e9\npcie_bw = 64e9\n"
    datasheet.write_text(f'name = "mine"\n{rates}')
    for gpu in (str(datasheet), "h200-sxm"):
        assert main(["calibrate", table, "--gpu", gpu, "--out", out]) == 0
    printed = capsys.readouterr().out
    assert "fp8      0.539 ± 0.029 (kept: the points do not tell)" in printed
    assert f"written to {out}" in printed
    assert "mixed steps: the sum of their parts is " in printed
    unit = ["--model", "llama-3-8b", "--gpu", "h200-sxm", "--calibration", out]
    assert main(["plan", *unit, *SENT]) == 0
    assert "measured coefficients" in capsys.readouterr().out
