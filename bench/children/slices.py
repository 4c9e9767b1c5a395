"""What following children slows them down by, in one run: omni-perf is stopped and goes on, in turn.

    slow-down   the children's work a second while omni-perf stands still, to that of the slice beside
                it in which it samples; the median of all pairs of slices, and between which values it
                lies with 95 % (by ranks: nothing is assumed of their distribution)

On a machine that does not keep its speed, runs with and without a profiler differ by more than it
costs; slices of a second that follow each other do so less, and there are hundreds of them. What
starting costs is not in it: bench.py beside this has that.

With --training 4 the program is a training with so many loader workers, and what is counted are its steps.

With --tasks 1000 it is one event loop with so many tasks, which wake by turns; omni-perf reads stacks and tasks. It is
most of the time idle, so that the slow-down is in the CPU time that the program needs for one unit of its work.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import mmap
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

STARTED_S = 3.0
"""From when on all children are found and read."""

SETTLED_S = 0.15
"""After omni-perf was stopped or goes on."""

WORD = 8

WAKES = 2500
"""How often a second one of the tasks wakes, however many there are."""

ROOT = Path(__file__).resolve().parents[2]
TORCH = ROOT / ".cache" / "torch" / "bin" / "python"
TRAINING = ROOT / "bench" / "trainings" / "programs" / "counted.py"


def work(count: int, path: Path) -> None:
    """Be the program: children that count what they do, for ever, each in a word of the file."""
    with path.open("r+b") as file:
        counts = mmap.mmap(file.fileno(), WORD * count)
    for number in range(count):
        if os.fork() == 0:
            spin(counts, WORD * number)
    for _ in range(count):
        os.wait()


def spin(counts: mmap.mmap, place: int) -> None:
    """Compute, and count it."""
    done = 0
    while True:
        sum(range(300))
        done += 1
        if done % 64 == 0:
            struct.pack_into("q", counts, place, done)


async def wake(count: int, path: Path) -> None:
    """Be the program: tasks that wake by turns and count what they do in a word; the CPU time is in the next one."""
    with path.open("r+b") as file:
        counts = mmap.mmap(file.fileno(), 2 * WORD)
    done = 0

    async def one(number: int) -> None:
        nonlocal done
        await asyncio.sleep(number / WAKES)
        while True:
            sum(range(2000))
            done += 1
            struct.pack_into("2q", counts, 0, done, time.process_time_ns())
            await asyncio.sleep(count / WAKES)

    await asyncio.gather(*map(one, range(count)))


@dataclass(frozen=True)
class Counted:
    """A program that counts what it does in words of a file."""

    name: str
    command: list[str]
    words: int = 1
    has_cpu: bool = False
    """One more word is its CPU time in nanoseconds, which is what its work is related to."""

    def read(self, path: Path) -> tuple[int, float]:
        """Return what was done, and the seconds of the clock it is related to."""
        *words, last = struct.unpack(f"{self.size // WORD}q", path.read_bytes())
        return (sum(words), last / 1e9) if self.has_cpu else (sum(words) + last, time.monotonic())

    @property
    def size(self) -> int:
        """Return how many bytes the file has."""
        return WORD * (self.words + self.has_cpu)


def rate(path: Path, program: Counted, seconds: float) -> float:
    """Measure what the program does a second: of time, or of its own CPU time."""
    before, began = program.read(path)
    time.sleep(seconds)
    done, ended = program.read(path)
    return (done - before) / (ended - began) if ended > began else 0.0


def interval(values: list[float]) -> tuple[float, float]:
    """Return between which values their median lies with 95 %, by the binomial distribution of ranks."""
    ordered, n = sorted(values), len(values)
    away = 1.96 * math.sqrt(n) / 2
    return ordered[max(math.floor(n / 2 - away), 0)], ordered[min(math.ceil(n / 2 + away), n - 1)]


def measure(program: Counted, seconds: float, length: float, folder: Path) -> list[float]:
    """Return the slow-down of each pair of slices of a program."""
    path = folder / "counts"
    path.write_bytes(bytes(program.size))
    binary = str(Path(sys.executable).with_name("omni-perf"))
    recording = [binary, "run", "-o", folder / "out", "--format", "json", "--interpreter"]
    with subprocess.Popen(
        [*recording, *program.command, "--work", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as profiler:
        try:
            pairs: list[float] = []
            while rate(path, program, STARTED_S) == 0 and profiler.poll() is None:
                continue
            end = time.monotonic() + seconds
            while time.monotonic() < end and profiler.poll() is None:
                rates: dict[bool, float] = {}
                for samples in (True, False) if len(pairs) % 2 else (False, True):
                    os.kill(sampler_of(profiler.pid), signal.SIGCONT if samples else signal.SIGSTOP)
                    time.sleep(SETTLED_S)
                    rates[samples] = rate(path, program, length)
                if not all(rates.values()):
                    print(f"{program.name}: it did nothing in a slice ({rates}), which is not counted", flush=True)
                    continue
                pairs.append(rates[False] / rates[True])
        finally:
            if profiler.poll() is None:
                os.kill(sampler_of(profiler.pid), signal.SIGCONT)
            profiler.terminate()  # it passes it on to the program, whose group its children are in
            for pid in children_of(path):
                os.kill(pid, signal.SIGKILL)
    return pairs


def sampler_of(pid: int) -> int:
    """Find what profiles: the one child of the omni-perf that was started, which only waits."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def children_of(path: Path) -> list[int]:
    """Find the processes that count in this file."""
    found: list[int] = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--work" in words and os.fsencode(path) in words and b"omni-perf" not in words[0]:
            found.append(int(line.parent.name))
    return found


def main() -> None:
    """Measure with 1, 8 and 32 children."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--children", default="1,8,32", help="how many, separated by commas")
    arguments.add_argument("--seconds", type=float, default=60, help="for each number")
    arguments.add_argument("--slice", type=float, default=0.8, help="seconds of one slice")
    arguments.add_argument("--training", type=int, default=0, help="loader workers of a training, in place of children")
    arguments.add_argument("--tasks", type=int, default=0, help="tasks of an event loop, in place of children")
    arguments.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.work and given.tasks:
        asyncio.run(wake(given.tasks, given.work))
        return
    if given.work:
        work(int(given.children), given.work)
        return
    print(
        f"CPython {sys.version.split()[0]}, {os.cpu_count()} cores, load {Path('/proc/loadavg').read_text().split()[0]}"
    )
    if given.training:
        if not TORCH.exists():
            print("skipped: no torch in .cache/torch (tools/torch)")
            return
        command = [str(TORCH), str(TRAINING), "--workers", str(given.training)]
        report(Counted(f"{given.training} workers", command), given)
        return
    if given.tasks:
        command = [sys.executable, __file__, "--tasks", str(given.tasks)]
        report(Counted(f"{given.tasks} tasks, CPU time", command, has_cpu=True), given)
        return
    for count in map(int, given.children.split(",")):
        command = [sys.executable, __file__, "--children", str(count)]
        report(Counted(f"{count:3} children", command, count), given)


def report(program: Counted, given: argparse.Namespace) -> None:
    """Measure a program and print its slow-down."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = measure(program, given.seconds, given.slice, Path(folder))
    low, high = interval(pairs)
    print(
        f"{program.name}  slow-down {statistics.median(pairs):.4f} [{low:.4f}, {high:.4f}]  "
        f"{len(pairs)} pairs of {given.slice:g} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
