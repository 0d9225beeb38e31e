"""The device: its clock, its graphs, and what is to be said of it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inference_math.catalogue import GPUS

__all__ = ["Cuda", "Host", "catalogue_name"]

_FLUSH_VALUES = 2**26  # of four bytes: several times any L2
_COVER = 4_000_000  # cycles, some 2 ms, in which the host enqueues what is timed
_FP8_SINCE = (8, 9)  # compute capability of Ada; Hopper is (9, 0)
# What drivers call GPUs of data/gpus.csv, where it is not the name there in capitals.
_NAMES = {"H100 80GB HBM3": "h100-sxm", "H200": "h200-sxm", "A100-SXM4-80GB": "a100-80gb", "RTX A6000": "a6000"}


def catalogue_name(device: str) -> str:
    """Return the catalogue's name of a GPU by the name that its driver reports, "" where it is none of them."""
    name = device.removeprefix("NVIDIA ")
    return _NAMES.get(name, name.lower() if name.lower() in GPUS else "")


class Cuda:
    """The first CUDA device: a clock of device events, with L2 flushed before each run.

    Raises
    ------
    ValueError
        Without an NVIDIA GPU that PyTorch sees, and for FP8 on a GPU without it.
    """

    type = "cuda"

    def __init__(self, fp8: bool) -> None:
        if not torch.cuda.is_available() or torch.version.cuda is None:
            raise ValueError(
                f"measuring needs an NVIDIA GPU, and PyTorch {torch.__version__} sees none here; "
                "--toy runs a toy on the CPU, for a look at the output"
            )
        self._properties = torch.cuda.get_device_properties(0)
        capability = (self._properties.major, self._properties.minor)
        if fp8 and capability < _FP8_SINCE:
            raise ValueError(f"weights must be bf16 on {self._properties.name}, not fp8: its tensor cores have no FP8")
        self._filler, self._sum = torch.zeros(_FLUSH_VALUES, device="cuda"), torch.zeros((), device="cuda")
        self._stream = torch.cuda.Stream()  # one for all graphs: libraries keep a workspace for each

    @property
    def free(self) -> float:
        """Bytes of device memory that are free."""
        return float(torch.cuda.mem_get_info()[0])

    @property
    def description(self) -> dict[str, Any]:
        """The device, its driver and PyTorch, in numbers and words."""
        found = self._properties
        return {
            "device": found.name,
            "memory_bytes": found.total_memory,
            "multiprocessors": found.multi_processor_count,
            "capability": f"{found.major}.{found.minor}",
            **_driver(str(getattr(found, "uuid", ""))),
            "software": f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}",
            "host": platform.platform(),
        }

    def now(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()

    def seconds(self, run: Callable[[], Any]) -> float:
        """Run once with a flushed L2 and return the seconds between two events on the device.

        The flush reads, so that nothing is left to be written back. The device then sleeps while the host enqueues.
        """
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.sum(self._filler, dim=0, out=self._sum)
        torch.cuda._sleep(_COVER)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def graph(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """Return a replay of `run` as one graph: its kernels without the host's launches between them."""
        torch.cuda.empty_cache()
        main = torch.cuda.current_stream()
        self._stream.wait_stream(main)
        with torch.cuda.stream(self._stream):
            run()  # libraries set themselves up outside of the graph
        main.wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                run()
        finally:
            torch.cuda.set_stream(main)  # a capture that fails leaves its own behind
        return _Replay(graph, run)

    def settle(self) -> None:
        """Wait for the device and free what nothing holds, after something failed.

        Raises
        ------
        RuntimeError
            Where the device does not answer any more.
        """
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


@dataclass(frozen=True)
class _Replay:
    """A graph, and what it was captured from: the run holds the inputs, which the graph only points to."""

    graph: Any
    run: Callable[[], Any]

    def __call__(self) -> None:
        self.graph.replay()


class Host:
    """The CPU with a host clock: for tests and a look at the output, not for measuring."""

    type = "cpu"

    @property
    def description(self) -> dict[str, Any]:
        """The processor and PyTorch."""
        return {
            "device": f"CPU, {platform.machine()} (a toy, no measurement)",
            "software": f"PyTorch {torch.__version__}",
            "host": platform.platform(),
        }

    def now(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()

    def seconds(self, run: Callable[[], Any]) -> float:
        """Run once and return the seconds on the host's clock."""
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    def graph(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """Return `run`: a CPU has no graphs."""
        return run

    def settle(self) -> None:
        """A CPU has settled already."""


def _driver(uuid: str) -> dict[str, str]:
    """Return the driver's version, power limit and memory clock as nvidia-smi tells them; "" where it is missing.

    The UUID names the GPU, since PyTorch's first is not the machine's first where CUDA_VISIBLE_DEVICES says so.
    """
    asked = {"driver": "driver_version", "power_limit": "power.limit", "memory_clock": "clocks.max.memory"}
    if shutil.which("nvidia-smi") is None:
        return dict.fromkeys(asked, "")
    which = f"--id=GPU-{uuid}" if uuid else "--id=0"
    query = ["nvidia-smi", which, f"--query-gpu={','.join(asked.values())}", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=30)
    values = [value.strip() for value in done.stdout.strip().split(",")]
    return dict(zip(asked, values, strict=False)) if done.returncode == 0 else dict.fromkeys(asked, "")
