"""Show where the time of a notebook cell went, and why its GPU was idle.

``%load_ext omni_perf`` in a notebook, then ``%%omni_perf`` on top of a cell. In Python
code, :func:`step` and :func:`region` mark training steps and regions, :func:`schedule` says
which steps ``%%omni_perf --torch`` records, and :func:`last` gives the last report, :func:`read`
a saved one. :func:`analyze` analyses traces of torch.profiler.

Importing this package and loading the extension is cheap: what talks to the sidecar is
imported when the first cell is recorded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from omni_perf._version import __version__
from omni_perf.marks import region, step
from omni_perf.schedule import schedule

if TYPE_CHECKING:
    from omni_perf.analysis import analyze, make_traces
    from omni_perf.engines import cluster
    from omni_perf.engines.ray import ray_worker
    from omni_perf.report import Report, read
    from omni_perf.shell import Shell

if "OMNI_PERF_RUN" in os.environ:  # a script under `omni-perf run`
    from omni_perf import runmarks

    runmarks.connect()

__all__ = [
    "__version__",
    "analyze",
    "cluster",
    "last",
    "make_traces",
    "ray_worker",
    "read",
    "region",
    "schedule",
    "step",
]


def last() -> Report | None:
    """Return the report of the last recorded cell, or None."""
    from omni_perf.report import kept

    return kept.last


def __getattr__(name: str) -> Any:
    """Import what few sessions need when it is asked for."""
    if name in ("analyze", "make_traces"):
        from omni_perf import analysis

        return getattr(analysis, name)
    if name == "cluster":
        from omni_perf import engines

        return engines.cluster
    if name == "ray_worker":
        from omni_perf.engines import ray

        return ray.ray_worker
    if name == "read":
        from omni_perf import report

        return report.read
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what is for users; completion offers this."""
    return __all__


def load_ipython_extension(shell: Shell) -> None:
    """Answer ``%load_ext omni_perf``."""
    from omni_perf.extension import load

    load(shell)


def unload_ipython_extension(shell: Shell) -> None:
    """Answer ``%unload_ext omni_perf``."""
    from omni_perf.extension import unload

    unload(shell)
