"""Analyses of torch.profiler traces in a notebook: the program computes, this shows.

The traces are read by ``omni-perf analyze``, in a process of its own: the kernel's memory
holds the resulting tables only.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypedDict, cast

from omni_perf import program
from omni_perf.program import PathLike, local
from omni_perf.tableview import DataFrame, Table, data_frame


class AnalysisError(Exception):
    """The analysis failed; the text is a sentence for the user."""


_KIND, _VERSION = "omni_perf.analysis", 2
"""What a document says it is: sidecar/traces/analysis.schema.json."""


class _Column(TypedDict):
    name: str
    hta: str


class _Table(TypedDict):
    name: str
    title: str
    note: str
    columns: list[_Column]


class _Display(TypedDict):
    bundle: dict[str, str]
    tables: list[_Table]


@dataclass(frozen=True)
class Analysis:
    """Tables and charts of one analysis; displays itself as the last value of a cell.

    It is the same kind of object as a report: ``headline``, ``tables``, ``to_pandas(name)``,
    ``to_dict()``, ``save(name)``.
    """

    document: bytes = field(repr=False)
    """The JSON of ``omni-perf analyze --json``, not yet parsed."""
    display: _Display = field(repr=False)
    request: tuple[str, ...] = field(default=(), repr=False)
    """The arguments that it was made with, which save() gives again."""

    @cached_property
    def _parsed(self) -> dict[str, Any]:
        return _checked(json.loads(self.document))

    @property
    def headline(self) -> str:
        """What matters most, in one sentence."""
        return str(self._parsed["headline"]["text"])

    def to_dict(self) -> dict[str, Any]:
        """Return the whole document, which analysis.schema.json in this package describes."""
        return self._parsed

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, in order of reading.

        Each is a sequence of dicts, one per row, that displays its first rows. Units are in the
        columns' names: ``_us`` microseconds, ``_bytes`` bytes, ``_gbps`` GB/s, ``_share`` 0 to 1,
        ``_pctg`` percent in the tables that HolisticTraceAnalysis has, too. What is unknown or
        does not exist is None.
        """
        return MappingProxyType(
            {
                about["name"]: Table(
                    about["name"],
                    about["title"],
                    about["note"],
                    [column["name"] for column in about["columns"]],
                    cast("list[dict[str, Any]]", self._parsed[about["name"]]),
                )
                for about in self.display["tables"]
                if about["name"] in self._parsed
            }
        )

    @property
    def warnings(self) -> list[str]:
        """What was damaged in the input and what that cost, one sentence each."""
        return [_sentence(warning) for warning in self._parsed["warnings"]]

    def __getitem__(self, table: str) -> Table:
        """Return a table; AnalysisError names those there are."""
        if table not in self.tables:
            raise AnalysisError(f"There is no table {table!r}; the tables are {', '.join(self.tables)}.")
        return self.tables[table]

    def to_pandas(self, table: str, hta_names: bool = False) -> DataFrame:
        """Return a table as a pandas DataFrame, with the columns' names as in ``tables``.

        With hta_names they are those of HolisticTraceAnalysis. AnalysisError says that there is
        no such table, or no pandas.
        """
        rows = self[table]
        try:
            made = data_frame(rows, rows.columns)
        except ImportError as error:
            raise AnalysisError(str(error)) from None
        if hta_names:
            about = next(about for about in self.display["tables"] if about["name"] == table)
            made.columns = [column["hta"] for column in about["columns"]]
        return made

    def save(self, name: PathLike, *formats: str) -> list[str]:
        """Write NAME.html and NAME.json, or the formats named; return their paths.

        Formats are "html", "json" and "csv", a folder NAME of a file per table. A name that ends
        in .html or .json is that one file. The traces are read again; AnalysisError says what
        could not be written.
        """
        path = local(name)
        ending = os.path.splitext(path)[1].removeprefix(".")
        if not formats and ending in ("html", "json"):
            files = {ending: path}
        else:
            files = {form: path if form == "csv" else f"{path}.{form}" for form in formats or ("html", "json")}
        if unknown := [form for form in files if form not in ("html", "json", "csv")]:
            raise AnalysisError(f"There is no format {unknown[0]!r}; the formats are html, json and csv.")
        asked = [argument for form, file in files.items() for argument in (f"--{form}", file)]
        _run(["analyze", "--quiet", *asked, *self.request])
        return list(files.values())

    def compare(self, after: Analysis | PathLike) -> Analysis:
        """Analyse a later run's traces against these and return that, as ``analyze(after, against=…)`` does.

        Its first sentence is about the steps; the table ``changes`` has what differs. Options are
        those that this analysis was made with. Both are read again, each from one file or folder.
        """
        at = self.request.index("--")
        later = after.request[after.request.index("--") + 1 :] if isinstance(after, Analysis) else (local(after),)
        earlier = self.request[at + 1 :]
        if len(earlier) != 1 or len(later) != 1:
            raise AnalysisError(
                "Runs are compared that are one file, folder or glob each: put a run's traces into a folder."
            )
        options = list(self.request[:at])
        for name in ("--memory-snapshot", "--against"):
            if name in options:
                value = options.index(name)
                del options[value : value + 2]
        return _analysis((*options, "--against", *earlier, "--", *later), [])

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Answer IPython's display protocol."""
        return dict(self.display["bundle"]), {}


