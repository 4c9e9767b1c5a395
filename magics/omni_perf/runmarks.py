"""Sends `omni-perf run` the steps and regions of the script it runs, by a private socket.

A process finds the socket by OMNI_PERF_RUN; without it nothing here is imported. A mark is
kept until the last message is 500 ms old, so that marking costs no system call each time and wakes
nobody up who takes the CPU; the rest goes when the process ends. It lies in memory that the run shares,
too, by a file descriptor that goes with the first message: a process that is killed, or ends by
os._exit, sends no more, and the run reads the rest there. The socket never blocks the script: what it does not take is
kept, and dropped beyond a bound. A forked process makes a connection of its own.

`omni-perf run` places this module in programs that do not import omni_perf, too, as part of the package
_omni_perf: what it imports at its top is in that package.
"""

from __future__ import annotations

import atexit
import json
import mmap
import os
import socket
import sys
from collections.abc import Callable
from struct import Struct
from time import monotonic_ns
from typing import Final

# Relative: these two and this module are part of another package in a program that has not imported omni_perf.
from .torchsteps import OptimizerSteps
from .torchwatch import TorchWatcher

VARIABLE: Final = "OMNI_PERF_RUN"
PROFILED: Final = "OMNI_PERF_TORCH"
"""There under `omni-perf run --torch`: what of torch is recorded, as JSON."""

BETWEEN_NS: Final = 500_000_000
SOON_NS: Final = 50_000_000
"""Where there is no memory that keeps what is pending, or it fills up."""
MOST_BYTES: Final = 1 << 20

SHARED_BYTES: Final = 1 << 16
SHARED_HEAD: Final = Struct("=QQ")
"""How many bytes the socket took before those that follow, and how many these are. stream.go reads it."""


