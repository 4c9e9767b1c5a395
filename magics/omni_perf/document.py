"""The report document (report.schema.json) as tables with resolved names.

A document refers by index and counts in nanoseconds; a row here has names, source
text and seconds, so that nobody joins by hand. Unknown is None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

Document = dict[str, Any]
Row = dict[str, Any]

KIND = "omni_perf.report"
VERSION = 2


class VersionError(ValueError):
    """A document is of another version, or is none; the text is a sentence."""


def check(document: object) -> Document:
    """Return the document if it is a report of this version."""
    report = cast("Document", document) if isinstance(document, dict) else {}
    if "schema_version" in report or (report.get("document") == KIND and report.get("version", 0) < VERSION):
        raise VersionError("The report was recorded by an older version of omni_perf: record again.")
    if report.get("document") != KIND:
        raise VersionError("This is no report of omni_perf.")
    if report.get("version") != VERSION:
        raise VersionError("The report was recorded by a newer version of omni_perf: update this one.")
    return report


def headline(document: Document) -> str:
    """Return what to read first; empty where a document has no headline."""
    return str(cast("Row", document.get("headline") or {}).get("text", ""))


def tables(document: Document) -> dict[str, list[Row]]:
    """Return the tables of a report by name, each a list of rows.

    ``lines``, ``functions``, ``blocked``, ``awaits``, ``memory``, ``memory_functions``, ``gpu_memory``,
    ``torch_memory``, ``allocations``, ``threads``, ``idle``, ``devices``, ``findings``, ``steps``, ``phases``,
    ``slow_steps``, ``loaders``, ``regions``, ``ranks``, ``rank_lines``, ``operators``, ``kernels``, ``traces``,
    ``out_of_memory``, ``device_memory``,
    ``processes``, ``tracks`` and ``notes``. Names that end in ``_s`` are seconds, in ``_bytes``
    bytes; shares are 0 to 1; ``state_s`` is a mapping of state to seconds. Keys that a table
    lacks in this version may come in a later one.
    """
    names = _Names(check(document))
    makers: dict[str, Callable[[_Names], list[Row]]] = {
        "lines": _lines,
        "functions": _functions,
        "blocked": _blocked,
        "awaits": _awaits,
        "memory": _memory,
        "memory_functions": _memory_functions,
        "gpu_memory": _gpu_memory,
        "torch_memory": _torch_memory,
        "allocations": _allocations,
        "threads": _threads,
        "idle": _idle,
        "devices": _devices,
        "findings": _findings,
        "steps": _steps,
        "phases": _phases,
        "slow_steps": _slow_steps,
        "loaders": _loaders,
        "regions": _regions,
        "ranks": _ranks,
        "rank_lines": _rank_lines,
        "operators": _operators,
        "kernels": _kernels,
        "traces": _traces,
        "out_of_memory": _out_of_memory,
        "device_memory": _device_memory,
        "processes": _processes,
        "tracks": _tracks,
        "notes": _notes,
    }
    return {name: make(names) for name, make in makers.items()}


class _Names:
    """Resolves a document's indices."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.files: list[Row] = document["files"]
        self.states: list[str] = document["enumerations"]["state"]
        self.codes: list[str] = document["enumerations"]["code"]

    def file(self, index: int | None) -> str | None:
        return None if index is None else self.files[index]["name"]

    def text(self, file: int | None, line: int | None) -> str | None:
        """Return a source line without the space around it."""
        lines: list[str | None] = (None if file is None else self.files[file]["lines"]) or []
        found = lines[line - 1] if line is not None and 1 <= line <= len(lines) else None
        return None if found is None else found.strip()

    def function(self, index: int | None) -> str | None:
        if index is None:
            return None
        function = self.document["functions"][index]
        return function["label"] or function["name"]

    def process(self, index: int) -> str:
        process = self.document["processes"][index]
        if process["role"] == "rank" and process.get("rank") is not None:
            return f"rank {process['rank']} ({process['pid']})"
        return f"{process['role']} {process['pid']}"

    def device(self, index: int | None) -> int | None:
        return None if index is None else self.document["devices"][index]["number"]

    def state_s(self, nanoseconds: list[int]) -> dict[str, float]:
        return dict(zip(self.states, map(_seconds, nanoseconds), strict=True))

    def place(self, row: Row) -> Row:
        return {
            "file": self.file(row["file"]),
            "line": row["line"],
            "function": self.function(row["function"]),
        }

    def source_line(self, row: Row) -> Row:
        return {**self.place(row), "text": self.text(row["file"], row["line"])}


