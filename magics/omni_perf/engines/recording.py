"""Records the workers of an engine together, and merges what they recorded into one report.

The protocol has three parts, whatever the engine: begin on each worker and wait until it records;
tasks are marked there meanwhile; end on each worker, collect the reports once from each machine
and merge them. What fails at a worker costs that worker's part of the picture and one sentence.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Protocol, cast

from omni_perf import program, publish
from omni_perf._version import __version__
from omni_perf.engines.clocks import Clocks
from omni_perf.engines.worker import Collected, Status
from omni_perf.program import PathLike
from omni_perf.report import Report, read_bytes

MOST_BYTES: Final = 64 << 20
"""Of all reports together, in gzip, on their way here."""

BEGIN_S: Final = 15.0
"""How long the begin of a recording is waited for; what began later is recorded from then on."""

END_S: Final = 60.0
"""How long reports are waited for."""

SPENT: Final = {
    "queue": "tasks waited in the workers' queues",
    "transfer": "transfers of results between workers took",
    "deserialize": "deserialising took",
    "serialize": "serialising took",
    "disk": "spilling to disk and back took",
    "hand-over": "handing tasks to threads took",
}
"""What an engine takes beside tasks, and how it is said."""

SHORTEST_S: Final = 0.05
"""What took less is not said."""


class ClusterError(Exception):
    """The workers could not be recorded, or not be shown; the text is a sentence for the user."""


Answers = dict[str, "object | Exception"]
"""By worker, as its engine names it: what a function returned there, or how it failed."""


class Engine(Protocol):
    """What an adapter knows of its engine."""

    asynchronous: bool
    """Whether the client runs in an event loop of the user's, which must not be blocked."""

    advice: str
    """What to do where no worker was recorded; empty: nothing is known."""

    answers: bool
    """Whether workers answer while they run tasks."""

    def begin(self, run: str, cells: list[Any]) -> None:
        """Start the recording on each worker, and on those that come later where that is known."""
        ...

    def ask(self, function: str, arguments: tuple[Any, ...], workers: Iterable[str] | None = None) -> Answers:
        """Call a function of :mod:`omni_perf.engines.worker` on these workers, or on all."""
        ...

    def end(self, run: str) -> None:
        """Take out what ``begin`` has put in, so that nothing more is marked."""
        ...

    def close(self) -> None:
        """Give back what the adapter itself has opened."""
        ...


def call(function: str, arguments: tuple[Any, ...], module: str = "worker") -> str:
    """Return a call of a module here as an expression: it needs nothing of ours to be sent and understood."""
    return f"__import__('omni_perf.engines.{module}', fromlist=['*']).{function}(*{arguments!r})"


