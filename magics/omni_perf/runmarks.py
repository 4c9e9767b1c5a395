"""Sends `omni-perf run` the steps and regions of the script it runs, by a private socket.

A process finds the socket by OMNI_PERF_RUN; without it nothing here is imported. A mark is
kept until the last message is 50 ms old, so that marking costs no system call each time; the
rest goes when the process ends. The socket never blocks the script: what it does not take is
kept, and dropped beyond a bound. A forked process makes a connection of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from time import monotonic_ns
from types import ModuleType
from typing import Final

from omni_perf import marks
from omni_perf.torchsteps import OptimizerSteps

VARIABLE: Final = "OMNI_PERF_RUN"
BETWEEN_NS: Final = 50_000_000
MOST_BYTES: Final = 1 << 20


class Sender:
    """Sends marks as lines of JSON; it never raises and never waits."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._lost = False
        self._pending = bytearray()
        self._sent_ns = 0
        self.restart()

    def restart(self) -> None:
        """Begin anew, as in a process that was just forked: what it inherited is its parent's."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._pending = bytearray(b'{"begin":%d}\n' % monotonic_ns())
        self._lost = False

    def step(self, at_ns: int) -> None:
        """Send the end of a step."""
        self._add(b'{"step":%d}\n' % at_ns)

    def hook(self, at_ns: int) -> None:
        """Send the end of a step that was found by an optimizer's hook."""
        self._add(b'{"hook":%d}\n' % at_ns)

    def region(self, name: str, start_ns: int, end_ns: int) -> None:
        """Send a region that was left."""
        self._add(json.dumps({"region": [start_ns, end_ns], "name": str(name)[:200]}).encode() + b"\n")

    def _add(self, line: bytes) -> None:
        if self._lost or len(self._pending) > MOST_BYTES:
            return
        self._pending += line
        if monotonic_ns() - self._sent_ns > BETWEEN_NS:
            self.flush()

    def flush(self) -> None:
        """Send what is pending, as far as the socket takes it."""
        self._sent_ns = monotonic_ns()
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
                self._socket.connect(self._path)
                self._socket.setblocking(False)
            while self._pending:
                del self._pending[: self._socket.send(self._pending)]
        except BlockingIOError:
            pass
        except OSError:  # nobody listens any more
            self._lost = True


class TorchWatcher(MetaPathFinder):
    """Places the optimizer hook once torch is imported; it finds no module itself."""

    def __init__(self, steps: OptimizerSteps) -> None:
        self._steps = steps

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Look for torch whenever something is imported that comes after its optimizers."""
        if fullname.startswith("torch.") and self._steps.look():
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self)
        return None


def connect() -> None:
    """Send the marks of this process, and of those it forks, to the run that started it."""
    sender = Sender(os.environ[VARIABLE])
    marks.send_to(sender)
    atexit.register(sender.flush)
    os.register_at_fork(after_in_child=sender.restart)
    steps = OptimizerSteps()
    if not steps.look():
        sys.meta_path.insert(0, TorchWatcher(steps))
