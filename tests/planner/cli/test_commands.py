"""The command line."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import jsonschema
import pytest

from inference_math import __version__
from inference_math.evidence import data_dir
from inference_math.optimiser.verdict import hundredths, word_of
from inference_math.unit import Unit
from inference_math.unit.coefficients import Calibration
from inference_math.workload import Workload
from inference_math_planner import schema
from inference_math_planner.cli import main
from inference_math_planner.cli.brief import LINES
from inference_math_planner.cli.commands import RUNS
from inference_math_planner.cli.options import parser

pytestmark = pytest.mark.usefixtures("few_draws")
split = str.split  # of a command line, as one writes it
UNIT = split("--model llama-3-70b --gpu h100-sxm --tp 2 --weights fp8")
SENT = split("--prompt 2200 --output 170 --ttft 1 --tpot 0.04")
BENCH = split("benchmark --model llama-3-8b --gpu h100-sxm --max-concurrency 8 --num-prompts 80")
STORE = split("store --model llama-3-70b --gpu h100-sxm --tp 4 --weights fp8 --kv fp8 --turns 60")
SESSIONS = split("--users 500 --first 15000 --message 1500 --answer 500")
PLAN = ["plan", *STORE[1:], *split("--units 16 --ttft 2 --tpot 0.05")]
ASKED = ["plan", *UNIT, *SENT]
FREE = split("plan --model llama-3-70b --gpu h100-sxm --weights fp8 --prompt 1000 --output 100")  # in any layout


def said(capsys, *arguments, status=0):
    """Return what a command prints, and what it notes or refuses."""
    assert main(list(arguments)) == status
    return capsys.readouterr()


def told(capsys, *arguments):
    """Return what a command prints as JSON; of a plan, by its schema."""
    content = json.loads(said(capsys, *arguments, "--json").out)
    if arguments[0] == "plan":
        jsonschema.validate(content, schema())
    return content


def test_a_plan_prints(capsys):
    short, everything = (said(capsys, *ASKED, *more).out for more in ([], ["--full"]))
    assert len(short.splitlines()) <= 9
    assert "requests/s from each unit of 2 H100 GPUs." in short
    assert all(line.endswith(".") for line in short.splitlines())
    assert everything.startswith(short)
    assert "All numbers\n" in everything


def test_it_says_what_it_returns(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "1 where nothing meets the" in " ".join(capsys.readouterr().out.split())


def loaded_by(commands):
    """Return the modules that a fresh interpreter has after it ran some commands."""
    code = f"import sys; from inference_math_planner.cli import main; print([main(one) for one in {commands}])"
    code += "; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *printed, ended, modules = done.stdout.splitlines()
    assert ended == str([0] * len(commands))
    return printed, {*modules.split()}


def test_it_says_its_version_and_loads_no_command(capsys):
    printed, modules = loaded_by([["--version"]])
    assert printed == [f"inference-math {__version__}"]
    assert not {"numpy", "inference_math_planner.cli.commands"} & modules
    with pytest.raises(SystemExit):  # of the commands' parser, which lists it
        parser("", RUNS).parse_args(["--version"])
    assert capsys.readouterr().out == f"{printed[0]}\n"


def test_what_is_asked_most_is_answered_without_sympy():
    _, modules = loaded_by([ASKED, BENCH, [*STORE, *SESSIONS]])
    assert {"inference_math.theory.plain"} < modules
    assert not {"sympy", "scipy.stats"} & modules


def test_commands_are_written_as_a_script(tmp_path):
    path = tmp_path / "serve.sh"
    assert main([*ASKED, *split("--rate 5 --units 2 --commands"), str(path)]) == 0
    written = path.read_text()
    assert "vllm serve $MODEL --tensor-parallel-size 2" in written
    for name in set(re.findall(r"^[^#].*?\$\{?([A-Z_]+)", written, re.M)):
        assert f"\n# ${name}: " in written
    subprocess.run(["sh", "-n", str(path)], check=True)


def test_without_a_layout_the_best_one_is_the_plan(capsys):
    content = told(capsys, *FREE, *split("--ttft 1 --tpot 0.04"))
    first = max(content["layouts"], key=lambda row: row["tokens_per_gpu"])
    assert {name: first[name] for name in ("tp", "ep", "dp", "pp")} == content["answer"]["layout"]
    assert content["answer"]["tokens_per_gpu"] == pytest.approx(first["tokens_per_gpu"])


def test_a_layout_that_is_named_is_the_plan_s(capsys):
    found = told(capsys, *FREE, *split("--ttft 2 --tpot 0.1 --pp 2"))["answer"]["layout"]
    assert (found["tp"], found["pp"]) == (1, 2)


def test_drafted_tokens_are_planned(capsys):
    each = [told(capsys, *ASKED, *more.split()) for more in ("", "--drafts 2", "--drafts 2 --accepted 0")]
    plain, drafted, refused = (one["answer"]["tokens_per_gpu"] for one in each)
    assert refused < plain < drafted
    assert each[2]["unit"].endswith("2 drafts, 1 tokens a step")


def test_a_plan_in_json_with_a_fleet(capsys):
    more = split("--rate 20 --units 3 --price 2.5 --alpha 0.5 --tier dram")
    content = told(capsys, *ASKED, *more)
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
    own = said(capsys, "plan", *UNIT, *SENT[4:], "--lengths", str(path))
    assert "Requests of 200 tokens in and 15 out" in own.out
    assert re.search("note: 1 of .* left out, line 3: ", own.err)


def test_other_gpus_are_compared_at_their_prices(capsys):
    asked = [*ASKED, *split("--price 2.5 --gpus b200=5 l40s H200=30")]
    rows = told(capsys, *asked)["gpus"]
    assert [row["gpu"] for row in rows] == ["b200", "h100-sxm", "h200-sxm", "l40s"]
    assert rows[0]["usd_per_million"] < rows[1]["usd_per_million"]
    assert [row["price"] for row in rows] == [5, 2.5, 30, None]
    assert "The same on other GPUs, at full load:" in said(capsys, *asked).out


def test_prefill_units_of_another_layout(capsys):
    told = said(capsys, *ASKED, *split("--tp 2 --prefill-tp 4 --front 0.02")).out
    assert "prefill units of 4 GPUs, TP 4" in told or not told.startswith("Disaggregated")
    wrong = said(capsys, *[one for one in ASKED if one not in ("--tp", "2")], "--prefill-tp", "4", status=2).err
    assert "--tp must be given with --prefill-tp" in wrong


def test_an_impossible_sla_is_exit_status_1(capsys):
    assert "To get an answer, add " in said(capsys, *ASKED, *split("--ttft 0.1 --tpot 0.01"), status=1).out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("--promt 2200", "--promt is no option of plan; did you mean --prompt?"),
        ("--zzz 2200", "--zzz is no option of plan: inference-math plan --help lists them"),
        ("--ttft 400ms", "--ttft must be a number of seconds, not '400ms'"),
        ("--tp two", "--tp must be a whole number, not 'two'"),
        ("--quantile p99", "--quantile must be a share of the requests, for example 0.9, or means, not 'p99'"),
    ],
)
def test_a_typo_is_told_in_one_line_by_its_option(more, words, capsys):
    try:
        status = main([*ASKED, *more.split()])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"error: {words}")
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "more", "words"),
    [
        (ASKED, "--model llama-9", "--model must be one of"),
        (ASKED, "--gpu H100", "--gpu must be one of h100-sxm"),
        (ASKED, "--gpus h100=3", "--gpu must be one of h100-sxm"),
        (FREE, "--ttft 1 --tpot 0.04 --engine vlm", "--engine must be one of vllm"),
        ([*STORE, *SESSIONS], "--tiers ssd=9", "--tiers must be one of hbm, dram"),
        (ASKED, "--lengths azure-code", "--prompt and --output must be left out"),
        (["plan", *UNIT, *SENT[4:]], "--lengths geometric", "--prompt and --output must be given"),
        (["plan", *UNIT, *SENT[4:]], "--lengths azure", "--lengths must be one of fixed, geometric, azure-code"),
        (
            ["plan", *UNIT, *SENT[4:]],
            "--lengths runs.json",
            "--lengths must be one of fixed, geometric, azure-code, azure-conversation, mooncake-conversation, "
            "mooncake-synthetic, not 'runs.json'; or a file of recorded ones, .jsonl or .csv\n",
        ),
        (ASKED, "--memory 0.01", "--memory must be more than 0.0351 on h100-sxm, not 0.01: vllm itself takes 3 GB\n"),
        ([*STORE, *SESSIONS], "--think -1", "--think must be a finite number >= 0, not -1"),
        (ASKED, "--tier dram", "--tier and --store need --alpha above 0"),
        (ASKED, "--tier dram --store 9 --alpha 0.5", "--store must be left out where --tier"),
        (ASKED, "--gpus b200=free", "--gpus must be names, or GPU=USD, for example b200=5"),
        (ASKED, "--have 2 --rate 3", "--have must be left out"),
        ([*PLAN, *SESSIONS], "--sessions 7", "--sessions must be left out: it follows from --users and --turns"),
        (BENCH, "--burstiness 0.5", "--burstiness must be left out: it changes nothing without --request-rate"),
        (ASKED, "--alpha 0.5 --tier dram=9", "--sessions must be given with a size of --tier"),
        (ASKED, "--alpha 0.5 --tier dram=much", "--tier must be NAME=GB, for example dram=2000, not 'dram=much'"),
        (ASKED, "--expert-imbalance 1", "--expert-imbalance must be left out for llama-3-70b"),
        (ASKED, "--engine sglang --no-async-scheduling", "--async-scheduling must be left out for sglang"),
        ([*PLAN, *SESSIONS], "--alpha 0.5", "--alpha must be left out: it follows from sessions"),
        (PLAN, "", "--users must be given with --turns"),
        (PLAN, "--users 500", "--first must be given with --turns"),
        ([*STORE, *SESSIONS], "--tiers dram", "--tiers must be NAME=GB, for example dram=2000, not 'dram'"),
        ([*STORE, *SESSIONS], "--users 0", "--users must be"),
        ([*STORE, *SESSIONS], "--ttft 2", "--ttft and --tpot must be given together"),
        (BENCH, "--front -1", "--front must be"),
        (BENCH, "--random-range-ratio 1", "--random-range-ratio must be"),
        (BENCH, "--max-num-batched-tokens 0", "--max-num-batched-tokens must be"),
        (BENCH, "--request-rate 3 --burstiness 0", "--burstiness must be"),
        (BENCH, "--max-num-seqs 0", "--max-num-seqs must be"),
        (BENCH, "--max-concurrency 0", "--max-concurrency must be a whole number >= 1, not 0"),
        (BENCH, "--enforce-eager", "--enforce-eager must be left out: no calibration here ran without CUDA graphs"),
        (
            BENCH,
            "--tp 16",
            "--tp must be smaller, or DP: together they share each layer among 16 GPUs, of which a node",
        ),
        ([*STORE, *SESSIONS], "--tp 16", "--tp must be smaller, or DP: together they share each layer among 16 GPUs"),
        (BENCH, "--lengths azure-code --random-output-len 5", "--random-… must be left out: --lengths azure-code has"),
        (BENCH, "--pools 0 1", "--pools (for prefill) must be"),
        (BENCH, "--link tcp", "--link must be left out: it changes nothing without --pools"),
        (BENCH, "--pools 1 1 --cadences", "--pools must be left out: prompts that are computed apart need no cadence"),
        (BENCH, "--random-input-len 0", "--random-input-len must be"),
        (BENCH, "--lengths fixed", "--lengths must be one of azure-code"),
    ],
)
def test_bad_input_is_exit_status_2_by_the_option_s_name(command, more, words, capsys):
    assert f"error: {words}" in said(capsys, *command, *more.split(), status=2).err


def test_a_file_of_what_an_error_names_is_a_gpu(tmp_path, capsys):
    error = said(capsys, *ASKED, "--gpu", "mine", status=2).err
    (names,) = re.findall(r"of any other GPU a file with its ([\w, ]+) does: --gpu mine\.toml$", error.strip())
    of = {name: "'mine'" if name == "name" else "1e15" for name in re.split(", | and ", names)}
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(f"{name} = {value}" for name, value in of.items()))
    assert "from each unit of 2 MINE GPUs" in said(capsys, *ASKED, "--gpu", str(path), "--weights", "bf16").out


def test_an_error_does_not_repeat_a_long_input(capsys):
    assert len(said(capsys, *ASKED, "--model", 10_000 * "x", status=2).err) < 2100


@pytest.mark.parametrize("limit", ["ttft 400", "tpot 40"])
def test_a_limit_that_looks_like_milliseconds_is_noted_in_json_too(limit, capsys):
    noted = f"limits are in seconds; --{limit} s is long"
    printed = said(capsys, *ASKED, *f"--{limit}".split(), "--json")
    assert json.loads(printed.out)["warnings"] == [noted]
    assert printed.err == f"note: {noted}\n"


def test_what_is_noted_is_in_the_json_too(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("n_in,n_out\n100,20\n2000,x\n300,10\n")
    main(["plan", *UNIT, *split("--ttft 400 --tpot 0.04 --json --lengths"), str(path)])
    printed = capsys.readouterr()
    assert [f"note: {one}" for one in json.loads(printed.out)["warnings"]] == printed.err.splitlines()
    assert len(printed.err.splitlines()) == 2


def test_the_options_default_to_what_the_package_defaults_to():
    options = parser("plan", RUNS).parse_args(["plan", "--model", "llama-3-8b", "--gpu", "h100-sxm", *SENT])
    defaults = inspect.signature(Unit.of).parameters
    for name in ("weights", "kv", "engine", "calibration"):
        assert getattr(options, name) == defaults[name].default


def test_from_runs_to_a_plan(tmp_path, capsys):
    unit = Unit.of("llama-3-70b", "h100-sxm", 2, "fp8")
    lines = ["n_in,n_out,concurrency,e2e"]
    for n_in, n_out in ((512, 128), (4096, 256)):
        lines += [f"{n_in},{n_out},{b},{1.1 * unit.e2e(Workload(n_in, n_out), b)}" for b in (1, 4, 16, 64)]
    source, out = tmp_path / "runs.csv", str(tmp_path / "mine.toml")
    source.write_text("\n".join([*lines, "512,128,4,"]))
    assert "not used: runs.csv#10" in said(capsys, "profile", *UNIT, str(source), "--anchor", "--out", out).out
    assert len(Calibration.load(out).anchors) == 2
    assert "fitted to your own runs" in said(capsys, *ASKED, "--calibration", out).out


@pytest.mark.parametrize("module", ["inference_math_planner measure", "inference_math_bench.measure"])
def test_it_runs_as_a_module(module):
    called = [sys.executable, "-m", *module.split(), "--help"]
    done = subprocess.run(called, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: inference-math measure ")


def test_it_is_a_command():
    (command,) = entry_points(group="console_scripts", name="inference-math")
    assert command.load() is main


def test_the_command_measures(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    refused = said(capsys, *split("measure --model llama-3-8b --out mine.csv"), status=2).err
    assert "measuring needs PyTorch" in refused


def test_a_terminal_in_ascii_gets_the_plan(monkeypatch):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main([*ASKED, "--full"]) == 0
    terminal.flush()
    assert b"\\u" in terminal.buffer.getvalue()  # something was not ASCII


def test_who_reads_no_further_gets_no_error():
    called = [sys.executable, "-m", "inference_math_planner", *ASKED]
    with subprocess.Popen(called, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        command.stdout.close()  # as head does
        assert command.stderr.read() == b""
        assert command.wait() == 141


@pytest.mark.parametrize("option", ["--report", "--commands"])
def test_where_a_plan_goes_is_looked_at_before_it_is_computed(option, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(RUNS, "plan", None)  # so it cannot be
    there, missing = tmp_path / "plan.md", tmp_path / "no" / "plan.md"
    words = f"error: {option} {missing} cannot be written: there is no folder {missing.parent}\n"
    assert said(capsys, *ASKED, option, str(missing), status=2).err == words
    monkeypatch.setattr("os.access", lambda *_: False)
    words = f"error: {option} {there} cannot be written: this user may not write into {tmp_path}\n"
    assert said(capsys, *ASKED, option, str(there), status=2).err == words


# What is called as soon as a process has begun what is to be interrupted; then it never ends by itself.
# Each writes its line at once: two that print without a buffer may mix "begun" and the end of the line.
BEGUN = "import os, time\nos.write(1, b'begun\\n')\ntime.sleep(10_000)\n"
DOORS = {
    "module": [sys.executable, "-m", "inference_math_planner"],
    "script": [str(Path(sys.executable).with_name("inference-math"))],
}


def interrupted(called, begun, everybody, **more):
    """Return the exit status, and what was printed, of a command that gets Ctrl-C when so many processes have begun."""
    with subprocess.Popen(
        called, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **more
    ) as command:
        assert [command.stdout.readline() for _ in range(begun)] == begun * ["begun\n"]
        (os.killpg if everybody else os.kill)(command.pid, signal.SIGINT)
        return *command.communicate(), command.returncode


@pytest.mark.parametrize("door", DOORS)
def test_ctrl_c_ends_it_quietly_while_its_modules_load(door, tmp_path):
    (tmp_path / "pandas.py").write_text(BEGUN)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    called = [*DOORS[door], *ASKED]
    assert interrupted(called, 1, True, env={**os.environ, "PYTHONPATH": path}) == ("", "", 130)


@pytest.mark.parametrize("everybody", [True, False], ids=["terminal", "kill"])
def test_ctrl_c_ends_the_processes_that_simulate_fleets_too(everybody):
    code = f"""if True:
        import sys
        from inference_math_planner.cli import main
        from inference_math_planner.fleets import queues
        queues.best_fleet = lambda *_: exec({BEGUN!r})
        sys.exit(main(sys.argv[1:]))"""
    asked = [*ASKED, "--have", "4"]
    assert interrupted([sys.executable, "-c", code, *asked], min(os.cpu_count(), 3), everybody) == ("", "", 130)


@pytest.mark.parametrize("command", RUNS)
def test_ctrl_c_ends_every_command_quietly(command, monkeypatch, capsys):
    def stopped(options):
        raise KeyboardInterrupt

    monkeypatch.setitem(RUNS, command, stopped)
    unit = split("--model llama-3-8b --gpu h100-sxm")
    given = {
        "plan": ASKED[1:], "benchmark": BENCH[1:], "store": [*STORE[1:], *SESSIONS],
        "profile": [*unit, *split("--out a b")], "watch": [*unit, "page"], "calibrate": split("--out a b"),
    }  # fmt: skip
    assert said(capsys, command, *given[command], status=130) == ("", "")


@pytest.mark.parametrize("precious", ["runs.csv", "mine.json", "gpu.toml", "old.toml"])
def test_a_file_that_is_read_is_not_written_over(precious, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / precious).write_text("precious")
    described = precious == "mine.json"  # of a table
    command = "calibrate mine.csv" if described else "profile --model llama-3-8b --calibration old.toml runs.csv"
    refused = said(capsys, *command.split(), "--gpu", "gpu.toml", "--out", f"./{precious}", status=2).err
    assert "--out must not be a file that is read" in refused
    assert (tmp_path / precious).read_text() == "precious"


def test_from_a_measurement_of_one_s_own_gpu_to_a_plan(tmp_path, capsys):
    """A committed table, as if it were of a GPU that nobody knows."""
    known = json.loads((data_dir() / "datapackage.json").read_text(encoding="utf-8"))["resources"]
    measured = next(one for one in known if one["name"] == "steps_h200_sxm_llama_3_8b_bf16")
    mine = {"path": "mine.csv", "setup": measured["setup"] | {"gpu": "", "machine": {"device": "mine"}}}
    (tmp_path / "mine.json").write_text(json.dumps({"resources": [measured | mine]}))
    (tmp_path / "mine.csv").write_bytes((data_dir() / measured["path"]).read_bytes())
    table, out, datasheet = (str(tmp_path / name) for name in ("mine.csv", "mine.toml", "gpu.toml"))
    fit = ["calibrate", table, "--out", out]
    assert "gpu must be given: mine is none of" in said(capsys, *fit, status=2).err
    rates = "bf16_flops = 989.4e12\nhbm_bw = 4.8e12\nhbm_bytes = 141e9\nlink_bw = 450e9\npcie_bw = 64e9\n"
    Path(datasheet).write_text(f'name = "mine"\n{rates}')
    printed = said(capsys, *fit, "--gpu", datasheet).out
    assert printed == said(capsys, *fit, "--gpu", "h200-sxm").out
    assert re.search(r"fp8 +0\.539 ± [\d.]+ \(kept: the points do not tell\)", printed)
    assert f"written to {out}" in printed
    assert "mixed steps: the sum of their parts is " in printed
    planned = said(capsys, "plan", "--model", "llama-3-8b", "--gpu", "h200-sxm", "--calibration", out, *SENT)
    assert "fitted to your own runs" in planned.out


def test_the_gpus_that_there_are_bound_the_pools(capsys):
    for more, units in ((["--units", "2"], 2), ([], 6 // 2)):
        content = told(capsys, *ASKED, "--have", "6", *more)
        assert content["units"] == units
        assert content["answer"]["gpus"]["value"] <= 6


def test_a_report_goes_through_a_link_and_over_no_device(tmp_path, capsys):
    real, link = tmp_path / "real.md", tmp_path / "link.md"
    real.write_text("old")
    link.symlink_to(real)
    assert main([*ASKED, "--report", str(link)]) == 0
    assert link.is_symlink()
    assert real.read_text().startswith("# Plan: ")
    for place in (tmp_path, tmp_path / "no" / "plan.md"):
        words = f"error: --report {place} cannot be written: "
        assert said(capsys, *ASKED, "--report", str(place), status=2).err.startswith(words)


def test_a_benchmark_is_foreseen_under_the_names_of_its_own_command(capsys):
    printed, everything = (said(capsys, *BENCH, "--random-range-ratio", "0.3", *more).out for more in ([], ["--full"]))
    assert len(printed.splitlines()) <= 9
    assert all(line.endswith(".") for line in printed.splitlines())
    assert printed.splitlines()[1].startswith("TTFT is ")
    assert "prompts bring the mean within 5% of the latter" in printed
    assert everything.startswith(printed)
    assert "\nITL " in everything
    assert told(capsys, *BENCH)["enough"] is None  # equal lengths


def test_a_benchmark_takes_the_engine_s_own_options(tmp_path, capsys):
    path = tmp_path / "own.csv"
    path.write_text("n_in,n_out\n8000,20\n12000,10\n")
    asked = [*BENCH, "--lengths", str(path)]
    ways = ("", "--no-enable-chunked-prefill", "--max-num-seqs 2", "--alpha 0.9", "--pools 1 1 --link 50")
    plain, whole, few, stored, apart = (told(capsys, *asked, *more.split()) for more in ways)
    assert apart["table"]["TPOT"]["mean"] < plain["table"]["TPOT"]["mean"]
    assert (whole["max_num_batched_tokens"], few["max_num_seqs"]) == (12_000, 2)
    assert stored["rate"] > 2 * plain["rate"]
    assert few["table"]["TPOT"]["mean"] < plain["table"]["TPOT"]["mean"]


def test_a_store_is_sized_for_sessions(capsys):
    asked = [*STORE, *SESSIONS, *split("--units 8 --tiers dram=4000 local_ssd=60000")]
    printed = said(capsys, *asked).out
    assert "98% of all prompt tokens were there before" in printed
    assert "This is an overload: 500 users" in printed
    assert len(printed.splitlines()) <= 9
    content = told(capsys, *asked)
    assert [row["tier"] for row in content["tiers"]] == ["hbm", "dram", "local_ssd"]
    assert content["needed_gb"]["0.9"] < content["needed_gb"]["0.99"]


def test_the_plan_that_a_store_leads_to_is_of_the_same_set_up(capsys):
    asked = [*STORE, *SESSIONS, *split("--units 8 --tiers dram=9000 --ttft 2 --tpot 0.05 --users 280")]
    printed, seen = said(capsys, *asked).out, told(capsys, *asked)
    assert "This is an overload" not in printed
    command = re.search("Plan with it: inference-math (.*)", printed)[1]
    planned = told(capsys, *split(command))
    assert planned["workload"]["n_in"] == seen["prompt"]
    assert planned["workload"]["n_out"] == 500
    assert planned["workload"]["alpha"] == pytest.approx(seen["tiers"][-1]["together"], abs=0.005)
    assert (planned["sla"]["ttft"], planned["sla"]["tpot"]) == (2, 0.05)
    assert planned["answer"]["store"] == "dram"
    assert planned["answer"]["layout"]["tp"] == 4
    assert planned["answer"]["rate"]["value"] == pytest.approx(seen["tiers"][-1]["rate"], rel=0.01)
    assert planned["unit"].startswith("llama-3-70b (fp8, KV fp8) on 4 x h100-sxm")


def test_users_within_limits_and_loads_beside_steps_are_options(capsys):
    asked = [*STORE, *SESSIONS, "--units", "16", "--tiers", "local_ssd=9000"]
    ways = ("", "--async-loads", "--ttft 2 --tpot 0.05")
    waits, goes_on, limited = (told(capsys, *asked, *more.split())["tiers"][1] for more in ways)
    assert goes_on["tpot"] < waits["tpot"]
    assert waits["kept"] is None
    assert limited["kept"] > 500


def test_a_plan_takes_the_stored_share_from_sessions(capsys):
    """The same question asked of two commands: the plan's stored share is what the store finds."""
    found = said(capsys, *PLAN, *SESSIONS, "--tiers", "dram=8000", "--json")
    who = "500 users of 16 units of 4 GPUs find 98% of their prompts of 74,000 tokens, most of that in dram"
    assert who in found.err
    planned = json.loads(found.out)
    stored = told(capsys, *STORE, *SESSIONS, *split("--units 16 --tiers dram=8000"))
    assert planned["workload"]["alpha"] == pytest.approx(stored["tiers"][-1]["together"])
    assert planned["workload"]["n_in"] == pytest.approx(stored["prompt"])
    assert planned["answer"]["store"] == "dram"
    assert "find 0% of their prompts" in said(capsys, *PLAN, *SESSIONS, status=1).err  # HBM alone finds nothing


