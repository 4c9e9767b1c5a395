"""Samples stacks from inside the kernel when the sidecar may not read them from outside.

A thread takes ``sys._current_frames()``, interns frames and stacks and hands columns of
samples over. It needs the GIL for each sample, so it is coarser and costs the cell time;
the cost is handed over too, for the report.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from omni_perf import contract

SHORTEST_INTERVAL_S = 0.005
"""A thread waits up to the switch interval, 5 ms, for the GIL: a finer rate is not had."""

USUAL_INTERVAL_S = 0.01

PUSH_EVERY_S = 0.5

PUSH_SAMPLES = 5000
"""Samples handed over at once, at most about this many."""

KEPT_WHOLE = 400
KEPT_END = 150
"""Of a stack of more than so many frames so many are kept of either end, as pystack does (nodes.go)."""

MOST_AWAITS = 1 << 13
"""Coroutines of one chain; a longer one is left out, as its innermost is not known."""

KINDS = {"cr": "cr_await", "gi": "gi_yieldfrom", "ag": "ag_await"}
"""Prefix of the attributes of what has a frame of its own, and which of them is what it waits for."""


class FallbackSampler:
    """Samples all threads but our own between start and stop.

    ``coroutines`` has by thread what its event loop runs a cell in.
    """

    def __init__(
        self, interval_s: float, push: Callable[[contract.PushRequest], None], coroutines: Mapping[int, object]
    ) -> None:
        self._interval_s = max(SHORTEST_INTERVAL_S, interval_s or USUAL_INTERVAL_S)
        self._push = push
        self._coroutines = coroutines
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="omni_perf sampler", daemon=True)
        self._interned = _Interned()
        self._samples: list[contract.Sample] = []
        self._threads: dict[int, contract.Thread] = {}

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> None:
        """End; all samples have been handed over on return."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        pushed_at = time.monotonic()
        while not self._stop.wait(self._interval_s):
            self._take()
            now = time.monotonic()
            if now - pushed_at >= PUSH_EVERY_S or len(self._samples) >= PUSH_SAMPLES:
                self._hand_over()
                pushed_at = now
        self._hand_over()

    def _take(self) -> None:
        at_ns = str(time.monotonic_ns())
        known = {thread.ident: thread for thread in threading.enumerate()}
        main = threading.main_thread().ident
        for ident, frame in sys._current_frames().items():  # pyright: ignore[reportPrivateUsage]
            thread = known.get(ident)
            if thread is not None and thread.name.startswith("omni_perf"):
                continue
            # A thread that Python did not start has no native id; negative ones are free.
            native = (thread.native_id if thread is not None else None) or -(ident % 2**31)
            if native not in self._threads:
                name = thread.name if thread is not None else f"thread {ident:#x}"
                self._threads[native] = {"threadId": native, "name": name, "main": ident == main}
            stack = self._interned.stack(frame, self._awaiting(ident, frame))
            self._samples.append({"atNs": at_ns, "threadId": native, "stack": stack})

    def _awaiting(self, ident: int, leaf: FrameType) -> list[FrameType]:
        """Return the suspended frames that the event loop waits for in this thread, outermost first."""
        code = leaf.f_code
        if code.co_name != "select" or not code.co_filename.endswith("selectors.py"):
            return []
        frames: list[FrameType] = []
        awaited: Any = self._coroutines.get(ident)
        while awaited is not None:
            if len(frames) == MOST_AWAITS:
                return []
            kind = next((kind for kind in KINDS if hasattr(awaited, f"{kind}_frame")), None)
            frame = getattr(awaited, f"{kind}_frame", None)
            if kind is None or frame is None or getattr(awaited, f"{kind}_running"):
                break
            frames.append(frame)
            awaited = getattr(awaited, KINDS[kind])
        return frames

    def _hand_over(self) -> None:
        samples, self._samples = self._samples, []
        if not samples:
            return
        frames, stacks = self._interned.take_new()
        self._push(
            {
                "frames": frames,
                "stacks": stacks,
                "samples": samples,
                "threads": list(self._threads.values()),
                "cpuNs": str(time.thread_time_ns()),
            }
        )


_Place = tuple[CodeType, int, bool, int]
"""Code, line, whether the frame is suspended, and how many frames that are left out it stands for."""


def _left_out(places: list[_Place]) -> _Place:
    """Return what stands for frames: about how many, and the function that most of them are of."""
    unit = 10 ** (len(str(len(places))) - 1)
    most = Counter(code for code, *_ in places).most_common(1)[0][0]
    return most, 0, False, (len(places) + unit // 2) // unit * unit


class _Interned:
    """Frames and stacks by number. Numbers are not used twice in a session."""

    _next_id = 1

    def __init__(self) -> None:
        self._frames: dict[_Place, int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._new_frames: list[contract.Frame] = []
        self._new_stacks: list[contract.Stack] = []

    def stack(self, leaf: FrameType, awaiting: list[FrameType]) -> int:
        """Return the number of the stack that ends in this frame, or in suspended ones in its place."""
        places: list[_Place] = []
        frame = leaf.f_back if awaiting else leaf
        while frame is not None:
            places.append((frame.f_code, frame.f_lineno or 0, False, 0))
            frame = frame.f_back
        places.reverse()
        places += ((frame.f_code, frame.f_lineno or 0, True, 0) for frame in awaiting)
        if len(places) > KEPT_WHOLE:
            places[KEPT_END:-KEPT_END] = [_left_out(places[KEPT_END:-KEPT_END])]
        key = tuple(map(self._frame, places))
        number = self._stacks.get(key)
        if number is None:
            number = self._stacks[key] = self._number()
            self._new_stacks.append({"id": number, "frames": list(key)})
        return number

    def take_new(self) -> tuple[list[contract.Frame], list[contract.Stack]]:
        """Return what was interned since the last time."""
        new = self._new_frames, self._new_stacks
        self._new_frames, self._new_stacks = [], []
        return new

    def _frame(self, place: _Place) -> int:
        number = self._frames.get(place)
        if number is None:
            number = self._frames[place] = self._number()
            code, line, suspended, elided = place
            new: contract.Frame = {
                "id": number,
                "function": code.co_qualname,
                "file": code.co_filename,
                "line": line,
                "firstLine": code.co_firstlineno,
            }
            if suspended:
                new["suspended"] = True
            if elided:
                new["elided"] = elided
            self._new_frames.append(new)
        return number

    @classmethod
    def _number(cls) -> int:
        number = cls._next_id
        cls._next_id += 1
        return number
