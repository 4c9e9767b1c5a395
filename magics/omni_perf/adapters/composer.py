"""Composer: ``Trainer(…, callbacks=[Profile()])``."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from composer import Callback, TimeUnit

from omni_perf.adapters import Event
from omni_perf.marks import step


class Profile(Callback):
    """Marks each batch, with its epoch, samples and tokens; makes regions of callbacks and algorithms.

    A batch is a step of the optimizer, whatever number of microbatches it is divided into. Regions are left out where
    the program has a profiler of Composer's own, or lets Composer look for the size of a microbatch, which it refuses
    to do under a profiler.
    """

    def init(self, state: Any, logger: Any) -> None:
        if state.profiler is None and not getattr(state, "auto_microbatching", False):
            state.profiler = _Markers(state)

    def batch_end(self, state: Any, logger: Any) -> None:
        before, now = state.previous_timestamp, state.timestamp
        step(
            _batches(state),
            epoch=int(before.epoch),
            samples=int(now.sample) - int(before.sample),
            tokens=int(now.token) - int(before.token),
        )

    def close(self, state: Any, logger: Any) -> None:
        if isinstance(state.profiler, _Markers):
            state.profiler = None


def _batches(state: Any) -> int | None:
    """How many batches the training will have, where its length is in batches or epochs."""
    length = state.max_duration
    if length is None or length.unit not in (TimeUnit.BATCH, TimeUnit.EPOCH):
        return None
    if length.unit == TimeUnit.BATCH:
        return int(length.value)
    return int(length.value) * int(state.dataloader_len) if state.dataloader_len is not None else None


class _Markers:
    """What Composer takes for its profiler: of what it marks, callbacks and algorithms become regions."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._named: dict[str, str] = {}

    def marker(self, name: str, *_: Any, **__: Any) -> AbstractContextManager[Any]:
        if name not in self._named:
            self._named[name] = self._short(name)
        short = self._named[name]
        return Event(short) if short else _Nothing()

    def _short(self, name: str) -> str:
        """Return "SpeedMonitor.batch_end" of "callback/SpeedMonitor/event/batch_end"; "" of what runs nothing."""
        kind, _, rest = name.partition("/")
        owner, _, event = rest.partition("/event/")
        if kind == "algorithm":
            return f"{owner}.{event}"
        for callback in self._state.callbacks if kind == "callback" else ():
            of = type(callback)
            if of.__name__ == owner and of is not Profile:
                runs = getattr(of, event, None) is not getattr(Callback, event, None)
                return f"{owner}.{event}" if runs or of.run_event is not Callback.run_event else ""
        return ""


class _Nothing(nullcontext[None]):
    """A marker of something else: Composer begins and ends those of its events itself."""

    def start(self) -> None: ...
    def finish(self) -> None: ...
    def instant(self) -> None: ...
