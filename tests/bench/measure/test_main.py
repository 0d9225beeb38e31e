"""The command: refusals with and without PyTorch, a toy from start to end, and going on."""

import importlib.util
import sys

import pytest

from inference_math import evidence
from inference_math.workload.points import Point, points
from inference_math_bench.measure.__main__ import _summarise, main, measure
from inference_math_bench.measure.record import Record, Setup
from inference_math_planner.calibrate import from_kernels
from inference_math_planner.cli import main as calibrate

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed: make test-measure runs this"
)
SETUP = Setup("llama-3-8b", 32, 2**17, "bf16", "bf16", "h100-sxm", 0, False, {})
TOY = ["--model", "llama-3-70b", "--weights", "fp8", "--toy"]


def test_without_pytorch_it_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["--model", "llama-3-8b", "--out", str(tmp_path / "mine.csv")]) == 2
    said = 'measuring needs PyTorch, in a checkout: pip install "./src/inference_math_bench[measure]"'
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@needs_torch
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "llama-9", "--toy"], "model must be one of"),
        (["--model", "llama-3-8b", "--toy", "--weights", "int4"], "weights must be one of"),
        (["--model", "llama-3-8b", "--toy", "--minutes", "0"], "minutes must be a finite number > 0"),
        (["--model", "llama-3-8b"], "measuring needs an NVIDIA GPU"),
        (["--model", "llama-3-8b", "--toy", "--out", "mine.txt"], "out must end in .csv"),
    ],
)
def test_refusals_are_one_clear_line(arguments, words, capsys, tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(tmp_path)
    out = [] if "--out" in arguments else ["--out", "mine.csv"]
    assert main([*arguments, *out]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert words in last
    assert not list(tmp_path.iterdir())


@needs_torch
def test_a_toy_from_start_to_end_and_on(tmp_path, capsys):
    out = tmp_path / "toy.csv"
    assert main([*TOY, "--minutes", "0.2", "--out", str(out)]) == 0
    said = capsys.readouterr().err
    assert "NO MEASUREMENT" in said
    first = evidence.read(out)
    assert len(first.frame) > 0
    assert main([*TOY, "--minutes", "0.2", "--out", str(out)]) == 0
    again = evidence.read(out)
    assert len(again.frame) > len(first.frame)
    assert again.frame.iloc[: len(first.frame)].equals(first.frame)
    # Its times mean nothing, but everything that reads a measurement reads it.
    assert set(from_kernels.times(again)["what"]) <= {point.what for point in points(2048, 128, fp8=True, shrink=64)}
    with pytest.raises(ValueError, match="is of a toy on a CPU: it is no measurement"):
        from_kernels.unit(again)
    assert calibrate(["calibrate", str(out), "--out", str(tmp_path / "toy.toml")]) == 2
    assert "no measurement" in capsys.readouterr().err
    assert main([*TOY[:1], "llama-3-8b", *TOY[2:], "--out", str(out)]) == 2
    assert "is of another model" in capsys.readouterr().err


@needs_torch
def test_a_decoder_that_is_wrong_is_not_timed(tmp_path, capsys, monkeypatch):
    from inference_math_bench.measure import reference

    monkeypatch.setitem(reference.LIMITS, "bf16", 1e-9)
    assert main([*TOY, "--out", str(tmp_path / "toy.csv")]) == 2
    assert "the decoder in bf16 is off on this device, prompts by" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@needs_torch
def test_a_model_that_does_not_fit_after_all_is_one_clear_line(tmp_path, capsys, monkeypatch):
    import torch

    from inference_math_bench.measure import decoder

    def full(*_args, **_kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(decoder, "Decoder", full)
    assert main([*TOY, "--out", str(tmp_path / "toy.csv")]) == 2
    assert "error: 2 layers do not fit beside what else runs there" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())  # so that --layers may name fewer


class Turned:
    """A clock, a bench and a bar in one: each run takes a second, one kind of work does not fit."""

    def __init__(self):
        self.time, self.n, self.total, self.shown, self.settled = 0.0, 0.0, 1e9, [], 0

    def now(self):
        return self.time

    def seconds(self, run):
        run()
        self.time += 1.0
        return 1.0

    def work(self, point):
        if point.what == "copy":
            raise MemoryError("too large")
        if point.what == "product-bf16":
            raise RuntimeError("no kernel\nand much more")
        return type("Work", (), {"run": staticmethod(lambda: None), "bytes": 0.0, "flop": 0.0})

    def settle(self):
        self.settled += 1

    def set_postfix_str(self, text):
        self.shown.append(text)

    def update(self, seconds):
        self.n += seconds


def test_a_device_that_does_not_answer_any_more_ends_the_run(tmp_path):
    class Broken(Turned):
        def settle(self):
            raise RuntimeError("CUDA error: an illegal memory access")

    broken, record = Broken(), Record(tmp_path / "mine.csv", SETUP)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        measure(broken, broken, points(2**10, 2**10, fp8=False), record, 1e6, broken)


def test_rows_are_written_one_by_one_within_the_time_and_left_out_points_are_named(tmp_path):
    chosen = points(2**10, 2**10, fp8=False)
    turned, record = Turned(), Record(tmp_path / "mine.csv", SETUP)
    measure(turned, turned, chosen, record, 100.0, turned)
    assert len(record.done) == -(-100 // 6)  # a run to warm up, five to count
    assert turned.n == turned.time
    # The same again goes on, and does not do a point twice.
    left_out = measure(turned, turned, chosen, Record(record.path, SETUP), turned.time + 1e3, turned)
    reasons = {point.what: why for point, why in left_out.items()}
    assert reasons == {"copy": "too large", "product-bf16": "no kernel"}
    assert turned.settled >= 2
    frame = record.table.frame
    assert not frame.duplicated(["round", "what", *from_kernels.SIZES]).any()
    assert set(frame[frame["round"] == 1]["what"]) == {point.what for point in chosen} - set(reasons)
    assert turned.shown[-1].startswith("round ")


def test_what_was_left_out_is_said_once_for_each_reason(tmp_path, capsys):
    left_out = {Point("decode", b, 512): "no kernel" for b in (1, 8)} | {Point("copy"): "no kernel"}
    _summarise(Record(tmp_path / "mine.csv", SETUP), 3, left_out, "mine.csv")
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "left out, 2 decode, 1 copy: no kernel"
    assert said[1] == "mine.csv: 0 rows, 0 of 3 points"
