"""Records a worker of Ray, in the worker: the hook of its start, and what is asked of all workers of a machine.

A job's ``worker_process_setup_hook`` calls :func:`place` in each new worker, before its first task. From then on
every task and method is wrapped, and a thread looks whether a run is being recorded: that is a file in a
folder of this machine and cluster. Without one, a task costs a comparison and the thread a look each 0.2 s.

Tried with ray 2.60.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Final, cast

from omni_perf._version import __version__
from omni_perf.engines import worker
from omni_perf.engines.worker import Status, clear, clock, collect

LOOK_S: Final = 0.2
"""How often a worker looks whether a run begins or ends."""

PATIENCE_S: Final = 2.0
"""How long a recording is waited for to begin, and workers to end theirs; one that holds the GIL may take longer."""

ROLE: Final = "ray-worker"

TRAINING: Final = "ray.train.v2._internal.execution.worker_group.thread_runner"
"""The module that runs the training function of Ray Train in a thread of its own."""


class _Worker:
    """This process as a worker: which run records it, and what it does."""

    def __init__(self, ray: Any) -> None:
        self._context: Any = ray.get_runtime_context()
        self._folder = _control(ray)
        self._run = ""
        self._began_s = 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.recording: worker.Recording | None = None
        self.has_run = False

    def start(self) -> None:
        """Look now and from now on; a worker of a run begins its first task when it is recorded."""
        self._look()
        deadline = time.monotonic() + PATIENCE_S
        while self._begins_yet() and time.monotonic() < deadline:
            time.sleep(0.01)
        threading.Thread(target=self._look_on, name="omni_perf", daemon=True).start()

    def _begins_yet(self) -> bool:
        made = self.recording
        return made is not None and not made.problem and not made.begun and worker.alive(made.stem)

    def stop(self) -> None:
        """Be none of the workers that are recorded."""
        self._ended.set()
        self._turn("", [])

    def called(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a task; what it leaves to be iterated or awaited is part of it."""
        if self.recording is None:
            return function(*args, **kwargs)
        task = object()
        self._begin_task(task, name)
        later = False
        try:
            result = function(*args, **kwargs)
            if later := inspect.iscoroutine(result):
                return self._awaited(name, result)
            if later := inspect.isgenerator(result):
                return self._iterated(name, cast("Generator[Any]", result))
            return result
        finally:
            self._end_task(task, marked=not later)

    def training_begins(self, training: object, name: str, thread: int) -> None:
        """Note a task that another thread runs."""
        self.has_run = True
        if (recording := self.recording) is not None:
            recording.began(training, name, thread)

    def training_ends(self, training: object) -> None:
        """Mark it."""
        self._end_task(training)

    async def _awaited(self, name: str, coroutine: Any) -> Any:
        task = object()
        self._begin_task(task, name)
        try:
            return await coroutine
        finally:
            self._end_task(task)

    def _iterated(self, name: str, generator: Generator[Any]) -> Any:
        task = object()
        self._begin_task(task, name)
        try:
            return (yield from generator)
        finally:
            self._end_task(task)

    def _begin_task(self, task: object, name: str) -> None:
        self.has_run = True
        if (recording := self.recording) is not None:
            recording.began(task, self._context.get_task_name() or name, threading.get_native_id())

    def _end_task(self, task: object, marked: bool = True) -> None:
        if (recording := self.recording) is not None:
            if marked:
                recording.ended(task)
            else:
                recording.running.pop(task, None)

    def _look_on(self) -> None:
        while not self._ended.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        try:
            with open(os.path.join(self._folder, "active")) as file:
                active = json.load(file)
            run, cells = str(active["run"]), cast("list[Any]", active["cells"])
        except (OSError, ValueError, KeyError):
            run, cells = "", list[Any]()
        self._turn(run, cells)

    def _turn(self, run: str, cells: list[Any]) -> None:
        """End the recording of one run and begin that of another."""
        with self._lock:
            if run == self._run:
                return
            if self._run:
                recording, self.recording = self.recording, None
                _end(self._run, recording, self.has_run)
            self._run, self.has_run = run, False
            if run:
                try:
                    self.recording = worker.begin(run, ROLE, _number(run), cells)
                except OSError:  # somebody else's folder
                    self.recording = None


_here: _Worker | None = None


def place() -> None:
    """Mark the tasks of this worker, and record it whenever a run asks for it: Ray calls this at a worker's start."""
    global _here
    if _here is not None:
        return
    ray: Any = importlib.import_module("ray")
    module: Any = importlib.import_module("ray._private.function_manager")
    _here = here = _Worker(ray)
    original = module.FunctionActorManager.get_execution_info

    @functools.wraps(original)
    def get_execution_info(manager: Any, job: Any, described: Any) -> Any:
        info = original(manager, job, described)
        if (thread_runner := sys.modules.get(TRAINING)) is not None:
            _mark_trainings(here, thread_runner)
        name = ".".join(part for part in (described.class_name, described.function_name) if part)
        return info._replace(function=_wrapped(here, name, info.function))

    module.FunctionActorManager.get_execution_info = get_execution_info
    here.start()


