"""Training steps and regions that user code marks, in a bounded ring.

Marking is cheap (well below 2 µs) and works whether or not a cell is recorded: the
recording of a cell takes what lies in its time at its end. Times are CLOCK_MONOTONIC ns.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from time import monotonic_ns
from types import TracebackType
from typing import Final, NamedTuple, Protocol

from omni_perf import contract

CAPACITY: Final = 16384


class StepEnd(NamedTuple):
    """A training step ended; by_hook: torch's optimizer hook found it, else step() was called."""

    at_ns: int
    by_hook: bool


class Region(NamedTuple):
    """A named region was left."""

    name: str
    start_ns: int
    end_ns: int


class Listener(Protocol):
    """Gets marks as they are made, where a script runs under `omni-perf run`."""

    def step(self, at_ns: int) -> None: ...
    def hook(self, at_ns: int) -> None: ...
    def region(self, name: str, start_ns: int, end_ns: int) -> None: ...


@dataclass(slots=True)
class Progress:
    """How many steps were marked so far in this process, and what is known of their total."""

    called: int = 0
    hooked: int = 0
    total: int = 0
    """How many there will be, counted from where it was given; 0: not given."""
    given_first: int = 0
    """The number of calls before it was given first …"""
    given_last: int = 0
    """… and last."""

    def since(self, before: Progress) -> contract.LiveRequest:
        """Return the steps since then, as they are sent to a sidecar; called ones take precedence."""
        by_call = self.called > before.called
        steps = self.called - before.called if by_call else self.hooked - before.hooked
        if steps <= 0:
            return {}
        last = next((mark.at_ns for mark in reversed(_steps.copy()) if mark.by_hook != by_call), 0)
        request: contract.LiveRequest = {"steps": str(steps), "lastStepNs": str(last)}
        if by_call and self.total and self.given_last >= before.called:  # a cell that runs again gives the same
            request["totalSteps"] = str(max(self.given_first - before.called, 0) + self.total)
        return request


_listener: Listener | None = None
_progress = Progress()
_steps: deque[StepEnd] = deque(maxlen=CAPACITY)
_regions: deque[Region] = deque(maxlen=CAPACITY)


def send_to(listener: Listener) -> None:
    """Send a listener all marks from now on."""
    global _listener
    _listener = listener


def progress() -> Progress:
    """Return how many steps were marked so far."""
    return replace(_progress)


def step(total: int | None = None) -> None:
    """Mark the end of a training step; the step began where the one before ended.

    ``total`` is how many there are in this loop; a live view then shows the time left.
    """
    at_ns = monotonic_ns()
    _steps.append(StepEnd(at_ns, False))
    if total is not None:
        if total != _progress.total:
            _progress.total, _progress.given_first = total, _progress.called
        _progress.given_last = _progress.called
    _progress.called += 1
    if _listener is not None:
        _listener.step(at_ns)


def step_by_hook() -> None:
    """Mark the end of a step found by a hook; calls of step() take precedence."""
    at_ns = monotonic_ns()
    _steps.append(StepEnd(at_ns, True))
    _progress.hooked += 1
    if _listener is not None:
        _listener.hook(at_ns)


class region:  # noqa: N801 - reads as a statement: with region("load"):
    """Mark what runs inside ``with omni_perf.region("name"):``. One object may be nested."""

    __slots__ = ("_name", "_starts")

    def __init__(self, name: str) -> None:
        self._name = name
        self._starts: list[int] = []

    def __enter__(self) -> None:
        self._starts.append(monotonic_ns())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        mark = Region(self._name, self._starts.pop(), monotonic_ns())
        _regions.append(mark)
        if _listener is not None:
            _listener.region(*mark)


def between(start_ns: int, end_ns: int) -> tuple[list[contract.Mark], str]:
    """Return the marks of a cell that ran in this time, and a sentence if some were lost."""
    inside = [mark for mark in _steps.copy() if start_ns <= mark.at_ns <= end_ns]
    called = [mark for mark in inside if not mark.by_hook]
    marks: list[contract.Mark] = []
    began = start_ns
    for mark in called or inside:
        kind = "optimizer-step" if mark.by_hook else "step"
        marks.append({"kind": kind, "startNs": str(began), "endNs": str(mark.at_ns)})
        began = mark.at_ns
    regions = [mark for mark in _regions.copy() if start_ns <= mark.start_ns and mark.end_ns <= end_ns]
    for mark in regions:
        marks.append(
            {
                "kind": "region",
                "name": str(mark.name),
                "startNs": str(mark.start_ns),
                "endNs": str(mark.end_ns),
            }
        )
    lost = ""
    if max(len(inside), len(regions)) == CAPACITY:
        lost = f"Only the last {CAPACITY:,} steps and regions of the cell were kept."
        if len(inside) == CAPACITY and marks:
            del marks[0]  # where the oldest kept step began is not known
    return marks, lost
