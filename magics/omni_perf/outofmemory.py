"""Says what had a GPU's memory where an allocation of torch's failed: docs/torch.md, "Out of memory".

torch calls an observer before it raises its OutOfMemoryError. Until then nothing is called. What it looks at is read
without running code of the user's own, and nothing is kept that would keep a tensor alive.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import nullcontext, suppress
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any, Final

from omni_perf import contract

MOST_FAILURES: Final = 3
"""Failures of one cell that are kept, the last ones."""

MOST_S: Final = 2.0
"""Seconds for which failures of one cell are looked at: a program that tries again with less may have many."""

MOST_OBJECTS: Final = 100_000
"""Objects that are looked at for one failure; 0.2 s."""

MOST_FRAMES: Final = 100
MOST_ROWS: Final = 40
DEEPEST: Final = 20

_OPTIMIZED: Final = 0x1
"""Flag of code whose local variables are not a dict of the program's own (inspect.CO_OPTIMIZED)."""

_SNAPSHOTS: Final = sys.version_info < (3, 13)
"""Whether a function's local variables are read by a copy that its frame keeps."""

_REFERENCES: Final = 3
"""To such a copy, where the program has none of its own: the frame's, the variable's and the argument's."""

_PLAIN: Final = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, FunctionType, BuiltinFunctionType)
"""What leads to no tensor."""

_CONTAINERS: Final[tuple[Any, ...]] = (list, tuple, set, frozenset, deque)
"""Besides dicts."""

_HIDDEN: Final = frozenset({"In", "Out", "exit", "quit", "get_ipython"})
"""Names of a notebook that are looked at last."""


