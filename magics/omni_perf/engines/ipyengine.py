"""What marks the requests of an ipyparallel engine, in the engine itself.

A request is a function that is applied, or a cell of ``%%px``. The kernel's ``do_apply`` is wrapped for as
long as the recording lasts, and IPython's own events show the cells.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import Any

from omni_perf.engines import worker

LONGEST_NAME = 60
"""Characters of a cell's first line."""


class _Marks:
    """The marks of one run."""

    def __init__(self, recording: worker.Recording) -> None:
        from IPython.core.getipython import get_ipython

        self._recording = recording
        self._module: Any = importlib.import_module("ipyparallel.engine.kernel")
        self._shell: Any = get_ipython()
        self._kernel: Any = self._shell.kernel
        self._original: Callable[..., Any] = self._kernel.do_apply
        self._unpack: Callable[..., Any] = self._module.unpack_apply_message

    def place(self) -> None:
        """Begin to mark requests."""
        self._add_cells()
        self._module.unpack_apply_message = self._unpacked
        self._kernel.do_apply = self._apply
        for event, function in self._events():
            self._shell.events.register(event, function)

    def remove(self) -> None:
        """Leave the kernel as it was."""
        self._add_cells()
        self._module.unpack_apply_message = self._unpack
        del self._kernel.do_apply
        for event, function in self._events():
            self._shell.events.unregister(event, function)

    def _add_cells(self) -> None:
        """Send the text of what ``%%px`` has run here. Its number is the engine's, which no notebook shows."""
        from omni_perf.cellsources import CellSources

        known = CellSources(self._shell).unknown_to(set())
        self._recording.add_cells([{**cell, "executionCount": 0} for cell in known])

    def _events(self) -> list[tuple[str, Callable[..., None]]]:
        return [("pre_execute", self._begins), ("pre_run_cell", self._names), ("post_execute", self._ends)]

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._original(*args, **kwargs)
        finally:
            self._recording.ended("apply")

    def _unpacked(self, *args: Any, **kwargs: Any) -> Any:
        """Return the request, whose function's name is the task's."""
        f, arguments, _ = request = self._unpack(*args, **kwargs)
        if not (f is eval and arguments and worker.__name__.rpartition(".")[0] in str(arguments[0])[:100]):  # ours
            given = next((a for a in arguments[:1] if callable(a)), None)
            if given is not None and getattr(f, "__module__", "").startswith("ipyparallel"):  # a map's
                f = given
            name = getattr(f, "__name__", type(f).__name__)
            self._recording.began("apply", name, threading.get_native_id())
        return request

    def _begins(self) -> None:
        self._recording.began("cell", "execute", threading.get_native_id())

    def _names(self, info: Any) -> None:
        """Name a cell by its first line but for ours; code that is executed silently keeps the general name."""
        lines = [line.strip() for line in (info.raw_cell or "").splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith("# %%omni_perf")]
        if lines and (task := self._recording.running.get("cell")) is not None:
            task.name = lines[0] if len(lines[0]) <= LONGEST_NAME else lines[0][: LONGEST_NAME - 1] + "…"

    def _ends(self) -> None:
        self._recording.ended("cell")


_marks: dict[str, _Marks] = {}


def begin(run: str, number: int, cells: list[Any]) -> None:
    """Record this engine, and mark its requests."""
    recording = worker.begin(run, "ipyparallel-engine", number, cells)
    _marks[run] = _Marks(recording)
    _marks[run].place()


def end(run: str) -> None:
    """Mark nothing more."""
    if (marks := _marks.pop(run, None)) is not None:
        marks.remove()
