"""Has torch record what a cell allocates on GPUs, for ``%%omni_perf --memory device``: docs/torch.md.

torch keeps the history, and a snapshot of it is a file as torch's own tools write it: HOST_TIME.pickle in the
notebook's folder. What it shows is omni_perf.analyze's to say.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import time
from contextlib import suppress
from typing import Any, Final

MOST_EVENTS: Final = 200_000
"""Of a history, the last ones; some 100 MB in the kernel with their stacks."""


class DeviceHistory:
    """One cell's history."""

    def __init__(self, is_expected: bool = True) -> None:
        self._is_expected = is_expected
        """Whether it is a problem where no GPU is used."""
        self.problem = ""
        """Why there is none, a sentence."""
        self.path = ""
        """The snapshot."""
        self._memory: Any = None
        self._ours = False
        """Whether the history is only for this cell: the program has none of its own."""

    def begin(self) -> None:
        """Have the history begin as soon as CUDA is in use, which this does not start."""
        cuda = sys.modules.get("torch.cuda")
        memory: Any = getattr(cuda, "memory", None)
        lazy_call = getattr(cuda, "_lazy_call", None)
        if memory is None or lazy_call is None or not hasattr(memory, "_record_memory_history"):
            if self._is_expected:
                self.problem = (
                    "--memory device needs torch with CUDA, imported before the cell. It is profiled without it."
                )
            return
        self._memory = memory
        lazy_call(self._on)

    def _on(self) -> None:
        memory = self._memory
        if memory is None:  # CUDA came into use when the cell was over
            return
        enabled = getattr(sys.modules.get("torch._C"), "_cuda_isHistoryEnabled", None)
        try:
            if enabled is None or not enabled():
                memory._record_memory_history(context="all", stacks="python", max_entries=MOST_EVENTS)
                self._ours = True
        except Exception as error:
            self.problem = f"torch could not record the history of its allocations: {error}."
            self._memory = None

    def end(self) -> None:
        """Write the snapshot, and end the history that began with the cell."""
        memory, self._memory = self._memory, None
        if memory is None:
            return
        cuda: Any = sys.modules["torch.cuda"]
        try:
            if not cuda.is_initialized():
                if self._is_expected:
                    self.problem = "--memory device: the cell did not use CUDA."
                return
            snapshot = memory._snapshot()
            path = os.path.abspath(f"{socket.gethostname()}_{time.strftime('%b_%d_%H_%M_%S')}.pickle")
            with open(path, "wb") as file:
                pickle.dump(snapshot, file)
            self.path = path
        except Exception as error:
            self.problem = f"The history of torch's allocations could not be kept: {error}."
        finally:
            if self._ours:
                with suppress(Exception):
                    memory._record_memory_history(enabled=None)
