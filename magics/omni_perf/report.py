"""A report as Python sees it: data, tables, files and something to display."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NotRequired, TypedDict, cast

from omni_perf import contract, document, program, remote
from omni_perf.program import PathLike, local
from omni_perf.tableview import DataFrame, Row, Table, data_frame

Draw = Callable[[str, bytes], bytes]
"""Makes a format ("svg", "html", "text", "bundle") of a report's compressed JSON."""


class DrawError(Exception):
    """A report could not be drawn; the text is a sentence for the user."""


class SaveError(OSError):
    """A report is not, or not whole, where it was to be saved; the text is a sentence."""


class TraceError(Exception):
    """A trace could not be merged into a report; the text is a sentence for the user."""


@dataclass(frozen=True)
class Figures:
    """A report in a few numbers, as :meth:`Report.figures` gives it."""

    name: str
    headline: str
    values: dict[str, float]
    """By name, which ends in the unit; what is not known is absent."""


class _Saved(TypedDict):
    """What ``omni-perf export --json`` prints."""

    written: list[str]
    saved: list[str]
    error: NotRequired[str]


TITLES = {
    "lines": "Lines of your own code",
    "functions": "Functions",
    "blocked": "What threads were blocked on",
    "awaits": "Where tasks of event loops waited",
    "memory": "Growth of resident memory",
    "memory_functions": "Growth of resident memory by function",
    "gpu_memory": "Growth of memory on GPUs",
    "torch_memory": "What torch's allocator said",
    "allocations": "Allocations by line",
    "threads": "Threads",
    "idle": "What the GPUs waited for",
    "devices": "GPUs",
    "findings": "What is worth knowing",
    "steps": "Training steps",
    "regions": "Regions",
    "operators": "Operators of torch",
    "kernels": "What ran on devices",
    "traces": "Traces of torch.profiler",
    "out_of_memory": "Allocations on devices that failed",
    "device_memory": "What had a device's memory then",
    "processes": "Processes",
    "tracks": "Figures over time",
    "notes": "Notes",
}


