"""What following children costs and sees: omni-perf beside py-spy, Austin and VizTracer.

    slow-down       the children's work in a fixed time without the profiler, to that with it
    profiler's CPU  cores that its own process used meanwhile, and the ratio to one child
    seen            children whose own function is in the result
    wrong           stacks that cannot be: of two children, or of a part without its child
    share           by how many points the share of part_a differs from the children's own clock

Runs with and without each profiler follow each other in random order; the table has medians. Run it on a
quiet machine: `make bench`. The peers are installed into .cache/bench by the first run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from slices import sampler_of

ROOT = Path(__file__).parents[2]
BUSY = Path(__file__).with_name("busy.py")
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Seen:
    """What a profiler's result says of the children."""

    weights: dict[str, float] = field(default_factory=dict[str, float])  # by child
    part_a: float = 0
    total: float = 0
    wrong: float = 0

    def stack(self, frames: str, weight: float) -> None:
        """Take in one stack, as text that has its functions' names."""
        children = set(re.findall(r"\bchild_\d+(?!\d*\.py)\b", frames))
        parts = set(re.findall(r"\bpart_[ab]\b", frames))
        if not children and not parts:
            return
        self.total += weight
        if len(children) != 1 or len(parts) > 1:
            self.wrong += weight
            return
        name = children.pop()
        self.weights[name] = self.weights.get(name, 0) + weight
        if parts == {"part_a"}:
            self.part_a += weight


@dataclass
class Profiler:
    """A program that follows children: its command line before the program's, and how its result is read."""

    name: str
    command: Callable[[Path], list[str]]
    read: Callable[[Path], Seen]
    outside: bool = True  # it has a process of its own


@dataclass
class Run:
    """One run of the program."""

    loops: int
    share: float  # of part_a, by the children's own clock
    cpu: float  # cores of the profiler's process
    seen: Seen | None


def read_collapsed(path: Path) -> Seen:
    """Read lines of "frame;frame;frame WEIGHT"."""
    seen = Seen()
    for line in path.read_text(errors="replace").splitlines():
        frames, _, weight = line.rpartition(" ")
        if not line.startswith("#") and weight.isdigit():
            seen.stack(frames, int(weight))
    return seen


def read_austin(path: Path) -> Seen:
    """Convert Austin's own format, then read it: the weight of a stack is a time."""
    text = path.with_suffix(".txt")
    subprocess.run([tool("mojo2austin"), path, text], check=True, capture_output=True)
    return read_collapsed(text)


def read_viztracer(path: Path) -> Seen:
    """Read a trace's calls: the child's own, and those of the parts in the same process."""
    seen = Seen()
    calls: dict[int, dict[str, float]] = {}
    for event in json.loads(path.read_text())["traceEvents"]:
        if event.get("ph") == "X" and (found := re.match(r"(child_\d+|part_[ab]) ", event["name"])):
            of = calls.setdefault(event["pid"], {})
            of[found[1]] = of.get(found[1], 0) + event["dur"]
    for of in calls.values():
        name = next((n for n in of if n.startswith("child_")), "")
        whole = of.get("part_a", 0) + of.get("part_b", 0)
        seen.stack(f"{name};part_a", of.get("part_a", 0))
        seen.stack(f"{name};part_b", whole - of.get("part_a", 0))
    return seen


def tool(name: str) -> str:
    """Find a program of the peers' environment."""
    return str(ROOT / ".cache" / "bench" / "children" / "bin" / name)