def test_counted_experts_are_an_option(capsys):
    asked = split("plan --model gpt-oss-120b --gpu h100-sxm --tp 2 --prompt 2000 --output 200 --ttft 2 --tpot 0.05")
    even, uneven = (told(capsys, *asked, "--expert-imbalance", cv)["answer"] for cv in ("0", "2.5"))
    assert uneven["tokens_per_gpu"] != even["tokens_per_gpu"]


def test_cadences_are_compared(capsys):
    short = said(capsys, *BENCH, "--cadences").out
    assert re.search("The median gap is least with N = .*--full prints the table", short, re.S)
    assert len(short.splitlines()) <= LINES
    full = said(capsys, *BENCH, "--cadences", "--full").out
    assert full.startswith(short)
    assert re.search("gap_p99.*4 pairs of one set-up", full, re.S)
    first, *rest = told(capsys, *BENCH, "--cadences")
    assert [row["every"] for row in (first, *rest)] == [1, 2, 4, 8, 16]
    assert (first["gap_chance"], first["gap_sure"]) == (None, "")
    assert {row["gap_sure"] for row in rest} <= {"sure", "likely", "open"}
    assert all(0 <= row["gap_p90_chance"] <= 1 for row in rest)


SMALL = "store --model llama-3-8b --gpu h100-sxm --turns 20 --first 4000 --message 500 --answer 200 --tiers dram=2000"


