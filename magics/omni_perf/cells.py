"""Records cells: IPython's events in, calls to the sidecar and a published chart out.

Whatever happens here, the cell runs. An error becomes one sentence; an interrupt that
arrives while a recording starts is handed on to the cell it was meant for.
"""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from omni_perf import contract, marks, publish, residentmemory, torchmemory
from omni_perf.cellsources import BATCH_LIMIT, BEGIN_LIMIT, CellSources, Known
from omni_perf.cleanup import ENGINES, filled_in, options_line
from omni_perf.fallback import FallbackSampler
from omni_perf.liveview import LiveView, hint, note, only_in_notebooks
from omni_perf.loads import Loads
from omni_perf.options import CELL_HELP, Options, parse_cell
from omni_perf.outofmemory import Failures
from omni_perf.report import Report, bundle_part, kept
from omni_perf.session import Begun, Session, SessionError, SidecarStoppedError
from omni_perf.shell import CellInfo, CellResult, Shell, is_notebook, number_around, number_of, parent_msg_id
from omni_perf.torchsteps import OptimizerSteps

if TYPE_CHECKING:
    from omni_perf.allocations import Allocations
    from omni_perf.analysis import Analysis
    from omni_perf.devicehistory import DeviceHistory
    from omni_perf.engines import Cluster
    from omni_perf.exactwork import ExactWork
    from omni_perf.torchprofile import TorchProfile

FIRST_LOOK_S = 0.25
"""When a cell that was asked to shows its first look."""

HINT_AFTER_S = 60.0
"""When a cell that is not shown live says how it could be."""

INTERRUPT_DELAY_S = 0.01
"""Time for IPython to get from the event to the cell that an interrupt is meant for."""

_WITHOUT_TORCH = frozenset({"jax", "cupy", "numba", "tensorflow", "triton", "cuda", "pycuda", "cudf"})
"""Packages that use CUDA: where one is imported, and torch is not, --exact does not import it."""


@dataclass(frozen=True)
class Running:
    """A recording in progress."""

    info: CellInfo | None
    """IPython's object for this run of the cell; None for a statement."""
    thread: int
    options: Options
    automatic: bool
    number: int
    """Execution count of the cell."""
    cell_id: str
    """Of the recording, in calls."""
    began_ns: int
    """CLOCK_MONOTONIC before the call to the sidecar."""
    unawaited_ns: int
    """CLOCK_MONOTONIC at which the cell began without waiting for its recording; 0: it waited."""
    beginning: Future[Begun]
    coroutine: object
    """What the thread's event loop runs the cell in, if one does."""
    view: LiveView | None
    """What it shows while it runs; None where it shows nothing before its end."""
    torch: TorchProfile | None = None
    """The torch.profiler that was asked for."""
    exact: ExactWork | None = None
    """What records the GPU's work where there is no torch to do it."""
    allocations: Allocations | None = None
    """memray's tracker, if that was asked for."""
    history: DeviceHistory | None = None
    """torch's history of its allocations on GPUs, if that was asked for."""
    torch_memory: torchmemory.Figures = field(default_factory=dict[int, contract.TorchFigures])
    """What torch's allocator said of itself before the cell, by device."""
    cluster: Cluster | None = None
    """The workers of an engine that are recorded with the cell."""


