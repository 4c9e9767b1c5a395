"""Records a process from within: what an engine's adapter calls at each of its workers.

A recording is an ``omni-perf attach`` beside the worker, which is no child of it: it outlives a
worker that is killed, and its report says so. All of one run lies in a private folder of the
worker's machine, so that any worker there can hand over what others have left.

Everything here returns at once, since engines call it in the thread that serves their network.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Any, Final, TypedDict

from omni_perf._version import __version__
from omni_perf.launcher import LaunchError, find_binary
from omni_perf.permission import Grant, ptrace_scope
from omni_perf.runmarks import Sender

MOST_PENDING: Final = 10_000
"""Tasks that are kept until the recording has begun."""


class Status(TypedDict):
    """What a worker says of its recording."""

    pid: int
    version: str
    place: str
    """The folder of the reports: workers with one place can read each other's."""
    begun: bool
    problem: str
    """Why nothing is recorded here, as a sentence; empty: it is."""
    spent: dict[str, float]
    """Seconds that the engine itself took since the begin, by what it did; empty: it does not say."""


class Collected(TypedDict):
    """The report of one process, or why there is none."""

    pid: int
    report: bytes
    """JSON in gzip; empty: there is none."""
    writing: bool
    """It will be there soon."""
    problem: str


@dataclass
class _Task:
    name: str
    start_ns: int
    thread: int


@dataclass
class Recording:
    """The recording of this process in one run."""

    run: str
    pid: int
    stem: str
    problem: str = ""
    sender: Sender | None = None
    pending: list[tuple[str, int, int, int]] = field(default_factory=list[tuple[str, int, int, int]])
    running: dict[object, _Task] = field(default_factory=dict[object, _Task])
    """Tasks that have begun and not ended, by what their engine calls them."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    grant: Grant = field(default_factory=Grant)
    spent: Callable[[], dict[str, float]] = dict
    """What the engine took since the begin, as Status has it."""

    @property
    def begun(self) -> bool:
        """Whether the stacks are being read: the socket is made then."""
        return os.path.exists(self.stem + ".socket")

    def began(self, task: object, name: str, thread: int, start_ns: int = 0) -> None:
        """Note that a thread begins a task, which is marked when it ends, or with the recording."""
        self.running[task] = _Task(name, start_ns or monotonic_ns(), thread)

    def ended(self, task: object, start_ns: int = 0, end_ns: int = 0, thread: int = 0) -> None:
        """Mark a task that has ended, with the engine's own times and thread where it knows them."""
        if (known := self.running.pop(task, None)) is not None:
            self.mark(known.name, start_ns or known.start_ns, end_ns or monotonic_ns(), thread or known.thread)

    def add_cells(self, cells: list[Any]) -> None:
        """Add cells whose code this process runs; the recording looks for them at its end."""
        try:
            with open(self.stem + ".cells") as file:
                known = json.load(file)
            with open(self.stem + ".cells.new", "w") as file:
                json.dump([*known, *(cell for cell in cells if cell not in known)], file)
            os.replace(self.stem + ".cells.new", self.stem + ".cells")
        except (OSError, ValueError):  # their lines have no text
            return

    def mark(self, name: str, start_ns: int, end_ns: int, thread: int) -> None:
        """Name what a thread did in a stretch of CLOCK_MONOTONIC."""
        with self.lock:
            if self.sender is None and self.begun:
                self.sender = Sender(self.stem + ".socket")
                for early in self.pending:
                    self.sender.region(*early)
                self.pending.clear()
            if self.sender is not None:
                self.sender.region(name, start_ns, end_ns, thread)
                self.sender.flush()
            elif len(self.pending) < MOST_PENDING:
                self.pending.append((name, start_ns, end_ns, thread))


_recordings: dict[tuple[str, int], Recording] = {}
"""By run and process: a fork has none of its parent's."""


def begin(run: str, role: str, number: int | None = None, cells: list[Any] | None = None) -> Recording:
    """Start to record this process, once in a run; ``cells`` are those whose functions it may run."""
    key = run, os.getpid()
    if key not in _recordings:
        _recordings[key] = made = Recording(run, os.getpid(), os.path.join(folder_of(run), str(os.getpid())))
        try:
            _start(made, role if number is None else f"{role}:{number}", cells or [])
        except (LaunchError, OSError) as error:
            made.problem = f"omni-perf could not be started: {error}"
    return _recordings[key]


def status(run: str) -> Status:
    """Say what became of this process's recording."""
    made = _recordings.get((run, os.getpid()))
    problem = made.problem if made else "Nothing was started here."
    if made and not made.begun and not problem and not alive(made.stem):
        problem = last_words(made.stem)
    return {
        "pid": os.getpid(),
        "version": __version__,
        "place": place_of(run),
        "begun": made is not None and made.begun,
        "problem": problem,
        "spent": made.spent() if made else {},
    }