def _seconds(nanoseconds: int) -> float:
    return nanoseconds / 1e9


def _seconds_or_none(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


def _lines(names: _Names) -> list[Row]:
    return [
        {
            "file": names.file(row["file"]),
            "line": row["line"],
            "text": names.text(row["file"], row["line"]),
            "self_s": _seconds(row["self_ns"]),
            "total_s": _seconds(row["total_ns"]),
            "gc_s": _seconds(row.get("gc_ns", 0)),
            "idle_s": _seconds(row["idle_ns"]),
            "incomplete_s": _seconds(row.get("incomplete_ns", 0)),
            "state_s": names.state_s(row["state_ns"]),
            "process": names.process(row["process"]),
        }
        for row in names.document["lines"]
    ]


def _functions(names: _Names) -> list[Row]:
    functions = names.document["functions"]
    return [
        {
            "function": names.function(row["function"]),
            "file": names.file(functions[row["function"]]["file"]),
            "line": functions[row["function"]]["first_line"],
            "kind": names.codes[functions[row["function"]]["code"]],
            "self_s": _seconds(row["self_ns"]),
            "total_s": _seconds(row["total_ns"]),
            "incomplete_s": _seconds(row["incomplete_ns"]),
            "state_s": names.state_s(row["state_ns"]),
            "process": names.process(row["process"]),
        }
        for row in names.document["function_times"]
    ]


def _blocked(names: _Names) -> list[Row]:
    return [
        {
            **names.source_line(row),
            "call": row["call"],
            "kind": row["kind"],
            "object": row["object"],
            "blocked_s": _seconds(row["blocked_ns"]),
            "main_s": _seconds(row["main_ns"]),
            "longest_s": _seconds(row["longest_ns"]),
            "times": row["times"],
            "connections": row.get("connections"),
            "owner_pid": row.get("owner_pid"),
            "process": names.process(row["process"]),
            **_holder(names, row.get("holder")),
        }
        for row in names.document.get("blocked", [])
    ]


def _holder(names: _Names, holder: Row | None) -> Row:
    """Where the thread was that had a lock, or was to end."""
    if holder is None:
        return {"holder_file": None, "holder_line": None, "held_s": None}
    return {
        "holder_file": names.file(holder["file"]),
        "holder_line": holder["line"],
        "held_s": _seconds(holder["held_ns"]),
    }


def _awaits(names: _Names) -> list[Row]:
    return [
        {
            **names.source_line(row),
            "waiting_s": _seconds(row["waiting_ns"]),
            "some_s": _seconds(row["some_ns"]),
            "mean_tasks": row["waiting_ns"] / row["some_ns"] if row["some_ns"] else 0.0,
            "max_tasks": row["max_tasks"],
            "ready_s": _seconds(row.get("ready_ns", 0)),
            "process": names.process(row["process"]),
        }
        for row in names.document.get("awaits", [])
    ]


def _memory(names: _Names) -> list[Row]:
    return [
        {
            **names.source_line(row),
            "grown_bytes": row["grown_bytes"],
            "uncertain_bytes": row["uncertain_bytes"],
            "at_peak_bytes": row.get("at_peak_bytes", 0),
            "process": names.process(row["process"]),
        }
        for row in names.document.get("memory", [])
    ]


def _memory_functions(names: _Names) -> list[Row]:
    functions = names.document["functions"]
    return [
        {
            "function": names.function(row["function"]),
            "file": names.file(functions[row["function"]]["file"]),
            "line": functions[row["function"]]["first_line"],
            "kind": names.codes[functions[row["function"]]["code"]],
            "self_bytes": row["self_bytes"],
            "grown_bytes": row["total_bytes"],
            "uncertain_bytes": row["uncertain_bytes"],
            "process": names.process(row["process"]),
        }
        for row in names.document.get("memory_functions", [])
    ]


def _gpu_memory(names: _Names) -> list[Row]:
    return [
        {
            "device": names.device(row["device"]),
            **names.source_line(row),
            "grown_bytes": row["grown_bytes"],
            "uncertain_bytes": row["uncertain_bytes"],
            "process": names.process(row["process"]),
        }
        for row in names.document.get("gpu_memory", [])
    ]


def _torch_memory(names: _Names) -> list[Row]:
    columns = (
        "device",
        "allocated_before_bytes",
        "allocated_bytes",
        "reserved_before_bytes",
        "reserved_bytes",
        "peak_bytes",
        "peak_at_least_bytes",
    )
    return [
        {**{name: row[name] for name in columns}, "process": names.process(row["process"])}
        for row in names.document.get("torch_memory", [])
    ]


def _allocations(names: _Names) -> list[Row]:
    recorded = names.document.get("allocations")
    if not recorded:
        return []
    return [
        {
            "file": names.file(row["file"]),
            "line": row["line"],
            "text": names.text(row["file"], row["line"]),
            "peak_bytes": row["peak_bytes"],
            "peak_allocations": row["peak_allocations"],
            "kept_bytes": row["kept_bytes"],
            "function": row["function"],
            "process": names.process(recorded["process"]),
        }
        for row in recorded["lines"]
    ]


def _operators(names: _Names) -> list[Row]:
    return [
        {
            "name": row["name"],
            "input_shapes": row["input_shapes"],
            "calls": row["calls"],
            "self_cpu_s": _seconds(row["self_cpu_ns"]),
            "total_cpu_s": _seconds(row["total_cpu_ns"]),
            "self_device_s": _seconds_or_none(row["self_device_ns"]),
            "total_device_s": _seconds_or_none(row["total_device_ns"]),
            "self_cpu_bytes": row["self_cpu_bytes"],
            "self_device_bytes": row["self_device_bytes"],
            "flops": row["flops"],
            "process": names.process(row["process"]),
        }
        for row in names.document.get("operators", [])
    ]


def _kernels(names: _Names) -> list[Row]:
    return [
        {
            "name": row["name"],
            "kind": row["kind"],
            "count": row["count"],
            "total_s": _seconds(row["total_ns"]),
            "mean_s": _seconds(row["total_ns"]) / max(1, row["count"]),
            "min_s": _seconds(row["min_ns"]),
            "max_s": _seconds(row["max_ns"]),
            "process": names.process(row["process"]),
        }
        for row in names.document.get("kernel_times", [])
    ]


def _traces(names: _Names) -> list[Row]:
    return [
        {
            "file": row["file"],
            "start_s": _seconds(row["start_ns"]),
            "end_s": _seconds(row["end_ns"]),
            "steps": row["steps"],
            "events": row["events"],
            "error_s": _seconds(row["error_ns"]),
            "damaged": row["damaged"],
            "process": names.process(row["process"]),
        }
        for row in names.document.get("traces", [])
    ]


_RESERVED = (
    ("reserved_bytes", "bytes"),
    ("segments", "segments"),
    ("in_use_bytes", "in_use_bytes"),
    ("awaiting_free_bytes", "awaiting_free_bytes"),
    ("reserved_free_bytes", "free_bytes"),
    ("largest_free_bytes", "largest_free_bytes"),
    ("releasable_bytes", "releasable_bytes"),
)
"""Columns, and what they are called in a failure's part."""


def _out_of_memory(names: _Names) -> list[Row]:
    return [
        {
            "at_s": _seconds(row["at_ns"]),
            "device": row["device"],
            "requested_bytes": row["requested_bytes"],
            "usable_bytes": row["usable_bytes"],
            "free_bytes": row["free_bytes"],
            **{column: row["reserved"] and row["reserved"][member] for column, member in _RESERVED},
            "file": names.file(row["file"]),
            "line": row["line"],
            "text": names.text(row["file"], row["line"]),
            "process": names.process(row["process"]),
        }
        for row in names.document.get("out_of_memory", [])
    ]


def _device_memory(names: _Names) -> list[Row]:
    return [
        {
            "failure": number,
            "by": by,
            "name": row.get("name"),
            "kind": row.get("kind"),
            "bytes": row["bytes"],
            "tensors": row["tensors" if by == "variable" else "blocks"],
            "shape": row.get("shape"),
            "file": names.file(row["file"]),
            "line": row["line"],
            "function": row["function"],
            "text": names.text(row["file"], row["line"]),
        }
        for number, failure in enumerate(names.document.get("out_of_memory", []))
        for by, rows in (("variable", failure["variables"]), ("line", failure["allocators"]))
        for row in rows
    ]


def _threads(names: _Names) -> list[Row]:
    processes = names.document["processes"]
    return [
        {
            "name": row["name"],
            "role": processes[row["process"]]["role"],
            "process": names.process(row["process"]),
            "rank": processes[row["process"]]["rank"],
            "native_id": row["native_id"],
            "main": row["main"],
            "internal": row["internal"],
            "state_s": names.state_s(row["state_ns"]),
            "on_cpu_s": _seconds_or_none(row["on_cpu_ns"]),
            "on_cpu_at_least": row["on_cpu_at_least"],
        }
        for row in names.document["threads"]
    ]


def _idle(names: _Names) -> list[Row]:
    """Return the causes of each device's idle time; seconds add up to the idle time."""
    idle: Row | None = names.document["idle"]
    devices: list[Row] = idle["devices"] if idle else []
    return [
        {
            "cause": row["id"],
            "name": row["text"],
            "kind": row["kind"],
            "device": names.device(device["device"]),
            "seconds": _seconds(row["ns"]),
            "share": row["share"],
            "low_s": _seconds_or_none(row["low_ns"]),
            "high_s": _seconds_or_none(row["high_ns"]),
            **names.source_line(row),
            "hint": row["hint"],
        }
        for device in devices
        for row in device["causes"]
    ]


def _devices(names: _Names) -> list[Row]:
    return [
        {
            "device": row["number"],
            "uuid": row["uuid"],
            "name": row["name"],
            "busy_s": _seconds(row["busy_ns"]),
            "idle_s": _seconds(row["idle_ns"]),
            "unknown_s": _seconds(row["unknown_ns"]),
            "used": row["used"],
            "simulated": row["simulated"],
            "source": row["source"],
            "resolution_s": _seconds_or_none(row["resolution_ns"]),
            "other_processes": row["other_processes"],
            "energy_j": row.get("energy_j"),
        }
        for row in names.document["devices"]
    ]


def _findings(names: _Names) -> list[Row]:
    return [
        {
            "id": row["id"],
            "severity": row["severity"],
            "text": row["text"],
            "hint": row["hint"],
            **names.place(row),
            "value": row["value"],
            "unit": row["unit"],
            "cost_s": _seconds_or_none(row["cost_ns"]),
        }
        for row in names.document["findings"]
    ]


def _steps(names: _Names) -> list[Row]:
    return [
        {
            "start_s": _seconds(row["start_ns"]),
            "end_s": _seconds(row["end_ns"]),
            "name": row["name"],
            "epoch": row["epoch"],
            "data_wait_s": _seconds(row["data_wait_ns"]),
            "busy_s": _seconds_or_none(row["busy_ns"]),
            "idle_s": _seconds_or_none(row["idle_ns"]),
            "collective_s": _seconds_or_none(row.get("collective_ns")),
            "source": row["source"],
            "process": names.process(row.get("process", 0)),
            "rank": names.document["processes"][row.get("process", 0)]["rank"],
            "samples": row.get("samples"),
            "tokens": row.get("tokens"),
        }
        for row in names.document["steps"]
    ]


def _phases(names: _Names) -> list[Row]:
    return [
        {
            "name": row["id"],
            "epoch": row["epoch"],
            "count": row["count"],
            "total_s": _seconds(row["total_ns"]),
            "mean_s": _seconds_or_none(row["mean_ns"]),
            "p50_s": _seconds_or_none(row["p50_ns"]),
            "p95_s": _seconds_or_none(row["p95_ns"]),
            "max_s": _seconds_or_none(row["max_ns"]),
            "share": row["share"],
            "idle_s": _seconds_or_none(row["idle_ns"]),
            "process": names.process(row["process"]),
            "rank": names.document["processes"][row["process"]]["rank"],
        }
        for row in cast("list[Row]", names.document.get("training_phases") or [])
    ]


def _slow_steps(names: _Names) -> list[Row]:
    return [
        {
            "phase": row["id"],
            "file": names.file(row["file"]),
            "line": row["line"],
            "count": row["count"],
            "steps": row["steps"],
            "extra_s": _seconds(row["extra_ns"]),
            "process": names.process(row["process"]),
            "rank": names.document["processes"][row["process"]]["rank"],
        }
        for row in cast("list[Row]", names.document.get("slow_steps") or [])
    ]


_QUEUE = {"ready_mean": "mean", "ready_median": "median", "ready_most": "most", "queue_empty": "empty"}


def _loaders(names: _Names) -> list[Row]:
    return [
        {
            "batch_size": row["batch_size"],
            "workers": row["workers"],
            "drop_last": row["drop_last"],
            "batches_per_step": row["batches_per_step"],
            "epochs": row["epochs"],
            "steps": row["steps"],
            "counted_steps": row["counted_steps"],
            **{name: cast("Row", row.get("queue") or {}).get(key) for name, key in _QUEUE.items()},
            "worker_batch_s": sum(took) / len(took) / 1e9 if took else None,
            "slowest_worker_batch_s": max(took) / 1e9 if took else None,
            "process": names.process(row["process"]),
            "rank": names.document["processes"][row["process"]]["rank"],
        }
        for row in cast("list[Row]", names.document.get("loaders") or [])
        for took in [cast("list[int]", row.get("worker_batch_ns") or [])]
    ]


def _regions(names: _Names) -> list[Row]:
    return [
        {
            "name": row["name"],
            "count": row["count"],
            "total_s": _seconds(row["total_ns"]),
            "p50_s": _seconds(row["p50_ns"]),
            "p95_s": _seconds(row["p95_ns"]),
            "process": names.process(row["process"]),
        }
        for row in names.document["regions"]
    ]


def _ranks(names: _Names) -> list[Row]:
    return [
        {
            "rank": row["rank"],
            "process": names.process(row["process"]),
            "known_s": _seconds(row["known_ns"]),
            "computing_s": _seconds(row["computing_ns"]),
            "steps": row["steps"],
            "step_s": _seconds_or_none(row["step_ns"]),
            "collectives_s": {part["id"]: _seconds(part["ns"]) for part in row["collectives"]},
        }
        for row in cast("list[Row]", names.document.get("ranks") or [])
    ]


def _rank_lines(names: _Names) -> list[Row]:
    return [
        {
            "file": names.file(row["file"]),
            "line": row["line"],
            "text": names.text(row["file"], row["line"]),
            "ranks": row["ranks"],
            "median_s": _seconds(row["median_ns"]),
            "p95_s": _seconds(row["p95_ns"]),
            "rank": row["rank"],
            "most_s": _seconds(row["most_ns"]),
            "steps": row["steps"],
            "above": row["above"],
            "low_s": _seconds(row["low_ns"]),
            "high_s": _seconds(row["high_ns"]),
            "more": row["more"],
        }
        for row in cast("list[Row]", names.document.get("rank_lines") or [])
    ]


def _processes(names: _Names) -> list[Row]:
    processes = names.document["processes"]
    return [
        {
            "pid": row["pid"],
            "parent": None if row["parent"] is None else processes[row["parent"]]["pid"],
            "role": row["role"],
            "command": row["command"],
            "rank": row["rank"],
            "start_s": _seconds(row["start_ns"]),
            "end_s": _seconds_or_none(row["end_ns"]),
            "end_reason": row["end_reason"],
            "exit_code": row["exit_code"],
            "cpu_s": _seconds_or_none(row["cpu_ns"]),
            "stacks": "read" if row["stacks"]["read"] else row["stacks"]["text"],
            "peak_memory_bytes": row.get("peak_memory_bytes"),
            "peak_at_least_bytes": row.get("peak_at_least_bytes"),
            "kept_bytes": row.get("kept_bytes"),
            "own_bytes": row.get("own_bytes"),
            "pss_bytes": row.get("pss_bytes"),
            **_raised(names, row.get("exception")),
        }
        for row in processes
    ]


def _raised(names: _Names, exception: Row | None) -> Row:
    """Return the columns of the exception that ended a process."""
    raised = exception or {"type": None, "message": None, "file": None, "line": None}
    return {
        "exception": raised["type"],
        "message": raised["message"],
        "file": names.file(raised["file"]),
        "line": raised["line"],
    }


def _tracks(names: _Names) -> list[Row]:
    """Return the figures over time; ``t_s`` and ``value`` are lists."""
    threads = names.document["threads"]
    return [
        {
            "id": row["id"],
            "name": row.get("name"),
            "kind": row["kind"],
            "unit": row["unit"],
            "device": names.device(row["device"]),
            "process": None if row["process"] is None else names.process(row["process"]),
            "thread": None if row["thread"] is None else threads[row["thread"]]["name"],
            "source": row["source"],
            "resolution_s": _seconds_or_none(row["resolution_ns"]),
            "mean": row["mean"],
            "peak": row["peak"],
            "t_s": [at / 1e6 for at in row["at_us"]],
            "value": row["value"],
        }
        for row in names.document["tracks"]
    ]


def _notes(names: _Names) -> list[Row]:
    return [{"id": row["id"], "text": row["text"]} for row in names.document["notes"]]
