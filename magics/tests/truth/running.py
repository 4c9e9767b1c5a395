"""Runs cases and gives what their clocks and their profiles say."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernels import Kernel
from reading import reading

from truth import marking
from truth.cases import SCRIPT, Case, Text
from truth.judging import Comparison
from truth.marking import Place, Places

CHECKOUT = Path(__file__).parents[3]
ENVIRONMENTS = CHECKOUT / ".cache" / "kernels"
EXTENSION = CHECKOUT / "magics"
BINARY = CHECKOUT / ".venv" / "bin" / "omni-perf"

PATIENCE_S = 120.0

KEPT = 0.85
"""Share of the ticks that the sampler must have got: on a machine that had no CPU for it for a tenth of a
second, a repetition shows nothing about lines."""

ATTEMPTS = 4

Judged = tuple[dict[Place, float], dict[str, Any]]
"""Seconds by line as the marks have them, and the report."""

Results = dict[str, Comparison]
"""By case; the profiled cells of one together."""


def kernel(environment: str, folder: Path) -> Kernel:
    """Start a kernel of .cache/kernels with this checkout's extension."""
    python = ENVIRONMENTS / environment / "bin" / "python"
    return Kernel(_variables(), python=python, folder=folder)


def has(environment: str, module: str) -> bool:
    """Whether the environment has a module."""
    python = ENVIRONMENTS / environment / "bin" / "python"
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def _variables() -> dict[str, str]:
    return {"PYTHONPATH": str(EXTENSION), "OMNI_PERF_BINARY": str(BINARY), "MPLBACKEND": ""}


@dataclass
class Marked:
    """A case with marks: the texts of its files and cells."""

    places: Places
    files: dict[str, str]
    cells: list[Text]

    @classmethod
    def of(cls, case: Case) -> Marked:
        places = Places()
        texts = [*case.files, *case.cells]
        own = marking.own_names(text.source for text in texts if not text.by_hand)

        def mark(text: Text, ends: bool) -> str:
            if text.by_hand:
                return marking.by_hand(text.source, text.name, places)
            return marking.marked(text.source, text.name, places, own, ends)

        files = {text.name: mark(text, False) for text in case.files}
        cells = [Text(cell.name, mark(cell, cell.profiled), cell.by_hand) for cell in case.cells]
        return cls(places, files, cells)


class Notebook:
    """A kernel with cells that keep their clock."""

    def __init__(self, kernel: Kernel, folder: Path) -> None:
        self._kernel = kernel
        self._folder = folder
        self._must(kernel.silently(marking.PRELUDE + marking.SHELL))

    def run(self, case: Case) -> Iterator[Judged]:
        """Run a case; give for each profiled cell its seconds by line, and its report, whose files have
        the names of the case."""
        marked = Marked.of(case)
        for name, text in marked.files.items():
            path = self._folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        names: dict[str, str] = {}
        for cell in marked.cells:
            self._must(self._kernel.silently("_marks.clear()"))
            ran = self._kernel.run(cell.source, PATIENCE_S)
            assert ran.reply["status"] == "ok" or " error " in f" {case.name} ", ran.outputs
            names[f"Cell [{ran.reply['execution_count']}]"] = cell.name
            if cell.profiled:
                marks, report = self._result()
                for line in report["lines"]:
                    line["file"] = names.get(line["file"]) or self._name(line["file"])
                    if (line["text"] or "").startswith("%%"):  # the magic's own work, which no mark can stand for
                        line["line"] = 0
                yield marked.places.seconds(marks), report

    def _name(self, shown: str) -> str:
        path = Path(shown).expanduser()
        return str(path.relative_to(self._folder)) if path.is_relative_to(self._folder) else shown

    def _result(self) -> tuple[list[int], dict[str, Any]]:
        path = self._folder / "result.json"
        self._must(
            self._kernel.silently(
                f"import json as _json, omni_perf as _omni_perf\n"
                f"with open({str(path)!r}, 'w') as _out:\n"
                f"    _json.dump([_marks, _omni_perf.last().to_dict()], _out)\n"
            )
        )
        marks, report = json.loads(path.read_text())
        return marks, reading(report)

    @staticmethod
    def _must(ran: Any) -> None:
        assert ran.reply["status"] == "ok", ran.reply


def starved(report: dict[str, Any]) -> bool:
    """Whether the sampler could not keep its interval."""
    sampling = report["sampling"]
    return sampling["ticks"] * sampling["asked_ns"] / 1e9 < KEPT * report["duration_s"]


def compare(results: Results, name: str, truth: dict[Place, float], report: dict[str, Any]) -> None:
    """Add a report to the results."""
    profile: dict[Place, float] = {}
    for line in report["lines"]:
        place = line["file"], line["line"]
        profile[place] = profile.get(place, 0.0) + line["self_s"]
    comparison = results.setdefault(name, Comparison())
    comparison.add(truth, profile, report["duration_s"], report["sampling"]["ticks"])


def sampled(run: Callable[[], list[Judged]]) -> list[Judged]:
    """Run, again where the sampler was starved."""
    for _ in range(ATTEMPTS - 1):
        done = run()
        if not any(starved(report) for _, report in done):
            return done
    return run()


def run_cells(results: Results, notebook: Notebook, case: Case) -> None:
    """Run a case once in a notebook."""
    for truth, report in sampled(lambda: list(notebook.run(case))):
        compare(results, case.name, truth, report)


def run_script(results: Results, environment: str, case: Case, folder: Path) -> bool:
    """Run a case once as a script; False where it needs a notebook."""
    source = case.script()
    if source is None:
        return False
    for truth, report in sampled(lambda: [_run_script(environment, case, source, folder)]):
        compare(results, case.name, truth, report)
    return True


def _run_script(environment: str, case: Case, source: str, folder: Path) -> Judged:
    script = Case(case.name, [Text(SCRIPT, source)], case.files, case.needs)
    marked = Marked.of(script)
    place = folder / "script"
    place.mkdir(exist_ok=True)
    for name, text in {**marked.files, SCRIPT: marked.cells[0].source}.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    site = folder / "site-packages"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(
        marking.PRELUDE
        + f"import atexit, json\natexit.register(lambda: json.dump(_marks, open({str(folder / 'marks.json')!r}, 'w')))\n"
    )
    python = ENVIRONMENTS / environment / "bin" / "python"
    command = [BINARY, "run", "-o", folder / "result", "--format", "json", "--interpreter", python, SCRIPT]
    done = subprocess.run(
        list(map(str, command)), cwd=place, env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    report = reading(json.loads((folder / "result.json").read_text()))
    for line in report["lines"]:
        shown = Path(line["file"]).expanduser()
        line["file"] = str(shown.relative_to(place)) if shown.is_relative_to(place) else line["file"]
    return marked.places.seconds(json.loads((folder / "marks.json").read_text())), report