def end(run: str) -> None:
    """End this process's recording; its report is written meanwhile."""
    made = _recordings.pop((run, os.getpid()), None)
    if made is None:
        return
    for task in list(made.running):
        made.ended(task)
    made.grant.withdraw()
    send(made.stem, signal.SIGTERM)


def discard(run: str) -> None:
    """End this process's recording and leave nothing of it."""
    made = _recordings.pop((run, os.getpid()), None)
    if made is None:
        return
    made.grant.withdraw()
    send(made.stem, signal.SIGKILL)
    for ending in (".log", ".pid", ".cells", ".socket", ".json"):
        try:
            os.unlink(made.stem + ending)
        except OSError:
            pass


def collect(run: str, most: int, done: list[int]) -> list[Collected]:
    """Return the reports in this machine's folder but for those of processes that are done.

    ``most`` is what one may take, in bytes of gzip; what is larger is thinned.
    """
    folder = folder_of(run)
    found: list[Collected] = []
    for name in sorted(os.listdir(folder)):
        stem, ending = os.path.splitext(os.path.join(folder, name))
        if ending != ".log" or int(os.path.basename(stem)) in done:
            continue
        one: Collected = {"pid": int(os.path.basename(stem)), "report": b"", "writing": False, "problem": ""}
        try:
            with open(stem + ".json", "rb") as file:
                one["report"] = _within(gzip.compress(file.read(), 5), most)
        except FileNotFoundError:
            one["writing"] = alive(stem)
            one["problem"] = last_words(stem)
        except OSError as error:
            one["problem"] = str(error)
        found.append(one)
    return found


def clear(run: str) -> None:
    """Remove the folder, and end what still records into it."""
    folder = folder_of(run)
    for name in os.listdir(folder):
        if name.endswith(".log"):
            send(os.path.join(folder, name.removesuffix(".log")), signal.SIGKILL)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)


def folder_of(run: str) -> str:
    """Return the private folder of a run. Its name is short: a socket's path has 107 bytes at most."""
    folder = f"/tmp/omni-perf-{os.geteuid()}-{run}"
    os.makedirs(folder, 0o700, exist_ok=True)
    made = os.lstat(folder)
    if made.st_uid != os.geteuid() or made.st_mode & 0o077:
        raise PermissionError(f"{folder} is somebody else's")
    return folder


def place_of(run: str) -> str:
    made = os.stat(folder_of(run))
    return f"{machine()} {made.st_dev} {made.st_ino}"


def machine() -> str:
    """Return what this machine is called until its next start: all of its processes have one CLOCK_MONOTONIC."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def clock() -> int:
    """Return what CLOCK_MONOTONIC shows here."""
    return monotonic_ns()


def _start(made: Recording, worker: str, cells: list[Any]) -> None:
    with open(made.stem + ".cells", "w") as file:
        json.dump(cells, file)
    arguments = [
        *(find_binary(), "attach", str(made.pid), "-o", made.stem + ".json", "--worker", worker),
        *("--marks", made.stem + ".socket", "--cells", made.stem + ".cells"),
    ]
    # By a shell that ends at once: the worker has no child that its program's os.wait() could meet.
    script = '"$@" </dev/null >"$LOG" 2>&1 & echo $!'
    started = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *arguments],
        env={**os.environ, "LOG": made.stem + ".log"},
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=True,
    )
    profiler = int(started.stdout)
    with open(made.stem + ".pid", "w") as file:
        file.write(str(profiler))
    if ptrace_scope() == "1":  # only ancestors may read a process
        made.grant.give(profiler)


def alive(stem: str) -> bool:
    return send(stem, 0)


def send(stem: str, number: int) -> bool:
    """Send a signal to the profiler that writes a report; False if it is not there."""
    try:
        with open(stem + ".pid") as file:
            pid = int(file.read())
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if stem.encode() not in file.read():  # another process of that pid
                return False
        os.kill(pid, number)
    except (OSError, ValueError):
        return False
    return True


def last_words(stem: str) -> str:
    """Return the last line that the profiler has said."""
    try:
        with open(stem + ".log", errors="replace") as file:
            said = [line.strip() for line in file if line.strip()]
    except OSError:
        said = []
    return said[-1].removeprefix("omni-perf: ") if said else "omni-perf ended and said nothing"


def _within(report: bytes, most: int) -> bytes:
    """Return a report that takes at most so many bytes, thinned where it is larger."""
    if len(report) <= most:
        return report
    from omni_perf import program

    thinning = ["export", "-", "--format", "json", "-o", "/dev/stdout", "--most", str(most)]
    done = program.run(thinning, report)
    return gzip.compress(done.stdout, 5) if done.returncode == 0 else report
