"""What Scalene and CPython's own sampler say of tasks that wait, by line, and how much more CPU time a program takes.

Scalene is in the program's process and looks at the tasks when its timer fires (``--async``, which is its default); of
a line it gives a mean number of tasks, and no seconds. Tachyon is ``python -m profiling.sampling run --async-aware
--async-mode all`` of CPython 3.15, from outside as omni_perf is; its samples of a line, each of a millisecond, are
seconds. Each program runs under all by turns, and alone. Scalene is installed where bench/memory has it, in
.cache/bench/memory; what cannot be had is named and left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readings import PROGRAMS, ROOT, Waiting, execute, interpreters, names_of_lines, of_clocks, of_report
from readings import under_omni_perf as ours

PACKAGES = ROOT / ".cache" / "bench" / "memory" / "site-packages"
SCALENE = "scalene==2.4.0"
CHOSEN = "gather,in_turn,tree,blocked,churn"
"""Many at once, one after the other, tasks that await tasks, a loop that is blocked, and one with much to do."""

Said = dict[str, Waiting]
"""By the name of a line."""


@dataclass(frozen=True)
class Profiler:
    """What runs a program and says how its tasks waited."""

    name: str
    python: str
    """Version of the interpreter that runs the program."""
    command: Callable[[str, Path], list[str | Path]]
    """In front of the program, for an interpreter and the file that is to be written."""
    read: Callable[[Path], Said]


@dataclass(frozen=True)
class Measured:
    """One run of a program."""

    own: Said
    said: Said
    cpu_s: float
    """Of the program's own process, from its first line on."""


def of_scalene(path: Path) -> Said:
    """Read the mean number of tasks at each line of Scalene's profile."""
    files: dict[str, Any] = json.loads(path.read_text())["files"]
    at = names_of_lines()
    rows = [row for row in files.get(str(PROGRAMS), {}).get("lines", []) if row["lineno"] in at]
    return {at[row["lineno"]]: Waiting(at_once=row["n_async_concurrency_mean"] or None) for row in rows}


def of_tachyon(path: Path) -> Said:
    """Read the samples in which each line was in a task's stack."""
    records: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]  # tables come in parts
    texts = {row["str_id"]: row["value"] for record in records for row in record.get("strings", [])}
    samples = {row["frame_id"]: row["cumulative"] for record in records for row in record.get("entries", [])}
    sample_s = records[0]["sample_interval_usec"] / 1e6
    at, seconds = names_of_lines(), dict[str, float]()
    for frame in (frame for record in records for frame in record.get("frames", [])):
        if texts[frame["path_str_id"]] == str(PROGRAMS) and (what := at.get(frame["line"])):
            seconds[what] = seconds.get(what, 0.0) + samples.get(frame["frame_id"], 0) * sample_s
    return {what: Waiting(seconds=sum_s) for what, sum_s in seconds.items()}


def nothing(_: Path) -> Said:
    """Read nothing: the program ran alone."""
    return {}


def scalene_there() -> str:
    """Install Scalene if it is not there; return why it cannot be had."""
    if (PACKAGES / "scalene").exists():
        return ""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    done = subprocess.run([*command, "--target", PACKAGES, SCALENE], capture_output=True, text=True, check=False)
    return (done.stderr.strip().splitlines() or ["?"])[-1][:200] if done.returncode else ""


def profilers(there: dict[str, str]) -> list[Profiler]:
    """Return the profilers that there are, after the program alone of each interpreter."""
    here = f"3.{sys.version_info.minor}"
    found = [
        Profiler("alone", here, lambda python, _: [python], nothing),
        Profiler("omni_perf", here, ours, of_report),
    ]
    if why := scalene_there():
        print(f"Scalene skipped: pip could not install it: {why}")
    else:
        run: list[str | Path] = ["-m", "scalene", "run", "--async", "-o"]
        found.append(Profiler("Scalene", here, lambda python, file: [python, *run, file], of_scalene))
    if "3.15" not in there:
        print("Tachyon skipped: no CPython 3.15 (tools/interpreters)")
        return found
    sampling = ["-m", "profiling.sampling", "run", "--async-aware", "--async-mode", "all", "--jsonl", "-o"]
    return [
        *found,
        Profiler("alone", "3.15", lambda python, _: [python], nothing),
        Profiler("omni_perf", "3.15", ours, of_report),
        Profiler("Tachyon", "3.15", lambda python, file: [python, *sampling, file], of_tachyon),
    ]


