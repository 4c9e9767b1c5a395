"""What ``%omni_perf WORD`` does for each word, and what it says to a mistyped one."""

from __future__ import annotations

import base64
import difflib
import gzip
import json
import os
import re
from collections.abc import Callable
from typing import cast

from omni_perf import __version__, comparing, contract, publish, recorded
from omni_perf.cells import CellRecorder
from omni_perf.document import headline
from omni_perf.launcher import LaunchError, find_binary
from omni_perf.liveview import LiveView, only_in_notebooks
from omni_perf.options import CELL_HELP, Options, parse_on
from omni_perf.program import ProgramError, follow
from omni_perf.report import Report, SaveError, kept
from omni_perf.session import Session, SessionError
from omni_perf.shell import Shell, expand_names, is_notebook

HELP = f"""\
Show where the time of this cell went, and why the GPU was idle.

{CELL_HELP}
%omni_perf [OPTIONS] STATEMENT   profile one statement (%omni_perf -- STATEMENT to be sure)
%omni_perf on [-t SECONDS]       profile every cell, show those that take SECONDS (default 1)
%omni_perf live KERNEL           show the cells of another notebook's kernel, until interrupted
%omni_perf live on|off           show every cell while it runs, from one second on
%omni_perf off                   only cells with %%omni_perf again
%omni_perf last [N]              the last report, or that of cell N; also omni_perf.last()
%omni_perf last died             the last cell of the kernel before this one, which died in it
%omni_perf list                  the cells recorded so far
%omni_perf report [FILE]         all cells in one table; FILE: a page with it and a picture of each cell
%omni_perf save NAME [N]         write NAME.svg and NAME.html, or one file by its ending
%omni_perf compare A B           what differs: cells by number, names, or files saved as NAME.json
%omni_perf status                what runs
%omni_perf doctor                check what profiling needs here
"""

USAGE = {
    "on": "%omni_perf on [-t SECONDS] [-p SECONDS] [-s SECONDS]",
    "off": "%omni_perf off",
    "live": "%omni_perf live on|off|KERNEL",
    "last": "%omni_perf last [N|died]",
    "list": "%omni_perf list",
    "report": "%omni_perf report [FILE]",
    "save": "%omni_perf save NAME [N]",
    "compare": "%omni_perf compare A B",
    "status": "%omni_perf status",
    "doctor": "%omni_perf doctor",
    "help": "%omni_perf help",
}
"""Every subcommand, with how it is used."""

NOTHING_YET = "No cell was profiled yet: put %%omni_perf on top of one."
FORGOTTEN = (
    "The sidecar has ended since cells were profiled: what it kept of them is lost; their charts stay where they are."
)

Run = Callable[[], object]


