"""Runs torch.profiler around a cell, or in the windows of a schedule within it.

It is torch's own profiler, used by its public methods. Two profilers of one process must never
nest: torch does not refuse it, and crashes the kernel when the outer one exports. So before ours
starts, torch is asked whether one runs, and where another one is about to start while ours does,
ours ends first. All that is called here in a cell's time runs below :func:`_run_profiler`, by
which the report recognises it (``libraries.txt``): the time is shown as its own and is no line's.
"""

from __future__ import annotations

import atexit
import gzip
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from enum import Enum
from importlib import import_module
from typing import Any, Final

# Relative: this module is part of another package, too, in a program under `omni-perf run --torch`.
from . import contract, deepspeedreports, marks, tracefolder
from .options import Torch
from .schedule import Action, given, on_change

WHOLE_STEPS: Final = 200
"""Steps after which a recording without a schedule ends: 200 tiny ones are some 50 MB and 2 s of export."""

WHOLE_S: Final = 60
"""Seconds after which it ends, at the end of a step."""

READ_BYTES_PER_S: Final = 5e6
"""What the sidecar reads of traces at least; on an idle machine some 100 MB/s."""

EXACT_FIRST_STEPS: Final = 20
"""Steps of the first stretch that --exact records: how many events they have says how many steps fit."""

EXACT_FIRST_S: Final = 5
"""Seconds after which it ends, at the end of a step."""

EXACT_EVENTS: Final = 200_000
"""Events that --exact records of a cell with steps: some 60 MB, and 2 s until torch has written them."""

USERS_OWN: Final = "The traces are those of your own torch.profiler: --torch recorded nothing besides."

MERGE: Final = (
    "The trace that yours writes in the cell is added to the chart; omni_perf.last().merge_trace(PATH) adds one that "
    "it writes later."
)

MOST_TRACES: Final = 100
"""Traces of one cell; what comes after is not recorded."""


class _State(Enum):
    IDLE = 1
    WARM = 2
    RECORDING = 3


class TorchError(Exception):
    """torch.profiler cannot be used; the text is a sentence."""


