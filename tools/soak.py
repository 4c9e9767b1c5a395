"""Keeps kernels busy for long and shows whether anything grows: ``make soak``.

Two kernels with ``%omni_perf on`` and one without the extension run the same cells:
trivial ones, raising ones, printing ones, threads that come and go, some long enough for a
chart. Sidecars are killed now and then, in cells and between them. Descriptors, threads,
memory and files are counted on both sides all the while; what grows ends the program with
status 1. The figures of a run are in docs/robustness.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "magics" / "tests"))

from kernels import Kernel  # noqa: E402

CELLS = {
    "trivial": ("x = 1", 600),
    "value": ("sum(range(1000))", 150),
    "printing": ("for i in range(50): print(i)", 60),
    "raising": ("1 / 0", 40),
    "threads": (
        "import threading, time\n"
        "ts = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(20)]\n"
        "for t in ts: t.start()\nfor t in ts: t.join()",
        60,
    ),
    "threads left behind": (
        "import threading, time\n"
        "for _ in range(5): threading.Thread(target=time.sleep, args=(0.3,), daemon=True).start()",
        30,
    ),
    "allocating": ("big = [object() for _ in range(200_000)]; del big", 20),
    "asked for": ("%%omni_perf --quiet\nsum(range(100_000))", 30),
    "with a chart": ("import time\nend = time.monotonic() + 1.1\nwhile time.monotonic() < end: pass", 2),
}
"""Cells and how often they are drawn."""


@dataclass
class Counted:
    """What one process holds at one moment."""

    cells: int
    rss_mb: float
    descriptors: int
    threads: int


@dataclass
class Process:
    """One side of one kernel over time."""

    name: str
    counted: list[Counted] = field(default_factory=list[Counted])

    def count(self, pid: int, cells: int) -> None:
        """Count what the process holds now."""
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        self.counted.append(
            Counted(
                cells,
                int(status["VmRSS"].split()[0]) / 1024,
                len(os.listdir(f"/proc/{pid}/fd")),
                int(status["Threads"]),
            )
        )

    def ends(self, figure: str) -> tuple[float, float]:
        """Return the median of a figure in the second tenth of the run and in the last one.

        The first tenth is spent on imports and on caches.
        """
        values = [getattr(each, figure) for each in self.counted]
        tenth = max(1, len(values) // 10)
        return statistics.median(values[tenth : 2 * tenth] or values), statistics.median(values[-tenth:])


class Busy:
    """A kernel that runs drawn cells; both sides are counted now and then."""

    def __init__(self, name: str, profiled: bool, seed: int) -> None:
        self.kernel = Kernel(load=profiled)
        self.profiled = profiled
        self.own = Process(f"{name}, kernel")
        self.sidecar = Process(f"{name}, sidecar")
        self.cells = 0
        self.charts = 0
        self.kills: list[str] = []
        self.sidecars: set[int] = set()
        self._draw = random.Random(seed)
        if profiled:
            self.kernel.limit_begin(0.25)
            self.kernel.run("%omni_perf on")

    def run(self) -> None:
        """Run one cell."""
        name = self._draw.choices(list(CELLS), [weight for _, weight in CELLS.values()])[0]
        cell = CELLS[name][0]
        if not self.profiled:
            cell = cell.removeprefix("%%omni_perf --quiet\n")
        ran = self.kernel.run(cell, patience_s=120)
        self.charts += len(ran.charts())
        self.cells += 1

    def count(self) -> None:
        """Count both sides."""
        self.own.count(self.kernel.pid, self.cells)
        if self.profiled:
            pid = self.kernel.sidecar()
            self.sidecars.add(pid)
            self.sidecar.count(pid, self.cells)

    def kill_sidecar(self, in_a_cell: bool) -> None:
        """Kill the sidecar; the next count finds another."""
        pid = self.kernel.sidecar()
        if in_a_cell:
            timer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
            timer.start()
            self.kernel.run("import time; time.sleep(1.2)", patience_s=120)
            timer.join()
        else:
            os.kill(pid, signal.SIGKILL)
        self.kills.append("in a cell" if in_a_cell else "between cells")

    def close(self) -> None:
        """End the kernel."""
        self.kernel.__exit__()


ALLOWED: dict[str, float] = {"descriptors": 3, "threads": 3, "rss_mb": 12}
"""How much more a side may hold at the end; of a kernel, more than the one without the extension."""


def main() -> None:
    """Run for the time and the cells asked for, whichever is longer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--cells", type=int, default=10_000, help="of the profiled kernels together, at least")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="soak-"))
    os.environ["XDG_RUNTIME_DIR"] = os.environ["TMPDIR"] = str(place)
    began = time.monotonic()
    kernels = [Busy("first", True, asked.seed), Busy("second", True, asked.seed), Busy("bare", False, asked.seed)]
    try:
        soak(kernels, asked, began)
        lasted = time.monotonic() - began
        live = set(place.glob("omni_perf*"))
    finally:
        for kernel in kernels:
            kernel.close()
    left = wait_for_none(lambda: set(place.glob("omni_perf*")))
    orphans = wait_for_none(lambda: {pid for kernel in kernels for pid in kernel.sidecars if runs(pid)})
    problems = judge(kernels)
    problems += [f"{len(live)} folders for 2 sidecars"] if len(live) != 2 else []
    problems += [f"left behind: {path}" for path in sorted(map(str, left))]
    problems += [f"sidecar {pid} lives on" for pid in sorted(orphans)]
    shutil.rmtree(place, ignore_errors=True)
    report(kernels, lasted, problems)
    sys.exit(bool(problems))