class Cluster:
    """The recorded workers of an engine, as ``with omni_perf.cluster(client) as recorded:`` gives them.

    Afterwards ``report`` is all workers in one report, ``problems`` are the sentences about what is
    not in it, and ``save(name)`` writes result files. In a notebook the chart is shown at the end.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._run = secrets.token_hex(6)
        self._places: dict[str, str] = {}
        """A worker that answers for each folder of reports."""
        self._clocks = Clocks(lambda worker: engine.ask("clock", (), [worker]).get(worker), engine.answers)
        self.has_ended = False
        self._reports: list[bytes] = []
        """Of the workers that are shown, JSON in gzip."""
        self.report: Report | None = None
        self.problems: list[str] = []
        self.spent: dict[str, dict[str, float]] = {}
        """By worker, the seconds that the engine took beside tasks, where it counts them."""

    def __enter__(self) -> Cluster:
        """Begin to record on every worker; return when they do."""
        if self._engine.asynchronous:
            raise ClusterError("The client is asynchronous: use async with omni_perf.cluster(client).")
        self._begin(_cells())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the recording, show the chart where a notebook runs, and print what went wrong."""
        self._end()
        self._show()

    async def __aenter__(self) -> Cluster:
        """Do as ``with`` does, in a thread: the loop goes on."""
        cells = _cells()
        await asyncio.to_thread(self._begin, cells)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do as ``with`` does, in a thread: the loop goes on."""
        await asyncio.to_thread(self._end)
        self._show()

    @property
    def asynchronous(self) -> bool:
        """Whether its client is used with ``await``, in the loop that runs the user's cells."""
        return self._engine.asynchronous

    def begin(self) -> None:
        """Begin as ``with`` does, for a cell whose chart will hold the workers."""
        self._begin(_cells())

    def end(self, cell: bytes) -> Report | None:
        """End as ``with`` does, and return the cell's report, JSON in gzip, with the workers in it."""
        self._end()
        if sentence := self.beside():
            print(sentence, flush=True)
        for sentence in self.problems:
            print(f"omni_perf: {sentence}", file=sys.stderr, flush=True)
        try:
            return _merge([cell, *self._reports]) if self._reports and cell else self.report
        except ClusterError as error:
            print(f"omni_perf: {error}", file=sys.stderr, flush=True)
            return self.report

    def save(self, name: PathLike, *formats: str) -> list[str]:
        """Write result files as ``Report.save`` does; return their paths."""
        if self.report is None:
            raise ClusterError(" ".join(["There is no report to save.", *self.problems]))
        return self.report.save(name, *formats)

    def _begin(self, cells: list[Any]) -> None:
        self._engine.begin(self._run, cells)
        deadline = time.monotonic() + BEGIN_S
        while any(_begins(s) for s in self._statuses().values()) and time.monotonic() < deadline:
            time.sleep(0.05)
        self._clocks.begin(self._places)

    def _statuses(self) -> dict[str, Status | Exception]:
        """Ask all workers what became of their recordings, and note which worker answers for which folder."""
        statuses = cast("dict[str, Status | Exception]", self._engine.ask("status", (self._run,)))
        self._places.update({s["place"]: name for name, s in statuses.items() if not isinstance(s, Exception)})
        return statuses

    def _end(self) -> None:
        self.has_ended = True
        try:
            self._clocks.end(self._places)
            self._look_for_problems()
            self._engine.end(self._run)
            self._engine.ask("end", (self._run,))
            reports = self._collected()
            self.report = self._merged(reports)
        except ClusterError as error:
            self.problems.append(str(error))
        finally:
            self._engine.ask("clear", (self._run,), self._places.values())
            self._engine.close()

    def _look_for_problems(self) -> None:
        """Say of which workers nothing is known, and why: workers that fail alike are named together."""
        why: dict[str, list[str]] = {}
        for worker, status in self._statuses().items():
            if not isinstance(status, Exception) and status["spent"]:
                self.spent[worker] = status["spent"]
            if isinstance(status, ImportError):
                reason = f"omni_perf {__version__} is not installed there, so nothing of them is in the chart"
            elif isinstance(status, Exception):
                reason = f"they did not answer: {status}"
            elif status["version"] != __version__:
                reason = f"they have omni_perf {status['version']} and not {__version__}"
            elif not status["problem"]:
                continue
            else:
                reason = status["problem"].rstrip(".")
            why.setdefault(reason, []).append(worker)
        for reason, workers in why.items():
            self.problems.append(f"{_few(workers)}: {reason}.")

    def _collected(self) -> list[Collected]:
        """Return the reports from all folders, once they are written."""
        found: list[Collected] = []
        deadline = time.monotonic() + END_S
        most = MOST_BYTES // max(len(self._places), 1) // 4
        for worker in self._places.values():
            done: list[int] = []
            while True:
                answer = self._engine.ask("collect", (self._run, most, done), [worker]).get(worker)
                if answer is None or isinstance(answer, Exception):
                    self.problems.append(f"The reports at {worker} could not be fetched: {answer or 'it has gone'}.")
                    break
                new = cast("list[Collected]", answer)
                found += [one for one in new if one["report"]]
                done += [one["pid"] for one in new if not one["writing"]]
                self.problems += [_lost(one) for one in new if not one["report"] and not one["writing"]]
                if all(not one["writing"] for one in new):
                    break
                if time.monotonic() > deadline:
                    self.problems += [
                        f"The report of process {o['pid']} was not written in time." for o in new if o["writing"]
                    ]
                    break
                time.sleep(0.05)
        return found

    def _merged(self, reports: list[Collected]) -> Report:
        """Merge the reports of all machines whose clocks are related, or of that with most; say what is left."""
        if not reports:
            raise ClusterError(f"No worker was recorded. {self._engine.advice}".rstrip())
        related: list[bytes] = []
        alone: dict[str, list[bytes]] = {}
        for one in reports:
            machine, report = self._clocks.beside(one["report"])
            if machine in self._clocks.related:
                related.append(report)
            else:
                alone.setdefault(machine, []).append(report)
        together = max([related, *alone.values()], key=len)
        if left := len(reports) - len(together):
            self.problems.append(
                f"{left} of {len(reports)} reports are of other machines, which did not answer when they were asked "
                "for their clocks: they are not in the chart."
            )
        self._reports = together
        return _merge(together)

    def beside(self) -> str:
        """Return a sentence of what the engine took beside its tasks; empty where it is little, or not known."""
        sums: dict[str, float] = {}
        for spent in self.spent.values():
            for what, seconds in spent.items():
                sums[what] = sums.get(what, 0.0) + seconds
        parts = [f"{SPENT[what]} {s:.2g} s" for what, s in sums.items() if what in SPENT and s >= SHORTEST_S]
        return f"Beside the tasks, summed up over workers: {', '.join(parts)}." if parts else ""

    def _show(self) -> None:
        if _shell() is not None and (sentence := self.beside()):
            print(sentence, flush=True)
        for sentence in self.problems:
            print(f"omni_perf: {sentence}", file=sys.stderr, flush=True)
        if self.report is not None and _shell() is not None:
            data, metadata = self._repr_mimebundle_()
            publish.publish(_shell(), data, metadata)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Answer IPython's display protocol: the chart, by the sidecar where the extension is loaded."""
        if self.report is None:
            return {"text/plain": " ".join(["No worker was recorded.", *self.problems])}, {}
        draw = extension.drawing() if (extension := sys.modules.get("omni_perf.extension")) else None
        report = self.report if draw is None else replace(self.report, draw=draw)
        return report._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]