class CellRecorder:
    """Begins a recording before a cell that wants one and ends it after the cell."""

    def __init__(self, shell: Shell, session: Session) -> None:
        self.automatic: Options | None = None
        """Options for cells without the magic, None while ``%omni_perf off``."""
        self.live = False
        """Whether cells show themselves live without being asked one by one."""
        self.number = shell.execution_count
        """Execution count of the cell that began last."""
        self._shell = shell
        self._session = session
        self._sources = CellSources(shell)
        self._loads = Loads()
        self._steps = OptimizerSteps(marks.step_by_hook, marks.other_by_hook)
        self._failures = Failures(self._thread, self._folder)
        self._lock = threading.Lock()
        self._running: list[Running] = []  # by start; several where cells nest or run in subshells
        self._sampler: FallbackSampler | None = None
        self._numbers = itertools.count(1)
        self._last_warning = ""
        self._watches_torch = False
        self._depth = threading.local()  # .cells: how many run one within the other, in this thread
        # .since: when the outermost of them began, by the wall clock; of the cell that makes this recorder, now.
        self._depth.since = time.time_ns()

    # IPython's events.

    def pre_run_cell(self, info: CellInfo) -> None:
        """Begin a recording if the cell wants one."""
        with self._harmless(interrupt_goes_on=True):
            inside = self._enter()
            if not inside:
                self._close_views()
            nested = inside and not info.store_history
            self.number = number_around(self._shell) if nested else number_of(self._shell, info)
            if nested:
                self._sources.note_nested(self._sources.file_of(info), self.number, info.raw_cell or "")
            line = options_line(info.raw_cell or "")
            if line is not None:
                parsed = parse_cell(filled_in(line, self._shell.user_ns))
                if parsed.wants_help:
                    publish.say(CELL_HELP)
                elif parsed.problem:
                    publish.warn(parsed.problem)
                self._begin_cell(info, parsed.options, automatic=False)
            elif self.automatic is not None and self._records_by_itself(info):
                self._begin_cell(info, self.automatic, automatic=True)

    def post_run_cell(self, result: CellResult | None) -> None:
        """End the recording of the cell, if there is one, and publish its chart."""
        ended_ns = time.monotonic_ns()
        self._depth.cells = max(0, getattr(self._depth, "cells", 0) - 1)
        with self._harmless(interrupt_goes_on=False):
            self._loads.look(getattr(self._depth, "since", 0))
            running = self._take(result)
            if running is not None:
                self._end(running, ended_ns, _outcome(result))

    # Statements, recorded inside a cell.

    @contextmanager
    def recording(self, text: str, file: str, options: Options) -> Generator[None]:
        """Record what runs inside the with statement."""
        running = None
        with self._harmless(interrupt_goes_on=True):
            self._sources.note_nested(file, self.number, text)
            running = self._begin(None, text, file, options, False)
        outcome = "ok"
        try:
            yield
        except BaseException as error:
            outcome = _name_outcome(error)
            raise
        finally:
            ended_ns = time.monotonic_ns()
            if running is not None:
                with self._harmless(interrupt_goes_on=True):
                    with self._lock:
                        self._running.remove(running)
                    self._end(running, ended_ns, outcome)

    def close(self) -> None:
        """End what runs and take hooks out."""
        self.automatic = None
        self._steps.remove()
        self._failures.forget()
        self._close_views(of_all_threads=True)
        with self._lock:
            sampler, self._sampler = self._sampler, None
            self._running.clear()
        if sampler is not None:
            sampler.stop()

    def _close_views(self, of_all_threads: bool = False) -> None:
        """End what belongs to cells whose end IPython has not reported: another one begins in their thread."""
        with self._lock:
            left = [
                r
                for r in self._running
                if (r.view or r.torch or r.exact or r.allocations or r.history)
                and (of_all_threads or r.thread == threading.get_ident())
            ]
        for running in left:
            if running.view is not None:
                running.view.close()
            if running.torch is not None:
                running.torch.end()
            if running.exact is not None:
                running.exact.end()
            if running.allocations is not None:
                running.allocations.end()
            if running.history is not None:
                running.history.end()

    # Beginning.

    def _enter(self) -> bool:
        """Note that a cell begins; return whether another one runs it."""
        depth: int = getattr(self._depth, "cells", 0)
        self._depth.cells = depth + 1
        if depth == 0:
            self._depth.since = time.time_ns()
        return depth > 0

    def _records_by_itself(self, info: CellInfo) -> bool:
        """Whether ``on`` covers this cell: not our own magics, nor a cell run by a cell."""
        if (info.raw_cell or "").lstrip().startswith("%omni_perf"):
            return False
        with self._lock:
            return all(running.thread != threading.get_ident() for running in self._running)

    def _begin_cell(self, info: CellInfo, options: Options, automatic: bool) -> None:
        file = self._sources.file_of(info)
        self._begin(info, info.raw_cell or "", file, options, automatic)

    def _begin(self, info: CellInfo | None, text: str, file: str, options: Options, automatic: bool) -> Running | None:
        self._steps.new_cell()
        cluster = self._begin_cluster(options)
        exact = _exact_work(options)
        profile = _torch_profile(options) if exact is None else None
        allocations = _allocations(options)
        history = _device_history(options)
        coroutine = _coroutine()
        request: contract.BeginRequest = {
            "cellId": str(next(self._numbers)),
            "executionCount": self.number,
            "text": text[:BATCH_LIMIT],
            "file": file,
            "name": options.name,
            "intervalNs": str(options.interval_ns),
            "systemIntervalNs": str(options.system_interval_ns),
            "children": options.children,
            "threadId": threading.get_native_id(),
            "parentMsgId": parent_msg_id(self._shell),
            "automatic": automatic,
            "thresholdNs": str(options.threshold_ns if automatic else 0),
            "coroutine": str(id(coroutine) if coroutine is not None else 0),
            "residentBytes": str(residentmemory.read()),
        }
        began_ns = time.monotonic_ns()
        if automatic:
            request["startedNs"] = str(began_ns)

        def sources(known: Known) -> list[contract.CellSource]:
            return self._sources.unknown_to(known, BEGIN_LIMIT)

        unawaited_ns = began_ns
        try:
            if profile is not None:  # before the recording, which then lacks its start
                profile.begin()
            beginning = self._session.begin(request, sources, patient=not automatic)
            if not automatic:
                unawaited_ns = 0 if self._session.has_begun(beginning) else time.monotonic_ns()
        except BaseException as error:
            if profile is not None:
                profile.end()
                profile.say()
            if cluster is not None:
                cluster.end(b"")
            if not isinstance(error, SessionError):
                raise
            self._warn_of_loss(f"{error} This cell is not profiled.", automatic)
            return None
        if options.live and not is_notebook(self._shell):
            publish.warn(only_in_notebooks())
        view = LiveView(self._shell) if is_notebook(self._shell) and not options.quiet else None
        if allocations is not None:
            allocations.begin()
        if history is not None:
            history.begin()
        running = Running(
            info,
            threading.get_ident(),
            options,
            automatic,
            self.number,
            request.get("cellId", ""),
            began_ns,
            unawaited_ns,
            beginning,
            coroutine,
            view,
            profile,
            exact,
            allocations,
            history,
            torchmemory.read(),
            cluster,
        )
        with self._lock:
            self._running.append(running)
        beginning.add_done_callback(lambda done: self._sample_here(running))
        if exact is not None:  # within the recording, into the folder of whoever records
            beginning.add_done_callback(lambda done: _begin_exact(done, exact))
        if view is not None:
            self._feed(running, view)
        if not self._look_for_torch() and not self._watches_torch:
            self._watches_torch = True
            self._session.repeat(self._torch_watched)
        return running

    def _begin_cluster(self, options: Options) -> Cluster | None:
        """Begin to record the workers of the client that a cell names; it runs without them where that fails."""
        if not options.cluster:
            return None
        from omni_perf.engines import ClusterError, cluster

        client = self._shell.user_ns.get(options.cluster)
        if options.cluster == ENGINES:
            magic = self._shell.magics_manager.magics["cell"].get("px")
            client = getattr(getattr(magic, "__self__", None), "view", None)
            if client is None:
                return None  # IPython says that there is no %%px
        if client is None:
            publish.warn(f"--cluster takes the name of a variable with a client; there is no {options.cluster!r}.")
            return None
        try:
            workers = cluster(client)
            if workers.asynchronous:
                workers = None
                raise ClusterError(
                    "The client is asynchronous, and a magic cannot wait for it: "
                    f"use async with omni_perf.cluster({options.cluster}) in the cell."
                )
            workers.begin()
        except Exception as error:
            publish.warn(f"{error} The workers are not recorded.")
            return None
        return workers

    def _thread(self) -> int | None:
        """Return the thread of the cell that is recorded, the innermost of several."""
        running = self._running[-1:]
        return running[0].thread if running else None

    def _folder(self) -> str | None:
        """Return the folder of the sidecar."""
        link = self._session.link
        return None if link is None else os.path.dirname(link.client.endpoint.socket)

    def _look_for_torch(self) -> bool:
        """Place what torch calls by itself; return whether all is in place."""
        return self._steps.look() & self._failures.look()

    def _feed(self, running: Running, view: LiveView) -> None:
        """See to what a cell shows while it runs: looks at it, or once how to have them."""
        before = marks.progress()
        delay_s = FIRST_LOOK_S
        if running.automatic:
            delay_s = max(delay_s, running.options.threshold_ns / 1e9)

        def show(answer: contract.LiveResponse | SessionError) -> bool:
            if isinstance(answer, SessionError):
                return view.show(*note(f"omni_perf: {answer} The cell goes on."))
            bundle = answer.get("bundle", contract.Bundle())
            return view.show(bundle_part(bundle, "dataJson"), bundle_part(bundle, "metadataJson"))

        def feed(beginning: Future[Begun]) -> None:
            if beginning.cancelled() or beginning.exception() is not None:
                return
            begun = beginning.result()
            if running.options.live or self.live:
                view.fed_by(self._session.watch_later(begun, delay_s, lambda: marks.progress().since(before), show))
            elif not running.automatic:
                view.fed_by(self._session.after(begun, HINT_AFTER_S, lambda: view.show(*hint())))

        if running.options.live and not running.automatic:
            view.show(*note("omni_perf is looking at this cell …"))
        running.beginning.add_done_callback(feed)

    def _torch_watched(self) -> bool:
        """Look for torch, which the running cell may import; True once there is no need to."""
        self._watches_torch = not self._look_for_torch() and bool(self._running)
        return not self._watches_torch

    def _warn_of_loss(self, sentence: str, automatic: bool) -> None:
        """Warn; under ``on`` not in each cell of the same."""
        if not automatic or sentence != self._last_warning:
            publish.warn(sentence)
        self._last_warning = sentence

    def _sample_here(self, running: Running) -> None:
        """Start the in-kernel sampler if this recording needs it and none runs yet."""
        if running.beginning.cancelled() or running.beginning.exception() is not None:
            return
        begun = running.beginning.result()
        if begun.outside != "fallback":
            return

        def push(request: contract.PushRequest) -> None:
            self._session.push_later(begun, {**request, "cellId": begun.cell_id})

        with self._lock:
            if self._sampler is None and running in self._running:
                self._sampler = FallbackSampler(
                    running.options.interval_ns / 1e9, push, {running.thread: running.coroutine}
                )
                self._sampler.start()

    # Ending.

    def _take(self, result: CellResult | None) -> Running | None:
        """Take out the recording that a finished cell belongs to.

        IPython hands over the very info object of the start, except when an interrupt
        broke through it: then it is a new one or there is no result at all, and the
        cell is the newest of this thread.
        """
        info = result.info if result is not None else None
        with self._lock:
            for running in self._running:
                if info is not None and running.info is info:
                    self._running.remove(running)
                    return running
            if info is not None and not isinstance(result.error_in_exec if result is not None else None, BaseException):
                return None
            for running in reversed(self._running):
                same_text = info is None or (running.info is not None and running.info.raw_cell == info.raw_cell)
                if running.thread == threading.get_ident() and same_text:
                    self._running.remove(running)
                    return running
        return None

    def _end(self, running: Running, ended_ns: int, outcome: str) -> None:
        try:
            self._finish(running, ended_ns, outcome)
        finally:
            if not self._running:
                self._failures.forget()

    def _finish(self, running: Running, ended_ns: int, outcome: str) -> None:
        try:
            self._finish_recording(running, ended_ns, outcome)
        finally:
            if running.cluster is not None and not running.cluster.has_ended:
                running.cluster.end(b"")

    def _finish_recording(self, running: Running, ended_ns: int, outcome: str) -> None:
        resident = residentmemory.read()
        if running.allocations is not None:
            running.allocations.end()
        if running.history is not None:
            running.history.end()
        if running.torch is not None:
            running.torch.end()
        if running.exact is not None:
            running.exact.end()
        if running.view is not None:
            running.view.close()
        self._stop_sampling_here()
        options = running.options
        short = running.automatic and ended_ns - running.began_ns < options.threshold_ns
        request: contract.EndRequest = {
            "cellId": running.cell_id,
            "endedNs": str(ended_ns),
            "outcome": outcome,
            "quiet": options.quiet or short or running.cluster is not None,
            "form": "notebook" if is_notebook(self._shell) else "terminal",
            "beganNs": str(running.unawaited_ns),
            "residentBytes": str(resident),
        }
        if short and not running.beginning.done():
            self._session.end_later(running.beginning, request)
            return
        try:
            begun = self._session.begun(running.beginning, (time.monotonic_ns() - running.began_ns) / 1e9)
        except SessionError as error:
            self._warn_of_loss(f"{error} {_loss(error)}", running.automatic)
            return
        self._last_warning = ""
        if short:
            self._session.end_later(running.beginning, request)
        else:
            self._end_and_show(running, begun, request)

    def _end_and_show(self, running: Running, begun: Begun, request: contract.EndRequest) -> None:
        while begun.link.notes:
            publish.warn(begun.link.notes.pop(0))
        found, lost = marks.between(begun.started_ns, int(request.get("endedNs", 0)))
        new_sources = self._sources.unknown_to(begun.link.known)
        loads = self._loads.unknown_to(begun.link.loaded)
        complete: contract.EndRequest = {**request, "marks": found, "sources": new_sources, "loaded": loads}
        patience_s = 0.0
        if running.exact is not None and running.exact.problem:
            publish.warn(running.exact.problem)
        if running.torch is not None:
            running.torch.say()
            if running.torch.traces:
                complete["torch"] = running.torch.result
                patience_s = running.torch.reading_s
        if running.options.kernel_wait_ns:
            complete["kernelWaitNs"] = str(running.options.kernel_wait_ns)
        if failed := self._failures.between(begun.started_ns, int(request.get("endedNs", 0))):
            complete["outOfMemory"] = failed
        if running.allocations is not None:
            if recorded := running.allocations.result():
                complete["allocations"] = recorded
            if running.allocations.problem:
                publish.warn(running.allocations.problem)
        if said := torchmemory.between(running.torch_memory, torchmemory.read()):
            complete["torchMemory"] = said
        try:
            answer = self._session.end(begun, complete, patience_s)
        except SessionError as error:
            sentence = _lost_sentence(begun, error, running.number)
            if running.view is None or not running.view.say("omni_perf: " + sentence):
                self._warn_of_loss(sentence, running.automatic)
            return
        except KeyboardInterrupt:
            if running.view is not None:
                running.view.say("omni_perf: The chart was given up; %omni_perf last shows it.")
            raise
        begun.link.remember(new_sources)
        begun.link.remember_loads(loads)
        if running.torch is not None:
            running.torch.ended(answer.get("written", []))
            running.torch.say()
        for line in [*answer.get("lines", []), *filter(None, [lost])]:
            publish.say(line)
        bundle = answer.get("bundle", contract.Bundle())
        if bundle:
            publish.show(self._shell, bundle, running.view.place if running.view is not None else "")
        self._keep(answer, bundle, running.number)
        if running.history is not None:
            self._show_history(running.history, running.options)
        if running.cluster is not None:
            self._show_workers(running, running.cluster, base64.b64decode(answer.get("reportGzip", "")))

    def _show_history(self, history: DeviceHistory, options: Options) -> None:
        """Show what torch's history of a cell has, below its chart."""
        if history.problem:
            publish.warn(history.problem)
        if not history.path:
            return
        publish.say(f"omni_perf: what torch allocated on GPUs is in {os.path.basename(history.path)}.")
        if options.quiet:
            return
        from omni_perf.analysis import AnalysisError, analyze

        try:
            snapshot = analyze(memory_snapshot=history.path)
        except AnalysisError as error:
            publish.warn(f"It cannot be shown: {error}")
            return
        self._display(snapshot)

    def _show_workers(self, running: Running, cluster: Cluster, cell: bytes) -> None:
        """Show the cell together with the workers of its engine, and keep that as the last report."""
        ended = cluster.end(cell)
        if ended is None:
            return
        kept.last = report = replace(ended, draw=self._session.draw, number=running.number)
        if not running.options.quiet:
            self._display(report)

    def _display(self, shown: Report | Analysis) -> None:
        data, metadata = shown._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]
        publish.publish(self._shell, data, metadata)

    def _keep(self, answer: contract.EndResponse, bundle: contract.Bundle, number: int) -> None:
        compressed = base64.b64decode(answer.get("reportGzip", ""))
        if compressed:
            kept.last = Report(
                answer.get("reportId", ""),
                answer.get("headline", ""),
                compressed,
                bundle,
                self._session.draw,
                number,
            )

    def _stop_sampling_here(self) -> None:
        """Stop the in-kernel sampler, and start it anew for a cell that still runs."""
        with self._lock:
            sampler, self._sampler = self._sampler, None
            others = [running for running in self._running if running.beginning.done()]
        if sampler is not None:
            sampler.stop()
            for running in others[-1:]:
                self._sample_here(running)

    @contextmanager
    def _harmless(self, interrupt_goes_on: bool) -> Generator[None]:
        """Keep our own errors and interrupts away from IPython."""
        try:
            yield
        except KeyboardInterrupt:
            if interrupt_goes_on:
                # A real signal: only that ends a blocking call of the cell.
                main = threading.main_thread().ident
                timer = threading.Timer(INTERRUPT_DELAY_S, signal.pthread_kill, (main, signal.SIGINT))
                timer.daemon = True
                timer.start()
            else:
                publish.warn("The chart was given up; the recording is in %omni_perf list.")
        except Exception as error:
            publish.warn(
                f"An error inside the profiler, {type(error).__name__}: {error}. The cell itself is not affected."
            )


