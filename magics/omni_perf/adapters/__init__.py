"""Steps, epochs and batches of frameworks that have a loop of their own, a module for each; imported when asked for.

Without them steps and phases are found all the same. They add what only the framework knows: the epoch of a step,
how much it worked on, how many there will be, and which of its callbacks ran.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Any, cast

from omni_perf.marks import region


def batch_size(batch: Any) -> int:
    """Return how many samples a batch has, by the first tensor in it; 0 where it has none."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 0
    parts: Iterable[Any] = batch.values() if hasattr(batch, "values") else ()
    if isinstance(batch, list | tuple):
        parts = cast("Iterable[Any]", batch)
    return next((size for size in map(batch_size, parts) if size), 0)


class Event:
    """A region that torch.profiler's traces have as well, where it records."""

    def __init__(self, name: str) -> None:
        self._region = region(name)
        self._name = name
        self._annotation: Any = None

    def __enter__(self) -> None:
        self._region.__enter__()
        torch: Any = sys.modules.get("torch")
        if torch is not None and torch.autograd._profiler_enabled():
            self._annotation = torch.profiler.record_function(self._name)
            self._annotation.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        annotation, self._annotation = self._annotation, None
        if annotation is not None:
            annotation.__exit__(kind, error, trace)
        self._region.__exit__(kind, error, trace)
