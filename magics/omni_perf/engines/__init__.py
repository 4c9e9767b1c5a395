"""Records the workers of the engines that people run: Dask, Ray and ipyparallel.

``with omni_perf.cluster(client) as recorded:`` starts a recording on every worker, marks the
engine's tasks in it, and at its end fetches the reports and merges them into one. Nothing of this
package, and no engine, is imported before somebody asks for it.

:mod:`omni_perf.engines.worker` is what runs at a worker, :mod:`omni_perf.engines.recording` what
runs beside the client. An engine has an adapter, which knows how to call a function on all
workers and which of their threads ran which task.
"""

from __future__ import annotations

from typing import Any

from omni_perf.engines.recording import Cluster, ClusterError

__all__ = ["Cluster", "ClusterError", "cluster"]


def cluster(client: Any) -> Cluster:
    """Record the workers of an engine: Dask's ``Client``, ipyparallel's ``Client`` or view, or the module ``ray``.

    Use it as ``with omni_perf.cluster(client) as recorded:``, and ``async with`` where the client is
    asynchronous. ClusterError says that the engine is none of these.
    """
    package = type(client).__module__.partition(".")[0]
    if getattr(client, "__name__", "") == "ray" and hasattr(client, "is_initialized"):
        from omni_perf.engines.ray import Ray

        return Cluster(Ray(client))
    if package == "distributed":
        from omni_perf.engines.dask import Dask

        return Cluster(Dask(client))
    if package == "ipyparallel":
        from omni_perf.engines.ipyparallel import Engines

        return Cluster(Engines(client))
    raise ClusterError(
        f"omni_perf.cluster() takes a Client of Dask or ipyparallel, or the module ray, not {type(client).__name__!r}; "
        "workers of other engines are started by omni-perf run, and their reports merged by omni-perf merge."
    )