def _torch_profile(options: Options) -> TorchProfile | None:
    """Return the torch.profiler that a cell asks for; torch is imported here, before the cell is recorded."""
    if options.torch is None:
        return None
    from omni_perf import torchprofile

    torchprofile.forget_traces()
    problem = torchprofile.ready(options.torch)
    if problem:
        publish.warn(problem)
        return None
    return torchprofile.TorchProfile(options.torch)


def _exact_work(options: Options) -> ExactWork | None:
    """Return what records the GPU's work for --exact where torch is not there to do it."""
    if options.torch is None or not options.torch.exact or "torch" in sys.modules:
        return None
    if not _WITHOUT_TORCH.intersection(sys.modules) and importlib.util.find_spec("torch") is not None:
        return None
    from omni_perf.exactwork import ExactWork

    return ExactWork()


def _allocations(options: Options) -> Allocations | None:
    """Return memray's tracker, which is imported for --memory exact alone."""
    if not options.allocations:
        return None
    from omni_perf.allocations import Allocations

    return Allocations()


def _device_history(options: Options) -> DeviceHistory | None:
    """Return what has torch record its allocations on GPUs, for --memory device and --memory alone."""
    if not options.device_history:
        return None
    from omni_perf.devicehistory import DeviceHistory

    return DeviceHistory(options.expects_devices)


