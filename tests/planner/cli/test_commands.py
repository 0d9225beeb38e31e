"""The command line."""

from __future__ import annotations

import inspect
import io
import json
import re
import subprocess
import sys
from importlib.metadata import entry_points

import jsonschema
import pytest

from inference_math import __version__
from inference_math.unit import Unit
from inference_math.unit.coefficients import Calibration
from inference_math.workload import Workload
from inference_math.workload.points import points
from inference_math_bench.measure.record import Record, Row, Setup
from inference_math_bench.measure.timing import Sample
from inference_math_planner import schema
from inference_math_planner.cli import main
from inference_math_planner.cli.commands import RUNS
from inference_math_planner.cli.options import parser

pytestmark = pytest.mark.usefixtures("few_draws")
split = str.split  # of a command line, as one writes it
UNIT = split("--model llama-3-70b --gpu h100-sxm --tp 2 --weights fp8")
SENT = split("--prompt 2200 --output 170 --ttft 1 --tpot 0.04")
FREE = split("plan --model llama-3-70b --gpu h100-sxm --weights fp8 --prompt 1000 --output 100")  # in any layout


def told(capsys, *arguments):
    """Return what a command prints as JSON; of a plan, by its schema."""
    assert main([*arguments, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    if arguments[0] == "plan":
        jsonschema.validate(content, schema())
    return content


def test_a_plan_prints(capsys):
    assert main(["plan", *UNIT, *SENT]) == 0
    said = capsys.readouterr().out
    assert len(said.splitlines()) <= 15
    assert "requests/s per unit at full load, the best in " in said
    assert main(["plan", *UNIT, *SENT, "--full"]) == 0
    everything = capsys.readouterr().out
    assert everything.startswith(said)
    assert "All numbers\n" in everything


def test_it_says_its_version_and_what_it_returns(capsys):
    for asked, words in (
        (["--version"], __version__),
        (["--help"], "exit status: 0; 1 where nothing meets the limits"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(asked)
        assert ended.value.code == 0
        assert words in " ".join(capsys.readouterr().out.split())


def test_commands_are_written_as_a_script(tmp_path):
    path = tmp_path / "serve.sh"
    assert main(["plan", *UNIT, *SENT, "--rate", "5", "--units", "2", "--commands", str(path)]) == 0
    script = path.read_text()
    assert "vllm serve $MODEL --tensor-parallel-size 2" in script
    subprocess.run(["sh", "-n", str(path)], check=True)


def test_without_a_layout_the_best_one_is_the_plan(capsys):
    asked = split("plan --model qwen3-30b-a3b --gpu h100-sxm --prompt 1000 --output 300 --ttft 1 --tpot 0.04")
    content = told(capsys, *asked)
    first = max(content["layouts"], key=lambda row: row["tokens_per_gpu"])
    assert {name: first[name] for name in ("tp", "ep", "dp", "pp")} == content["answer"]["layout"]
    assert content["answer"]["tokens_per_gpu"] == pytest.approx(first["tokens_per_gpu"])
    assert main(asked) == 0
    assert f"Layout: {first['layout']}, " in capsys.readouterr().out


def test_a_search_is_not_bound_to_the_layout_that_is_named(capsys):
    """A layout that cannot be, or is not the best, does not stand in the way of the search that is asked for."""
    printed = []
    for named in ([], ["--tp", "3"], ["--tp", "1"]):
        assert main([*FREE, *split("--ttft 1 --tpot 0.05 --search 4"), *named]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] == printed[2]


@pytest.mark.parametrize(("named", "layout"), [(["--tp", "2", "--pp", "2"], (2, 2)), (["--pp", "2"], (1, 2))])
def test_a_layout_that_is_named_is_the_plan_s(named, layout, capsys):
    found = told(capsys, *FREE, "--ttft", "2", "--tpot", "0.1", *named)["answer"]["layout"]
    assert (found["tp"], found["pp"]) == layout


def test_drafted_tokens_are_planned(capsys):
    each = [told(capsys, "plan", *UNIT, *SENT, *more.split()) for more in ("", "--drafts 2", "--drafts 2 --accepted 0")]
    plain, drafted, refused = (one["answer"]["rate"]["value"] / one["answer"]["gpus"]["value"] for one in each)
    assert refused < plain < drafted
    assert each[2]["unit"].endswith("2 drafts, 1 tokens a step")
    assert any(one.startswith("with 2 drafts a step is taken to give 1 tokens") for one in each[2]["cautions"])
    assert any(one.endswith("these drafts do not pay") for one in each[2]["cautions"])


def test_a_plan_in_json_with_a_fleet(capsys):
    more = split("--rate 20 --units 3 --price 2.5 --alpha 0.5 --tier dram")
    content = told(capsys, "plan", *UNIT, *SENT, *more)
    answer = content["answer"]
    assert answer["kept"] >= answer["promise"] == 0.9
    assert answer["store"] == "dram"
    assert answer["rate"]["value"] == 20
    assert answer["gpus"]["low"] <= answer["gpus"]["value"] <= answer["gpus"]["high"]
    assert content["numbers"]["usd_per_million"]["value"] > 0


def test_a_plan_of_recorded_requests(tmp_path, capsys):
    more = split("--lengths azure-code --alpha 0.2 --rate 5 --units 2")
    content = told(capsys, "plan", *UNIT, *SENT[4:], *more)
    assert content["workload"]["n_in"] == pytest.approx(2048, rel=0.01)
    assert content["workload"]["alpha"] == pytest.approx(0.2, rel=0.01)
    assert content["answer"]["replicas"] >= 1
    path = tmp_path / "own.csv"
    path.write_text("n_in,n_out\n100,20\n2000,x\n300,10\n")
    assert main(["plan", *UNIT, *SENT[4:], "--lengths", str(path)]) == 0
    said = capsys.readouterr()
    assert "200 prompt and 15 output tokens" in said.out
    assert "note: 1 of" in said.err
    assert "left out, line 3: " in said.err


def test_other_gpus_are_compared_at_their_prices(capsys):
    asked = ["plan", *UNIT, *SENT, "--price", "2.5", "--gpus", "b200=5", "l40s"]
    rows = told(capsys, *asked)["gpus"]
    assert [row["gpu"] for row in rows] == ["b200", "h100-sxm", "l40s"]
    assert rows[0]["usd_per_million"] < rows[1]["usd_per_million"]
    assert rows[2]["price"] is None
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "The same on other GPUs, at full load:" in said
    assert "none meets the SLA" in said


def test_an_impossible_sla_is_exit_status_1(capsys):
    assert main(["plan", *UNIT, "--prompt", "2200", "--output", "170", "--ttft", "0.1", "--tpot", "0.01"]) == 1
    assert "would meet the SLA" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("--model llama-9", "model must be one of"),
        ("--alpha 0.5 --tier tape", "tier must be one of"),
        ("--calibration nowhere.toml", "nowhere.toml"),
        ("--lengths azure-code", "--prompt and --output must be left out"),
        ("--tier dram", "--tier and --store need --alpha above 0"),
        ("--drafts 40", "--drafts must be a whole number from 0 to 16"),
        ("--drafts 1 --accepted 80", "--accepted must be"),
        ("--gpus b200=free", "--gpus must be names, or GPU=USD, for example b200=5"),
        ("--gpus b900=5", "must be one of"),
        ("--have 2 --rate 3", "--have must be left out"),
    ],
)
def test_bad_input_is_exit_status_2(more, words, capsys):
    assert main(["plan", *UNIT, *SENT, *more.split()]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ("geometric", "--prompt and --output must be given"),
        ("azure", "--lengths must be one of fixed, geometric, azure-code"),
        ("nowhere.csv", "nowhere.csv"),
    ],
)
def test_lengths_that_are_none_are_exit_status_2(lengths, words, capsys):
    assert main(["plan", *UNIT, *SENT[4:], "--lengths", lengths]) == 2
    assert words in capsys.readouterr().err


def test_an_error_does_not_repeat_a_long_input(capsys):
    assert main(["plan", "--model", 10_000 * "x", "--gpu", "h100-sxm", *SENT]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --model must be one of ")
    assert len(said) < 2100


@pytest.mark.parametrize(("limits", "named"), [(("1", "40"), "--tpot 40 s"), (("400", "0.04"), "--ttft 400 s")])
def test_limits_that_look_like_milliseconds_are_noted(limits, named, capsys):
    main(["plan", *UNIT, "--prompt", "2200", "--output", "170", "--ttft", limits[0], "--tpot", limits[1]])
    assert capsys.readouterr().err == f"note: limits are in seconds; {named} is long\n"


def test_the_options_default_to_what_the_package_defaults_to():
    options = parser("plan", RUNS).parse_args(["plan", "--model", "llama-3-8b", "--gpu", "h100-sxm", *SENT])
    defaults = inspect.signature(Unit.of).parameters
    assert {name: getattr(options, name) for name in ("weights", "kv", "engine", "calibration")} == {
        name: defaults[name].default for name in ("weights", "kv", "engine", "calibration")
    }


def test_from_runs_to_a_plan(tmp_path, capsys):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8")
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


@pytest.mark.parametrize(
    ("module", "usage"),
    [
        ("inference_math_planner plan", "inference-math plan "),
        ("inference_math_planner measure", "inference-math measure "),
        ("inference_math_bench.measure", "inference-math measure "),
    ],
)
def test_it_runs_as_a_module(module, usage):
    called = [sys.executable, "-m", *module.split(), "--help"]
    done = subprocess.run(called, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"usage: {usage}")


def test_it_is_a_command():
    (command,) = entry_points(group="console_scripts", name="inference-math")
    assert command.load() is main


def test_the_command_measures(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["measure", "--model", "llama-3-8b", "--out", str(tmp_path / "mine.csv")]) == 2
    assert "measuring needs PyTorch" in capsys.readouterr().err


def test_a_terminal_in_ascii_gets_the_plan(monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["plan", *UNIT, *SENT, "--full"]) == 0
    terminal.flush()
    assert b"\\u" in terminal.buffer.getvalue()  # something was not ASCII


def test_who_reads_no_further_gets_no_error():
    with subprocess.Popen(
        [sys.executable, "-m", "inference_math_planner", "plan", *UNIT, *SENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as command:
        command.stdout.close()  # as head does
        assert command.stderr.read() == b""
        assert command.wait() == 141


@pytest.mark.parametrize("precious", ["runs.csv", "mine.json", "gpu.toml", "old.toml"])
def test_a_file_that_is_read_is_not_written_over(precious, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("runs.csv", "mine.csv", "mine.json", "gpu.toml", "old.toml"):
        (tmp_path / name).write_text("precious")
    given = ["--gpu", "gpu.toml", "--out", f"./{precious}"]
    if precious == "mine.json":  # the description of a table
        arguments = ["calibrate", "mine.csv", *given]
    else:
        arguments = ["profile", "--model", "llama-3-8b", "--calibration", "old.toml", "runs.csv", *given]
    assert main(arguments) == 2
    assert "--out must not be a file that is read" in capsys.readouterr().err
    assert (tmp_path / precious).read_text() == "precious"


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
    assert re.search(r"fp8 +0\.539 ± [\d.]+ \(kept: the points do not tell\)", printed)
    assert f"written to {out}" in printed
    assert "mixed steps: the sum of their parts is " in printed
    unit = ["--model", "llama-3-8b", "--gpu", "h200-sxm", "--calibration", out]
    assert main(["plan", *unit, *SENT]) == 0
    assert "measured coefficients" in capsys.readouterr().out


def test_the_gpus_that_there_are_bound_the_pools(capsys):
    for more, units in ((["--units", "2"], 2), ([], 6 // 2)):
        content = told(capsys, "plan", *UNIT, *SENT, "--have", "6", *more)
        assert content["units"] == units
    assert content["answer"]["gpus"]["value"] <= 6
    assert content["answer"]["rate"]["low"] <= content["answer"]["rate"]["value"] <= content["answer"]["rate"]["high"]
    assert main(["plan", *UNIT, *SENT, "--have", "1"]) == 0
    assert "note: no fleet: gpus must be at least 2" in capsys.readouterr().err


def test_a_report_goes_through_a_link_and_over_no_device(tmp_path, capsys):
    real, link = tmp_path / "real.md", tmp_path / "link.md"
    real.write_text("old")
    link.symlink_to(real)
    assert main(["plan", *UNIT, *SENT, "--report", str(link)]) == 0
    assert link.is_symlink()
    assert real.read_text().startswith("# Plan: ")
    for place in (tmp_path, tmp_path / "no" / "plan.md"):
        assert main(["plan", *UNIT, *SENT, "--report", str(place)]) == 2
        assert "cannot be written" in capsys.readouterr().err


BENCH = split("benchmark --model llama-3-8b --gpu h100-sxm --max-concurrency 8 --num-prompts 80")


def test_a_benchmark_is_foreseen_under_the_names_of_its_own_command(capsys):
    assert main([*BENCH, "--random-range-ratio", "0.3"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[1].startswith("TTFT")
    assert "the opening burst has a mean TTFT of" in said
    assert "prompts bring the mean within 5% of the latter" in said
    content = told(capsys, *BENCH)
    assert set(content["table"]) == {"TTFT", "TPOT", "ITL", "latency"}
    assert content["enough"] is None  # equal lengths


@pytest.mark.parametrize("option", ["front -1", "random-range-ratio 1", "max-num-batched-tokens 0", "burstiness 0"])
def test_a_benchmark_that_is_none_is_refused_by_its_options(option, capsys):
    name, value = f"--{option}".split()
    assert main([*BENCH, name, value]) == 2
    assert f"{name} must be" in capsys.readouterr().err
    assert main([*BENCH, "--num-prompts", "7"]) == 2
    assert "--max-concurrency must be a whole number from 1 to 7, not 8" in capsys.readouterr().err


STORE = split("store --model llama-3-70b --gpu h100-sxm --tp 4 --weights fp8 --kv fp8 --users 500 --turns 60")
STORE += split("--first 15000 --message 1500 --answer 500")


def test_a_store_is_sized_for_sessions(capsys):
    assert main([*STORE, "--units", "8", "--tiers", "dram=4000", "local_ssd=60000"]) == 0
    said = capsys.readouterr().out
    assert "98% of all prompt tokens were there before" in said
    assert said.index(" hbm ") < said.index(" dram ") < said.index("local_ssd")
    content = told(capsys, *STORE, "--tiers", "dram=4000")
    assert [row["tier"] for row in content["tiers"]] == ["hbm", "dram"]
    assert content["needed_gb"]["0.9"] < content["needed_gb"]["0.99"]


def test_users_within_limits_and_loads_beside_steps_are_options(capsys):
    asked = [*STORE, "--units", "16", "--tiers", "local_ssd=9000"]
    ways = ("", "--async-loads", "--ttft 2 --tpot 0.05")
    waits, goes_on, limited = (told(capsys, *asked, *more.split())["tiers"][1] for more in ways)
    assert goes_on["tpot"] < waits["tpot"]
    assert waits["kept"] is None
    assert limited["kept"] > 500
    assert main([*asked, "--ttft", "2"]) == 2
    assert "--ttft and --tpot must be given together" in capsys.readouterr().err


PLAN = ["plan", *STORE[1:], "--units", "16", "--ttft", "2", "--tpot", "0.05"]


def test_a_plan_takes_the_stored_share_from_sessions(capsys):
    """The same question asked of two commands: the plan's stored share is what the store finds."""
    assert main([*PLAN, "--tiers", "dram=8000", "--json"]) == 0
    said = capsys.readouterr()
    assert (
        "500 users of 16 units of 4 GPUs find 98% of their prompts of 74,000 tokens, most of that in dram" in said.err
    )
    planned = json.loads(said.out)
    stored = told(capsys, *STORE, "--units", "16", "--tiers", "dram=8000")
    assert planned["workload"]["alpha"] == pytest.approx(stored["tiers"][-1]["together"])
    assert planned["workload"]["n_in"] == pytest.approx(stored["prompt"])
    assert planned["answer"]["store"] == "dram"
    assert main(PLAN) == 1  # HBM alone finds nothing
    assert "find 0% of their prompts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "more", "words"),
    [
        (PLAN, "--alpha 0.5", "--alpha must be left out: it follows from sessions"),
        (PLAN, "--prompt 9", "--prompt must be left out"),
        (PLAN, "--turns 0", "--turns must be"),
        (STORE, "--tiers dram", "--tiers must be NAME=GB, for example dram=2000, not 'dram'"),
        (STORE, "--users 0", "--users must be"),
        (STORE, "--cv -1", "--cv must be"),
    ],
)
def test_sessions_that_are_none_are_refused_by_their_options(command, more, words, capsys):
    assert main([*command, *more.split()]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("name", ["users", "first", "message", "answer"])
def test_a_plan_from_sessions_needs_all_of_them(name, capsys):
    at = PLAN.index(f"--{name}")
    assert main(PLAN[:at] + PLAN[at + 2 :]) == 2
    assert f"--{name} must be given with --turns" in capsys.readouterr().err


def test_counted_experts_are_an_option(capsys):
    asked = split("plan --gpu h100-sxm --tp 2 --prompt 2000 --output 200 --ttft 2 --tpot 0.05")
    said = []
    for cv in ("0", "2.5"):
        assert main([*asked, "--model", "gpt-oss-120b", "--expert-imbalance", cv]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] != said[1]
    assert main([*asked, "--model", "llama-3-8b", "--expert-imbalance", "1"]) == 2
    assert "--expert-imbalance must be left out for llama-3-8b" in capsys.readouterr().err


def test_cadences_are_compared(capsys):
    assert main([*BENCH, "--cadences"]) == 0
    said = capsys.readouterr().out
    assert "gap_p99" in said
    assert "least median gap: N = " in said
    assert [row["every"] for row in told(capsys, *BENCH, "--cadences")] == [1, 2, 4, 8, 16]


def test_a_command_of_another_distribution_says_what_it_needs(monkeypatch, capsys):
    monkeypatch.setattr("inference_math_planner.cli.commands.entry_points", lambda **_: ())
    assert main(["lab", "--out", "x"]) == 2
    assert "lab needs inference-math-bench: pip install inference-math-bench" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--model", "--calibration"])
def test_a_file_that_is_not_there_is_named_by_its_option(option, tmp_path, capsys):
    at = tmp_path / ("mine.json" if option == "--model" else "mine.toml")
    assert main(["plan", *UNIT, *SENT, option, str(at)]) == 2
    assert capsys.readouterr().err == f"error: {option} {at}: No such file or directory\n"


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(monkeypatch, tmp_path, capsys):
    """Not by the name of the one beside it, into which its text goes first."""

    def full(**options):
        raise OSError(28, "No space left on device", str(tmp_path / ".mine.md.x7"))

    monkeypatch.setattr("tempfile.mkstemp", full)
    at = tmp_path / "mine.md"
    assert main(["plan", *UNIT, *SENT, "--report", str(at)]) == 2
    assert capsys.readouterr().err == f"error: --report {at}: No space left on device\n"
