"""The torch of examples/simulated_torch.py, with the memory of a device.

``allocator`` has the memory of a second-rate allocator: each tensor is a segment of its own, kept when the tensor is gone.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3] / "examples"))

import simulated_torch
from simulated_torch import device, module


class OutOfMemoryError(RuntimeError):
    """torch.OutOfMemoryError."""


class Storage:
    """What a tensor's values lie in."""

    def __init__(self, address: int, size: int) -> None:
        self._cdata = address
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
        self.events: list[dict[str, Any]] = []
        self.next = 1 << 40

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
        storage, self.next = Storage(self.next, size), self.next + size
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
        self.note("alloc", storage._cdata, size, frames)
        self.statistics(0)
        return storage

    def free(self, key: int) -> None:
        self.segments[key]["blocks"][0] |= {"state": "inactive", "requested_size": 0, "frames": []}
        for action in ("free_requested", "free_completed"):
            self.note(action, key, self.segments[key]["total_size"], [])

    def note(self, action: str, address: int, size: int, frames: list[dict[str, Any]]) -> None:
        if self.history:
            self.events.append(
                {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time.time_ns() // 1000, "frames": frames}
            )  # fmt: skip

    def record(self, enabled: str | None = "all", **options: Any) -> None:
        assert self.initialized, "it would initialise CUDA"
        self.history, self.events = enabled is not None, []

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
        return {"segments": list(self.segments.values()), "device_traces": [list(self.events)]}


allocator = Allocator()


def install() -> None:
    """Make ``import torch`` find this."""
    simulated_torch.install()
    torch = sys.modules["torch"]
    torch.__dict__["_C"] = module(
        "torch._C",
        TensorBase=TensorBase,
        _cuda_attach_out_of_memory_observer=allocator.attach,
        _cuda_isHistoryEnabled=lambda: allocator.history,
    )
    torch.cuda.__dict__.update(
        is_initialized=lambda: bool(device.work) or allocator.initialized,
        memory_stats_as_nested_dict=allocator.statistics,
        memory=module("torch.cuda.memory", _snapshot=allocator.snapshot, _record_memory_history=allocator.record),
        _lazy_call=allocator.lazy_call,
    )
    module("torch.nn", Module=Module)
    module("torch.optim", Optimizer=Optimizer)
