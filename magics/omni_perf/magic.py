"""The magics ``%%omni_perf`` and ``%omni_perf``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, cast

from omni_perf import __version__, contract, publish
from omni_perf.cells import CellRecorder
from omni_perf.launcher import LaunchError, find_binary
from omni_perf.options import Parsed, parse_on, parse_statement
from omni_perf.report import Report, SaveError, kept
from omni_perf.session import Session, SessionError
from omni_perf.shell import Shell

HELP = """\
Show where the time of this cell went, and why the GPU was idle.

    %%omni_perf [-p SECONDS] [-s SECONDS] [--name NAME] [--quiet]
        Profile this cell: on top of it, alone on its line.
        -p SECONDS   stack sampling interval (default 0.001)
        -s SECONDS   system and GPU sampling interval (default 0.1)
        --name NAME  a name for the report
        --quiet      no chart; %omni_perf last shows it

    %omni_perf [OPTIONS] STATEMENT   profile one statement (%omni_perf -- STATEMENT to be sure)
    %omni_perf on [-t SECONDS]       profile every cell, show those that take SECONDS (default 1)
    %omni_perf off                   only cells with %%omni_perf again
    %omni_perf last                  the last report, also omni_perf.last()
    %omni_perf list                  the cells recorded so far
    %omni_perf save NAME             write NAME.svg and NAME.html, or one file by its ending
    %omni_perf status                what runs
    %omni_perf doctor                check what profiling needs here