@dataclass(frozen=True)
class Report:
    """A recorded cell, script or process. The data are held here, so they outlive the sidecar.

    ``tables`` has everything with names resolved, ``to_pandas(name)`` one table as a DataFrame,
    ``to_dict()`` the document, ``save(name)`` writes files. As the last value of a cell it
    displays its chart.
    """

    report_id: str
    headline: str
    """What to read first, a sentence or two."""
    compressed: bytes = field(repr=False)
    """The report document, JSON in gzip, as sidecar/understand/report/report.schema.json describes it."""
    bundle: contract.Bundle = field(repr=False)
    """The display bundle made at the cell's end; empty if none was wanted."""
    draw: Draw = field(repr=False, compare=False)
    number: int = 0
    """Execution count of the cell; 0 for anything else."""

    @cached_property
    def _document(self) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(gzip.decompress(self.compressed)))

    def to_dict(self) -> dict[str, Any]:
        """Return the report document: times are integers of nanoseconds, what is unknown is None."""
        return cast("dict[str, Any]", json.loads(gzip.decompress(self.compressed)))

    @property
    def name(self) -> str:
        """What was recorded: "Cell [7]", "train.py"; or what the user called it."""
        return str(self._document["name"] or self._document["targets"][0]["name"])

    @property
    def duration_s(self) -> float:
        """Seconds from the recording's begin to its end."""
        return self._document["duration_ns"] / 1e9

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name; each is a sequence of dicts, one per row, that displays itself.

        Columns (seconds end in ``_s``, shares are 0 to 1, what is unknown is None; ``process`` is
        "role pid"; ``state_s`` maps python, native, waiting, io, gil, off, unknown to seconds):

        ============  ========================================================================
        lines         file, line, text, self_s, total_s, gc_s, idle_s, incomplete_s, state_s,
                      process: your own lines
        functions     function, file, line, kind, self_s, total_s, incomplete_s, state_s, process
        blocked       file, line, function, text, call, kind, object, blocked_s, main_s, longest_s,
                      times, connections, owner_pid, process, holder_file, holder_line, held_s: what
                      threads were blocked on in system calls, and for other threads and processes
        memory        file, line, function, text, grown_bytes, uncertain_bytes, at_peak_bytes,
                      process: growth of resident memory; memory_functions: by function
        gpu_memory    device, file, line, function, text, grown_bytes, uncertain_bytes, process:
                      growth on GPUs by the driver's figures; torch_memory: what torch said
        allocations   file, line, text, peak_bytes, peak_allocations, kept_bytes, function, process:
                      of %%omni_perf --memory exact
        threads       name, role, process, rank, native_id, main, internal, state_s, on_cpu_s, …
        idle          cause, name, kind, device, seconds, share, low_s, high_s, file, line,
                      function, text, hint: of each GPU, adding up to its idle time
        devices       device, uuid, name, busy_s, idle_s, unknown_s, used, source, resolution_s, …
        findings      id, severity, text, hint, file, line, function, value, unit, cost_s
        steps         start_s, end_s, name, epoch, data_wait_s, busy_s, idle_s, collective_s, source,
                      process, rank, samples, tokens
        loaders       batch_size, workers, drop_last, batches_per_step, epochs, steps,
                      counted_steps, ready_mean, ready_median, ready_most, queue_empty,
                      worker_batch_s, slowest_worker_batch_s, process, rank: of torch, that processes train with
        ranks         rank, process, known_s, computing_s, steps, step_s, collectives_s
        rank_lines    file, line, text, ranks, median_s, p95_s, rank, most_s, steps, above,
                      low_s, high_s, more: ranks by their time in a line per step
        regions       name, count, total_s, p50_s, p95_s, process
        operators     name, input_shapes, calls, self_cpu_s, total_cpu_s, self_device_s,
                      total_device_s, self_cpu_bytes, self_device_bytes, flops, process
        kernels       name, kind, count, total_s, mean_s, min_s, max_s, process
        traces        file, start_s, end_s, steps, events, error_s, damaged, process: of
                      torch.profiler, of which operators and kernels are
        out_of_memory at_s, device, requested_bytes, usable_bytes, free_bytes, reserved_bytes,
                      in_use_bytes, …, file, line, text, process: allocations that failed
        device_memory failure, by, name, kind, bytes, tensors, shape, file, line, function,
                      text: what had the device's memory then
        processes     pid, parent, role, command, rank, start_s, end_s, end_reason, exit_code,
                      cpu_s, stacks: "read", or why they were not; exception, message, file,
                      line: of what ended its Python program; memory
        tracks        id, name, kind, unit, device, process, thread, t_s, value, mean, peak, …
        notes         id, text: what could not be read, or less exactly than asked
        ============  ========================================================================

        VersionError (a ValueError) says that another version of omni_perf made the document.
        """
        made = document.tables(self._document)
        return MappingProxyType(
            {
                name: Table(name, TITLES.get(name, name), "", list(rows[0]) if rows else [], rows)
                for name, rows in made.items()
            }
        )

    def __getitem__(self, table: str) -> Table:
        """Return a table; KeyError names those there are."""
        if table not in self.tables:
            raise KeyError(f"There is no table {table!r}; the tables are {', '.join(self.tables)}.")
        return self.tables[table]

    def to_pandas(self, table: str) -> DataFrame:
        """Return a table as a pandas DataFrame.

        ``state_s`` becomes a column per state, ``state_s.python``; tracks have a row per point.
        KeyError says that there is no such table, ImportError that there is no pandas.
        """
        rows = [_flat(row) for row in self[table]]
        frame = data_frame(rows, list(rows[0]) if rows else self[table].columns)
        return frame.explode(["t_s", "value"], ignore_index=True) if table == "tracks" and rows else frame

    def merge_trace(self, path: PathLike) -> Report:
        """Return this report with a torch.profiler trace that was taken meanwhile merged into it.

        The kernels stand by stream under the flame chart, and idle time is exact in place of
        sampled; a note says how exactly the trace's place in the recording is known. A folder
        means the trace in it that fits. TraceError says why none could be merged.
        """
        arguments = ["export", "-", "--format", "json", "-o", "/dev/stdout", "--merge-trace", local(path)]
        try:
            done = program.run(arguments, self.compressed)
        except program.ProgramError as error:
            raise TraceError(str(error)) from error
        if done.returncode != 0:
            raise TraceError(_complaint(done.stderr))
        return _made_of(done.stdout, self.number)

    def figures(self) -> Figures:
        """Return the report in a few numbers, those that ``omni-perf export --format figures`` writes.

        ``duration_s``, ``cpu_s`` (of all processes), ``gpu_idle_s`` and ``gpu_known_s`` (of the GPUs in use),
        ``gpu_energy_j``, ``peak_memory_bytes`` or ``peak_memory_at_least_bytes``, ``kept_memory_bytes``, and of a
        training ``steps``, ``steps_per_s``, ``samples_per_s``, ``tokens_per_s``, ``step_median_s``, ``step_p95_s``,
        ``data_wait_s``. DrawError says why there are none.
        """
        made = cast("dict[str, Any]", json.loads(_draw_by_program("figures", self.compressed)))
        return Figures(made["name"], made["headline"], made["figures"])

    def log_to(self, target: object, step: int | None = None) -> dict[str, float]:
        """Log the figures, the headline and the page of this report to a tracker of experiments; return the figures.

        The target is a run of W&B or "wandb", which means the active run; the module mlflow or "mlflow"; or a
        SummaryWriter of TensorBoard or its folder. The names begin with ``omni_perf/``. SinkError says why the
        report was not taken, and what to install where a package is missing.
        """
        from omni_perf import sinks

        return sinks.log(self, target, step)

    def save(self, name: PathLike, *formats: str) -> list[str]:
        """Write result files as ``omni-perf run -o NAME --format …`` does; return their paths.

        Without formats, a name that ends like one of them (.svg, .html, .json, .pb.gz …) is
        that one file, and NAME.svg and NAME.html else. The format "csv" goes alone: NAME is a
        folder of a file per table. The data need no sidecar. SaveError says what is not where.
        A URL that fsspec knows, s3://bucket/NAME, is such a name, too.
        """
        if remote.is_url(name):
            return self._save_remotely(str(name), formats)
        arguments = ["export", "-", "--json", "-o" if formats == ("csv",) else "--name", local(name)]
        if formats:
            arguments += ["--format", ",".join(formats)]
        try:
            done = program.run(arguments, self.compressed, capture_stdout=False)
        except program.ProgramError as error:
            raise SaveError(str(error)) from error
        said = done.stderr.decode(errors="replace").strip()
        try:
            answer = cast("_Saved", json.loads(said))
        except ValueError:
            raise SaveError(said or f"omni-perf ended with code {done.returncode} and said nothing.") from None
        if answer.get("error"):
            raise SaveError(answer.get("error"))
        return answer["written"]

    def _save_remotely(self, url: str, formats: tuple[str, ...]) -> list[str]:
        """Write the files here and copy them there; where that fails they stay here."""
        place, slash, name = url.rpartition("/")
        folder = tempfile.mkdtemp(prefix="omni_perf_save_")
        self.save(os.path.join(folder, name), *formats)
        try:
            written = remote.put(folder, place + slash)
        except remote.RemoteError as error:
            raise SaveError(f"{error} The files are in {folder}.") from error
        shutil.rmtree(folder)
        return written

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Answer IPython's display protocol: the whole chart, which the cell's own output may be less than.

        Without a sidecar to draw it that output is what there is, and a sentence where there is none.
        """
        try:
            drawn = cast("dict[str, dict[str, Any]]", json.loads(self.draw("bundle", self.compressed)))
        except DrawError as error:
            if self.bundle:
                return bundle_part(self.bundle, "dataJson"), bundle_part(self.bundle, "metadataJson")
            return {"text/plain": f"{self.headline}\nThe chart could not be drawn: {error}"}, {}
        return drawn["data"], drawn["metadata"]


