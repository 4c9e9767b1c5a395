"""The proof of the trainings: bench/trainings [NAME…] runs each under omni-perf and compares it with its own clock.

The table goes to build/trainings/table.txt too. What is not installed in .cache is skipped with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from cases import Case, cases
from judging import Verdict, judge

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().with_name("programs")
OUT = ROOT / "build" / "trainings"


def run(case: Case, binary: str, out: Path) -> Verdict:
    """Run a training under omni-perf, in a folder of its own."""
    shutil.rmtree(out, ignore_errors=True)
    clocks = out / "clocks"
    clocks.mkdir(parents=True)
    python = python_of(case)
    environment = os.environ | {"CLOCKS": str(clocks), "OMP_NUM_THREADS": "1"}
    environment["PATH"] = f"{python.parent}:{os.environ['PATH']}"
    command = [*case.launcher, str(PROGRAMS / case.command[0]), *case.command[1:]]
    done = subprocess.run(
        [binary, "run", "--interpreter", python, "-o", out / "report", "--format", "json,svg,html", *command],
        env=environment, cwd=out, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (out / "said.txt").write_text(done.stdout + done.stderr)
    report = json.loads((out / "report.json").read_text())
    facts = {int(path.stem): json.loads(path.read_text()) for path in clocks.iterdir()}
    return judge(case, done.returncode, report, facts)


def python_of(case: Case) -> Path:
    return ROOT / ".cache" / case.environment / "bin" / "python"


def lacks(case: Case) -> str:
    """Return what a case needs and has not, in words; empty if nothing."""
    python = python_of(case)
    keras = os.environ | {"KERAS_BACKEND": "jax"}  # it needs one to be imported
    trial = [python, "-c", f"import {case.needs}"]
    if python.exists() and subprocess.run(trial, env=keras, capture_output=True, check=False).returncode == 0:
        return ""
    return f"no {case.needs} in .cache/{case.environment} (tools/{case.environment})"


def table(rows: list[list[str]]) -> str:
    """Return rows as aligned columns but the last, which is as long as it is."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    padded = ([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]] for row in rows)
    return "\n".join("  ".join(row) for row in padded)


def main() -> int:
    parser = argparse.ArgumentParser(description="Trainings beside their own clocks.")
    parser.add_argument("names", nargs="*", help="a part of a case's name")
    asked = parser.parse_args().names
    binary = str(Path(sys.executable).with_name("omni-perf"))
    columns = ["training", "steps", "pace", "samples", "worst phase", "known to", "unknown", "extra", "verdict"]
    rows = [[*columns, "headline"]]
    wrong = 0
    for number, case in enumerate(cases()):
        if asked and not any(part in case.name for part in asked):
            continue
        if lacking := lacks(case):
            print(f"skipped: {case.name}: {lacking}", flush=True)
            continue
        verdict = run(case, binary, OUT / f"{number:02}")
        wrong += bool(verdict.wrong)
        rows.append(verdict.row())
        print("  ".join(verdict.row()), flush=True)
    text = table(rows)
    (OUT / "table.txt").write_text(text + "\n")
    print(f"\n{text}\n\n{len(rows) - 1} trainings, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