def _merge(reports: list[bytes]) -> Report:
    """Put reports, JSON in gzip, into one."""
    with tempfile.TemporaryDirectory(prefix="omni_perf_cluster_") as folder:
        files: list[str] = []
        for number, report in enumerate(reports):
            files.append(os.path.join(folder, f"worker-{number}.json.gz"))
            with open(files[-1], "wb") as file:
                file.write(report)
        result = os.path.join(folder, "all.json")
        done = program.run(["merge", "-o", result, *files])
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise ClusterError(f"The reports could not be merged: {said[-1] if said else 'omni-perf said nothing'}")
        with open(result, "rb") as file:
            return read_bytes(file.read())


def _begins(status: Status | Exception) -> bool:
    """Whether a worker is about to record."""
    return not isinstance(status, Exception) and not status["begun"] and not status["problem"]


def _few(workers: list[str]) -> str:
    """Name workers, few of many."""
    named = ", ".join(workers[:3])
    return f"Workers {named} and {len(workers) - 3} more" if len(workers) > 3 else f"Workers {named}"


def _lost(one: Collected) -> str:
    return f"Process {one['pid']} has left no report: {one['problem'].rstrip('.')}."


def _shell() -> Any:
    """Return the IPython shell that runs this, or None."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else cast(Any, ipython).get_ipython()


def _cells() -> list[Any]:
    """Return the cells of this notebook, whose functions workers may run."""
    shell = _shell()
    if shell is None:
        return []
    from omni_perf.cellsources import CellSources

    return list(CellSources(shell).unknown_to(set()))


__all__ = ["Answers", "Cluster", "ClusterError", "Engine", "call"]
