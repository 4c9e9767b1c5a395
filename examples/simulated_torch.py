"""A torch that is not there, over a simulated GPU: as much of torch.profiler as `%%omni_perf --exact` and `--torch` call.

`install()` makes `import torch` find it. The device works off a queue as a CUDA stream does (simulated_gpu.py); nothing is
computed. Its profiler has the methods of torch 2.15 that omni_perf calls, and writes traces as Kineto does: kernels with
their times on the wall clock, those that ran from its start to its stop. `device.work` has what the device did, on
CLOCK_MONOTONIC, so that every figure can be checked.
"""

from __future__ import annotations

import enum
import json
import os
import sys
import time
from types import ModuleType
from typing import Any, ClassVar

from simulated_gpu import SimulatedGPU


class Device(SimulatedGPU):
    """A device with one stream, which remembers what it did."""

    def __init__(self) -> None:
        super().__init__()
        self.work: list[tuple[int, int]] = []

    def launch(self, seconds: float, gap_ns: int = 0) -> None:
        """Put work into the queue, which begins so long after the work before, if that is queued."""
        self.work.append(self.busy(seconds, gap_ns))

    def idle_ns(self, start: int, end: int) -> int:
        """How long it was idle between two times."""
        return end - start - sum(max(0, min(e, end) - max(s, start)) for s, e in self.work)


device = Device()
events_each = 1
"""Events that a trace has for each piece of work."""


class Activity(enum.Enum):
    CPU = 0
    CUDA = 1


activities: set[Activity] = {Activity.CPU, Activity.CUDA}
_enabled = False


def _prepare_profiler(*_: Any) -> None:
    pass


def _enable_profiler(*_: Any) -> None:
    global _enabled
    assert not _enabled, "profilers must not nest"
    _enabled = True


class profile:  # noqa: N801 - torch's name
    made: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, **options: Any) -> None:
        profile.made.append(options)
        self._start_ns = self._stop_ns = 0

    def prepare_trace(self) -> None:
        sys.modules["torch.autograd.profiler"]._prepare_profiler()

    def start_trace(self) -> None:
        sys.modules["torch.autograd.profiler"]._enable_profiler()
        self._start_ns = time.monotonic_ns()

    def stop_trace(self) -> None:
        global _enabled
        device.synchronize()
        self._stop_ns = time.monotonic_ns()
        _enabled = False

    def start(self) -> None:
        self.prepare_trace()
        self.start_trace()

    stop = stop_trace

    def export_chrome_trace(self, path: str) -> None:
        mono, wall = time.monotonic_ns(), time.time_ns()
        base = (wall // 10**9) * 10**9
        events: list[dict[str, Any]] = []
        for start, end in device.work:
            if start < self._start_ns or end > self._stop_ns:
                continue
            for n in range(events_each):
                at = start + (end - start) * n // events_each
                until = start + (end - start) * (n + 1) // events_each
                events.append(
                    {"ph": "X", "cat": "kernel", "name": "simulated_kernel", "pid": 0, "tid": 7}
                    | {"ts": (at + wall - mono - base) / 1000, "dur": (until - at) / 1000}
                    | {"args": {"device": 0, "stream": 7, "correlation": len(events) + 1}}
                )
        meta: dict[str, Any] = {"schemaVersion": 1, "distributedInfo": {"rank": 0}, "baseTimeNanoseconds": base}
        with open(path, "w") as file:
            file.write(json.dumps({**meta, "traceEvents": events}) + "\n")


class record_function:  # noqa: N801 - torch's name
    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def module(name: str, **members: Any) -> ModuleType:
    """Make a module that can be imported."""
    made = ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def install() -> None:
    """Make ``import torch`` find this."""
    autograd_profiler = module(
        "torch.autograd.profiler",
        _prepare_profiler=_prepare_profiler,
        _enable_profiler=_enable_profiler,
        record_function=record_function,
        _is_profiler_enabled=False,
    )
    autograd = module("torch.autograd", profiler=autograd_profiler, _profiler_enabled=lambda: _enabled)
    profiler = module(
        "torch.profiler",
        profile=profile,
        ProfilerActivity=Activity,
        supported_activities=lambda: set(activities),
        record_function=record_function,
    )
    cuda = module(
        "torch.cuda", is_initialized=lambda: bool(device.work), device_count=lambda: 1, synchronize=device.synchronize
    )
    module("torch", __version__="0", autograd=autograd, profiler=profiler, cuda=cuda, __path__=[os.devnull])
