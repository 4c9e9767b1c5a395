"""What a program's own clocks and a report say of the lines that await: seconds, and how many waited at once."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs.py"
PROFILER = os.environ.get("OMNI_PERF_BINARY", str(ROOT / ".venv/bin/omni-perf"))


@dataclass(frozen=True)
class Waiting:
    """What tasks did at a line; a figure that nobody gives is None."""

    seconds: float | None = None
    """For which they waited, with those for which they were ready, summed over the tasks."""
    at_once: float | None = None
    """How many waited, on average over the time in which at least one did."""


def names_of_lines() -> dict[int, str]:
    """Return the names of the lines that await through the clock."""
    found = (re.search(r"# (\w+)$", line) if "at(" in line else None for line in PROGRAMS.read_text().splitlines())
    return {number: match[1] for number, match in enumerate(found, 1) if match}


def covered(waits: list[list[int]]) -> float:
    """Return the seconds in which at least one waits."""
    sum_ns = end = 0
    for begin, until in sorted(waits):
        sum_ns += max(until - max(begin, end), 0)
        end = max(end, until)
    return sum_ns / 1e9


def of_clocks(path: Path) -> dict[str, Waiting]:
    """Read what a program has noted of itself, by the names of its lines."""
    noted: dict[str, list[list[int]]] = json.loads(path.read_text())
    sums = {what: sum(end - begin for begin, end in waits) / 1e9 for what, waits in noted.items()}
    return {what: Waiting(sums[what], sums[what] / covered(waits)) for what, waits in noted.items()}


def of_report(path: Path) -> dict[str, Waiting]:
    """Read the awaits of a report, likewise."""
    document = json.loads(path.read_text())
    at, found = names_of_lines(), dict[str, Waiting]()
    for row in document.get("awaits", []):
        if row["line"] in at and document["files"][row["file"]]["name"].endswith("programs.py"):
            seconds = (row["waiting_ns"] + row.get("ready_ns", 0)) / 1e9
            found[at[row["line"]]] = Waiting(seconds, row["waiting_ns"] / row["some_ns"] if row["some_ns"] else 0.0)
    return found


def execute(command: list[str | Path], folder: Path, *packages: Path) -> None:
    """Run a program, or what runs one, with the clock and these packages on its path."""
    library = folder / "site-packages"
    library.mkdir(exist_ok=True)
    shutil.copy(HERE / "library" / "clocks.py", library)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(map(str, [library, *packages]))}
    subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True, text=True, timeout=60)


def under_omni_perf(python: str, report: Path) -> list[str | Path]:
    """Return the command line before the program's."""
    return [PROFILER, "run", "--interpreter", python, "-o", report]


def interpreters() -> dict[str, str]:
    """Return the CPythons that there are, by version."""
    listed = subprocess.run([ROOT / "tools/interpreters", "--print"], stdout=subprocess.PIPE, text=True, check=True)
    found = [line.partition("\t")[::2] for line in listed.stdout.splitlines()]
    return {name: path for name, path in found if re.fullmatch(r"3\.\d+", name)}
