"""What Scalene and memray say by line of the programs of this bench, and how much longer these take under each.

The peers are installed into .cache/bench/memory, and the programs with which Scalene tests its own attribution are
fetched there; what cannot be had is named and left out. Their figure is what a line has asked for (Scalene's
``n_malloc_mb``, memray's records of all allocations by the innermost line of the program), ours is what it touched.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs.py"
INSTALLED = ROOT / ".cache" / "bench" / "memory"
PACKAGES = {"Scalene": "scalene==2.4.0", "memray": "memray==1.20.0"}
SCALENE = "https://github.com/plasma-umass/scalene"
ATTRIBUTION = "test/line_attribution_tests"
ROUNDS = 3
LIMIT_S = 60
SHOWN = 0.05
"""Lines with a smaller part of what any of the three says are left out of the table of Scalene's programs."""

READ_MEMRAY = """
import json, sys
from memray import FileReader
sums = {}
for record in FileReader(sys.argv[1]).get_allocation_records():
    try:
        frames = [line for _, file, line in record.stack_trace() if file == sys.argv[2]]
    except NotImplementedError:  # it is of memory that was given back
        continue
    if frames:
        sums[frames[0]] = sums.get(frames[0], 0) + record.size
print(json.dumps(sums))
"""

ByLine = dict[int, float]
"""MB by the number of a line."""


@dataclass(frozen=True)
class Profiler:
    """What runs a program and says what its lines have asked for, or touched."""

    name: str
    command: Callable[[Path], list[str]]
    """In front of the program, for the file that it is to write."""
    read: Callable[[Path, Path], ByLine]
    """Of the file that it wrote, for the program."""


def environment(source: Path | None = None) -> dict[str, str]:
    """Return the environment of a program: the peers, and numpy, which Scalene needs, are on its path."""
    library = [str(source)] if source else []
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join([*library, str(INSTALLED / "site-packages")])}


def scalene(written: Path, program: Path) -> ByLine:
    """Read Scalene's profile; its MB are MiB."""
    files: dict[str, Any] = json.loads(written.read_text())["files"]
    lines: list[dict[str, Any]] = files.get(str(program), {}).get("lines", [])
    return {int(line["lineno"]): float(line["n_malloc_mb"]) * (1 << 20) / 1e6 for line in lines}


def memray(written: Path, program: Path) -> ByLine:
    """Read all allocations that memray has recorded."""
    command = [sys.executable, "-c", READ_MEMRAY, str(written), str(program)]
    read = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True)
    return {int(line): size / 1e6 for line, size in json.loads(read.stdout).items()}


def omni_perf(written: Path, program: Path) -> ByLine:
    """Read the growth by line of a report."""
    document = json.loads(written.read_text())
    said: ByLine = {}
    for row in document.get("memory", []):
        if document["files"][row["file"]]["name"].endswith(program.name) and row["process"] == 0:
            said[row["line"]] = said.get(row["line"], 0.0) + row["grown_bytes"] / 1e6
    return said


OURS = Profiler(
    "omni_perf",
    lambda file: [str(ROOT / ".venv/bin/omni-perf"), "run", "--interpreter", sys.executable, "-o", str(file)],
    omni_perf,
)
PEERS = [
    Profiler(
        "Scalene",
        lambda file: [sys.executable, "-m", "scalene", "run", "-o", str(file)],
        scalene,
    ),
    Profiler("memray", lambda file: [sys.executable, "-m", "memray", "run", "-f", "-q", "-o", str(file)], memray),
]
ALONE = Profiler("alone", lambda _: [sys.executable], lambda _, __: {})


def install() -> list[Profiler]:
    """Return the peers that are there, after an attempt to install those that are not."""
    packages = INSTALLED / "site-packages"
    there: list[Profiler] = []
    for peer in PEERS:
        if not (packages / peer.name.lower()).exists():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
            command += ["--target", str(packages), PACKAGES[peer.name]]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{peer.name} skipped: pip could not install it: {last_line(done.stderr)}")
                continue
        there.append(peer)
    return there


def attribution_programs() -> list[Path]:
    """Return the programs with which Scalene tests its attribution, fetched if they are not there."""
    place = INSTALLED / "scalene"
    if not place.exists():
        command = ["git", "clone", "--quiet", "--depth", "1", SCALENE, str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"Scalene's programs skipped: git could not fetch them: {last_line(done.stderr)}")
            return []
    return sorted((place / ATTRIBUTION).glob("*.py"))


def last_line(text: str) -> str:
    """Return what an error says last."""
    return (text.strip().splitlines() or ["?"])[-1][:200]


@dataclass
class Measured:
    """What a profiler made of a program."""

    seconds: float
    lines: ByLine
    own: dict[str, Any]
    """What the program wrote of itself."""
    failed: str = ""