class Failures:
    """The allocations that failed in this process while cells were recorded.

    ``thread`` gives the thread of the cell that is recorded, or None: then nothing is looked at. ``folder`` gives
    where the sidecar finds files of ours, or None.
    """

    def __init__(self, thread: Callable[[], int | None], folder: Callable[[], str | None]) -> None:
        self._thread = thread
        self._folder = folder
        self._placed = False
        self._pid = os.getpid()
        self._found: list[tuple[int, contract.OutOfMemory]] = []
        self._looked_s = 0.0

    def look(self) -> bool:
        """Place the observer if torch is there; return whether there is nothing left to do."""
        if self._placed:
            return True
        lazy_call = getattr(sys.modules.get("torch.cuda"), "_lazy_call", None)
        if lazy_call is None:
            return False
        self._placed = True
        attach = getattr(sys.modules.get("torch._C"), "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:  # it would initialise CUDA, which is the program's to do
            lazy_call(lambda: _attach(attach, self._observe))
        return True

    def between(self, start_ns: int, end_ns: int) -> list[contract.OutOfMemory]:
        """Return those of a cell that ran in this time."""
        return [failure for at_ns, failure in self._found if start_ns <= at_ns <= end_ns]

    def forget(self) -> None:
        """Remove what is kept of them."""
        self._looked_s = 0.0
        while self._found:
            self._drop()

    def _drop(self) -> None:
        with suppress(OSError):
            os.unlink(self._found.pop(0)[1].get("snapshot", ""))

    def _observe(self, device: int, requested: int, usable: int, free: int) -> None:
        """Called by torch; what fails here must not take the place of its own exception."""
        at_ns = time.monotonic_ns()
        with suppress(Exception):
            thread = self._thread()
            if thread is None or os.getpid() != self._pid or self._looked_s > MOST_S:
                return
            frames = list(_frames(sys._getframe(1), thread))  # pyright: ignore[reportPrivateUsage]
            failure: contract.OutOfMemory = {
                "atNs": str(at_ns),
                "device": device,
                "requestedBytes": str(requested),
                "usableBytes": str(usable),
                "freeBytes": str(free),
                "stack": [_place(frame) for frame in frames],
            }
            self._found.append((at_ns, failure))
            if len(self._found) > MOST_FAILURES:
                self._drop()
            with suppress(Exception):
                if folder := self._folder():
                    failure["snapshot"] = _snapshot(folder)
            rows, complete = held(frames, "cuda", device)
            failure["held"], failure["all"] = rows[:MOST_ROWS], complete and len(rows) <= MOST_ROWS
            self._looked_s += (time.monotonic_ns() - at_ns) / 1e9


def _attach(attach: Callable[[Any], object], observer: Callable[..., None]) -> None:
    with suppress(Exception):  # it is called where the program begins to use CUDA
        attach(observer)


def _frames(here: FrameType | None, thread: int) -> Generator[FrameType]:
    """Yield the frames of the program, innermost first, up to that of the cell.

    The backward pass allocates in a thread of torch's own: then the cell's waits for it.
    """
    if threading.get_ident() != thread:
        here = sys._current_frames().get(thread, here)  # pyright: ignore[reportPrivateUsage]
    for _ in range(MOST_FRAMES):
        if here is None:
            return
        yield here
        if here.f_globals.get("__name__") == "__main__" and not here.f_code.co_flags & _OPTIMIZED:
            return
        here = here.f_back


def _place(frame: FrameType) -> contract.Place:
    code = frame.f_code
    return {"file": code.co_filename, "line": frame.f_lineno or code.co_firstlineno, "function": code.co_qualname}


def _snapshot(folder: str) -> str:
    """Write what torch's allocator has into a file there, and return its path."""
    segments = sys.modules["torch.cuda.memory"]._snapshot()["segments"]
    descriptor, path = tempfile.mkstemp(prefix="memory-", dir=folder)
    with open(descriptor, "wb") as file:
        pickle.dump({"segments": segments}, file, protocol=4)
    return path


def held(frames: Iterable[FrameType], kind: str, number: int | None) -> tuple[list[contract.Held], bool]:
    """Return what variables of these frames have on a device, and whether all of them were looked at.

    Each storage is counted once: for a plain tensor of the innermost frame that has it, else for the module,
    the optimizer, the container or the object of the outermost one.
    """
    torch: Any = sys.modules["torch"]
    guard = getattr(torch._C, "DisableTorchFunction", nullcontext)
    with guard():
        tensor = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase  # the latter up to torch 2.1
        walk = _Walk(tensor, kind, number)
        variables = [(frame, name, value) for frame in frames for name, value in _variables(frame)]
        plain = [variable for variable in variables if isinstance(variable[2], walk.tensor)]
        others = [variable for variable in reversed(variables) if not isinstance(variable[2], walk.tensor)]
        for frame, name, value in sorted(plain, key=lambda v: _hidden(v[1])) + sorted(others, key=_order):
            with suppress(Exception):  # an object that is not made yet, say
                walk.variable(frame, name, value)
    return sorted(walk.rows, key=lambda row: -int(row.get("bytes", "0"))), walk.left > 0


def _variables(frame: FrameType) -> list[tuple[str, object]]:
    """Return what the local variables of a frame are, or those of its module."""
    variables = frame.f_locals
    found = list(variables.items())
    if _SNAPSHOTS and frame.f_code.co_flags & _OPTIMIZED and sys.getrefcount(variables) <= _REFERENCES:
        variables.clear()  # a copy that the frame keeps: it would keep what the program deletes
    return found


def _hidden(name: str) -> bool:
    return name.startswith("_") or name in _HIDDEN


def _order(variable: tuple[FrameType, str, object]) -> tuple[bool, int]:
    """Sort names of the program before those of IPython, and what says more before what says less."""
    _, name, value = variable
    if _is(value, "torch.nn", "Module"):
        return _hidden(name), 0
    if _is(value, "torch.optim", "Optimizer"):
        return _hidden(name), 1
    return _hidden(name), 2 if isinstance(value, (dict, *_CONTAINERS)) else 3


def _is(value: object, module: str, name: str) -> bool:
    """Whether it is of a class of torch's."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and issubclass(type(value), kind)


class _Walk:
    """What was found so far; each object and each storage is seen once."""

    def __init__(self, tensor: Any, kind: str, number: int | None) -> None:
        self.rows: list[contract.Held] = []
        self.tensor = tensor
        self.left = MOST_OBJECTS
        self._device = kind, number
        self._storages: set[int] = set()
        self._objects: set[int] = set()

    def variable(self, frame: FrameType, name: str, value: object) -> None:
        """Add a row for each kind of tensor that a variable leads to."""
        usual = "tensor" if isinstance(value, self.tensor) else "tensors"
        if _is(value, "torch.optim", "Optimizer"):
            usual = "optimizer"
        found: dict[str, list[tuple[int, object]]] = {}
        for kind, size, tensor in self._tensors(value, usual, 0):
            found.setdefault(kind, []).append((size, tensor))
        for kind, tensors in found.items():
            row: contract.Held = {
                "name": name,
                "kind": kind,
                "place": _place(frame),
                "bytes": str(sum(size for size, _ in tensors)),
                "tensors": len(tensors),
            }
            if len(tensors) == 1:
                row["shape"] = self._shape(tensors[0][1])
            self.rows.append(row)

    def _tensors(self, value: object, kind: str, depth: int) -> Generator[tuple[str, int, object]]:
        """Yield the tensors with a storage of their own that a value leads to."""
        if isinstance(value, _PLAIN) or depth > DEEPEST or self.left <= 0 or id(value) in self._objects:
            return
        self._objects.add(id(value))
        self.left -= 1
        if isinstance(value, self.tensor):
            if size := self._own_bytes(value):
                yield kind, size, value
            if self.tensor.is_leaf.__get__(value):  # of another one, asking for it may warn
                yield from self._tensors(self.tensor.grad.__get__(value), "gradients", depth + 1)
        for inside, of_kind in _inside(value, kind):
            yield from self._tensors(inside, of_kind, depth + 1)

    def _own_bytes(self, tensor: object) -> int:
        """Return the size of a tensor's storage on the device, if it was not counted before."""
        device = self.tensor.device.__get__(tensor)
        if device.type != self._device[0] or self._device[1] not in (None, device.index):
            return 0
        try:
            storage = self.tensor.untyped_storage(tensor)
            key, size = storage._cdata, storage.nbytes()
        except Exception:  # a sparse one, say
            return 0
        if key in self._storages:
            return 0
        self._storages.add(key)
        return size

    def _shape(self, tensor: object) -> str:
        dtype = str(self.tensor.dtype.__get__(tensor)).removeprefix("torch.")
        return f"{dtype} {list(self.tensor.shape.__get__(tensor))}"


def _inside(value: object, kind: str) -> list[tuple[object, str]]:
    """Return what a value leads to, and of what kind tensors there are; nothing of the program's own is called."""
    for container in _CONTAINERS:
        if isinstance(value, container):
            return [(inside, kind) for inside in list(container.__iter__(value))]
    if isinstance(value, dict):
        return [(inside, kind) for inside in _items(value).values()]
    try:
        members = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    if not isinstance(members, dict):
        return []
    is_module = _is(value, "torch.nn", "Module")
    return [
        (inside, "parameters" if is_module and name in ("_parameters", "_buffers") else kind)
        for name, inside in _items(members).items()
    ]


def _items(value: Any) -> dict[object, object]:
    """Return a plain copy of a dict, whatever methods it has."""
    return dict(dict[Any, Any].items(value))