@pytest.mark.parametrize(
    ("users", "words"), [(2, "these are about as many as HBM"), (120, "than HBM alone serves is ")]
)
def test_a_store_says_how_sure_its_gain_is(capsys, users, words):
    asked = [*SMALL.split(), "--users", str(users)]
    out = said(capsys, *asked).out
    assert words in out
    assert len(out.splitlines()) <= LINES
    hbm, dram = told(capsys, *asked)["tiers"]
    assert (hbm["chance"], hbm["sure"]) == (None, "")
    assert (f"is {dram['sure']} (" in out) == (users > 2)
    assert "4 pairs of one set-up" in said(capsys, *asked, "--full").out


def test_a_plan_says_how_sure_the_gain_of_each_tier_is(capsys):
    asked = "plan --model llama-3-8b --gpu h100-sxm --tp 1 --prompt 2000 --output 150 --ttft 1 --tpot 0.03 --alpha 0.5"
    nowhere, *tiers = told(capsys, *asked.split())["offloading"]
    assert (nowhere["chance"], nowhere["sure"]) == (None, "")
    for one in tiers:
        assert one["sure"] == word_of(max(one["chance"], 1 - one["chance"]))
    out = said(capsys, *asked.split(), "--full").out
    assert f"{tiers[0]['sure']} ({hundredths(tiers[0]['chance'])} of 100)" in out
    assert "4 pairs of one set-up" in out


def test_a_command_of_another_distribution_says_what_it_needs(monkeypatch, capsys):
    monkeypatch.setattr("inference_math_planner.cli.commands.entry_points", lambda **_: ())
    needed = "lab needs inference-math-bench, in a checkout: pip install ./src/inference_math_bench"
    assert needed in said(capsys, "lab", status=2).err


@pytest.mark.parametrize("option", ["--model mine.json", "--calibration mine.toml"])
def test_a_file_that_is_not_there_is_named_by_its_option(option, capsys):
    assert said(capsys, *ASKED, *option.split(), status=2).err == f"error: {option}: No such file or directory\n"


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(monkeypatch, tmp_path, capsys):
    """Not by the name of the one beside it, into which its text goes first."""

    def full(**options):
        raise OSError(28, "No space left on device", str(tmp_path / ".mine.md.x7"))

    monkeypatch.setattr("tempfile.mkstemp", full)
    at = tmp_path / "mine.md"
    refused = said(capsys, *ASKED, "--report", str(at), status=2).err
    assert refused == f"error: --report {at}: No space left on device\n"