def measure(by: Profiler, program: Path, name: str = "") -> Measured:
    """Run a program once."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "site-packages")
        shutil.copytree(HERE / "library", library)
        written, figures = Path(folder, "profile.json"), Path(folder, "figures.json")
        arguments = [name, str(figures)] if name else []
        began = time.monotonic()
        command = [*by.command(written), str(program), *arguments]
        try:
            done = subprocess.run(
                command,
                env=environment(library),
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return Measured(LIMIT_S, {}, {}, f"longer than {LIMIT_S} s")
        seconds = time.monotonic() - began
        own: dict[str, Any] = json.loads(figures.read_text()) if figures.exists() else {}
        if done.returncode or (not own and name):
            return Measured(seconds, {}, own, last_line(done.stderr or done.stdout))
        if by is ALONE:
            return Measured(seconds, {}, own)
        if not written.exists():
            return Measured(seconds, {}, own, "it wrote no profile")
        return Measured(seconds, by.read(written, program), own)


def misplaced(said: ByLine, own: dict[str, int]) -> float:
    """Return the share of what a program's lines grew by that is lacking there, or said where it was not."""
    ends = {number: line.rpartition("# ")[2] for number, line in enumerate(PROGRAMS.read_text().splitlines(), 1)}
    by_name: dict[str, float] = {}
    for line, size in said.items():
        by_name[ends[line]] = by_name.get(ends[line], 0.0) + size
    pairs = [(grown / 1e6, by_name.get(what, 0.0)) for what, grown in own.items()]
    lacking = sum(max(grown - theirs, 0) for grown, theirs in pairs)
    excess = sum(max(theirs - grown, 0) for grown, theirs in pairs)
    return max(lacking, excess) / sum(grown for grown, _ in pairs)


def beside(names: list[str]) -> str:
    """Run the programs under each profiler by turns; return a table.

    For each there are the misplaced share, the CPU time of the program's own process from its first line on, as a
    multiple of what it needs alone, and the time with start and end likewise: medians of the rounds. Our sampler is a
    process of its own.
    """
    profilers = [OURS, *install()]
    rows = ["| program | " + " | ".join(f"{by.name} | CPU × | time ×" for by in profilers) + " |"]
    rows.append("|---|" + "---|---|---|" * len(profilers))
    times: dict[str, list[tuple[float, float]]] = {by.name: [] for by in profilers}
    for name in names:
        runs: dict[str, list[Measured]] = {by.name: [] for by in [ALONE, *profilers]}
        for _ in range(ROUNDS):
            for by in [ALONE, *profilers]:
                runs[by.name].append(measure(by, PROGRAMS, name))
        alone = medians(runs["alone"])
        cells: list[str] = []
        for by in profilers:
            good = [run for run in runs[by.name] if not run.failed]
            if not good:
                cells += [f"failed: {runs[by.name][0].failed}", "", ""]
                continue
            share = statistics.median(misplaced(run.lines, run.own["lines"]) for run in good)
            cpu, wall = (one / other for one, other in zip(medians(good), alone, strict=True))
            times[by.name].append((cpu, wall))
            cells += [f"{share:.1%}", f"{cpu:.2f}", f"{wall:.2f}"]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    rows.append("| median | " + " | ".join(_median_cells(times[by.name]) for by in profilers) + " |")
    return "\n".join(rows)


def medians(runs: list[Measured]) -> tuple[float, float]:
    """Return the medians of the program's CPU time and of the time from start to end."""
    return statistics.median(run.own["cpu_s"] for run in runs), statistics.median(run.seconds for run in runs)


def _median_cells(times: list[tuple[float, float]]) -> str:
    if not times:
        return " | | "
    return f" | {statistics.median(cpu for cpu, _ in times):.2f} | {statistics.median(wall for _, wall in times):.2f}"


def on_their_programs() -> str:
    """Return, of Scalene's own programs, what each profiler says by line, in MB."""
    profilers = [OURS, *install()]
    rows = ["| program, line | " + " | ".join(by.name for by in profilers) + " |", "|---|" + "---|" * len(profilers)]
    for program in attribution_programs():
        runs = [measure(by, program) for by in profilers]
        most = max((sum(run.lines.values()) for run in runs), default=0.0)
        text = program.read_text().splitlines()
        lines = sorted({line for run in runs for line, size in run.lines.items() if size > SHOWN * most})
        for by, run in zip(profilers, runs, strict=True):
            if run.failed:
                print(f"{program.name} under {by.name}: {run.failed}")
        for line in lines:
            code = re.sub(r"\s*#.*", "", text[line - 1].strip())[:50]
            figures = " | ".join("–" if run.failed else f"{run.lines.get(line, 0.0):.0f}" for run in runs)
            rows.append(f"| {program.stem} {line}: `{code}` | {figures} |")
    return "\n".join(rows)