class Sender:
    """Sends marks as lines of JSON; it never raises and never waits."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._lost = False
        self._pending = bytearray()
        self._taken = 0  # bytes, by the socket
        self._shared: mmap.mmap | None = None  # has what is pending, as far as there is room
        self._sent_ns = 0
        self.restart()

    def restart(self) -> None:
        """Begin anew, as in a process that was just forked: what it inherited is its parent's."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._shared is not None:  # the parent's memory
            self._shared.close()
            self._shared = None
        self._pending = bytearray(b'{"begin":%d}\n' % monotonic_ns())
        self._taken = self._sent_ns = 0
        self._lost = False

    def step(self, at_ns: int, samples: int = 0, tokens: int = 0, epoch: int | None = None) -> None:
        """Send the end of a step, with what is known of what it worked on."""
        line = b'{"step":%d' % at_ns
        for name, value in ((b"samples", samples), (b"tokens", tokens), (b"epoch", epoch)):
            if value or (name == b"epoch" and value is not None):
                line += b',"%b":%d' % (name, value)
        self._add(line + b"}\n")

    def hook(self, at_ns: int, anew: bool = False, called_ns: int = 0) -> None:
        """Send when a step ended that a hook has found, and when the optimizer was called; anew: as in StepEnd."""
        self._add(
            (b'{"hook":%d,"called":%d,"anew":true}\n' if anew else b'{"hook":%d,"called":%d}\n') % (at_ns, called_ns)
        )

    def other(self, at_ns: int, name: str) -> None:
        """Send that an optimizer of this class steps besides the one whose steps are sent."""
        self._add(json.dumps({"other": str(name)[:200], "at": at_ns}).encode() + b"\n")

    def region(self, name: str, start_ns: int, end_ns: int, thread: int = 0) -> None:
        """Send a region that was left; with a thread's native id it is of that thread alone."""
        mark: dict[str, object] = {"region": [start_ns, end_ns], "name": str(name)[:200]}
        if thread:
            mark["thread"] = thread
        self._add(json.dumps(mark).encode() + b"\n")

    def begin(self, at_ns: int) -> None:
        """Send that the step which runs began then: what was before is nobody's."""
        self._add(b'{"begin":%d}\n' % at_ns)

    def trace(self, path: str, cycle: str, rank: int, window: tuple[int, int]) -> None:
        """Send which trace torch.profiler has written, and when it recorded; 0 and 0: that is not known."""
        mark = {"trace": path, "cycle": cycle, "rank": rank, "window": window}
        self._add(json.dumps(mark).encode() + b"\n")

    def remark(self, sentence: str) -> None:
        """Send what the user should know."""
        self._add(json.dumps({"remark": sentence[:1000]}).encode() + b"\n")

    def _add(self, line: bytes) -> None:
        if self._lost or len(self._pending) > MOST_BYTES:
            return
        at = len(self._pending)
        self._pending += line
        kept = self._shared is not None and at < SHARED_BYTES // 2
        if monotonic_ns() - self._sent_ns > (BETWEEN_NS if kept else SOON_NS):
            self.flush()
        elif self._shared is not None:
            self._share(self._shared, at)

    def flush(self) -> None:
        """Send what is pending, as far as the socket takes it."""
        self._sent_ns = monotonic_ns()
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
                self._socket.connect(self._path)
                self._socket.setblocking(False)
                self._sent(self._introduce(self._socket))
            while self._pending:
                self._sent(self._socket.send(self._pending))
        except BlockingIOError:
            pass
        except OSError:  # nobody listens any more
            self._lost = True
        if self._shared is not None:
            self._share(self._shared, 0)

    def _sent(self, count: int) -> None:
        del self._pending[:count]
        self._taken += count

    def _introduce(self, to: socket.socket) -> int:
        """Send the first message, with the descriptor of the shared memory; return how many bytes the socket took."""
        try:
            descriptor = os.memfd_create("omni_perf")
        except OSError:  # what is pending when the process is killed is lost
            return to.send(self._pending)
        try:
            os.ftruncate(descriptor, SHARED_BYTES)
            self._shared = mmap.mmap(descriptor, SHARED_BYTES)
            return socket.send_fds(to, [self._pending], [descriptor])
        finally:
            os.close(descriptor)

    def _share(self, shared: mmap.mmap, since: int) -> None:
        """Write what is pending from there on into the memory, where it has room."""
        end = SHARED_HEAD.size + len(self._pending)
        if end <= SHARED_BYTES:
            shared[SHARED_HEAD.size + since : end] = self._pending[since:]
            SHARED_HEAD.pack_into(shared, 0, self._taken, len(self._pending))


def connect() -> None:
    """Send the marks of this process, and of those it forks, to the run that started it."""
    from omni_perf import marks

    if placed := sys.modules.get("_omni_perf.runmarks"):
        placed.leave()
    marks.send_to(_sender())
    steps = OptimizerSteps(marks.step_by_hook, marks.other_by_hook)
    if not steps.look():
        sys.meta_path.insert(0, TorchWatcher(steps.look))
    if "_omni_perf.runtorch" in sys.modules:  # torch was imported before
        from . import runtorch

        runtorch.take_over(sys.modules["_omni_perf.runtorch"])


_placed: OptimizerSteps | None = None


def place() -> None:
    """Send the steps that torch's hook finds in a program that has not imported omni_perf."""
    global _placed
    sender = _sender()
    stepped: Callable[[int, bool, int], None] = sender.hook
    if PROFILED in os.environ:
        from . import marks

        marks.send_to(sender)
        stepped = marks.step_by_hook
    _placed = OptimizerSteps(stepped, lambda name: sender.other(monotonic_ns(), name))
    _placed.look()


def leave() -> None:
    """Take out what ``place`` has placed: the program has imported omni_perf, which sends more."""
    if _placed is not None:
        _placed.remove()


def _sender() -> Sender:
    global sender
    sender = Sender(os.environ[VARIABLE])
    atexit.register(sender.flush)
    os.register_at_fork(after_in_child=sender.restart)
    return sender


sender: Sender | None = None
"""What this process sends by, if it sends anything."""
