"""The clock that the trainings here keep of themselves: what each step and each phase took, written at the end.

A phase is timed by a wrapper around the call that is the phase, so that the loops stay as people write them.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


class Clock:
    """Steps as times of their ends, and seconds by phase, of one process."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.samples: list[int] = []
        self.epochs: list[int] = []
        self.began: float | None = None
        self.phases: dict[str, float] = {}
        self.facts: dict[str, Any] = {}
        self._pid = os.getpid()

    def of(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and is timed."""

        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.add(phase, time.perf_counter() - began)

        return timed

    def data(self, loader: Any) -> Iterator[Any]:
        """Yield a loader's batches; the start of its workers, and the wait for each batch, are of the phase data."""
        began = time.perf_counter()
        batches = iter(loader)
        self.add("data", time.perf_counter() - began)
        while True:
            began = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                self.add("data", time.perf_counter() - began)
            yield batch

    def add(self, phase: str, seconds: float) -> None:
        self.began = self.began or time.perf_counter() - seconds
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds

    def step(self, samples: int = 0, epoch: int = 0) -> None:
        """Note that a step has ended, of so many samples; 0: the training has no loader."""
        self.ends.append(time.perf_counter())
        self.samples.append(samples)
        self.epochs.append(epoch)

    def write(self) -> None:
        """Write into the folder CLOCKS, a file for each rank."""
        if os.getpid() != self._pid:
            return
        name = f"{self.facts.get('rank', 0)}.json"
        Path(os.environ["CLOCKS"], name).write_text(
            json.dumps(
                {
                    "began": self.began,
                    "ends": self.ends,
                    "samples": self.samples,
                    "epochs": self.epochs,
                    "phases": self.phases,
                    "facts": self.facts,
                }
            )
        )

    def at_exit(self) -> Clock:
        atexit.register(self.write)
        return self
