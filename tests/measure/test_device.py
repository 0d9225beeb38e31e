"""The device: refusals, its clock and its graphs with torch.cuda replaced, its description."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-measure runs this")

from inference_math import catalogue  # noqa: E402
from inference_math.measure import device as module  # noqa: E402
from inference_math.measure.device import Cuda, Host, catalogue_name  # noqa: E402

HOPPER = SimpleNamespace(
    name="NVIDIA H100 80GB HBM3", major=9, minor=0, total_memory=85_000_000_000, multi_processor_count=132
)


@pytest.fixture
def said(monkeypatch):
    """What torch.cuda is told, in order, where there is no GPU."""
    found = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            found.append("event")

        def elapsed_time(self, end):
            return 12.5  # milliseconds

    class Dirt:
        def zero_(self):
            found.append("flush")

    fake = {
        "is_available": lambda: True, "get_device_properties": lambda _: HOPPER, "Event": Event,
        "synchronize": lambda: found.append("synchronize"), "mem_get_info": lambda: (80_000_000_000, 85_000_000_000),
    }  # fmt: skip
    for name, value in fake.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch, "empty", lambda *_args, **_kwargs: Dirt())
    return found


def test_without_a_gpu_it_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"measuring needs an NVIDIA GPU, and PyTorch .* sees none here; --toy runs"):
        Cuda(fp8=False)


@pytest.mark.parametrize(("major", "minor", "has"), [(8, 0, False), (8, 6, False), (8, 9, True), (10, 0, True)])
def test_fp8_is_refused_where_there_is_none(said, monkeypatch, major, minor, has):
    found = SimpleNamespace(**{**vars(HOPPER), "name": "NVIDIA X", "major": major, "minor": minor})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: found)
    Cuda(fp8=False)
    if has:
        Cuda(fp8=True)
    else:
        with pytest.raises(ValueError, match="weights must be bf16 on NVIDIA X, not fp8"):
            Cuda(fp8=True)


def test_the_clock_flushes_before_the_first_event_and_counts_milliseconds(said):
    assert Cuda(fp8=True).seconds(lambda: said.append("run")) == pytest.approx(0.0125)
    assert said == ["flush", "event", "run", "event", "synchronize"]


def test_a_graph_is_captured_after_one_run_aside_and_replayed(said, monkeypatch):
    class Stream:
        def wait_stream(self, other):
            said.append("wait")

    class Context:
        def __init__(self, what):
            self.what = what

        def __enter__(self):
            said.append(f"{self.what} begins")

        def __exit__(self, *_):
            said.append(f"{self.what} ends")

    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: said.append("empty"))
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: Context("aside"))
    monkeypatch.setattr(torch.cuda, "graph", lambda _: Context("capture"))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: said.append("replay")))
    replay = Cuda(fp8=False).graph(lambda: said.append("run"))
    assert said == [
        "empty", "wait", "aside begins", "run", "aside ends", "wait", "capture begins", "run", "capture ends",
    ]  # fmt: skip
    replay()
    assert said[-1] == "replay"


def test_it_describes_itself(said, monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda _: None)
    found = Cuda(fp8=True)
    assert found.free == 80e9
    assert found.description["device"] == "NVIDIA H100 80GB HBM3"
    assert found.description["capability"] == "9.0"
    assert found.description["driver"] == ""


def test_the_driver_is_asked(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda _: "/usr/bin/nvidia-smi")
    answer, asked = SimpleNamespace(returncode=0, stdout="580.159.04, 700.00 W, 2619 MHz\n"), []
    monkeypatch.setattr(module.subprocess, "run", lambda command, **_: asked.append(command) or answer)
    found = {"driver": "580.159.04", "power_limit": "700.00 W", "memory_clock": "2619 MHz"}
    assert module._driver("1234") == found
    assert asked[-1][1] == "--id=GPU-1234"  # not the machine's first, where CUDA_VISIBLE_DEVICES hides that
    answer.returncode = 9
    assert set(module._driver("").values()) == {""}


def test_names_of_drivers_lead_to_the_catalogue():
    assert catalogue_name("NVIDIA H100 80GB HBM3") == "h100-sxm"
    assert catalogue_name("NVIDIA H200") == "h200-sxm"
    assert catalogue_name("NVIDIA H100 PCIe") == ""  # another bandwidth
    assert set(module._NAMES.values()) == set(catalogue.GPUS)


def test_a_cpu_is_a_toy():
    host = Host()
    assert "no measurement" in host.description["device"]
    runs = []
    assert host.seconds(lambda: runs.append(1)) > 0
    assert host.graph(runs.append) == runs.append
    assert host.now() <= host.now()