class TorchProfile:
    """The profiler of one cell. All methods are harmless: what fails is a sentence in ``remarks``.

    ``begin``, the steps and ``end`` are of one thread, the cell's: torch.profiler belongs to the
    thread that started it.
    """

    def __init__(self, wanted: Torch) -> None:
        self.traces: list[str] = []
        """Paths of the finished traces."""
        self.recorded: list[contract.Recorded] = []
        """When each of them was recorded, as far as that is known."""
        self.windows: list[tuple[int, int]] = []
        """The same, CLOCK_MONOTONIC; 0 and 0 of one of the user's own."""
        self.remarks: list[str] = []
        """What the user should know, a sentence each."""
        self._wanted = wanted
        self._schedule = None if wanted.exact else wanted.schedule or given.schedule
        self._option = "--exact" if wanted.exact else "--torch"
        self._pid = os.getpid()
        self._thread = threading.get_ident()
        self._state = _State.IDLE
        self._profiler: Any = None
        self._annotation: Any = None
        self._step = 0
        """The step that runs, of the cell or of the epoch."""
        self._steps = 0
        """Steps that have ended in the cell."""
        self._epoch: int | None = None
        self._called = False
        """omni_perf.step() was called: the hook's steps no longer count."""
        self._since_ns = 0
        """When the profiler started to record, CLOCK_MONOTONIC."""
        self._idle_then = False
        """Nothing was queued on devices then."""
        self._first = 0
        """The step, of the cell, with which it started to record."""
        self._room = EXACT_FIRST_STEPS
        """Steps that a stretch of --exact may have."""
        self._events = 0
        """Events in the traces that were written, of --exact."""
        self._over = False
        self._inside = False
        """What is called of torch is our own doing."""
        self._undo: list[Callable[[], None]] = []
        self._reports: list[str] | None = None
        """What DeepSpeed has reported, by the paths; None: it is not imported yet."""
        self._open: set[int] = set()
        """Regions that began while we recorded and have not ended, by their ids: see _watch_regions."""
        self._waited = 0
        """Steps for which a window could not begin because of one."""
        self._cycles = 0
        """Cycles of the schedule that have ended."""
        self._named_epoch: int | None = None
        """The epoch that the last step was of, as omni_perf.step() named it."""
        self._folder = self._made_folder(wanted.folder)

    def _made_folder(self, name: str) -> str:
        """Make the folder that the user named, and return its path; empty: there is none."""
        if not name:
            return ""
        path = os.path.abspath(os.path.expanduser(name))
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            self.remarks.append(f"The folder {path} could not be made: {error.strerror}. The traces are not kept.")
            return ""
        return path

    # What the cell's recorder calls.

    def begin(self) -> None:
        """Start, in front of the cell; where that is not possible, say so."""
        global _active
        try:
            if _active is not None:
                raise TorchError("torch.profiler already records another cell: this one is profiled without it.")
            _torch()
            self._undo.append(_watch_exports(self._users_trace))
            if _is_profiled():
                raise TorchError(
                    "torch.profiler already runs, started by your own code, and two of them in one process crash it: "
                    f"this cell is profiled without {self._option}. " + MERGE
                )
            _active = self
            self._undo.append(_watch_others(self._give_way))
            self._undo.append(_watch_regions(self._region_begins, self._open.discard))
            self._undo.append(on_change(self._reschedule))
            marks.watch(self.step)
            self._watch_reports()
            if self._schedule is None:
                _synchronise(self._wanted)
                self._run_profiler(lambda: self._start(Action.SAVE))
            else:
                self._enter_step()
        except TorchError as error:
            self._fail(str(error))
        except Exception as error:
            self._fail(f"torch.profiler could not start: {type(error).__name__}: {error}.")

    def step(self, by_hook: bool, epoch: int | None) -> None:
        """A step has ended; the next one begins."""
        if self._over or threading.get_ident() != self._thread or os.getpid() != self._pid:
            return
        self._watch_reports()
        if by_hook and self._called:
            return
        first_call, self._called = not by_hook and not self._called, self._called or not by_hook
        if first_call and self._steps:  # the hook has counted this step already
            return
        self._steps += 1
        self._step += 1
        if self._schedule is None:
            self._name_epoch(epoch)
        if self._wanted.exact:
            self._run_profiler(self._leave_exact_step)
            return
        if self._schedule is None:
            if self._steps >= WHOLE_STEPS or time.monotonic_ns() - self._since_ns > WHOLE_S * 1e9:
                self._run_profiler(self._finish)
                self._stop_for_good(
                    f"torch.profiler recorded the first {self._steps} steps of the cell and then ended, as its trace "
                    "would have become too large. --torch wait=N active=N says which steps to record."
                )
            return
        self._run_profiler(lambda: self._leave_step(epoch))

    def end(self) -> None:
        """Stop, after the cell; whatever has happened in it, no profiler of ours runs afterwards."""
        global _active
        if os.getpid() != self._pid:
            return
        over, self._over = self._over, True
        try:
            self._run_profiler(self._finish)
        finally:
            for undo in reversed(self._undo):
                with suppress(Exception):
                    undo()
            self._undo.clear()
            self._epoch_ends()
            if _active is self:
                _active = None
                marks.watch(None)
        if not over and not any(self.recorded) and not self.remarks:
            self.remarks.append(USERS_OWN if self.traces else self._why_nothing())

    def cancel(self) -> None:
        """End without a trace."""
        self._over = True
        self._run_profiler(self._abandon)
        self.end()

    @property
    def rank(self) -> int:
        """The number of this process among those of the training."""
        return _rank()

    @property
    def steps(self) -> int:
        """How many have ended."""
        return self._steps

    def say(self) -> None:
        """Print what the user should know."""
        from . import publish

        while self.remarks:
            publish.warn(self.remarks.pop(0))

    @property
    def result(self) -> contract.Torch:
        """What the sidecar is to add to the report."""
        result: contract.Torch = {"traces": self.traces, "byShape": self.by_shape, "recorded": self.recorded}
        if self._folder:
            result["folder"], result["node"] = self._folder, _node()
        return result

    def ended(self, written: list[str]) -> None:
        """All files are written: those of the folder, besides the traces."""
        if (on_end := given.handlers.on_end) is not None:
            files = [*self.traces, *(path for path in written if path not in self.traces), *(self._reports or [])]
            self._call("on_end", lambda: on_end(files))

    @property
    def by_shape(self) -> bool:
        """Whether operators with different inputs are told apart."""
        return self._wanted.shapes

    @property
    def reading_s(self) -> float:
        """How long the traces may take to read, on a busy machine."""
        size = sum(map(_size, self.traces))
        return 5 + size / READ_BYTES_PER_S * (2 if self._folder else 1)

    def _why_nothing(self) -> str:
        if self._steps == 0:
            return (
                "--torch recorded nothing: its schedule counts steps, and the cell had none. A call of an optimizer's "
                "step() ends one, or a call of omni_perf.step()."
            )
        assert self._schedule is not None
        schedule = self._schedule
        needed = schedule.skip_first + schedule.wait + schedule.warmup + 1
        each = "each epoch" if schedule.by_epoch else "the cell"
        return (
            f"--torch recorded nothing: its schedule begins to record at step {needed}, and {each} had fewer "
            f"({self._steps} in all)."
        )

    # The profiler's way through the steps.

    def _run_profiler(self, action: Callable[[], None]) -> None:
        """Call what starts, stops or exports; the report recognises this frame. An error ends the recording."""
        began_ns = time.monotonic_ns()
        self._inside = True
        try:
            action()
        except KeyboardInterrupt:
            self._abandon()
            raise
        except Exception as error:
            self._abandon()
            self._fail(f"torch.profiler failed: {type(error).__name__}: {error}. The cell went on without it.")
        finally:
            self._inside = False
            marks.pause(began_ns, time.monotonic_ns())

    def _enter_step(self) -> None:
        """Do what the schedule has for the step that begins."""
        assert self._schedule is not None
        action = self._schedule.action(self._step)
        if action is Action.NONE or self._over:
            return
        self._run_profiler(lambda: self._start(action))

    def _leave_step(self, epoch: int | None) -> None:
        """End what the schedule had for the step that ended, and do what it has for the next one."""
        assert self._schedule is not None
        schedule = self._schedule
        self._annotate(None)
        ended = schedule.action(self._step - 1)
        if schedule.by_epoch and epoch is not None and epoch != self._epoch:
            if self._epoch is not None:  # the step that ended was the epoch's first
                if self._state is not _State.IDLE:
                    self._finish()
                self._step = 1
                ended = Action.NONE
            self._epoch = epoch
        self._name_epoch(epoch)
        if ended is Action.SAVE and self._state is _State.RECORDING:
            self._finish()
            self._cycle_ends()
        action = schedule.action(self._step)
        if action is not Action.NONE:
            self._start(action)

    def _leave_exact_step(self) -> None:
        """Go on as long as there is room for events; how many a step has is known when some were written."""
        if self._state is not _State.RECORDING:
            self._start(Action.SAVE)
            return
        steps, first = self._steps - self._first, not self._events
        in_time = not first or time.monotonic_ns() - self._since_ns < EXACT_FIRST_S * 1e9
        if steps < self._room and in_time:
            return
        self._finish()
        self._room = (EXACT_EVENTS - self._events) * steps // max(1, self._events)
        if first and self._events and self._room > 0:
            self._start(Action.SAVE)
            return
        self._stop_for_good(
            f"--exact recorded the first {self._steps} steps of the cell and then ended, as its trace would have "
            "become too large: the rest is known as well as the driver's figures are."
        )

    def _start(self, action: Action) -> None:
        """Warm up or record, as the action says, if that is not yet done."""
        if self._state is _State.IDLE:
            if len(self.traces) >= MOST_TRACES:
                self._stop_for_good(f"torch.profiler wrote {MOST_TRACES} traces, the most of one cell, and then ended.")
                return
            if _is_profiled():
                self._remark_once(
                    "Your own torch.profiler ran where --torch would have recorded a window: it is left out. " + MERGE
                )
                return
            self._profiler = _make(self._wanted)
            with _quiet():
                self._profiler.prepare_trace()
            self._state = _State.WARM
        if action is not Action.WARMUP:
            if self._state is _State.WARM:
                if self._open:  # the optimizer's own, whose hook we are in, or the user's
                    self._wait_for_regions()
                    return
                self._profiler.start_trace()
                self._since_ns = time.monotonic_ns()
                self._idle_then, self._first = not self._steps, self._steps
                self._state, self._waited = _State.RECORDING, 0
            if self._schedule is not None:
                self._annotate(f"ProfilerStep#{self._steps}")

    def _region_begins(self, region: int) -> None:
        if self._state is _State.RECORDING and threading.get_ident() == self._thread:
            self._open.add(region)

    def _wait_for_regions(self) -> None:
        """Let a step pass that the schedule does not count: what one profiler saw begin must not end under another."""
        self._step -= 1
        self._waited += 1
        if self._waited > 1:
            self._remark_once(
                "A record_function of yours was open where a window ended: the next one begins when it has ended, "
                "as torch crashes otherwise."
            )

    def _annotate(self, name: str | None) -> None:
        """End the annotation of the step, and begin one of this name."""
        if self._annotation is not None:
            annotation, self._annotation = self._annotation, None
            annotation.__exit__(None, None, None)
        if name is not None:
            self._annotation = _torch().profiler.record_function(name)
            self._annotation.__enter__()

    def _finish(self) -> None:
        """Stop what runs; write the trace of what was recorded."""
        self._annotate(None)
        profiler, state = self._profiler, self._state
        if profiler is None:
            return
        if state is _State.WARM:  # nothing was recorded: as torch does, it is started to be stopped
            profiler.start_trace()
        ended_ns = time.monotonic_ns()
        profiler.stop_trace()
        self._profiler, self._state = None, _State.IDLE
        if state is _State.WARM:
            _release(profiler)
            return
        recorded: contract.Recorded = {"cycle": self._name()}
        if self._wanted.exact:  # what was queued before the start is not in the trace
            recorded |= {"beganNs": str(self._since_ns if self._idle_then else 0), "endedNs": str(ended_ns)}
        name = f"rank{_process()}.{self._steps}"
        if any(os.path.basename(path).startswith(name + ".pt") for path in self.traces):
            name += f".{len(self.traces)}"
        folder = self._wanted.spool or _folder()
        window = self._since_ns, ended_ns
        self._export(profiler, os.path.join(folder, name + ".pt.trace.json"), recorded, window)

    def _watch_reports(self) -> None:
        """Keep DeepSpeed's reports, if there is a folder for them and DeepSpeed is imported."""
        if self._folder and self._reports is None and (end := deepspeedreports.watch(self._reported)) is not None:
            self._reports = []
            self._undo.append(end)

    def _reported(self, kind: str, report: deepspeedreports.Print) -> None:
        """DeepSpeed has made a report: of flops at a step, or a line about memory."""
        if self._reports is None or os.getpid() != self._pid:
            return
        began_ns, kept = time.monotonic_ns(), self._reports
        path = os.path.join(self._folder, f"{self._name()}.{kind}.txt")
        try:
            report(path)
            os.chmod(path, 0o600)
            if path not in kept:
                kept.append(path)
        except Exception as error:
            self._remark_once(f"DeepSpeed's report could not be kept in {self._folder}: {error}.")
        finally:
            marks.pause(began_ns, time.monotonic_ns())

    def _name(self) -> str:
        """What files of this step are called, as Composer calls them."""
        return f"ep{self._named_epoch or 0}-ba{self._steps}-rank{_process()}"

    def _users_trace(self, path: str) -> None:
        """The user's own profiler has written a trace in the cell: it is added to the chart."""
        if not self._inside and path not in self.traces and len(self.traces) < MOST_TRACES:
            self.traces.append(path)
            self.recorded.append({})
            self.windows.append((0, 0))

    def _export(self, profiler: Any, path: str, recorded: contract.Recorded, window: tuple[int, int]) -> None:
        try:
            profiler.export_chrome_trace(path)
            problem = _damage(path)
        except Exception as error:
            problem = str(error) or type(error).__name__
        _release(profiler)
        if problem:
            with suppress(OSError):
                os.remove(path)
            self._remark_once(f"torch.profiler's trace could not be written to {os.path.dirname(path)}: {problem}.")
            return
        if self._wanted.exact:
            self._events += _count_events(path)
        if self._folder:
            path = self._kept(path)
        self.traces.append(path)
        self.recorded.append(recorded)
        self.windows.append(window)
        if (on_trace := given.handlers.on_trace) is not None:
            self._call("on_trace", lambda: on_trace(path))

    def _kept(self, path: str) -> str:
        """Move a trace into the user's folder, compressed, and return its path."""
        kept = os.path.join(self._folder, os.path.basename(path) + ".gz")
        try:
            file = os.open(kept + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with (
                open(path, "rb") as plain,
                open(file, "wb") as to,
                gzip.GzipFile("", "wb", 1, to) as packed,
            ):
                shutil.copyfileobj(plain, packed, 1 << 20)
            os.replace(kept + ".tmp", kept)
        except OSError as error:
            with suppress(OSError):
                os.remove(kept + ".tmp")
            self._remark_once(f"A trace could not be kept in {self._folder}: {error.strerror}.")
            return path
        os.remove(path)
        return kept

    def _cycle_ends(self) -> None:
        cycle, self._cycles = self._cycles, self._cycles + 1
        if (on_cycle := given.handlers.on_cycle) is not None:
            self._call("on_cycle", lambda: on_cycle(cycle))

    def _name_epoch(self, epoch: int | None) -> None:
        """Note which epoch a step was of; the one before has ended where it is another one."""
        if epoch is not None and epoch != self._named_epoch:
            self._epoch_ends()
            self._named_epoch = epoch

    def _epoch_ends(self) -> None:
        epoch, self._named_epoch = self._named_epoch, None
        if epoch is not None and (on_epoch := given.handlers.on_epoch) is not None:
            self._call("on_epoch", lambda: on_epoch(epoch))

    def _call(self, name: str, call: Callable[[], object]) -> None:
        """Call a function of the user's; what it raises is said."""
        try:
            call()
        except Exception as error:
            self._remark_once(f"{name} failed: {type(error).__name__}: {error}.")

    def _abandon(self) -> None:
        """Stop what runs, after an error or an interrupt; nothing is written."""
        with suppress(Exception):
            self._annotate(None)
        profiler, state = self._profiler, self._state
        self._profiler, self._state = None, _State.IDLE
        with suppress(Exception):
            if profiler is not None and state is _State.WARM:
                profiler.start_trace()
        with suppress(Exception):
            if profiler is not None and _is_profiled():
                profiler.stop_trace()

    def _give_way(self) -> None:
        """Another profiler is about to start: end ours before."""
        if self._inside or self._state is _State.IDLE:
            return
        if threading.get_ident() != self._thread:
            # Only the thread that started a profiler can stop it, and a nested one must not be exported.
            self._profiler, self._state = None, _State.IDLE
            self._stop_for_good(f"Your own code started a profiler in another thread: {self._option} wrote no trace.")
            return
        self._run_profiler(self._finish)
        if self._schedule is None:
            self._stop_for_good(
                f"Your own code started a profiler in this cell: {self._option} ended there, so that yours is not "
                "disturbed. " + MERGE
            )

    def _reschedule(self) -> None:
        """Follow omni_perf.schedule(), called in the cell: what was recorded so far as a whole is thrown away."""
        if (
            self._wanted.schedule is not None
            or self._wanted.exact
            or self._over
            or threading.get_ident() != self._thread
        ):
            return
        self._run_profiler(self._abandon if self._schedule is None else self._finish)
        self._schedule, self._step, self._steps, self._epoch = given.schedule, 0, 0, None
        if self._schedule is None:
            self._run_profiler(lambda: self._start(Action.SAVE))
        else:
            self._enter_step()

    def _stop_for_good(self, sentence: str) -> None:
        self._over = True
        self._remark_once(sentence)

    def _remark_once(self, sentence: str) -> None:
        if sentence not in self.remarks:
            self.remarks.append(sentence)

    def _fail(self, sentence: str) -> None:
        self._stop_for_good(sentence)


_active: TorchProfile | None = None
"""The one that records; a process can have one."""


def ready(wanted: Torch) -> str:
    """Import torch, which was asked for; return why it cannot be used, or an empty text."""
    try:
        _torch("--exact" if wanted.exact else "--torch")
        if wanted.exact and not _devices():
            return (
                "--exact needs a GPU whose work torch.profiler can record, and this PyTorch has none: the cell is "
                "profiled without it."
            )
    except TorchError as error:
        return str(error)
    return ""


def _devices() -> list[Any]:
    """Return those of torch.profiler's activities that devices have."""
    profiler = _torch().profiler
    with suppress(Exception):
        return [activity for activity in profiler.supported_activities() if activity != profiler.ProfilerActivity.CPU]
    return []


def _synchronise(wanted: Torch) -> None:
    """Let devices work off what was queued before the cell: of what began before it, a trace has nothing."""
    if not wanted.exact:
        return
    torch = _torch()
    for device in _devices():
        module = getattr(torch, device.name.lower(), None)
        with suppress(Exception):
            if module is not None and module.is_initialized():
                module.synchronize()


def _torch(option: str = "--torch") -> Any:
    try:
        torch: Any = import_module("torch")
    except ImportError as error:
        raise TorchError(
            f"{option} needs PyTorch, which could not be imported: {error}. The cell is profiled without it."
        ) from error
    try:
        profiler = import_module("torch.profiler")
        methods = ("prepare_trace", "start_trace", "stop_trace", "export_chrome_trace")
        usable = all(hasattr(profiler.profile, name) for name in methods) and callable(torch.autograd._profiler_enabled)
    except (ImportError, AttributeError):
        usable = False
    if not usable:
        version = getattr(torch, "__version__", "of an unknown version")
        raise TorchError(
            f"{option} cannot use the profiler of torch {version}: it lacks what is used of it, or has it under other "
            "names. The cell is profiled without it."
        )
    return torch


def _is_profiled() -> bool:
    """Whether a profiler records in this thread, or is prepared."""
    torch = _torch()
    return bool(torch.autograd._profiler_enabled() or getattr(torch.autograd.profiler, "_is_profiler_enabled", False))


def _make(detail: Torch) -> Any:
    torch = _torch()
    options: dict[str, Any] = {
        "record_shapes": detail.shapes or detail.flops,
        "with_stack": detail.stack,
        "profile_memory": detail.memory,
        "with_flops": detail.flops,
        "with_modules": detail.modules,
    }
    if detail.exact:
        options = {"activities": _devices()}
    if not detail.stack:  # half of the time that stopping takes; experimental: it may be missing
        with suppress(Exception):
            options["experimental_config"] = torch._C._profiler._ExperimentalConfig(trace_only=True)
    return torch.profiler.profile(**options)


def _release(profiler: Any) -> None:
    """Free what a profiler recorded, in this thread and now.

    It is in a cycle of references: else the garbage collector would free it at some time in some
    thread, as ours, while Kineto starts or stops the next one.
    """
    with suppress(Exception):
        profiler.profiler.kineto_results = None
    with suppress(Exception):
        profiler.profiler = None


def _say_nothing(*_: Any) -> None: ...


@contextmanager
def _quiet() -> Generator[None]:
    """Keep what starting a profiler writes from the cell's stderr.

    Kineto says that it starts and stops; it reads the variable when it is first used. Torch 2.11 warns of
    what only a profiler with several cycles loses; the program's own is to warn as ever.
    """
    name = "KINETO_LOG_LEVEL"
    module: Any = sys.modules.get("torch.profiler.profiler")
    warn_once = getattr(module, "_warn_once", None)
    if not (chosen := name in os.environ):
        os.environ[name] = "99"
    if warn_once is not None:
        module._warn_once = _say_nothing
    try:
        yield
    finally:
        if not chosen:
            os.environ.pop(name, None)
        if warn_once is not None:
            module._warn_once = warn_once


def _watch_others(about_to_start: Callable[[], None]) -> Callable[[], None]:
    """Have a function called before any profiler of this process starts; return what ends that.

    The two names are globals of torch.autograd.profiler, through which all of torch's profilers
    start: torch.profiler, autograd's own, emit_nvtx and those of frameworks.
    """
    module: Any = sys.modules["torch.autograd.profiler"]
    replaced: dict[str, tuple[Any, Any]] = {}

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def start(*arguments: Any, **options: Any) -> Any:
            about_to_start()
            return original(*arguments, **options)

        return start

    for name in ("_prepare_profiler", "_enable_profiler"):
        original = getattr(module, name, None)
        if original is not None:
            replaced[name] = original, watched(original)
            setattr(module, name, replaced[name][1])

    def end() -> None:
        for name, (original, ours) in replaced.items():
            if getattr(module, name) is ours:
                setattr(module, name, original)

    return end


def _watch_regions(begins: Callable[[int], None], ends: Callable[[int], None]) -> Callable[[], None]:
    """Have functions called with the id of each region that begins and ends; return what ends that.

    A region that began under one profiler and ends while another one records writes into the memory that
    the first one has freed: torch 2.15 crashes then, with its own schedule, too. The optimizer's step is such a
    region, and the hook that counts steps is called in it.
    """
    kind: Any = sys.modules["torch.autograd.profiler"].record_function
    enter, leave = kind.__enter__, kind.__exit__

    def entered(region: Any) -> Any:
        begins(id(region))
        return enter(region)

    def left(region: Any, *error: Any) -> Any:
        try:
            return leave(region, *error)
        finally:
            ends(id(region))

    kind.__enter__, kind.__exit__ = entered, left

    def end() -> None:
        if (kind.__enter__, kind.__exit__) == (entered, left):
            kind.__enter__, kind.__exit__ = enter, leave

    return end


def _watch_exports(written: Callable[[str], None]) -> Callable[[], None]:
    """Have a function called with the path of each trace that a torch.profiler writes; return what ends that."""
    kind: Any = sys.modules["torch.profiler"].profile
    export = kind.export_chrome_trace

    def exported(profiler: Any, path: str, *arguments: Any, **options: Any) -> Any:
        result = export(profiler, path, *arguments, **options)
        written(os.path.abspath(os.fspath(path)))
        return result

    kind.export_chrome_trace = exported

    def end() -> None:
        if kind.export_chrome_trace is exported:
            kind.export_chrome_trace = export

    return end


def _count_events(path: str) -> int:
    """Return how many events with a length a trace has, at least 1."""
    count, rest = 0, b""
    with suppress(OSError), open(path, "rb") as file:
        while block := file.read(1 << 20):
            count += (rest + block).count(b'"ph": "X"')
            rest = block[-8:]  # shorter than what is counted
    return max(1, count)


def _size(path: str) -> int:
    """Return how large a trace is, at least about, uncompressed."""
    try:
        return os.path.getsize(path) * (12 if path.endswith(".gz") else 1)
    except OSError:
        return 0


def _damage(path: str) -> str:
    """Return why a file is no whole trace, or an empty text: torch only logs that a disk is full."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 64))
            whole = file.read().rstrip().endswith(b"}")
    except OSError as error:
        return error.strerror or str(error)
    if whole:
        return ""
    free = shutil.disk_usage(os.path.dirname(path)).free
    return "the disk is full" if free < 1 << 20 else "it is not whole"


def _process() -> str:
    """Return what distinguishes this process in names of files: its rank, and its pid where it is another child."""
    rank = str(_rank())
    child = getattr(sys.modules.get("multiprocessing.process"), "_parent_process", None) is not None
    if child and "RANK" not in os.environ and not _is_distributed():
        rank += f"-{os.getpid()}"
    return rank


def _is_distributed() -> bool:
    distributed: Any = sys.modules.get("torch.distributed")
    with suppress(Exception):
        return bool(distributed is not None and distributed.is_available() and distributed.is_initialized())
    return False


def _rank() -> int:
    distributed: Any = sys.modules.get("torch.distributed")
    with suppress(Exception):
        if _is_distributed():
            return int(distributed.get_rank())
    rank = os.environ.get("RANK", "0")
    return int(rank) if rank.isdecimal() else 0


def _node() -> int:
    """Return the number of this machine among those of the training, as its launcher gives it."""
    number = os.environ.get("GROUP_RANK") or os.environ.get("NODE_RANK") or "0"
    return int(number) if number.isdecimal() else 0


_made: list[tuple[int, str, int]] = []
"""The folder of the last cell's traces, the process that made it, and its lock."""


def _folder() -> str:
    """Return the folder for traces that the user named none for; it is private, and lasts until the next such cell."""
    if not _made or _made[-1][0] != os.getpid() or not os.path.isdir(_made[-1][1]):
        folder, lock = tracefolder.make()
        _made.append((os.getpid(), folder, lock))
        if len(_made) == 1:
            atexit.register(forget_traces)
        tracefolder.sweep(os.path.dirname(folder))
    return _made[-1][1]


def forget_traces() -> None:
    """Remove the traces of earlier cells."""
    while _made:
        pid, folder, lock = _made.pop()
        if pid == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)
        if lock >= 0:
            with suppress(OSError):
                os.close(lock)
