"""What the machine is, and whether something else is busy on it."""

import getpass
import platform
from pathlib import Path

import pytest

from inference_math_bench.lab import machine


def test_the_description_names_no_host_and_no_user() -> None:
    told = machine.description()
    assert told["cores"] >= 1
    text = " ".join(str(value) for value in told.values())
    assert platform.node() not in text.split()
    assert getpass.getuser() not in text.split()


def test_others_are_all_that_is_busy_but_ourselves(monkeypatch, tmp_path) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(machine, "_STAT", stat)
    monkeypatch.setattr(machine.os, "sysconf", lambda name: 100)
    clock = iter([10.0, 12.0])
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    own = iter([(1.0, 0.0, 0.0, 0.0, 0.0), (2.5, 0.0, 0.25, 0.0, 0.0)])

    class Times(tuple):
        user, system, children_user, children_system = (property(lambda s, i=i: s[i]) for i in range(4))

    monkeypatch.setattr(machine.os, "times", lambda: Times(next(own)))
    # user nice system idle iowait irq softirq steal, in hundredths of a second
    stat.write_text("cpu 100 0 0 500 0 0 0 0 0 0\n", encoding="ascii")
    watch = machine.Watch()
    stat.write_text("cpu 300 0 0 600 0 0 0 75 0 0\n", encoding="ascii")
    # 2.75 s busy and stolen, 1.75 s of it our own, in 2 s.
    assert watch.beside() == pytest.approx(0.5)


def test_without_the_kernel_s_counters_the_load_has_to_do(monkeypatch) -> None:
    monkeypatch.setattr(machine, "_STAT", Path("/nowhere"))
    monkeypatch.setattr(machine.os, "getloadavg", lambda: (1.75, 0.0, 0.0), raising=False)
    assert machine.Watch().beside() == pytest.approx(0.75)
