"""Where tasks of event loops waited, of programs that keep their own clocks: make tasks.

Each program runs under ``omni-perf run`` with each interpreter. What the report says of a line that awaits is
compared with what the tasks noted: seconds, with those for which they were ready, within 3 %, and the mean number
at once within 5 %. The exit code is 1 where that is not so.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from readings import PROGRAMS, Waiting, execute, interpreters, of_clocks, of_report, under_omni_perf

SECONDS, AT_ONCE = 0.03, 0.05
ATTEMPTS = 3
"""On a busy machine a task wakes late, and no reading shows that."""


def names() -> list[str]:
    """Return the functions that are programs."""
    return re.findall(r"^(?:async )?def (\w+)\(\) -> None:", PROGRAMS.read_text(), re.MULTILINE)


def run(python: str, name: str, folder: Path) -> list[tuple[str, float, float, float, float]]:
    """Return what a program and its report say of each line: seconds, and the mean at once."""
    report, clocks = folder / "report.json", folder / "clocks.json"
    execute([*under_omni_perf(python, report), PROGRAMS, name, clocks], folder)
    said = of_report(report)
    found: list[tuple[str, float, float, float, float]] = []
    for what, own in of_clocks(clocks).items():
        ours = said.get(what, Waiting())
        found.append((what, own.seconds or 0.0, ours.seconds or 0.0, own.at_once or 0.0, ours.at_once or 0.0))
    return found


def wrong(name: str, row: tuple[str, float, float, float, float]) -> bool:
    _, own, ours, own_mean, mean = row
    several = name != "blocked"  # there a task is at times ready and not waiting, which its clock does not show
    return abs(ours - own) > SECONDS * own or (several and abs(mean - own_mean) > AT_ONCE * own_mean)


def main() -> int:
    chosen = sys.argv[1:] or names()
    bad = 0
    for version, python in interpreters().items():
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
