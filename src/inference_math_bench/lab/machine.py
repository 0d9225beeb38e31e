"""The machine: what it is, and whether something else is busy beside a trial."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any

__all__ = ["BUSY", "Alone", "Watch", "description", "memory", "one_core"]

BUSY = 0.25
"""Cores that others may use beside a trial, stolen time included, before it counts as disturbed."""

_STAT = Path("/proc/stat")


def description() -> dict[str, Any]:
    """Return processor, cores, memory and system; nothing that names a person or a host."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_used": cores,
        "memory_gib": round(pages / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def one_core(core: int) -> None:
    """Give this process and its engine one core: one core is one unit, and the others keep the noise away."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def memory() -> Path | None:
    """Return a folder in memory, if the system has one."""
    folder = Path("/dev/shm")
    return folder if os.access(folder, os.W_OK) else None


class Watch:
    """Looks at the machine from when it is made: `beside` tells how many cores others used since, on average.

    It reads the kernel's counters, where there are any (Linux); elsewhere the load average has to do.
    """

    def __init__(self) -> None:
        self._start, self._busy = time.perf_counter(), _busy()

    @property
    def seconds(self) -> float:
        """Seconds since it was made."""
        return time.perf_counter() - self._start

    def beside(self) -> float:
        """Return the cores that other processes used, and those that the hypervisor took."""
        if self._busy is None:
            return max(0.0, os.getloadavg()[0] - 1) if hasattr(os, "getloadavg") else 0.0
        now, seconds = _busy(), self.seconds
        return max(0.0, (now[0] - self._busy[0] - (now[1] - self._busy[1])) / seconds) if now and seconds > 0 else 0.0


class Alone(Watch):
    """The watch of an engine that only plays, or whose steps a GPU takes: what other cores do is not beside it."""

    def beside(self) -> float:
        """Return 0."""
        return 0.0


def _busy() -> tuple[float, float] | None:
    """Return the seconds that all processors were busy, and those of this process and its children."""
    if not _STAT.exists():
        return None
    ticks = [int(value) for value in _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _wait, irq, soft, steal = ticks
    own = os.times()
    every = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
    return every, own.user + own.system + own.children_user + own.children_system
