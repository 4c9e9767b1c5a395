"""A cell's own clocks. This file runs in the kernel, by IPython's hooks before and after each cell.

It writes a line of JSON for each cell into FILE, which is among its globals: what the cell took and used by the
kernel's own clocks, which no profiler has a part in. Nothing of it is in the user's namespace or in sys.modules.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE: str = globals()["FILE"]
TICKS = os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> Iterator[int]:
    """Return the processes that a process has started, and those that they have."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            try:
                yield from descendants(child)
            except OSError:
                continue


def children_s() -> float:
    """Return the CPU time of all descendants, of those too that have ended."""
    ended = os.times()
    total = ended.children_user + ended.children_system
    for pid in descendants(os.getpid()):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, stat[11:15])) / TICKS  # utime, stime, cutime, cstime (proc(5), fields 14 to 17)
    return total


def of_the_thread() -> dict[str, float]:
    """Read what takes no time to read, in seconds."""
    waited_ns = int(Path("/proc/thread-self/schedstat").read_text().split()[1])  # wanted a CPU and had none
    return {"wall_s": time.monotonic(), "main_cpu_s": time.thread_time(), "main_off_s": waited_ns / 1e9}


def of_all() -> dict[str, float]:
    """Read the rest, which takes a millisecond, and tens of them where others want the CPUs."""
    return {"process_cpu_s": time.process_time(), "children_cpu_s": children_s(), "modules": len(sys.modules)}


def install() -> None:
    """Read the clocks around each cell but the first, which loads the profiler.

    Inside of what the profiler's hooks do: the one before a cell comes after its, the one after a cell before its.
    """
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    before: dict[str, float] = {}

    def begin(_: object = None) -> None:
        began_s = time.monotonic()
        before.update(of_all())
        before.update(of_the_thread())  # last: next to the cell
        before["reading_s"] = before["wall_s"] - began_s

    def end(result: Any) -> None:
        if not before:
            shell.events.register("pre_run_cell", begin)
            begin()
            return
        after = of_the_thread()  # first
        after.update(of_all())
        used = {name: value - before[name] for name, value in after.items()}
        # In the page's time, and not between the readings:
        used["reading_s"] = before["reading_s"] + time.monotonic() - after["wall_s"]
        with open(FILE, "a") as file:
            file.write(json.dumps({"execution_count": result.execution_count, **used}) + "\n")

    shell.events.register("post_run_cell", end)


install()
