"""The clocks of the workers' machines beside that of the client's.

Each machine times by a clock of its own. The client asks for one between two looks at its own: at the
begin and at the end of a recording, and now and then in between, for clocks drift. What was read goes into
the machine's reports (``hosts[].readings``), and ``omni-perf merge`` relates the clocks by it.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, Final, TypedDict

from omni_perf.engines.worker import machine

ASKED: Final = 8
"""How often in a row a clock is asked for; of these the one that took least is kept, as it says most."""

EVERY_S: Final = 10.0
"""How long a recording goes on between two readings, where workers answer meanwhile; clocks drift by a millisecond."""

MOST: Final = 4096
"""Readings that are kept of a machine; of more every second one."""


class Reading(TypedDict):
    """A machine's clock, and what the client's showed before and after."""

    boot_id: str
    monotonic_ns: int
    low_ns: int
    high_ns: int


class Clocks:
    """Readings of the clocks of all machines but the client's own."""

    def __init__(self, ask: Callable[[str], object], answers: bool) -> None:
        self._ask = ask
        self._answers = answers
        self._own = machine()
        self._readings: dict[str, list[Reading]] = {}
        self._done = threading.Event()
        self._reader: threading.Thread | None = None

    @property
    def related(self) -> set[str]:
        """The machines whose clocks are known beside the client's."""
        return {self._own, *self._readings}

    def begin(self, places: dict[str, str]) -> None:
        """Read the clocks, and go on with it where there are other machines."""
        self._read(places)
        if self._readings and self._answers:
            self._reader = threading.Thread(target=self._go_on, args=(places,), name="omni_perf clocks", daemon=True)
            self._reader.start()

    def end(self, places: dict[str, str]) -> None:
        """Read the clocks once more."""
        self._done.set()
        if self._reader is not None:
            self._reader.join()
        self._read(places)

    def beside(self, report: bytes) -> tuple[str, bytes]:
        """Return the machine of a report, JSON in gzip, and the report with what was read of that machine's clock."""
        document: dict[str, Any] = json.loads(gzip.decompress(report))
        host = document["hosts"][0]
        found = self._readings.get(str(host["boot_id"]))
        if found is None:
            return str(host["boot_id"]), report
        host["readings"] = found
        return str(host["boot_id"]), gzip.compress(json.dumps(document).encode(), 5)

    def _go_on(self, places: dict[str, str]) -> None:
        while not self._done.wait(EVERY_S):
            self._read(places)

    def _read(self, places: dict[str, str]) -> None:
        workers = {place.partition(" ")[0]: worker for place, worker in dict(places).items()}
        for where, worker in workers.items():
            if where != self._own and (reading := self._reading(worker)) is not None:
                kept = self._readings.setdefault(where, [])
                kept.append(reading)
                if len(kept) > MOST:
                    del kept[1:-1:2]

    def _reading(self, worker: str) -> Reading | None:
        """Return the reading of a worker's clock that took least; None: it did not answer."""
        best: Reading | None = None
        for _ in range(ASKED):
            before = monotonic_ns()
            there = self._ask(worker)
            after = monotonic_ns()
            if not isinstance(there, int):
                break
            if best is None or after - before < best["high_ns"] - best["low_ns"]:
                best = {"boot_id": self._own, "monotonic_ns": there, "low_ns": before, "high_ns": after}
        return best


__all__ = ["Clocks", "Reading"]
