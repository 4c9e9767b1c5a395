"""Places torch's step hook in a program under `omni-perf run` that does not import omni_perf.

Nothing of the extension imports this: it is part of the package _omni_perf, which a Python under
`omni-perf run` finds in an archive. What starts a process imports this and the watcher alone; the rest
follows once torch is imported, or when an exception ends the program.
"""

from __future__ import annotations

import atexit
import os
import sys

from .torchwatch import TorchImport, TorchWatcher, optimizer_hook


def _look() -> bool:
    if "omni_perf.runmarks" in sys.modules:  # the program imports the extension, which has the hook itself
        return True
    if optimizer_hook() is None:
        return False
    from . import runmarks

    runmarks.place()
    return True


def _begin_torch() -> None:
    from importlib import import_module

    package = "omni_perf" if "omni_perf.runmarks" in sys.modules else "_omni_perf"
    import_module(package + ".runtorch").start()


def _end(path: str) -> None:
    error = getattr(sys, "last_value", None)
    if isinstance(error, BaseException):
        try:
            from . import raised

            raised.send(error, path)
        except Exception:  # how the program ends is its own affair
            pass


if "OMNI_PERF_RUN" in os.environ:
    sys.meta_path.insert(0, TorchWatcher(_look))
    if "OMNI_PERF_TORCH" in os.environ:
        sys.meta_path.insert(0, TorchImport(_begin_torch))
    atexit.register(_end, os.environ["OMNI_PERF_RUN"])  # the first one, which is called last
