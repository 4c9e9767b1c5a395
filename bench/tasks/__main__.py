"""Where tasks of event loops waited, of programs that keep their own clocks: make tasks.

Each program runs under ``omni-perf run`` with each interpreter. What the report says of a line that awaits is
compared with what the tasks noted: seconds, with those for which they were ready, within 3 %, and the mean number
at once within 5 %. The exit code is 1 where that is not so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROFILER = os.environ.get("OMNI_PERF_BINARY", str(ROOT / ".venv/bin/omni-perf"))
PROGRAMS = HERE / "programs.py"
SECONDS, AT_ONCE = 0.03, 0.05
ATTEMPTS = 3
"""On a busy machine a task wakes late, and no reading shows that."""


def names() -> list[str]:
    """Return the functions that are programs."""
    return re.findall(r"^(?:async )?def (\w+)\(\) -> None:", PROGRAMS.read_text(), re.MULTILINE)


def lines() -> dict[int, str]:
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


def run(python: str, name: str, folder: Path) -> list[tuple[str, float, float, float, float]]:
    """Return what a program and its report say of each line: seconds, and the mean at once."""
    library = folder / "site-packages"
    library.mkdir(exist_ok=True)
    shutil.copy(HERE / "library" / "clocks.py", library)
    report, clocks = folder / "report.json", folder / "clocks.json"
    subprocess.run(
        [PROFILER, "run", "--interpreter", python, "-o", report, PROGRAMS, name, clocks],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(library)},
        check=True,
        capture_output=True,
    )
    document = json.loads(report.read_text())
    noted = json.loads(clocks.read_text())
    at = lines()
    said = {
        at[row["line"]]: row
        for row in document.get("awaits", [])
        if row["line"] in at and document["files"][row["file"]]["name"].endswith("programs.py")
    }
    found: list[tuple[str, float, float, float, float]] = []
    for what, waits in noted.items():
        own = sum(end - begin for begin, end in waits) / 1e9
        row = said.get(what, {"waiting_ns": 0, "some_ns": 0})
        ours = (row["waiting_ns"] + row.get("ready_ns", 0)) / 1e9
        mean = row["waiting_ns"] / row["some_ns"] if row["some_ns"] else 0.0
        found.append((what, own, ours, own / covered(waits), mean))
    return found


def wrong(name: str, row: tuple[str, float, float, float, float]) -> bool:
    _, own, ours, own_mean, mean = row
    several = name != "blocked"  # there a task is at times ready and not waiting, which its clock does not show
    return abs(ours - own) > SECONDS * own or (several and abs(mean - own_mean) > AT_ONCE * own_mean)


def interpreters() -> list[tuple[str, str]]:
    listed = subprocess.run([ROOT / "tools/interpreters", "--print"], stdout=subprocess.PIPE, text=True, check=True)
    found = [line.partition("\t")[::2] for line in listed.stdout.splitlines()]
    return [(name, path) for name, path in found if re.fullmatch(r"3\.\d+", name)]


def main() -> int:
    chosen = sys.argv[1:] or names()
    bad = 0
    for version, python in interpreters():
        for name in chosen:
            found: list[tuple[str, float, float, float, float]] = []
            for _ in range(ATTEMPTS):
                with tempfile.TemporaryDirectory() as folder:
                    found = run(python, name, Path(folder))
                if not any(wrong(name, row) for row in found):
                    break
            for row in found:
                what, own, ours, own_mean, mean = row
                verdict = "WRONG" if wrong(name, row) else "right"
                bad += verdict == "WRONG"
                print(
                    f"{version}  {name:10} {what:8} {own:7.3f} s, said {ours:7.3f} ({ours / own - 1:+.1%})   "
                    f"{own_mean:6.2f} at once, said {mean:6.2f} ({mean / own_mean - 1:+.1%})  {verdict}",
                    flush=True,
                )
    print(f"{bad} wrong" if bad else "all right")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
