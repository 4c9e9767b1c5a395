"""Executes unchanged notebooks several times by ``omni-perf run`` and compares each run with each other one.

    make notebooks-aa NOTEBOOKS=FOLDER        every notebook below the folder

By turns ``omni-perf run`` and nbclient alone (``jupyter execute``) execute a notebook, in a fresh copy of its folder.
Then ``omni-perf compare`` compares every two runs of the former. What it calls a difference there is a false alarm.

Printed, and written into --out (build/notebooks-aa) as totals.md, is for each notebook: the comparisons and in how many
of them the sentence or a cell has a difference; the cells that were compared and the false alarms among them;
comparisons that fail by --fail-if; outputs that differ from nbclient's; the time of the cells against nbclient's.

--load LOAD     a busy process starts in the middle of each second run and goes on until that ends (a common cause)
--edit          the longest cell is made 1.5 times as long in a last run: whether each comparison with it says so
--again         compares the runs that --out has, and executes nothing

The exit code is 1 where less than 95 % of the comparisons, or of the cells, are without a difference, or an
output differs. docs/notebooks.md has figures.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import alarms
import execution
import nbformat
import notebooks
import sameness

LEAST_RIGHT = 0.95
"""The share of comparisons of unchanged notebooks that show no difference."""


@dataclass
class Totals:
    """A row of the table."""

    notebook: str
    cells: int = 0
    runs: int = 0
    seconds: float = 0.0
    """That the cells of a run took, the median."""
    load: str = ""
    """Processes that could run while the notebook did, from the least to the most (/proc/loadavg, a minute's mean)."""
    comparisons: int = 0
    alarms: int = 0
    """Comparisons that have any difference: of the whole or of a cell."""
    wholes: int = 0
    """Those of the whole."""
    cells_compared: int = 0
    cell_alarms: int = 0
    failing: int = 0
    """Comparisons that fail by --fail-if slower=5%."""
    edits: int = 0
    edits_found: int = 0
    outputs: int = 0
    outputs_different: int = 0
    slower_percent: float = 0.0
    """The time of all cells against nbclient's alone, of the medians."""
    cpu_percent: float = 0.0
    """Likewise the CPU time of the kernel's process, which knows of no waiting."""


@dataclass
class Runs:
    """The runs of a notebook, as files in a folder."""

    folder: Path
    profiled: list[Path] = field(default_factory=list[Path])
    bare: list[Path] = field(default_factory=list[Path])
    edited: Path | None = None
    loads: list[float] = field(default_factory=list[float])


def main() -> None:
    """Run the bench on the notebooks below the given folders."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("notebooks", type=Path, nargs="+", help="notebooks, or folders with notebooks")
    arguments.add_argument("--python", type=Path, default=notebooks.default_python(), help="the kernels' interpreter")
    arguments.add_argument("--out", type=Path, default=execution.ROOT / "build" / "notebooks-aa")
    arguments.add_argument("--runs", type=int, default=3, help="executions by omni-perf run, and by nbclient alone")
    arguments.add_argument("--bare", type=int, help="executions by nbclient alone (as many as by omni-perf run)")
    arguments.add_argument("--limit", type=int, default=60, help="seconds that a cell may take")
    arguments.add_argument("--load", action="store_true", help="a busy process beside a half of each second run")
    arguments.add_argument("--edit", action="store_true", help="execute a version with a slower cell, too")
    arguments.add_argument("--again", action="store_true", help="compare the runs that are in --out")
    given = arguments.parse_args()
    rows: list[Totals] = []
    for path in notebooks.found(given.notebooks):
        folder = given.out / path.stem
        if not given.again:
            Bench(path, given.python, folder, given.limit).execute(given)
        if (row := judged(folder)) is not None:
            rows.append(row)
            print(line(row), flush=True)
    table = written(rows)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "totals.md").write_text(table)
    print(table)
    sys.exit(not right(rows))


@dataclass
class Bench:
    """A notebook, what it is executed by, and where its runs go."""

    path: Path
    python: Path
    out: Path
    limit_s: int

    def execute(self, given: argparse.Namespace) -> None:
        """Execute the notebook by turns with the profiler and without; a first run fills the caches."""
        if self.out.exists():
            for old in self.out.iterdir():
                old.unlink()
        self.out.mkdir(parents=True, exist_ok=True)
        took = self._run("bare", 0)
        if not (self.out / "bare0.ipynb").exists():  # a cell took longer than the limit, or the kernel died
            print(f"{self.path.stem} left out: {alarms.reason(self.out / 'bare0.log')}", flush=True)
            return
        if given.edit:
            self._slower_version()
        for number in range(1, given.runs + 1):
            turns = ["run", "bare"] if number % 2 else ["bare", "run"]
            for turn in turns:
                if turn == "bare" and given.bare is not None and number > given.bare:
                    continue
                busy = given.load and turn == "run" and number % 2 == 0
                self._run(turn, number, beside_after_s=took / 2 if busy else None)
        if given.edit:
            self._run("edited", 0)

    def _run(self, turn: str, number: int, beside_after_s: float | None = None) -> float:
        """Execute the notebook once and return how long that took."""
        with tempfile.TemporaryDirectory(prefix="omni_perf-unchanged-") as place:
            copy = execution.copied(self.path, Path(place))
            measured(self.out / "edited.ipynb" if turn == "edited" else self.path, copy)
            base = self.out / f"{turn}{number}"
            command = self._command(turn, copy, base)
            environment = {**os.environ, "JUPYTER_PATH": str(kernel_spec(self.python, Path(place)))}
            before = load_average()
            began = time.monotonic()
            with (base.with_suffix(".log")).open("w") as log:
                process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
                with alarms.busy_process(beside_after_s):
                    process.wait()
            took = time.monotonic() - began
        base.with_suffix(".facts").write_text(json.dumps({"took_s": took, "load": [before, load_average()]}))
        return took

    def _command(self, turn: str, copy: Path, base: Path) -> list[str]:
        scripts = execution.ROOT / ".venv" / "bin"
        options = ["--allow-errors", f"--timeout={self.limit_s}"]
        if turn == "bare":
            program = [str(scripts / "jupyter-execute"), str(copy), "--kernel_name=bench", f"--output={base}.ipynb"]
            return [*program, *options]
        program = [str(execution.program()), "run", str(copy), "--kernel-name=bench"]
        program += [f"--interpreter={scripts / 'python'}", f"--executed={base}-executed.ipynb"]
        return [*program, "--format=json", "-o", str(base), *options]

    def _slower_version(self) -> None:
        """Write the notebook with its longest cell made 1.5 times as long."""
        notebook: Any = nbformat.read(self.out / "bare0.ipynb", as_version=4)
        times = {index: seconds for index, seconds in enumerate(map(cell_seconds, notebook.cells)) if seconds}
        times = {
            index: seconds for index, seconds in times.items() if not notebook.cells[index].source.startswith("%%")
        }
        if not times:
            return
        longest = max(times, key=lambda index: times[index])
        changed: Any = nbformat.read(self.path, as_version=4)
        changed.cells[longest].source += alarms.slower_by(times[longest] / 2)
        nbformat.write(changed, self.out / "edited.ipynb")
        (self.out / "edit.json").write_text(json.dumps({"cell": longest, "seconds": times[longest]}))


def measured(notebook: Path, copy: Path) -> None:
    """Write a notebook with a last cell that says what CPU time its kernel has used."""
    read: Any = nbformat.read(notebook, as_version=4)
    read.cells.append(nbformat.v4.new_code_cell(alarms.CPU_TIME))
    nbformat.write(read, copy)


def kernel_spec(python: Path, place: Path) -> Path:
    """Register the kernel ``bench`` in a data folder of its own."""
    folder = place / "jupyter" / "kernels" / "bench"
    folder.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (folder / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "bench", "language": "python"}))
    return place / "jupyter"


def load_average() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def cell_seconds(cell: Any) -> float:
    """Return what nbclient measured for a cell, from the kernel's busy to its idle."""
    timing = cell.get("metadata", {}).get("execution", {})
    begin, end = timing.get("iopub.status.busy"), timing.get("iopub.status.idle")
    return alarms.between(begin, end) if begin and end else 0.0


# Judged


def judged(folder: Path) -> Totals | None:
    """Compare the runs that a folder has."""
    documents = [path for path in sorted(folder.glob("run*.json")) if json.loads(path.read_text())["cells"]]
    if len(documents) < 2:
        return None
    row = Totals(folder.name, runs=len(documents))
    row.cells = len(json.loads(documents[0].read_text())["cells"])
    for before, after in itertools.combinations(documents, 2):
        verdict = alarms.compared(before, after)
        row.comparisons += 1
        row.alarms += verdict.differs
        row.wholes += verdict.whole != ""
        row.cells_compared += len(verdict.cells)
        row.cell_alarms += sum(cell != "" for cell in verdict.cells)
        row.failing += verdict.fails
    edited = folder / "edited0.json"
    if edited.exists():
        for before in documents:
            row.edits += 1
            row.edits_found += alarms.compared(before, edited).cells[edited_row(folder, edited)] == "more"
    _outputs(row, folder)
    _times(row, folder)
    return row


def edited_row(folder: Path, edited: Path) -> int:
    """Return the number of the edited cell among the rows of a run, which has no rows for cells without code."""
    cell = int(json.loads((folder / "edit.json").read_text())["cell"])
    count = nbformat.read(folder / "edited0-executed.ipynb", as_version=4).cells[cell].execution_count
    return [row["number"] for row in json.loads(edited.read_text())["cells"]].index(count)


def _outputs(row: Totals, folder: Path) -> None:
    """Count the outputs of the first profiled run that differ from nbclient's, where two runs of nbclient agree."""
    bare = [_cells(path) for path in sorted(folder.glob("bare*.ipynb"))]
    for cells in zip(bare[0], bare[-1], _cells(folder / "run1-executed.ipynb"), strict=True):
        if cells[0].source == alarms.CPU_TIME:
            continue
        level, differs = sameness.difference(*(list(map(dict, cell.get("outputs", []))) for cell in cells))
        row.outputs += level != ""
        row.outputs_different += differs
        if differs:
            print(f"{folder.name}: an output differs ({level}): {cells[0].source[:60]!r}")


def _times(row: Totals, folder: Path) -> None:
    """Take the medians of the times that nbclient measured; the first run of all filled the caches."""
    bare, profiled = sorted(folder.glob("bare*.ipynb"))[1:], sorted(folder.glob("run*-executed.ipynb"))
    row.seconds = round(statistics.median(map(_seconds, profiled)), 2)
    row.slower_percent = _more(map(_seconds, profiled), map(_seconds, bare))
    row.cpu_percent = _more(map(_cpu_seconds, profiled), map(_cpu_seconds, bare))
    loads = [load for path in folder.glob("*.facts") for load in json.loads(path.read_text())["load"]]
    row.load = f"{min(loads):.1f} to {max(loads):.1f}"


def _cells(path: Path) -> list[Any]:
    notebook: Any = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _seconds(path: Path) -> float:
    return sum(map(cell_seconds, _cells(path)))


def _cpu_seconds(path: Path) -> float:
    last: Any = _cells(path)[-1]
    return float(last.outputs[0]["data"]["text/plain"]) if last.source == alarms.CPU_TIME and last.outputs else 0.0


def _more(profiled: Iterable[float], bare: Iterable[float]) -> float:
    """Return by how many percent a median is more than another one; 0 where that one is not known."""
    alone = list(bare)
    if not alone or statistics.median(alone) <= 0:
        return 0.0
    return round(100 * (statistics.median(profiled) / statistics.median(alone) - 1), 1)


def right(rows: list[Totals]) -> bool:
    """Report whether the comparisons and their cells are as quiet as is stated, and no output differs."""
    comparisons, alarmed = sum(row.comparisons for row in rows), sum(row.alarms for row in rows)
    cells, cell_alarms = sum(row.cells_compared for row in rows), sum(row.cell_alarms for row in rows)
    quiet = alarmed <= (1 - LEAST_RIGHT) * comparisons and cell_alarms <= (1 - LEAST_RIGHT) * cells
    return quiet and comparisons > 0 and not any(row.outputs_different for row in rows)


def written(rows: list[Totals]) -> str:
    """Return the table of all notebooks."""
    names = [column.name for column in fields(Totals)]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(map(str, asdict(row).values())) + " |" for row in rows]
    sums: list[str] = []
    for name in names[1:]:
        values = [getattr(row, name) for row in rows]
        if name.endswith("_percent"):
            sums.append(alarms.interval(values))
        else:
            sums.append("" if name == "load" else str(round(sum(values), 1)))
    lines.append("| all | " + " | ".join(sums) + " |")
    return "\n".join(lines) + "\n"


def line(row: Totals) -> str:
    """Return one notebook's row, short."""
    return (
        f"{row.notebook}: {row.cells} cells, {row.seconds} s, load {row.load}; differences in {row.alarms} of "
        f"{row.comparisons} comparisons, {row.cell_alarms} of {row.cells_compared} cells; {row.edits_found} of "
        f"{row.edits} edits found; {row.outputs_different} of {row.outputs} outputs differ; "
        f"{row.slower_percent:+.1f} % of time, {row.cpu_percent:+.1f} % of CPU time"
    )


if __name__ == "__main__":
    main()