def read(path: PathLike) -> Report:
    """Read a report that was saved as JSON, by ``save("NAME.json")`` or ``omni-perf run --format json``.

    OSError says that the file cannot be read, VersionError (a ValueError) that it is no report,
    one of another version, damaged, or beyond the limits of docs/report.md. The program reads
    it, in bounded memory whatever its size; what is kept is a report as this version has it.
    """
    if remote.is_url(path):
        with tempfile.TemporaryDirectory(prefix="omni_perf_read_") as folder:
            here = os.path.join(folder, "report")
            remote.get(str(path), here)
            return read(here)
    with open(local(path), "rb") as file:
        try:
            done = program.run(["export", "-", "--format", "json", "-o", "/dev/stdout"], file)
        except program.ProgramError as error:
            raise OSError(str(error)) from error
    if done.returncode != 0:
        why = _complaint(done.stderr).removeprefix("Cannot take the report from standard input: ")
        raise document.VersionError(f"{os.fspath(path)}: {why}")
    return _made_of(done.stdout, 0)


def read_bytes(text: bytes) -> Report:
    """Return a report of JSON that the program has written."""
    return _made_of(text, 0)


def _made_of(text: bytes, number: int) -> Report:
    """Make a report of a document's JSON that the program has written."""
    made = document.check(json.loads(text))
    headline = str(made["headline"]["text"])
    return Report("", headline, gzip.compress(text, 1), contract.Bundle(), _draw_by_program, number)


def _draw_by_program(form: str, compressed: bytes) -> bytes:
    """Draw without a sidecar: a picture, in the bundle as in a file."""
    arguments = ["export", "-", "--format", "svg" if form == "bundle" else form, "-o", "/dev/stdout"]
    try:
        done = program.run(arguments, compressed)
    except program.ProgramError as error:
        raise DrawError(str(error)) from error
    if done.returncode != 0:
        raise DrawError(_complaint(done.stderr))
    if form != "bundle":
        return done.stdout
    headline = json.loads(gzip.decompress(compressed))["headline"]["text"]
    picture = f'<img src="data:image/svg+xml;base64,{base64.b64encode(done.stdout).decode()}">'
    return json.dumps({"data": {"text/html": picture, "text/plain": headline}, "metadata": {}}).encode()


def _complaint(said: bytes) -> str:
    """Return the last line of what the program said."""
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("omni-perf: ") if lines else "omni-perf failed and said nothing."


def _flat(row: Row) -> Row:
    """Give each key of a mapping in a row a column of its own."""
    flat: Row = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": figure for inner, figure in cast("Row", value).items()})
        else:
            flat[key] = value
    return flat


def bundle_part(bundle: contract.Bundle, part: str) -> dict[str, Any]:
    """Return a part of a bundle as the object it encodes."""
    text = cast("dict[str, str]", bundle).get(part)
    return cast("dict[str, Any]", json.loads(text)) if text else {}


@dataclass(frozen=True)
class Died:
    """What is known of the kernel before this one, which died in a cell."""

    text: str
    report: Report
    """Of the cell."""


@dataclass
class Kept:
    """What ``omni_perf.last()`` returns, and the last report of a kernel that died."""

    last: Report | None = None
    died: Died | None = None


kept = Kept()
