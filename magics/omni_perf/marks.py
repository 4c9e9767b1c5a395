"""Training steps and regions that user code marks, in a bounded ring.

Marking is cheap (well below 2 µs) and works whether or not a cell is recorded: the
recording of a cell takes what lies in its time at its end. Times are CLOCK_MONOTONIC ns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic_ns
from types import TracebackType
from typing import Final, NamedTuple, Protocol

# Relative: this module is part of another package, too, in a program under `omni-perf run --torch`.
from . import contract

CAPACITY: Final = 16384


class StepEnd(NamedTuple):
    """A training step ended; by_hook: torch's optimizer hook found it, else step() was called."""

    at_ns: int
    by_hook: bool
    samples: int = 0
    tokens: int = 0
    epoch: int | None = None
    anew: bool = False
    """By the hook: the first of another optimizer than before; what set that one up is part of it."""
    called_ns: int = 0
    """By the hook: when the optimizer was called; 0: that is not known."""


class Region(NamedTuple):
    """A named region was left."""

    name: str
    start_ns: int
    end_ns: int


class Listener(Protocol):
    """Gets marks as they are made, where a script runs under `omni-perf run`."""

    def step(self, at_ns: int, samples: int, tokens: int, epoch: int | None) -> None: ...
    def hook(self, at_ns: int, anew: bool = False, called_ns: int = 0) -> None: ...
    def other(self, at_ns: int, name: str) -> None: ...
    def region(self, name: str, start_ns: int, end_ns: int) -> None: ...
    def begin(self, at_ns: int) -> None: ...


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


Watcher = Callable[[bool, int | None], None]
"""Called at the end of a step, after it was marked, in its thread: by_hook as in StepEnd, and the epoch if given."""

_listener: Listener | None = None
_watcher: Watcher | None = None
_progress = Progress()
_steps: deque[StepEnd] = deque(maxlen=CAPACITY)
_regions: deque[Region] = deque(maxlen=CAPACITY)
_others: deque[tuple[int, str]] = deque(maxlen=CAPACITY)
"""When an optimizer stepped for the first time besides the one whose steps are marked, and its class."""

SHORTEST_PAUSE_NS: Final = 200_000
"""A shorter one makes no difference to a step."""

BETWEEN_NS: Final = 1_000_000
"""A pause that begins so soon after a step has ended is between it and the next one."""

_pauses: deque[tuple[int, int]] = deque(maxlen=CAPACITY)
"""When we worked in the program's time, from and to; no step has that time."""


def send_to(listener: Listener) -> None:
    """Send a listener all marks from now on."""
    global _listener
    _listener = listener


def watch(watcher: Watcher | None) -> None:
    """Call a function at the end of each step from now on, in the place of the one before."""
    global _watcher
    _watcher = watcher


def pause(start_ns: int, end_ns: int) -> None:
    """Note that we worked in the program's time: a step that began meanwhile begins at the end of it."""
    if end_ns - start_ns > SHORTEST_PAUSE_NS:
        _pauses.append((start_ns, end_ns))
        if _listener is not None and _steps and start_ns - _steps[-1].at_ns < BETWEEN_NS:
            _listener.begin(end_ns)


def progress() -> Progress:
    """Return how many steps were marked so far."""
    return replace(_progress)


def step(total: int | None = None, *, epoch: int | None = None, samples: int = 0, tokens: int = 0) -> None:
    """Mark the end of a training step; the step began where the one before ended.

    ``total`` is how many there are in this loop; a live view then shows the time left.
    ``epoch`` is the number of the epoch that it was a step of. ``samples`` and ``tokens`` are
    how many it worked on: the report then has samples and tokens per second.
    """
    at_ns = monotonic_ns()
    _steps.append(StepEnd(at_ns, False, samples, tokens, epoch))
    if total is not None:
        if total != _progress.total:
            _progress.total, _progress.given_first = total, _progress.called
        _progress.given_last = _progress.called
    _progress.called += 1
    if _listener is not None:
        _listener.step(at_ns, samples, tokens, epoch)
    if _watcher is not None:
        _watcher(False, epoch)


def step_by_hook(at_ns: int, anew: bool = False, called_ns: int = 0) -> None:
    """Mark a step found by a hook; calls of step() take precedence. The times and anew are as in StepEnd."""
    _steps.append(StepEnd(at_ns, True, anew=anew, called_ns=called_ns))
    _progress.hooked += 1
    if _listener is not None:
        _listener.hook(at_ns, anew, called_ns)
    if _watcher is not None:
        _watcher(True, None)


def other_by_hook(name: str) -> None:
    """Note that an optimizer of this class steps besides the one whose steps a hook marks."""
    at_ns = monotonic_ns()
    _others.append((at_ns, name))
    if _listener is not None:
        _listener.other(at_ns, name)


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


class _Pauses:
    """The pauses so far, by their start."""

    def __init__(self) -> None:
        self._pauses = sorted(_pauses.copy())

    def after(self, at_ns: int, next_ns: int) -> int:
        """Return when the program went on after a step that ended then, or a cell that began, and before the next."""
        nth = bisect_right(self._pauses, (min(at_ns + BETWEEN_NS, next_ns - 1), 0)) - 1
        if nth >= 0 and self._pauses[nth][0] >= at_ns - BETWEEN_NS:
            return max(at_ns, self._pauses[nth][1])
        return at_ns


def _batch(mark: StepEnd) -> contract.Mark:
    """Return what a step worked on, as far as the program has said it."""
    batch: contract.Mark = {}
    if mark.samples:
        batch["samples"] = str(int(mark.samples))
    if mark.tokens:
        batch["tokens"] = str(int(mark.tokens))
    if mark.epoch is not None:
        batch["epoch"] = int(mark.epoch)
    return batch


def between(start_ns: int, end_ns: int) -> tuple[list[contract.Mark], str]:
    """Return the marks of a cell that ran in this time, and a sentence if some were lost."""
    inside = [mark for mark in _steps.copy() if start_ns <= mark.at_ns <= end_ns]
    called = [mark for mark in inside if not mark.by_hook]
    marks: list[contract.Mark] = []
    pauses = _Pauses()
    before_ns = start_ns
    for mark in called or inside:
        kind = "step"
        if mark.by_hook:
            kind = "optimizer-anew" if mark.anew else "optimizer-step"
        began = pauses.after(before_ns, mark.at_ns)
        marks.append({"kind": kind, "startNs": str(began), "endNs": str(mark.at_ns), **_batch(mark)})
        if mark.called_ns:
            marks[-1]["optimizerNs"] = str(mark.called_ns)
        before_ns = mark.at_ns
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
    for at_ns, name in _others.copy():
        if start_ns <= at_ns <= end_ns and not called:
            marks.append({"kind": "optimizer", "name": str(name), "startNs": str(at_ns), "endNs": str(at_ns)})
    lost = ""
    if max(len(inside), len(regions)) == CAPACITY:
        lost = f"Only the last {CAPACITY:,} steps and regions of the cell were kept."
        if len(inside) == CAPACITY and marks:
            del marks[0]  # where the oldest kept step began is not known
    return marks, lost
