"""What recording costs the workers of Dask, ipyparallel and Ray: their CPU time for the same tasks, with and without.

    CPU time    what the workers' processes used for a batch of tasks while they were recorded, to that of
                the batch beside it without a recording; the median of all pairs, and between which values
                it lies with 95 % (by ranks: nothing is assumed of their distribution)
    tasks       the tasks' seconds by the report, to those of the tasks' own clocks; of the same batches

Batches with and without follow each other in random order, with the same workers. The begin and the end of a recording
are not in it. Run it on a quiet machine, by the Python of the engines: .cache/engines/bin/python bench/engines/bench.py
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "magics"), str(ROOT / "bench" / "children")]

import omni_perf  # noqa: E402
from slices import interval  # noqa: E402

WORKERS = 2
TASKS = 24

REST_S = 0.3
"""Before a batch: what merged and drew the last recording has gone, and the CPUs are as cool for both."""


def task(_: int) -> float:
    """Compute for a fixed amount of work, and return how long it took by its own clock."""
    import time

    began = time.perf_counter()
    total = 0
    for n in range(600_000):
        total += n & 7
    return time.perf_counter() - began


def used() -> float:
    """Return the CPU time of this process."""
    import time

    return time.process_time()


class Dask:
    """Workers of a local cluster."""

    @contextmanager
    def started(self) -> Iterator[Dask]:
        from distributed import Client, LocalCluster

        local = LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)
        with local, Client(local) as self.client:
            yield self

    def batch(self, number: int) -> float:
        """Compute a batch of tasks; their seconds by their own clocks."""
        futures = self.client.map(task, range(number * TASKS, (number + 1) * TASKS), pure=False)
        return sum(self.client.gather(futures))

    def cpu(self) -> float:
        """Return the CPU time of all workers."""
        return sum(self.client.run(used).values())


class IPyParallel:
    """Engines of a local cluster."""

    @contextmanager
    def started(self) -> Iterator[IPyParallel]:
        import ipyparallel

        with ipyparallel.Cluster(n=WORKERS, log_level=40) as self.client:
            self.client.wait_for_engines(WORKERS)
            yield self

    def batch(self, _: int) -> float:
        """Compute a batch of tasks; their seconds by their own clocks."""
        return sum(self.client[:].map_sync(task, range(TASKS)))

    def cpu(self) -> float:
        """Return the CPU time of all engines."""
        return sum(self.client[:].apply_sync(used))


class Ray:
    """Actors of a local Ray."""

    @contextmanager
    def started(self) -> Iterator[Ray]:
        import ray

        class Worker:
            def task(self, count: int) -> float:
                return sum(task(0) for _ in range(count))

            def used(self) -> float:
                return used()

        hook = {"worker_process_setup_hook": omni_perf.ray_worker}
        ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, runtime_env=hook)
        self.client = ray
        self.workers = [ray.remote(Worker).remote() for _ in range(WORKERS)]
        yield self
        ray.shutdown()

    def batch(self, _: int) -> float:
        """Let each actor compute its part as one task; their seconds by their own clocks."""
        return sum(self.client.get([worker.task.remote(TASKS // WORKERS) for worker in self.workers]))

    def cpu(self) -> float:
        """Return the CPU time of all actors."""
        return sum(self.client.get([worker.used.remote() for worker in self.workers]))


def measure(engine: Any, pairs: int, progress: Callable[[str], None]) -> tuple[list[float], list[float]]:
    """Return the ratio of the workers' CPU time for each pair, and of the tasks' seconds for each recording."""
    ratios: list[float] = []
    tasks: list[float] = []
    engine.batch(0)
    for pair in range(pairs):
        cpu: dict[bool, float] = {}
        for recorded in random.sample([True, False], 2):
            if recorded:
                with omni_perf.cluster(engine.client) as recording:
                    time.sleep(REST_S)
                    before = engine.cpu()
                    own = engine.batch(pair)
                    cpu[True] = engine.cpu() - before
                rows = recording.report.tables["regions"]
                tasks.append(sum(row["total_s"] for row in rows if row["name"].split(".")[-1] == "task") / own)
            else:
                time.sleep(REST_S)
                before = engine.cpu()
                engine.batch(pair)
                cpu[False] = engine.cpu() - before
        ratios.append(cpu[True] / cpu[False])
        progress(f"{pair + 1} of {pairs}")
    return ratios, tasks


ENGINES: dict[str, Callable[[], Any]] = {"dask": Dask, "ipyparallel": IPyParallel, "ray": Ray}


def main() -> None:
    """Measure the engines that are asked for, or all."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--pairs", type=int, default=30)
    arguments.add_argument("--engine", choices=list(ENGINES), action="append")
    given = arguments.parse_args()
    os.environ.setdefault("OMNI_PERF_BINARY", str(ROOT / ".venv" / "bin" / "omni-perf"))
    os.environ["PYTHONPATH"] = str(ROOT / "magics")
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    load = Path("/proc/loadavg").read_text().split()[0]
    print(f"CPython {sys.version.split()[0]}, {os.cpu_count()} cores, load {load}")
    for name in given.engine or ENGINES:
        engine = ENGINES[name]()
        with engine.started():
            time.sleep(1)
            ratios, tasks = measure(engine, given.pairs, lambda text: print(f"\r{text}", end="", file=sys.stderr))
        low, high = interval(ratios)
        print(
            f"\r{name:12} CPU time {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}]  {len(ratios)} pairs  "
            f"tasks {statistics.median(tasks):.4f} ({min(tasks):.3f} to {max(tasks):.3f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
