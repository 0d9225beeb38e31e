"""The device: refusals, its clock and its graphs with torch.cuda replaced, its description."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-measure runs this")

from inference_math import catalogue  # noqa: E402
from inference_math_bench.measure import device as module  # noqa: E402
from inference_math_bench.measure.device import Cuda, catalogue_name  # noqa: E402

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

    fake = {
        "is_available": lambda: True, "get_device_properties": lambda _: HOPPER, "Event": Event,
        "synchronize": lambda: found.append("synchronize"), "_sleep": lambda _: found.append("sleep"),
        "empty_cache": lambda: found.append("empty"), "Stream": Stream,
        "mem_get_info": lambda: (80_000_000_000, 85_000_000_000),
    }  # fmt: skip
    for name, value in fake.items():
        monkeypatch.setattr(torch.cuda, name, value, raising=False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch, "zeros", lambda *_args, **_kwargs: None)
    monkeypatch.setattr(torch, "sum", lambda *_args, **_kwargs: found.append("flush"))
    return found


class Stream:
    def wait_stream(self, other):
        pass


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
    assert said == ["flush", "sleep", "event", "run", "event", "synchronize"]


class Context:
    def __init__(self, said, what):
        self.said, self.what = said, what

    def __enter__(self):
        self.said.append(f"{self.what} begins")

    def __exit__(self, *_):
        self.said.append(f"{self.what} ends")


@pytest.fixture
def graphs(said, monkeypatch):
    main = Stream()
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: main)
    monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: said.append("back" if stream is main else "lost"))
    monkeypatch.setattr(torch.cuda, "stream", lambda _: Context(said, "aside"))
    monkeypatch.setattr(torch.cuda, "graph", lambda _graph, stream: Context(said, "capture"))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: said.append("replay")))
    return said


def test_a_graph_is_captured_after_one_run_aside_and_replayed(graphs):
    replay = Cuda(fp8=False).graph(lambda: graphs.append("run"))
    assert graphs == [
        "empty", "aside begins", "run", "aside ends", "capture begins", "run", "capture ends", "back",
    ]  # fmt: skip
    replay()
    assert graphs[-1] == "replay"


def test_a_capture_that_fails_leaves_the_stream_as_it_was(graphs):
    runs = []

    def failing():
        runs.append(1)
        if len(runs) == 2:
            raise torch.OutOfMemoryError("full")

    with pytest.raises(torch.OutOfMemoryError):
        Cuda(fp8=False).graph(failing)
    assert graphs[-1] == "back"


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
    assert set(module._NAMES.values()) < set(catalogue.GPUS)
