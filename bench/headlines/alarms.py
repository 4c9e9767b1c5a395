"""What ``omni-perf compare`` says of two runs of a notebook, and what is done to these runs on purpose."""

from __future__ import annotations

import contextlib
import json
import random
import re
import statistics
import subprocess
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import execution

EXCEEDED = 4
"""omni-perf's exit code of what is slower than the limit of --fail-if."""


CPU_TIME = "__import__('time').process_time()"
"""The last cell of each notebook that is executed."""


@dataclass
class Verdict:
    """A comparison of two runs; an empty verdict is no difference."""

    whole: str
    cells: list[str]
    codes: list[str]
    """The first lines of these cells."""
    fails: bool
    """By --fail-if slower=5%."""

    @property
    def differs(self) -> bool:
        """Whether it shows any difference."""
        return any([self.whole, *self.cells])


def compared(before: Path, after: Path) -> Verdict:
    """Compare two runs of a notebook."""
    command = [str(execution.program()), "compare", str(before), str(after), "--fail-if", "slower=5%", "--json", "-"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, EXCEEDED):
        raise RuntimeError(ended.stderr)
    said: dict[str, Any] = json.loads(ended.stdout)
    cells = [str(cell["verdict"]) for cell in said["cells"]]
    codes = [str(cell["code"]) for cell in said["cells"]]
    return Verdict(str(said["whole"]["verdict"]), cells, codes, ended.returncode == EXCEEDED)


@contextlib.contextmanager
def busy_process(after_s: float | None) -> Generator[None]:
    """Keep a CPU busy from some seconds on until the end; None: not at all."""
    started: list[subprocess.Popen[bytes]] = []
    if after_s is None:
        yield
        return
    busy = [sys.executable, "-c", "while True: pass"]
    timer = threading.Timer(after_s, lambda: started.append(subprocess.Popen(busy)))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        for process in started:
            process.kill()
            process.wait()


def slower_by(seconds: float) -> str:
    """Return code that computes for so long, and leaves no name behind."""
    return (
        f"\n(lambda time, end: __import__('collections').deque(iter(lambda: time() > end[0], True), maxlen=0))"
        f"(__import__('time').thread_time, [__import__('time').thread_time() + {seconds:.3f}]) and None"
    )


def reason(log: Path) -> str:
    """Return the last line of a log that names an error."""
    lines = [line for line in log.read_text().splitlines() if re.search(r"Error\b|Exception\b|timed out", line)]
    return lines[-1][:200] if lines else "no reason is known"


def between(begin: str, end: str) -> float:
    """Return the seconds between two of the times that nbclient writes into a notebook."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def interval(values: list[float], rounds: int = 2000) -> str:
    """Return the median and its interval of 95 %, by resampling."""
    if not values:
        return ""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(rounds))
    low, high = medians[round(0.025 * (rounds - 1))], medians[round(0.975 * (rounds - 1))]
    return f"{statistics.median(values):+.1f} ({low:+.1f} to {high:+.1f})"