"""

Run = Callable[[], object]


class OmniPerfMagic:
    """What the magics do, one method per subcommand."""

    def __init__(self, shell: Shell, recorder: CellRecorder, session: Session) -> None:
        self._shell = shell
        self._recorder = recorder
        self._session = session

    def function(self) -> Callable[..., object]:
        """Return the function to register with IPython."""

        def omni_perf(line: str, cell: str | None = None, local_ns: Any = None) -> object:
            if cell is not None:
                return self._run_cell(line, cell)
            return self._run_line(line, local_ns)

        omni_perf.__doc__ = HELP
        omni_perf.needs_local_scope = True  # pyright: ignore[reportFunctionMemberAccess]
        return omni_perf

    def _run_cell(self, line: str, cell: str) -> None:
        """Serve callers of run_cell_magic; a typed ``%%omni_perf`` never comes here."""
        self._shell.run_cell(f"%%omni_perf {line}\n{cell}")

    def _run_line(self, line: str, local_ns: dict[str, Any] | None) -> object:
        subcommand = self._subcommand(line.strip())
        if subcommand is not None:
            try:
                return subcommand()
            except SessionError as error:
                publish.warn(str(error))
                return None
        return self._run_statement(parse_statement(line), local_ns)

    def _subcommand(self, line: str) -> Run | None:
        """Return what to do for a subcommand, None for a statement."""
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "on" and (not rest or rest.startswith("-")):
            return lambda: self._on(rest)
        if word == "save" and rest and not rest.startswith(("=", "(", "[", ".")):
            return lambda: self._save(rest)
        alone: dict[str, Run] = {
            "": self._help,
            "off": self._off,
            "last": self._last,
            "list": self._list,
            "save": self._help,
            "status": self._status,
            "doctor": self._doctor,
        }
        return alone.get(word) if not rest else None

    def _help(self) -> None:
        publish.tell(HELP)

    def _on(self, line: str) -> None:
        parsed = parse_on(line)
        if parsed.problem:
            publish.warn(parsed.problem)
            return
        self._recorder.automatic = parsed.options
        publish.tell(
            "Every cell is profiled from now on; those that take "
            f"{parsed.options.threshold_ns / 1e9:g} s or more show their chart."
        )

    def _off(self) -> None:
        self._recorder.automatic = None
        publish.tell("Only cells with %%omni_perf are profiled from now on.")

    def _last(self) -> Report | None:
        if kept.last is None:
            publish.tell("No cell was profiled yet: put %%omni_perf on top of one.")
        return kept.last

    def _save(self, name: str) -> None:
        if kept.last is None:
            publish.tell("No cell was profiled yet: put %%omni_perf on top of one.")
            return
        try:
            written = kept.last.save(name.strip("\"'"))
        except SaveError as error:
            publish.warn(str(error))
            return
        publish.tell("Wrote " + " and ".join(written) + ".")

    def _list(self) -> None:
        if self._session.link is None:
            publish.tell("No cell was profiled yet: put %%omni_perf on top of one.")
            return
        entries = cast(contract.ListResponse, self._session.call("List", {})).get("entries", [])
        publish.tell("\n".join(map(_entry_line, entries)) or "Nothing was recorded yet.")

    def _status(self) -> None:
        automatic = self._recorder.automatic
        lines = [f"omni_perf {__version__}"]
        if automatic is None:
            lines.append("cells       those with %%omni_perf")
        else:
            lines.append(f"cells       all, charts from {automatic.threshold_ns / 1e9:g} s")
        if self._session.link is None:
            lines.append("sidecar     none yet; the first profiled cell starts one")
        else:
            answer = cast(contract.StatusResponse, self._session.call("Status", {}))
            lines += _status_lines(answer)
        publish.tell("\n".join(lines))

    def _doctor(self) -> None:
        try:
            publish.tell(f"ok    program: {find_binary()}")
        except LaunchError as error:
            publish.tell(f"FAIL  program: {error}")
            return
        answer = cast(contract.DoctorResponse, self._session.call("Doctor", {}))
        for check in answer.get("checks", []):
            verdict = "ok" if check.get("ok") else "FAIL" if check.get("required") else "note"
            publish.tell(f"{verdict:<5} {check.get('name', '')}: {check.get('sentence', '')}")

    def _run_statement(self, parsed: Parsed, local_ns: dict[str, Any] | None) -> object:
        """Run a statement and return its value, as %time does; record just this."""
        if parsed.problem:
            publish.warn(parsed.problem)
            if not parsed.rest or parsed.rest.startswith("-"):
                return None
        shell = self._shell
        source = shell.transform_cell(parsed.rest)
        file = shell.compile.cache(source, self._recorder.number, parsed.rest)
        body = ast.parse(source, file).body
        value = None
        if body and isinstance(body[-1], ast.Expr):
            value = compile(ast.Expression(body[-1].value), file, "eval")
            del body[-1]
        statements = compile(ast.Module(body, []), file, "exec")
        names = shell.user_ns
        with self._recorder.recording(parsed.rest, file, parsed.options):
            exec(statements, names, local_ns)
            return eval(value, names, local_ns) if value is not None else None


def _entry_line(entry: contract.Entry) -> str:
    number = entry.get("executionCount", 0)
    title = entry.get("name") or entry.get("firstLine", "")
    kept_mark = "" if entry.get("reportId") else "  (no chart kept)"
    outcome = entry.get("outcome", "ok")
    return (
        f"[{number}]".ljust(7)
        + f"{entry.get('durationS', 0.0):9.3f} s  "
        + (title if outcome == "ok" else f"{title}  ({outcome})")
        + (f"  {entry.get('headline', '')}".rstrip())
        + kept_mark
    )


def _status_lines(answer: contract.StatusResponse) -> list[str]:
    outside = answer.get("outside", "")
    stacks = {
        "ok": "read from outside",
        "fallback": "sampled inside the kernel",
        "permission": "permission to read them is missing",
    }.get(outside, outside or "unknown")
    reason = answer.get("reason", "")
    megabytes = int(answer.get("rssBytes", "0")) / 1e6
    report_megabytes = int(answer.get("reportBytes", "0")) / 1e6
    lines = [
        f"sidecar     {answer.get('version', '')}, pid {answer.get('pid', 0)}, "
        f"up {answer.get('uptimeS', 0.0):.0f} s, {megabytes:.1f} MB",
        f"stacks      {stacks}" + (f": {reason}" if reason else ""),
        f"reports     {answer.get('reports', 0)}, {report_megabytes:.1f} MB",
    ]
    gpus = answer.get("gpus", [])
    lines.append("GPUs        " + (", ".join(gpus) or answer.get("gpuReason") or "none"))
    if answer.get("log"):
        lines.append(f"log         {answer.get('log', '')}")
    return lines