def soak(kernels: list[Busy], asked: Any, began: float) -> None:
    """Run cells in turn, a kill now and then."""
    kills = 0
    while True:
        share = min(
            (time.monotonic() - began) / (60 * asked.minutes),
            sum(kernel.cells for kernel in kernels[:2]) / max(1, asked.cells),
        )
        if share >= 1:
            return
        for kernel in kernels:
            for _ in range(25):
                kernel.run()
            kernel.count()
        if share > (kills + 1) / (asked.kills + 1):
            kernels[kills % 2].kill_sidecar(in_a_cell=kills % 4 < 2)
            kills += 1
        print(f"\r{share:6.1%}  {sum(kernel.cells for kernel in kernels)} cells", end="", file=sys.stderr, flush=True)
        # Spread over the time asked for, so that what only time does is met, too.
        pace = sum(kernel.cells for kernel in kernels[:2]) / max(1, asked.cells)
        time.sleep(max(0.0, min(5.0, pace * 60 * asked.minutes - (time.monotonic() - began))))


def judge(kernels: list[Busy]) -> list[str]:
    """Say what grew, and whether sidecars were replaced that were not killed."""
    problems: list[str] = []
    bare = kernels[-1].own
    for kernel in kernels[:2]:
        if len(kernel.sidecars) > 1 + len(kernel.kills):
            problems.append(
                f"{kernel.own.name}: {len(kernel.sidecars)} sidecars, {len(kernel.kills)} of them were killed"
            )
        for process in (kernel.own, kernel.sidecar):
            for figure, allowed in ALLOWED.items():
                early, late = process.ends(figure)
                if process is kernel.own:
                    early, late = early - bare.ends(figure)[0], late - bare.ends(figure)[1]
                if late - early > allowed:
                    problems.append(f"{process.name}: {figure} grew by {late - early:.1f}, {allowed} are allowed")
    return problems


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_none(what: Callable[[], set[Any]]) -> set[Any]:
    """Wait some seconds until there is nothing; return what is left."""
    end = time.monotonic() + 10
    while what() and time.monotonic() < end:
        time.sleep(0.1)
    return what()


def report(kernels: list[Busy], lasted: float, problems: list[str]) -> None:
    """Print the figures as a table, and all of them into build/soak.json."""
    print(f"\n{sum(kernel.cells for kernel in kernels[:2])} profiled cells in {lasted / 60:.0f} min, ", end="")
    print(f"{sum(kernel.charts for kernel in kernels)} charts, ", end="")
    print(f"{sum(len(kernel.kills) for kernel in kernels)} sidecars killed\n")
    print(f"{'':18}{'memory, MB':>18}{'descriptors':>16}{'threads':>12}")
    processes = [process for kernel in kernels for process in (kernel.own, kernel.sidecar) if process.counted]
    for process in processes:
        row = f"{process.name:18}"
        for figure, width in (("rss_mb", 18), ("descriptors", 16), ("threads", 12)):
            early, late = process.ends(figure)
            row += f"{early:.0f} → {late:.0f}".rjust(width)
        print(row)
    print("\nNothing grew, nothing is left." if not problems else "\n" + "\n".join(problems))
    file = ROOT / "build" / "soak.json"
    file.parent.mkdir(exist_ok=True)
    figures = {process.name: [vars(each) for each in process.counted] for process in processes}
    file.write_text(json.dumps({"seconds": lasted, "problems": problems, "processes": figures}))


if __name__ == "__main__":
    main()
