"""Thousands of broken inputs, over every reader and every flag: each gets a clear line, none a traceback.

Sound files are changed one place at a time: a value becomes hostile, a key goes or is doubled, text is cut, bytes are
put in. What is read in spite of it must be finite; what is refused must say something.
"""

import json
import math
import random
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inference_math import SLA, Unit, Workload, evidence
from inference_math.catalogue import Gpu, Model
from inference_math.unit.coefficients import Calibration
from inference_math_planner import calibrate
from inference_math_planner.cli import main
from inference_math_planner.fleets import traces

CASES = 200  # of each reader
PACKAGE = json.loads((evidence.data_dir() / "datapackage.json").read_text(encoding="utf-8"))
HOSTILE: list[Any] = [
    None, True, "", "x", "-1", "NaN", "1e400", -1, 0, 1e-300, 1e300, 2**63, 10**40, 1.5, [], {}, [1, 2], {"a": 1},
    float("nan"), float("inf"), "é" * 50, "\x00", "=cmd()", "../../etc/passwd",
]  # fmt: skip
VLLM = {
    "model_id": "meta-llama/Llama-3.1-8B", "num_prompts": 100, "max_concurrency": 8, "duration": 40.0, "completed": 100,
    "failed": 0, "total_input_tokens": 51200, "total_output_tokens": 12800, "request_throughput": 2.5,
    "max_concurrent_requests": 8, "mean_ttft_ms": 250.0, "mean_tpot_ms": 20.0, "mean_e2el_ms": 3000.0,
}  # fmt: skip
RUNS = """n_in,n_out,concurrency,ttft,tpot,e2e
512,128,1,0.1,0.01,1.4
512,128,8,0.2,0.012,1.8
2048,128,32,0.9,0.02,3.5
"""
GPU = 'name = "mine"\n' + "".join(
    f"{what} = 1e12\n" for what in ("bf16_flops", "fp8_flops", "hbm_bw", "hbm_bytes", "link_bw", "pcie_bw")
)
TRACE = "".join(
    json.dumps({"timestamp": 10 * i, "input_length": 600 + i, "output_length": 50, "hash_ids": [i, i + 1]}) + "\n"
    for i in range(8)
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where in a nested value something stands."""
    if path:
        yield path
    each = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in each:
        yield from places(inner, (*path, key))


def broken(content: Any, rng: random.Random) -> Any:
    """Return nested content with one place changed, or without it."""
    changed = json.loads(json.dumps(content))
    *above, last = rng.choice(list(places(changed)))
    holder = changed
    for key in above:
        holder = holder[key]
    if rng.random() < 0.25:
        del holder[last]
    else:
        holder[last] = rng.choice(HOSTILE)
    return changed


def torn(text: str, rng: random.Random) -> bytes:
    """Return text as bytes with one place cut out, doubled, or spoilt."""
    at, other = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    word = rng.choice(text.split())
    changed = (
        text[:at], text[:at] + text[other:], text[:other] + text[at:], rng.choice("[{(") * 3000 + text,
        text.replace(word, str(rng.choice(HOSTILE)), 1), "\ufeff" + text.replace("\n", "\r\n"),
    )  # fmt: skip
    spoilt = text[:at].encode() + rng.randbytes(8) + text[at:].encode()
    return rng.choice([spoilt, *(one.encode("utf-8", "surrogatepass") for one in changed)])


def sound(found: Any) -> bool:
    """Tell whether what was read is made of numbers that are some."""
    if isinstance(found, pd.DataFrame):
        numbers = found.select_dtypes("number").to_numpy(dtype=float, na_value=np.nan)
        return not np.isinf(numbers).any()
    if isinstance(found, Model):
        return math.isfinite(found.n_params) and found.n_params > 0 and found.n_layers < 10_000
    if isinstance(found, Gpu):
        return all(math.isfinite(value) and value > 0 for value in (found.hbm_bw, found.bf16_flops, found.hbm_bytes))
    return not isinstance(found, Calibration) or bool(np.isfinite(found.covariance).all())


def accepted(read: Callable[[], Any], what: object) -> bool:
    """Tell whether something is read; whoever is refused is told why, by an error of ours."""
    why = ""
    try:
        assert sound(read()), what
    except (ValueError, TypeError, OSError) as error:
        why = str(error) or "nothing"
    assert not why or len(why) > 8, what
    assert "object at 0x" not in why, what
    return not why


@pytest.mark.parametrize("reader", ["vllm", "csv", "gpu", "calibration", "trace", "package"])
def test_torn_and_broken_files_are_read_or_refused(reader, tmp_path):
    rng = random.Random(reader)
    Calibration.zero_shot("vllm").save(tmp_path / "sound.toml")
    calibration = (tmp_path / "sound.toml").read_text(encoding="utf-8")
    table = evidence.data_dir() / "measured" / "h100_allreduce.csv"
    described = next(one for one in PACKAGE["resources"] if one["name"] == "h100_allreduce")
    descriptor = json.dumps({"resources": [described | {"path": "it.csv"}]})
    for case in range(CASES):
        name, text, read = {
            "vllm": ("it.json", json.dumps(broken(VLLM, rng)), lambda p: calibrate.read(p).table),
            "csv": ("it.csv", RUNS, lambda p: calibrate.read(p).table),
            "gpu": ("it.toml", GPU, Gpu.from_toml),
            "calibration": ("it.toml", calibration, Calibration.load),
            "trace": ("it.jsonl", TRACE, lambda p: traces.read(p).trace),
            "package": ("it.json", descriptor, lambda p: evidence.read(p.with_suffix(".csv")).frame),
        }[reader]
        path = tmp_path / name
        path.write_bytes(text.encode() if reader == "vllm" and case % 2 else torn(text, rng))
        if reader == "package":
            (tmp_path / "it.csv").write_bytes(table.read_bytes())
        accepted(partial(read, path), (reader, case, path.read_bytes()[:400]))


def test_hostile_arguments_are_answered_or_refused():
    """Numbers of every kind in the package's own calls."""
    rng = random.Random(4)
    unit = Unit.of("llama-3-8b", "h100-sxm")
    numbers = [*HOSTILE, 1, 100, 0.5, 2.5, np.float64(3), np.array([1, 2]), Path("x")]

    def ask(n_in, n_out, alpha, users, *limits):
        work, _ = Workload(n_in, n_out, alpha), SLA(*limits)
        assert (np.asarray(unit.tpot(work, users), dtype=float) > 0).all()

    for case in range(2 * CASES):
        asked = [rng.choice(numbers) for _ in range(6)]
        accepted(partial(ask, *asked), (case, asked))


FLAGS = tomllib.loads((Path(__file__).parent / "flags.toml").read_text(encoding="utf-8"))
FLAGS = {f"--{name}": values for name, values in FLAGS.items()}
NEEDED = {"--model": "llama-3-8b", "--gpu": "h100-sxm", "--prompt": "500", "--output": "50"}
NEEDED |= {"--ttft": "1", "--tpot": "0.05"}


@pytest.mark.usefixtures("few_draws")
def test_every_flag_takes_or_refuses_anything(capsys):
    """Each value once, alone or beside one or two others."""
    rng, ended = random.Random(5), set()
    for case, (flag, value) in enumerate((flag, value) for flag, values in FLAGS.items() for value in values):
        others = {other: rng.choice(FLAGS[other]) for other in rng.sample(sorted(FLAGS), case % 3)}
        given = NEEDED | others | {flag: value}
        if given.get("--lengths") in ("azure-code", "missing.csv") and case % 5:  # which have lengths themselves
            del given["--prompt"], given["--output"]
        arguments = [word for pair in given.items() for word in pair]
        try:
            status = main(["plan", *arguments])
        except SystemExit as stop:  # argparse
            status = stop.code
        ended.add(status)
        said = capsys.readouterr()
        assert status in (0, 1, 2), arguments
        assert "Traceback" not in said.err, arguments
        assert status < 2 or "error: " in said.err, arguments
        if any(float(given[name]) > long for name, long in (("--ttft", 60), ("--tpot", 1)) if status < 2):
            assert "limits are in seconds" in said.err, arguments
    assert {0, 2} <= ended
