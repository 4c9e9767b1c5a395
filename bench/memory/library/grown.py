"""What a program's lines made it grow by, as it reads that itself; imported from a folder of libraries.

``with grown("name"):`` is around a line that ends in a comment with its name; ``say()`` writes the sums and the
process's peak. What a line touches for the first time are the pages that it faults in, also where it gives them back at
once: the thread's minor faults count them. Pages of files and huge pages come several at a fault: ``net`` takes the
difference of the resident memory there.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import time
from collections.abc import Generator

PAGE = os.sysconf("SC_PAGE_SIZE")
lines: dict[str, int] = {}
began_s = time.process_time()
"""The program's CPU time when it began: what a profiler within its process takes to start is not the program's."""


def resident() -> int:
    """Return the resident memory in bytes, counted exactly: smaps_rollup walks the pages."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Rss:"))


def faulted() -> int:
    """Return how many bytes this thread has faulted in."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt * PAGE


@contextlib.contextmanager
def grown(name: str) -> Generator[None]:
    """Note what the thread touches for the first time meanwhile."""
    before = faulted()
    yield
    known(name, faulted() - before)


@contextlib.contextmanager
def net(name: str) -> Generator[None]:
    """Note what the program has more of afterwards."""
    before = resident()
    yield
    known(name, resident() - before)


def known(name: str, size: int) -> None:
    """Note what a line is known to touch."""
    lines[name] = lines.get(name, 0) + size


def say(path: str) -> None:
    """Write what was noted."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    with open(path, "w") as file:
        json.dump({"lines": lines, "peak": peak, "cpu_s": time.process_time() - began_s}, file)
