"""Dask: a plugin on each worker marks its tasks; the client calls functions there.

Tried with distributed 2026.8: a worker's own times of a task (``startstops``) are wall seconds shifted
by ``scheduler_delay``, exact to 0.1 ms; transitions of the worker's state come some ms later.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import Any

from omni_perf.engines.recording import Answers, call

# Packages that are here only where their users are.
cloudpickle: Any = importlib.import_module("cloudpickle")
distributed: Any = importlib.import_module("distributed")


class Dask:
    """Knows the workers of a client's cluster, those that come later and those that run tasks in threads of ours."""

    advice = ""
    answers = True

    def __init__(self, client: Any) -> None:
        self._given = client
        self._opened: Any = None
        self.asynchronous = bool(client.asynchronous)

    @property
    def _client(self) -> Any:
        """Return the client, or where that is asynchronous one that waits, for the thread that asks."""
        if not self.asynchronous:
            return self._given
        if self._opened is None:
            address = self._given.scheduler.address
            self._opened = distributed.Client(
                address, security=self._given.security, asynchronous=False, set_as_default=False
            )
        return self._opened

    def begin(self, run: str, cells: list[Any]) -> None:
        self._client.register_plugin(_Carried(_name(run), run, cells))

    def ask(self, function: str, arguments: tuple[Any, ...], workers: Iterable[str] | None = None) -> Answers:
        chosen = None if workers is None else list(workers)
        if chosen == []:
            return {}
        try:
            return self._client.run(eval, call(function, arguments), workers=chosen, on_error="return")
        except Exception as error:  # the scheduler is gone, or no worker is there
            return dict.fromkeys(chosen or [], error)

    def end(self, run: str) -> None:
        try:
            self._client.unregister_worker_plugin(_name(run))
        except Exception:  # a worker that never had it, or no longer answers
            pass

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _name(run: str) -> str:
    return "omni-perf-" + run


class _Carried(distributed.WorkerPlugin):
    """The plugin on its way: it travels with its code, for a worker may be without omni_perf."""

    def __init__(self, name: str, run: str, cells: list[Any]) -> None:
        self.name = name
        self._arguments = run, cells

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        from omni_perf.engines import daskplugin

        module = sys.modules[daskplugin.__name__]
        cloudpickle.register_pickle_by_value(module)
        try:
            return cloudpickle.loads, (cloudpickle.dumps(daskplugin.TaskMarks(self.name, *self._arguments)),)
        finally:
            cloudpickle.unregister_pickle_by_value(module)