def _mark_trainings(here: _Worker, module: Any) -> None:
    """Mark the training function of Ray Train from its thread's start to its end; no frame is added to its errors."""
    runner = module.ThreadRunner
    if hasattr(runner, "omni_perf_runs"):
        return
    runs, waits = runner.run, runner._monitor_target
    runner.omni_perf_runs = True

    @functools.wraps(runs)
    def run(self: Any, target: Callable[..., Any]) -> None:
        runs(self, target)
        function = inspect.getclosurevars(target).nonlocals.get("train_fn", target)
        here.training_begins(self, getattr(function, "__name__", "train_fn"), self._thread.native_id or 0)

    @functools.wraps(waits)
    def _monitor_target(self: Any) -> None:
        waits(self)
        here.training_ends(self)

    runner.run, runner._monitor_target = run, _monitor_target


def leave() -> None:
    """Be no worker: the process asks others what they recorded."""
    if _here is not None:
        _here.stop()


def _wrapped(here: _Worker, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run_task(*args: Any, **kwargs: Any) -> Any:
        return here.called(name, function, args, kwargs)

    return run_task


def _number(run: str) -> int:
    """Return a number that no other worker of this machine has in a run: Ray gives them none."""
    number = 0
    while True:
        try:
            os.close(os.open(os.path.join(worker.folder_of(run), f"{number}.number"), os.O_CREAT | os.O_EXCL, 0o600))
            return number
        except FileExistsError:
            number += 1


def _end(run: str, recording: worker.Recording | None, has_run: bool) -> None:
    """End this process's recording; one without a task leaves nothing, as Ray starts workers before they are needed."""
    if recording is None:
        return
    if has_run:
        worker.end(run)
    else:
        worker.discard(run)
    with open(recording.stem + ".ended", "w"):
        pass


def activate(run: str, cells: list[Any]) -> None:
    """Let all workers of this machine and cluster begin to record, those of the future too."""
    folder = _control(importlib.import_module("ray"))
    os.makedirs(folder, 0o700, exist_ok=True)
    with open(os.path.join(folder, ".active"), "w") as file:
        json.dump({"run": run, "cells": cells}, file)
    os.replace(os.path.join(folder, ".active"), os.path.join(folder, "active"))


def status(run: str) -> Status:
    """Say what became of the recordings of this machine's workers, those that have had the time to begin."""
    folder = worker.folder_of(run)
    try:
        activated = os.stat(os.path.join(_control(importlib.import_module("ray")), "active")).st_mtime
    except OSError:
        activated = 0.0
    begun = time.time() - activated > 2 * LOOK_S
    problem = ""
    for stem in _stems(folder):
        if os.path.exists(stem + ".socket") or os.path.exists(stem + ".json"):
            continue
        if worker.alive(stem):
            begun = False
        else:
            problem = worker.last_words(stem)
    return {
        "pid": os.getpid(),
        "version": __version__,
        "place": worker.place_of(run),
        "begun": begun,
        "problem": problem,
        "spent": {},
    }


def end(run: str) -> None:
    """End the recordings of this machine's workers."""
    control = _control(importlib.import_module("ray"))
    for name in ("active", ".active"):
        try:
            os.unlink(os.path.join(control, name))
        except FileNotFoundError:
            pass
    try:
        os.rmdir(control)
    except OSError:  # another run begins
        pass
    deadline = time.monotonic() + PATIENCE_S
    open_ones = _stems(worker.folder_of(run))
    while open_ones and time.monotonic() < deadline:
        open_ones = [s for s in open_ones if not os.path.exists(s + ".ended") and worker.alive(s)]
        time.sleep(0.02)
    for stem in open_ones:
        worker.send(stem, signal.SIGTERM)


def _stems(folder: str) -> list[str]:
    return [os.path.join(folder, name.removesuffix(".log")) for name in os.listdir(folder) if name.endswith(".log")]


def _control(ray: Any) -> str:
    """Return the folder that says which run records this machine's workers of this cluster; there is none meanwhile."""
    cluster = str(ray.get_runtime_context().gcs_address)
    return f"/tmp/omni-perf-{os.geteuid()}-ray-{hashlib.sha256(cluster.encode()).hexdigest()[:12]}"


__all__ = ["activate", "clear", "clock", "collect", "end", "leave", "place", "status"]
