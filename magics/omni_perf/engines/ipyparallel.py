"""ipyparallel: an engine runs one request at a time, in its main thread; each request is a task.

Calls go over a direct view, which waits behind what an engine runs. Tried with ipyparallel 9.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from omni_perf.engines.recording import Answers, call

PATIENCE_S = 600
"""How long an engine that runs something is waited for."""


class Engines:
    """Knows the engines of a client, or of a view of some."""

    asynchronous = False
    advice = ""
    answers = False

    def __init__(self, client: Any) -> None:
        self._view = client[:] if hasattr(client, "ids") else client
        self._client = self._view.client
        targets = self._view.targets
        self._engines: list[int] = (
            list(self._client.ids)
            if targets in (None, "all")
            else [targets]
            if isinstance(targets, int)
            else list(targets)
        )

    def begin(self, run: str, cells: list[Any]) -> None:
        for engine in self._engines:
            self._send(call("begin", (run, engine, cells), "ipyengine"), [engine])

    def ask(self, function: str, arguments: tuple[Any, ...], workers: Iterable[str] | None = None) -> Answers:
        chosen = self._engines if workers is None else [int(name.removeprefix("engine ")) for name in workers]
        return self._send(call(function, arguments), chosen)

    def end(self, run: str) -> None:
        self._send(call("end", (run,), "ipyengine"), self._engines)

    def close(self) -> None:
        return

    def _send(self, expression: str, engines: list[int]) -> Answers:
        """Evaluate an expression on engines; one that has died, or fails, has the exception for its answer."""
        sent: dict[int, Any] = {}
        for engine in engines:
            if engine in self._client.ids:
                sent[engine] = self._client[engine].apply_async(eval, expression)
        answers: Answers = {f"engine {e}": ConnectionError("the engine has gone") for e in engines if e not in sent}
        for engine, result in sent.items():
            try:
                answers[f"engine {engine}"] = result.get(PATIENCE_S)
            except Exception as error:
                missing = getattr(error, "ename", "") in ("ModuleNotFoundError", "ImportError")
                answers[f"engine {engine}"] = ImportError(str(error)) if missing else error
        return answers