class Subcommands:
    """The subcommands of one shell."""

    def __init__(self, shell: Shell, recorder: CellRecorder, session: Session) -> None:
        self._shell = shell
        self._recorder = recorder
        self._session = session
        self._automatic_by_live = False
        """Whether it is for live alone that every cell is profiled."""

    def find(self, line: str) -> Run | None:
        """Return what to do for a line that is a subcommand, None for a statement."""
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "on" and (not rest or rest.startswith("-")):
            return lambda: self._on(rest)
        if word == "live" and rest in ("on", "off", ""):
            return lambda: self._live(rest)
        if word == "live" and rest and not rest.startswith(("=", "(", "[", ".", ",")):
            return lambda: self._follow(expand_names(self._shell, rest))
        if word == "report" and not rest.startswith(("=", "(", "[", ".", ",")):
            return lambda: self._overview(expand_names(self._shell, rest))
        if word == "save" and rest and not rest.startswith(("=", "(", "[")):
            return lambda: self._save(expand_names(self._shell, rest))
        if line == "last died" or (line == "last" and kept.last is None and kept.died is not None):
            return self._died
        if word == "last" and re.fullmatch(r"\d*|[{$].*", rest):
            return lambda: self._last(expand_names(self._shell, rest))
        if word == "compare" and rest and not rest.startswith(("=", "(", "[", ".")):
            return lambda: self._compare(expand_names(self._shell, rest))
        alone: dict[str, Run] = {
            "": self._help,
            "-h": self._help,
            "--help": self._help,
            "help": self._help,
            "off": self._off,
            "list": self._list,
            "save": lambda: publish.warn(f"Save what, and where? {USAGE['save']}."),
            "compare": lambda: publish.warn(f"Compare what? {USAGE['compare']}."),
            "status": self._status,
            "doctor": self._doctor,
        }
        return alone.get(word) if not rest else None

    @staticmethod
    def meant_by(statement: str) -> str:
        """Return what to say to a statement that is wrong, if it looks like a subcommand."""
        word = re.match(r"\w*", statement.strip())
        close = difflib.get_close_matches(word[0] if word else "", USAGE, 1, 0.7)
        if not close:
            return ""
        return f"{statement.strip()!r} is no statement; did you mean {USAGE[close[0]]}? %omni_perf help has all."

    def _help(self) -> None:
        publish.say(HELP)

    def _on(self, line: str) -> None:
        parsed = parse_on(line)
        if parsed.wants_help:
            publish.say(HELP)
            return
        if parsed.problem:
            publish.warn(parsed.problem)
            return
        self._recorder.automatic = parsed.options
        self._automatic_by_live = False
        self._get_ready()
        publish.say(
            "Every cell is profiled from now on; those that take "
            f"{parsed.options.threshold_ns / 1e9:g} s or more show their chart."
        )

    def _get_ready(self) -> None:
        """See to it that the next cell is recorded from its start: it may come at once, as by Run All."""
        try:
            self._session.get_ready()
        except SessionError as error:
            publish.warn(str(error))

    def _live(self, rest: str) -> None:
        if not rest:
            self._help()
        elif rest == "on":
            self._live_on()
        else:
            self._live_off()

    def _follow(self, kernel: str) -> None:
        """Show what another kernel does, until an interrupt or its end."""
        if not is_notebook(self._shell):
            publish.warn(f"This needs a notebook; omni-perf top {kernel} shows it in a terminal.")
            return
        quoted = re.fullmatch(r"""(["'])(.*)\1""", kernel)
        view = LiveView(self._shell)
        try:
            follow(quoted[2] if quoted else kernel, lambda data: view.show(data, {}))
        except ProgramError as error:
            publish.warn(str(error))
        finally:
            view.close()

    def _live_on(self) -> None:
        if not is_notebook(self._shell):
            publish.warn(only_in_notebooks())
            return
        self._recorder.live = True
        self._get_ready()
        if self._recorder.automatic is None:
            self._recorder.automatic, self._automatic_by_live = Options(), True
        publish.say(
            "Every cell is profiled from now on and shows itself live once it has run "
            f"{self._recorder.automatic.threshold_ns / 1e9:g} s."
        )

    def _live_off(self) -> None:
        self._recorder.live = False
        if self._automatic_by_live:
            self._recorder.automatic, self._automatic_by_live = None, False
            publish.say("Only cells with %%omni_perf are profiled from now on; %%omni_perf --live shows one live.")
        else:
            publish.say("Cells show their chart at their end from now on; %%omni_perf --live shows one live.")

    def _off(self) -> None:
        self._recorder.automatic = None
        self._automatic_by_live = False
        publish.say("Only cells with %%omni_perf are profiled from now on.")

    def _last(self, number: str) -> Report | None:
        return self._report(number)

    def _died(self) -> Report | None:
        """Show the last cell of the kernel before this one, which died in it."""
        if kept.died is None:
            publish.say("No kernel of this notebook that died in a profiled cell is known.")
            return None
        publish.say(kept.died.text)
        return kept.died.report

    def _save(self, line: str) -> None:
        name, number = _name_and_number(line)
        report = self._report(number)
        if report is None:
            return
        try:
            written = report.save(name)
        except SaveError as error:
            publish.warn(str(error))
            return
        publish.say("Wrote " + " and ".join(written) + ".")

    def _compare(self, line: str) -> None:
        before, after, problem = comparing.sides(line)
        if problem:
            publish.warn(problem)
            return
        find = comparing.Finder(self._entries(), kept.last)
        try:
            request: contract.CompareRequest = {
                "before": [find(name) for name in before],
                "after": [find(name) for name in after],
                "form": "notebook" if is_notebook(self._shell) else "terminal",
            }
        except comparing.NotFoundError as error:
            publish.warn(str(error))
            self._say_forgotten()
            return
        answer = cast(contract.CompareResponse, self._session.call("Compare", request))
        publish.show(self._shell, answer.get("bundle", contract.Bundle()))

    def _overview(self, file: str) -> None:
        """Show all cells in a table, or write a page of them."""
        quoted = re.fullmatch(r"""(["'])(.*)\1""", file)
        file = quoted[2] if quoted else file
        if file and not os.path.splitext(file)[1]:
            file += ".html"
        if self._session.link is None:
            self._say_nothing_yet()
            return
        request: contract.OverviewRequest = {
            "form": "notebook" if is_notebook(self._shell) else "terminal",
            "name": os.path.basename(os.environ.get("JPY_SESSION_NAME", "")),
            "file": os.path.abspath(os.path.expanduser(file)) if file else "",
        }
        answer = cast(contract.OverviewResponse, self._session.call("Overview", request))
        bundle = answer.get("bundle", contract.Bundle())
        if answer.get("written"):
            publish.say(f"Wrote {file}.")
        elif bundle:
            publish.show(self._shell, bundle)
        else:
            self._say_nothing_yet()
            return
        self._say_forgotten()

    def _report(self, number: str) -> Report | None:
        """Return the report of cell number, the last one for "", or say why there is none."""
        last = kept.last
        if not number or (last is not None and str(last.number) == number):
            if last is None:
                publish.say(NOTHING_YET)
            return last
        try:
            held = comparing.kept_report(self._entries(), number)
        except comparing.NotFoundError as error:
            publish.warn(str(error))
            self._say_forgotten()
            return None
        request: contract.ReportRequest = {"reportId": held, "format": "json"}
        answer = cast(contract.ReportResponse, self._session.call("Report", request))
        text = base64.b64decode(answer.get("content", ""))
        return Report(
            held,
            headline(json.loads(text)),
            gzip.compress(text, 1),
            contract.Bundle(),
            self._session.draw,
            int(number),
        )

    def _entries(self) -> list[contract.Entry]:
        if self._session.link is None:
            return []
        return cast(contract.ListResponse, self._session.call("List", {})).get("entries", [])

    def _list(self) -> None:
        entries = self._entries()
        if entries and is_notebook(self._shell):
            publish.display(self._shell, recorded.table(entries), recorded.text(entries))
        elif entries:
            publish.say(recorded.text(entries))
        else:
            self._say_nothing_yet()
            return
        self._say_forgotten()

    def _say_nothing_yet(self) -> None:
        publish.say(FORGOTTEN if self._session.forgot else NOTHING_YET)

    def _say_forgotten(self) -> None:
        """Say below what is known of cells that more is not."""
        if self._session.forgot:
            publish.say(FORGOTTEN)

    def _status(self) -> None:
        automatic = self._recorder.automatic
        lines = [f"omni_perf {__version__}"]
        if automatic is None:
            lines.append("cells       those with %%omni_perf")
        else:
            lines.append(f"cells       all, charts from {automatic.threshold_ns / 1e9:g} s")
        if self._recorder.live:
            lines.append("live        cells that are profiled show themselves while they run")
        if self._session.link is None:
            lines.append("sidecar     none yet; the first profiled cell starts one")
        else:
            answer = cast(contract.StatusResponse, self._session.call("Status", {}))
            lines += _status_lines(answer)
        publish.say("\n".join(lines))

    def _doctor(self) -> None:
        try:
            publish.say(f"ok    program: {find_binary()}")
        except LaunchError as error:
            publish.say(f"FAIL  program: {error}")
            return
        answer = cast(contract.DoctorResponse, self._session.call("Doctor", {}))
        for check in answer.get("checks", []):
            verdict = "ok" if check.get("ok") else "FAIL" if check.get("required") else "note"
            publish.say(f"{verdict:<5} {check.get('name', '')}: {check.get('sentence', '')}")


def run(subcommand: Run) -> object:
    """Run a subcommand; what the sidecar refuses is a sentence."""
    try:
        return subcommand()
    except SessionError as error:
        publish.warn(str(error))
        return None


def _name_and_number(line: str) -> tuple[str, str]:
    """Split ``NAME [N]``; a name with spaces may be quoted."""
    quoted = re.fullmatch(r"""(["'])(.*)\1(?:\s+(\d+))?""", line)
    if quoted:
        return quoted[2], quoted[3] or ""
    numbered = re.fullmatch(r"(.*\S)\s+(\d+)", line)
    return (numbered[1], numbered[2]) if numbered else (line, "")


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
