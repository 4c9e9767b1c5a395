"""A torch of which only the profiler is there, over a device whose every nanosecond is known.

``install()`` puts it into ``sys.modules``. The device works off a queue as a CUDA stream does; nothing is computed. Its
profiler has the methods of torch 2.15 that omni_perf calls, and writes traces as Kineto does: kernels with their times on
the wall clock, those that ran from its start to its stop. ``device.work`` has what the device did, on CLOCK_MONOTONIC.

``allocator`` has the memory of a second-rate allocator: each tensor is a segment of its own, kept when the tensor is gone.
"""

from __future__ import annotations

import enum
import json
import os
import sys
import time
from types import ModuleType
from typing import Any, ClassVar


class Device:
    """A device with one stream."""

    def __init__(self) -> None:
        self.work: list[tuple[int, int]] = []
        self._free_at = 0

    def launch(self, seconds: float, gap_ns: int = 0) -> None:
        """Put work into the queue, which begins so long after the work before, if that is queued."""
        start = max(time.monotonic_ns(), self._free_at + gap_ns)
        self._free_at = start + round(seconds * 1e9)
        self.work.append((start, self._free_at))

    def synchronize(self) -> None:
        while (left := self._free_at - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)

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


class OutOfMemoryError(RuntimeError):
    """torch.OutOfMemoryError."""


class Storage:
    """What a tensor's values lie in."""

    def __init__(self, size: int) -> None:
        self._cdata = id(self)
        self._size = size

    def nbytes(self) -> int:
        return self._size

    def __del__(self) -> None:
        allocator.free(self._cdata)


class Where:
    type = "cuda"
    index = 0


class TensorBase:
    """As much of a tensor as omni_perf reads."""

    def __init__(self, size: int, leaf: bool = True) -> None:
        self._storage = allocator.allocate(size)
        self._leaf = leaf
        self._grad: TensorBase | None = None

    device = property(lambda _: Where())
    is_leaf = property(lambda self: self._leaf)
    grad = property(lambda self: self._grad)
    dtype = property(lambda _: "torch.float32")
    shape = property(lambda self: (self._storage.nbytes() // 4,))

    def untyped_storage(self) -> Storage:
        return self._storage

    def view(self) -> TensorBase:
        other = object.__new__(TensorBase)
        other.__dict__.update(self.__dict__)
        return other


class Module:
    def __init__(self, *sizes: int) -> None:
        self._parameters = {f"p{i}": TensorBase(size) for i, size in enumerate(sizes)}


class Optimizer:
    def __init__(self, module: Module) -> None:
        self.state = {name: TensorBase(p._storage.nbytes()) for name, p in module._parameters.items()}


class Allocator:
    """A device with so many bytes, of which another program has some."""

    def __init__(self) -> None:
        self.usable, self.others = 1 << 30, 100 << 20
        self.history = False
        self.observers: list[Any] = []
        self.segments: dict[int, dict[str, Any]] = {}
        self.queued: list[Any] = []
        self.initialized = False
        self.peak = 0

    def initialize(self) -> None:
        self.initialized = True
        while self.queued:
            self.queued.pop(0)()

    def lazy_call(self, call: Any) -> None:
        if self.initialized:
            call()
        else:
            self.queued.append(call)

    def attach(self, observer: Any) -> None:
        self.observers.append(observer)

    def allocate(self, size: int) -> Storage:
        self.initialize()
        free = self.usable - self.others - sum(s["total_size"] for s in self.segments.values())
        if size > free:
            for observer in self.observers:
                observer(0, size, self.usable, free)
            raise OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes.")
        frames = []
        frame = sys._getframe(1) if self.history else None
        while frame is not None:
            frames.append({"filename": frame.f_code.co_filename, "line": frame.f_lineno, "name": frame.f_code.co_name})
            frame = frame.f_back
        storage = Storage(size)
        block = {
            "address": storage._cdata,
            "size": size,
            "requested_size": size,
            "state": "active_allocated",
            "frames": frames,
        }
        self.segments[storage._cdata] = {
            "device": 0, "address": storage._cdata, "total_size": size, "allocated_size": size, "active_size": size,
            "requested_size": size, "stream": 0, "segment_type": "large", "is_expandable": False, "frames": [], "blocks": [block],
        }  # fmt: skip
        self.statistics(0)
        return storage

    def free(self, key: int) -> None:
        self.segments[key]["blocks"][0] |= {"state": "inactive", "requested_size": 0, "frames": []}

    def statistics(self, device: int) -> dict[str, Any]:
        assert device == 0
        total = sum(s["total_size"] for s in self.segments.values())
        used = sum(s["total_size"] for s in self.segments.values() if s["blocks"][0]["state"] == "active_allocated")
        self.peak = max(self.peak, used)
        return {
            "allocated_bytes": {"all": {"current": used, "peak": self.peak}},
            "reserved_bytes": {"all": {"current": total, "peak": total}},
        }

    def snapshot(self) -> dict[str, Any]:
        return {"segments": list(self.segments.values()), "device_traces": [[]]}


allocator = Allocator()


def install() -> None:
    """Make ``import torch`` find this."""

    def module(name: str, **members: Any) -> ModuleType:
        made = ModuleType(name)
        made.__dict__.update(members)
        sys.modules[name] = made
        return made

    record_function = type("record_function", (), {"__enter__": lambda _: None, "__exit__": lambda *_: None})
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
    core = module("torch._C", TensorBase=TensorBase, _cuda_attach_out_of_memory_observer=allocator.attach)
    memory = module("torch.cuda.memory", _snapshot=allocator.snapshot)
    cuda = module(
        "torch.cuda",
        is_initialized=lambda: bool(device.work) or allocator.initialized,
        device_count=lambda: 1,
        memory_stats_as_nested_dict=allocator.statistics,
        synchronize=device.synchronize,
        memory=memory,
        _lazy_call=allocator.lazy_call,
    )
    module("torch.nn", Module=Module)
    module("torch.optim", Optimizer=Optimizer)
    module("torch", __version__="0", _C=core, autograd=autograd, profiler=profiler, cuda=cuda, __path__=[os.devnull])
