"""Kernels that are forked from a process which has loaded what most pages load, for that takes seconds each time.

    python tools/forks.py

is this process: it reads a line for each kernel, {"cmd", "env", "cwd"} as JSON, and prints the kernel's process id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint
from threading import Lock
from typing import Any

from jupyter_client.provisioning import LocalProvisioner
from jupyter_client.provisioning.factory import KernelProvisionerFactory

# None of ours: which of those a page imports says when it must run again.
LOADED = ("altair", "matplotlib.pyplot", "pandas", "scipy.optimize", "scipy.stats", "sympy", "vl_convert")
BACKEND = "module://matplotlib_inline.backend_inline"  # that of a kernel, which Matplotlib asks for as it is loaded
_lock = Lock()


@lru_cache(1)
def _parent() -> subprocess.Popen[str]:
    """Return the process that forks, which ends with this one: its input is closed."""
    return subprocess.Popen(
        [sys.executable, __file__],
        env=os.environ | {"MPLBACKEND": BACKEND},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class _Fork:
    """A forked kernel, with what a provisioner asks of a process."""

    stdin = stdout = stderr = None

    def __init__(self, **asked: Any) -> None:
        with _lock:
            parent = _parent()
            assert parent.stdin is not None
            assert parent.stdout is not None
            print(json.dumps(asked), file=parent.stdin, flush=True)
            self.pid = int(parent.stdout.readline())

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int | None:
        return self.poll()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


class Forked(LocalProvisioner):
    """Starts kernels as forks."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        """Fork a kernel; its first three words are python -m ipykernel_launcher."""
        self.process = _Fork(cmd=cmd[3:], env=kwargs["env"], cwd=kwargs["cwd"])
        self.pid, self.cwd = self.process.pid, kwargs["cwd"]
        return self.connection_info


def use() -> None:
    """Let this process fork its kernels from now on."""
    name = KernelProvisionerFactory.default_provisioner_name.default_value
    KernelProvisionerFactory.instance().provisioners[name] = EntryPoint(name, "forks:Forked", "")


def _bury() -> None:
    """Wait for kernels that have ended, so that they are gone and their seconds count."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    """Fork a kernel for each line, until there is no more input."""
    from ipykernel.kernelapp import IPKernelApp

    for name in LOADED:
        import_module(name)
    sys.path.pop(0)  # this folder
    signal.signal(signal.SIGCHLD, lambda *_: _bury())
    for line in sys.stdin:
        asked = json.loads(line)
        if pid := os.fork():
            print(pid, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.chdir(asked["cwd"])
        os.environ |= asked["env"]
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        IPKernelApp.launch_instance(asked["cmd"])
        os._exit(0)


if __name__ == "__main__":
    main()