def measure(by: Profiler, python: str, name: str) -> list[Measured]:
    """Run a program once; nothing was measured if that failed."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        written, clocks = folder / "profile.json", folder / "clocks.json"
        packages = [PACKAGES] if by.name == "Scalene" else []
        try:
            execute([*by.command(python, written), PROGRAMS, name, clocks], folder, *packages)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{name} under {by.name}, {by.python}: {error}")
            return []
        return [Measured(of_clocks(clocks), by.read(written), float(clocks.with_suffix(".cpu").read_text()))]


def deviation(pairs: list[tuple[float | None, float | None]]) -> str:
    """Return by how much a figure differs from the program's own: the median of the runs."""
    differences = [said / own - 1 for said, own in pairs if said is not None and own]
    return f"{statistics.median(differences):+.1%}" if differences else "–"


def cell(runs: list[Measured], what: str) -> str:
    """Return what a profiler says of a line: seconds and the number at once."""
    pairs = [(run.said.get(what, Waiting()), run.own[what]) for run in runs]
    seconds = deviation([(said.seconds, own.seconds) for said, own in pairs])
    return f"{seconds} / {deviation([(said.at_once, own.at_once) for said, own in pairs])}"


def main() -> None:
    """Print two tables: what is said by line, and the CPU time."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("names", nargs="?", default=CHOSEN, help="programs, separated by commas")
    arguments.add_argument("--rounds", type=int, default=5, help="runs of each program under each profiler")
    given = arguments.parse_args()
    there = interpreters() | {f"3.{sys.version_info.minor}": sys.executable}
    chosen = profilers(there)
    print(f"{os.cpu_count()} cores, load {Path('/proc/loadavg').read_text().split()[0]}")
    said = [by for by in chosen if by.name != "alone"]
    rows = ["| line, own clock | " + " | ".join(f"{by.name}, {by.python}" for by in said) + " |"]
    times = ["| CPU time | " + " | ".join(f"{by.name}, {by.python}" for by in chosen) + " |"]
    rows.append("|---|" + "---|" * len(said))
    times.append("|---|" + "---|" * len(chosen))
    for name in given.names.split(","):
        runs: dict[Profiler, list[Measured]] = {by: [] for by in chosen}
        for _ in range(given.rounds):
            for by in chosen:
                runs[by] += measure(by, there[by.python], name)
        for what, own in [pair for run in runs[chosen[0]][:1] for pair in run.own.items()]:
            label = f"{name}: {what}, {own.seconds:.2f} s, {own.at_once:.1f} at once"
            rows.append(f"| {label} | " + " | ".join(cell(runs[by], what) for by in said) + " |")
        cpu_s = {by: statistics.median([run.cpu_s for run in runs[by]] or [math.nan]) for by in chosen}
        alone = {by.python: cpu_s[by] for by in chosen if by.name == "alone"}
        cells = [
            f"{cpu_s[by] * 1e3:.0f} ms" if by.name == "alone" else f"{cpu_s[by] / alone[by.python]:.2f} ×"
            for by in chosen
        ]
        times.append(f"| {name} | " + " | ".join(cells) + " |")
    print("\nFrom the program's own clock: seconds of waiting by line / mean number of tasks at once:\n")
    print("\n".join([*rows, "", "The program's own CPU time, and its multiple:", "", *times]))


if __name__ == "__main__":
    main()