def analyze(
    *paths: PathLike,
    mode: str = "exact",
    ranks: Iterable[int] | None = None,
    steps: Iterable[int] | None = None,
    last_step: bool = False,
    shapes: bool = False,
    critical_path: bool = False,
    tables: Iterable[str] | None = None,
    memory_snapshot: PathLike | None = None,
    memory_against: PathLike | None = None,
    memory_window: str | None = None,
    against: PathLike | None = None,
    html: PathLike | None = None,
    csv: PathLike | None = None,
    merged: PathLike | None = None,
    summary: PathLike | None = None,
) -> Analysis:
    """Analyse torch.profiler traces: files, folders or globs, and a memory snapshot.

    mode is "exact", "hta" (the rules of HolisticTraceAnalysis, its faults included) or
    "hta-ns". ranks and steps keep only those; last_step counts the last profiler step too.
    critical_path finds what the length of the steps depends on. memory_against is another snapshot,
    memory_window a part of the snapshot's history, as in "1.2s-1.5s".
    against is an earlier run: the table changes has what differs, collectives_by_run the collectives.
    html, csv, merged and summary name what is to be written besides.
    """
    arguments = ["--mode", mode]
    for name, numbers in (("--ranks", ranks), ("--steps", steps)):
        if numbers is not None:
            arguments += [name, ",".join(str(int(number)) for number in numbers)]
    if tables is not None:
        arguments += ["--tables", ",".join(tables)]
    for name, wanted in (("--last-step", last_step), ("--shapes", shapes), ("--critical-path", critical_path)):
        if wanted:
            arguments.append(name)
    for name, path in (
        ("--memory-snapshot", memory_snapshot),
        ("--memory-against", memory_against),
        ("--against", against),
    ):
        if path is not None:
            arguments += [name, local(path)]
    if memory_window is not None:
        arguments += ["--memory-window", memory_window]
    files: list[str] = []
    for name, path in (("--html", html), ("--csv", csv), ("--merged", merged), ("--summary", summary)):
        if path is not None:
            files += [name, local(path)]
    return _analysis((*arguments, "--", *map(local, paths)), files)


def _analysis(request: tuple[str, ...], files: list[str]) -> Analysis:
    """Run what is requested; files are arguments of what is to be written besides."""
    with tempfile.TemporaryDirectory(prefix="omni_perf_analyze_") as folder:
        shown = os.path.join(folder, "display.json")
        document = _run(["analyze", "--json", "-", "--display", shown, *files, *request])
        try:
            with open(shown, encoding="utf-8") as file:
                return Analysis(document, cast(_Display, json.load(file)), request)
        except OSError as error:
            raise AnalysisError(f"The charts could not be handed over in {folder}: {error.strerror}.") from error


def make_traces(folder: PathLike, **options: object) -> str:
    """Write made-up traces of a training run into a folder, to try analyze() on.

    Options are those of ``omni-perf make-traces``: ranks=8, steps=6, seed=1, straggler=5 …
    """
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    return _run(["make-traces", *arguments, "--", local(folder)]).decode().strip()


def _checked(document: object) -> dict[str, Any]:
    """Return a document of this version; AnalysisError says what else it is."""
    parsed = cast("dict[str, Any]", document if isinstance(document, dict) else {})
    if str(parsed.get("schema", "")).startswith("omni-perf.analyze/"):  # of version 1
        parsed = {"document": _KIND, "version": 1}
    version = parsed.get("version")
    if parsed.get("document") != _KIND or not isinstance(version, int):
        raise AnalysisError("It is no analysis of omni_perf.")
    if version < _VERSION:
        raise AnalysisError("The analysis was recorded by an older version of omni_perf: record again.")
    if version > _VERSION:
        raise AnalysisError("The analysis was recorded by a newer version of omni_perf: update this one.")
    return parsed


def _sentence(warning: dict[str, Any]) -> str:
    place = "" if warning["file"] is None else warning["file"]
    if warning["byte"] is not None:
        place += f", byte {warning['byte']}"
    lost = "" if warning["lost"] is None else f"; {warning['lost']}"
    return (f"{place}: " if place else "") + warning["what"] + lost


def _run(arguments: list[str]) -> bytes:
    """Run the program and return what it printed; its complaint becomes the error.

    A file that could not be written where it was asked for costs a warning, not the analysis.
    """
    try:
        done = program.run(arguments)
    except program.ProgramError as error:
        raise AnalysisError(str(error)) from error
    if done.returncode == 0:
        return done.stdout
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    complaint = lines[-1] if lines else f"it ended with code {done.returncode} and said nothing"
    complaint = complaint.removeprefix("omni-perf: ").removeprefix(f"omni-perf {arguments[0]}: ")
    complaint = complaint.removesuffix(f"; see omni-perf {arguments[0]} --help.")
    if done.returncode == program.MISPLACED and lines:
        warnings.warn(complaint, stacklevel=3)
        return done.stdout
    raise AnalysisError(complaint)
