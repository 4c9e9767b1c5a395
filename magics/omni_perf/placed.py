"""Places torch's step hook in a program under `omni-perf run` that does not import omni_perf.

Nothing of the extension imports this: it is part of the package _omni_perf, which a Python under
`omni-perf run` finds in an archive. What starts a process imports this and the watcher alone; the rest
follows once torch is imported, or when an exception ends the program.
"""

from __future__ import annotations

import atexit
import os
import sys

from .torchwatch import AfterImport, TorchWatcher, optimizer_hooks

LAST = -1000
"""Finalizers of multiprocessing with a lower priority are called later."""


def _look() -> bool:
    if "omni_perf.runmarks" in sys.modules:  # the program imports the extension, which has the hook itself
        return True
    if not optimizer_hooks():
        return False
    from . import runmarks

    runmarks.place()
    return True


def _begin_torch() -> None:
    from importlib import import_module

    package = "omni_perf" if "omni_perf.runmarks" in sys.modules else "_omni_perf"
    import_module(package + ".runtorch").start()


def _end(path: str) -> None:
    _send(getattr(sys, "last_value", None), path)


def _send(error: object, path: str, child: bool = False) -> None:
    if isinstance(error, BaseException):
        try:
            from . import raised

            raised.send(error, path, process=child)
        except Exception:  # how the program ends is its own affair
            pass


def _watch_processes(path: str) -> None:
    """Have each process that multiprocessing starts send what ends it, which nothing keeps there.

    One that it spawns imports its module as this one does; in one that it forks all finalizers are forgotten first.
    """
    util = sys.modules["multiprocessing.util"]

    def watch(_: object) -> None:
        util.Finalize(None, _end_child, (path,), exitpriority=LAST)

    watch(util)
    util.register_after_fork(util, watch)


def _end_child(path: str) -> None:
    """Send what ends a process of multiprocessing's: it calls this while the exception passes through."""
    error = sys.exc_info()[1]
    if not isinstance(error, SystemExit):
        _send(error, path, child=True)


if "OMNI_PERF_RUN" in os.environ:
    sys.meta_path.insert(0, TorchWatcher(_look))
    if "OMNI_PERF_TORCH" in os.environ:
        sys.meta_path.insert(0, AfterImport("torch", _begin_torch))
    sys.meta_path.insert(0, AfterImport("multiprocessing.util", lambda: _watch_processes(os.environ["OMNI_PERF_RUN"])))
    atexit.register(_end, os.environ["OMNI_PERF_RUN"])  # the first one, which is called last
