"""Records each piece of work of this process's NVIDIA GPUs in a cell without torch: docs/exact.md.

A library of ours gets it from CUPTI and writes it into a file in the sidecar's folder, which the sidecar reads;
it also writes why there is nothing. Here it is loaded, and its two functions are called.
"""

from __future__ import annotations

import ctypes
import os
import threading

from omni_perf.launcher import LaunchError, find_binary

_loaded: list[ctypes.CDLL] = []
"""The library, once it is loaded; it stays."""


class ExactWork:
    """One cell's recording."""

    def __init__(self) -> None:
        self.problem = ""
        """Why nothing is recorded, a sentence, where the report cannot contain it."""
        self._lock = threading.Lock()
        self._begun = False
        self._over = False

    def begin(self, folder: str) -> None:
        """Record from now on, into the sidecar's folder. In any thread, also when the cell is over."""
        with self._lock:
            if self._over:
                return
            try:
                refused = _library().omni_perf_exact_begin(os.fsencode(os.path.join(folder, f"exact-{os.getpid()}")))
            except (LaunchError, OSError, AttributeError) as error:
                self.problem = f"--exact needs a library that is not where omni_perf was installed: {error}."
                return
            if refused < 0:
                self.problem = f"--exact could not make its file in {folder}: {os.strerror(-refused)}."
            self._begun = refused == 0

    def end(self) -> None:
        """Stop; what CUPTI has finished by now is in the file."""
        with self._lock:
            if self._begun and not self._over:
                _library().omni_perf_exact_end()
            self._over = True


def _library() -> ctypes.CDLL:
    """Return the library, which pip puts beside the program."""
    if not _loaded:
        path = os.environ.get("OMNI_PERF_EXACT_LIBRARY")
        if not path:
            prefix = os.path.dirname(os.path.dirname(os.path.realpath(find_binary())))
            path = os.path.join(prefix, "lib", "omni_perf", "exact.so")
        library = ctypes.CDLL(path)  # its functions are called without the GIL
        library.omni_perf_exact_begin.argtypes = [ctypes.c_char_p]
        library.omni_perf_exact_end.restype = None
        _loaded.append(library)
    return _loaded[0]
