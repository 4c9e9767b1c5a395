"""Ray: a helper on each node answers for its workers, which the job's setup hook lets mark their tasks.

The helper is an actor that takes no CPU of Ray's. Tried with ray 2.60.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from omni_perf.engines.recording import Answers, ClusterError, call

ANSWER_S = 60.0
"""How long a helper is waited for."""

HOW = 'ray.init(runtime_env={"worker_process_setup_hook": omni_perf.ray_worker})'


class Ray:
    """Knows the nodes of the cluster that this process is connected to; a node is one worker of the protocol."""

    asynchronous = False
    answers = True
    advice = f"Workers of Ray are recorded if omni_perf is in their environment: {HOW}."

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._helpers: dict[str, Any] = {}
        if not ray.is_initialized():
            raise ClusterError(f"Ray is not running here: call {HOW} first.")

    def begin(self, run: str, cells: list[Any]) -> None:
        helper = _helper(self._ray)
        for node in self._ray.nodes():
            if node["Alive"]:
                where = self._affinity(node["NodeID"])
                name = f"node {node['NodeManagerHostname']} {node['NodeID'][:6]}"
                self._helpers[name] = helper.options(scheduling_strategy=where).remote()
        self._send(call("leave", (), "rayworker"), self._helpers)
        self._send(call("activate", (run, cells), "rayworker"), self._helpers)

    def ask(self, function: str, arguments: tuple[Any, ...], workers: Iterable[str] | None = None) -> Answers:
        chosen = self._helpers if workers is None else {name: self._helpers[name] for name in workers}
        return self._send(call(function, arguments, "rayworker"), chosen)

    def end(self, run: str) -> None:
        return

    def close(self) -> None:
        for helper in self._helpers.values():
            self._ray.kill(helper)
        self._helpers.clear()

    def _affinity(self, node: str) -> Any:
        import importlib

        strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
        return strategies.NodeAffinitySchedulingStrategy(node, soft=False)

    def _send(self, expression: str, helpers: dict[str, Any]) -> Answers:
        """Evaluate an expression on nodes; one that has gone, or fails, has the exception for its answer."""
        sent = {name: helper.evaluate.remote(expression) for name, helper in helpers.items()}
        answers: Answers = {}
        for name, result in sent.items():
            try:
                answers[name] = self._ray.get(result, timeout=ANSWER_S)
            except Exception as error:
                cause = getattr(error, "cause", None)
                answers[name] = cause if isinstance(cause, ImportError) else error
        return answers


def _helper(ray: Any) -> Any:
    class OmniPerf:  # of a function: it is sent by value, for a node may be without omni_perf
        def evaluate(self, expression: str) -> Any:
            return eval(expression)

    return ray.remote(num_cpus=0, max_restarts=0)(OmniPerf)


def ray_worker() -> None:
    """Mark the tasks of a worker of Ray: its job's ``worker_process_setup_hook``."""
    try:
        from omni_perf.engines import rayworker
    except ImportError:  # the work goes on; the helper says what is missing
        return
    rayworker.place()


# Ray sends a function of __main__ by value: it runs where omni_perf is missing, too.
ray_worker = types.FunctionType(ray_worker.__code__, {"__builtins__": __builtins__}, "ray_worker")
ray_worker.__module__ = "__main__"
