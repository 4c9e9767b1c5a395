"""What marks the tasks of a Dask worker. It is sent by value: it imports omni_perf only where that is."""

from __future__ import annotations

import importlib
from typing import Any, cast

distributed: Any = importlib.import_module("distributed")


# What a worker counts (distributed's fine performance metrics), by context and activity, and what it is here.
# The network of get-data is the other end of a transfer.
SPENT = {
    ("gather-dep", "network"): "transfer",
    ("gather-dep", "deserialize"): "deserialize",
    ("gather-dep", "decompress"): "deserialize",
    ("execute", "deserialize"): "deserialize",
    ("get-data", "serialize"): "serialize",
    ("get-data", "compress"): "serialize",
    ("execute", "disk-read"): "disk",
    ("gather-dep", "disk-write"): "disk",
    ("execute", "disk-write"): "disk",
    ("get-data", "disk-read"): "disk",
    ("execute", "executor"): "hand-over",
}


class TaskMarks(distributed.WorkerPlugin):
    """Begins the recording of a worker, and marks in it what task ran in which thread."""

    def __init__(self, name: str, run: str, cells: list[Any]) -> None:
        self.name = name
        self._run, self._cells = run, cells
        self._recording: Any = None
        self._delays: dict[Any, float] = {}
        self._ready: dict[Any, float] = {}
        self._queued = 0.0

    def setup(self, worker: Any) -> None:
        """Begin; the worker goes on without a recording where that fails."""
        self._worker = worker
        try:
            from omni_perf.engines import worker as recorder
        except ImportError:
            return
        number = worker.name if isinstance(worker.name, int) and worker.name >= 0 else None
        self._recording = recorder.begin(self._run, "dask-worker", number, self._cells)
        before = self._spent()
        self._recording.spent = lambda: {
            what: seconds - before.get(what, 0.0) for what, seconds in self._spent().items()
        }

    def _spent(self) -> dict[str, float]:
        """Return the seconds that this worker took beside its tasks, since its start."""
        sums: dict[str, float] = {"queue": self._queued}
        totals: dict[Any, float] = getattr(self._worker, "digests_total", {})
        for key, seconds in totals.items():
            parts = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else ("", "")
            if parts[-1:] == ("seconds",) and (what := SPENT.get((parts[0], parts[-2]))):
                sums[what] = sums.get(what, 0.0) + seconds
        return sums

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        """Note that a task begins, and mark one that has ended by the worker's own times of it."""
        import threading
        import time

        utils: Any = importlib.import_module("dask.utils")
        if self._recording is None:
            return
        if finish in ("ready", "constrained"):
            self._ready[key] = time.monotonic()
        elif start in ("ready", "constrained"):
            self._queued += time.monotonic() - self._ready.pop(key, time.monotonic())
        if finish == "executing":
            self._recording.began(key, utils.key_split(key), 0)
            self._delays[key] = self._worker.scheduler_delay  # as it is in the task's times; a heartbeat changes it
            return
        if start not in ("executing", "long-running") or finish == "long-running":
            return
        delay = self._delays.pop(key, self._worker.scheduler_delay)
        task = self._worker.state.tasks.get(key)
        computed = [s for s in (task.startstops if task is not None else ()) if s["action"] == "compute"]
        ident = self._worker.threads.get(key)
        thread = next((t.native_id for t in threading.enumerate() if t.ident == ident), None)
        if finish in ("memory", "error") and computed and thread:
            ours = time.monotonic() - time.time() - delay
            began, ended = (int((computed[-1][at] + ours) * 1e9) for at in ("start", "stop"))
            self._recording.ended(key, began, ended, thread)
        else:
            self._recording.running.pop(key, None)

    def teardown(self, worker: Any) -> None:
        """Mark the tasks that still run, up to now."""
        import threading

        if self._recording is None:
            return
        threads = {t.ident: t.native_id for t in threading.enumerate()}
        for ident, key in list(worker.active_threads.items()):
            self._recording.ended(key, thread=threads.get(ident) or 0)
        self._recording.running.clear()
        self._recording = None