def install() -> None:
    """Make the peers' environment, once."""
    home = ROOT / ".cache" / "bench" / "children"
    if not (home / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
    for package, program in (("py-spy", "py-spy"), ("austin-dist austin-python", "austin"), ("viztracer", "viztracer")):
        if not Path(tool(program)).exists():
            done = subprocess.run(
                [tool("python"), "-m", "pip", "install", "--quiet", *package.split()],
                check=False,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                print(f"{program} cannot be installed: {done.stderr.strip().splitlines()[-1:]}")


def ours(out: Path) -> list[str]:
    """Return omni-perf's command line."""
    program = str(Path(sys.executable).with_name("omni-perf"))
    return [program, "run", "-o", str(collapsed(out)), "--interpreter", sys.executable]


def collapsed(out: Path) -> Path:
    """Name the file so that omni-perf writes collapsed stacks."""
    return out.with_suffix(".collapsed.txt")


def py_spy(out: Path) -> list[str]:
    """Return py-spy's, at omni-perf's rate."""
    options = ["--subprocesses", "-r", "1000", "-f", "raw", "-o", str(out)]
    return [tool("py-spy"), "record", *options, "--", sys.executable]


def austin(out: Path) -> list[str]:
    """Return Austin's: of the package's program, or of the copy for older C libraries that bench/sampler makes."""
    copy = ROOT / ".cache" / "bench" / "austin"
    return [str(copy) if copy.exists() else tool("austin"), "-C", "-i", "1ms", "-o", str(out), sys.executable]


def viztracer(out: Path) -> list[str]:
    """Return VizTracer's, which keeps the last calls of each process."""
    options = ["--quiet", "--log_multiprocess", "--tracer_entries", "200000", "-o", str(out)]
    return [tool("viztracer"), *options, "--"]


def profilers() -> list[Profiler]:
    """List those that start here, omni-perf first."""
    every = [
        Profiler("omni-perf run", ours, read_ours),
        Profiler("py-spy record --subprocesses", py_spy, read_collapsed),
        Profiler("Austin -C", austin, read_austin),
        Profiler("VizTracer --log_multiprocess", viztracer, read_viztracer, outside=False),
    ]
    able: list[Profiler] = []
    for p in every:
        program = p.command(Path("out.json"))[0]
        try:
            asked = [program, "version" if p.command is ours else "--version"]
            done = subprocess.run(asked, check=False, capture_output=True, text=True)
            said, started = (done.stdout + done.stderr).strip(), done.returncode == 0
        except OSError as error:
            said, started = str(error), False
        print(f"  {p.name}: {said.splitlines()[0] if said else 'no answer'}" + ("" if started else " (left out)"))
        if started:
            able.append(p)
    return able


def read_ours(out: Path) -> Seen:
    """Read what omni-perf wrote: it names the file by the format."""
    return read_collapsed(collapsed(out))


def cpu_of(profiler: Profiler | None, pid: int) -> float:
    """CPU seconds that a profiler's process has used by itself."""
    if profiler and profiler.command is ours:
        pid = sampler_of(pid)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def run(profiler: Profiler | None, count: int, seconds: float, folder: Path) -> Run:
    """Run the program once, under a profiler or without."""
    out = folder / f"out{random.getrandbits(40):x}.json"
    before = profiler.command(out) if profiler else [sys.executable]
    log = folder / "log"  # a pipe that nobody reads would hold it up
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*before, BUSY, str(count), str(seconds)], stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        ) as process,
    ):
        patience = threading.Timer(60 + 20 * seconds, process.kill)
        patience.start()
        assert process.stdout is not None
        began, used, done = 0.0, 0.0, ["", "0", "0"]
        for line in process.stdout:
            if line.startswith("GO"):
                began, used = time.monotonic(), cpu_of(profiler, process.pid)
            elif line.startswith("DONE"):
                done = line.split()
                used, began = cpu_of(profiler, process.pid) - used, time.monotonic() - began
        process.wait()
        patience.cancel()
    if done[0] != "DONE" or not int(done[1]):
        raise RuntimeError(f"{before[0]} ended with {process.returncode}: {log.read_text(errors='replace')[-300:]}")
    return Run(int(done[1]), float(done[2]), used / began, profiler.read(out) if profiler else None)


def measure(count: int, rounds: int, seconds: float, able: list[Profiler], alone: dict[str, float]) -> None:
    """Compare the profilers with so many children."""
    bare: list[int] = []
    runs: dict[str, list[Run]] = {p.name: [] for p in able}
    ratios: dict[str, list[float]] = {p.name: [] for p in able}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            order: list[Profiler | None] = [None, *able]
            random.shuffle(order)
            block: dict[str, Run] = {}
            for p in order:
                try:
                    block[p.name if p else ""] = run(p, count, seconds, Path(folder))
                except (RuntimeError, OSError, ValueError, subprocess.CalledProcessError) as error:
                    print(f"  {p.name if p else 'the program'}: {error}")
            if "" not in block:
                continue
            bare.append(block[""].loops)
            for name in runs:
                if name in block:
                    runs[name].append(block[name])
                    ratios[name].append(block[""].loops / block[name].loops)
    print(f"{count} children, {rounds} rounds of {seconds:g} s")
    for p in able:
        if not runs[p.name]:
            continue
        cpu = statistics.median(r.cpu for r in runs[p.name])
        alone.setdefault(p.name, cpu)
        profiles = [r.seen for r in runs[p.name] if r.seen]
        seen = statistics.median(len(s.weights) for s in profiles)
        wrong = statistics.median(s.wrong / max(s.total, 1) for s in profiles)
        off = statistics.median(100 * abs(s.part_a / max(s.total, 1) - r.share) for r in runs[p.name] if (s := r.seen))
        own = f"{cpu:6.3f} cores ({cpu / max(alone[p.name], 1e-3):4.1f}x)" if p.outside else "   in the children   "
        slower = statistics.median(ratios[p.name])
        print(
            f"  {p.name:30} slow-down {slower:6.3f}  CPU {own}  seen {seen:g} of {count}"
            f"  wrong {wrong:7.3%}  share off {off:5.2f} points"
        )


def main() -> None:
    """Measure with 1, 8 and 32 children."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--children", default="1,8,32", help="how many, separated by commas")
    arguments.add_argument("--rounds", type=int, default=7, help="of each profiler and number")
    arguments.add_argument("--seconds", type=float, default=4, help="length of each run")
    given = arguments.parse_args()
    install()
    print(
        f"CPython {sys.version.split()[0]}, {os.cpu_count()} cores, load {Path('/proc/loadavg').read_text().split()[0]}"
    )
    able, alone = profilers(), dict[str, float]()
    for count in map(int, given.children.split(",")):
        measure(count, given.rounds, given.seconds, able, alone)


if __name__ == "__main__":
    main()