def _begin_exact(beginning: Future[Begun], exact: ExactWork) -> None:
    if not beginning.cancelled() and beginning.exception() is None:
        exact.begin(os.path.dirname(beginning.result().link.client.endpoint.socket))


def _coroutine() -> object:
    """Return the coroutine that this thread's event loop runs the cell in, if any.

    While the cell awaits, its frames are on no stack: the samplers find them from there.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None
    return task.get_coro() if task is not None else None


def _outcome(result: CellResult | None) -> str:
    if result is None:  # an awaiting cell that was cancelled
        return "interrupted"
    error = result.error_before_exec or result.error_in_exec
    return "ok" if error is None else _name_outcome(error)


def _name_outcome(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
        return "interrupted"
    return "error: " + type(error).__name__


def _loss(error: SessionError) -> str:
    """What a cell lacks whose recording did not begin while it ran; a stopped sidecar still notes that it did."""
    return "This cell has no chart." if isinstance(error, SidecarStoppedError) else "This cell is not profiled."


def _lost_sentence(begun: Begun, error: SessionError, number: int) -> str:
    if isinstance(error, SidecarStoppedError):
        return f"{error} Then %omni_perf last {number} shows this cell."
    gone_at_ns = begun.link.client.gone_at_ns
    if gone_at_ns:
        into = max(0, gone_at_ns - begun.started_ns) / 1e9
        return (
            f"The sidecar was gone {into:.1f} s into this cell: its profile is lost, and what was kept of the cells "
            "before it; the next profiled cell starts a new sidecar."
        )
    return f"{error} The profile of this cell is lost."
