"""What had a GPU's memory where an allocation failed: with real PyTorch's tensors on the CPU, and in a real kernel over an
allocator of which every byte is known.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, Ran
from torches import PYTHON, need_torch

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
MIB = 1 << 20

HELD = """\
import gc, json, sys, weakref
import torch
from omni_perf import outofmemory

def look():
    rows, complete = outofmemory.held(list(frames()), "cpu", None)
    return [{key: value for key, value in row.items() if key != "place"} | {"in": row["place"]["function"]} for row in rows], complete

def frames():
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back

class Pair:
    def __init__(self, tensor):
        self.tensor = tensor
    def __getattr__(self, name):
        raise AssertionError("code of the program's own was called")

class Odd(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *_):
        raise AssertionError("code of the program's own was called")

def forward(x, self):
    hidden = x * 2
    view = hidden[:10]
    odd = torch.ones(1000).as_subclass(Odd)
    sparse = torch.eye(3).to_sparse()
    return look()

model = torch.nn.Sequential(torch.nn.Linear(100, 100, bias=False), torch.nn.BatchNorm1d(100))
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(4, 100)).sum().backward()
optimizer.step()
kept = [torch.ones(5000) for _ in range(3)] + [{"deep": (Pair(torch.ones(700)),)}]
pair = Pair(torch.ones(600))
"""


@pytest.fixture(scope="module")
def torch_python() -> Path:
    need_torch()
    return PYTHON


def answers(python: Path, code: str) -> Any:
    environment = {"PYTHONPATH": str(ROOT / "magics"), "PYTHONWARNINGS": "error", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [python, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_each_storage_is_of_one_variable(torch_python: Path) -> None:
    """Of real tensors: the module's parameters and gradients, the optimizer's state, containers, views, subclasses."""
    rows, complete = answers(torch_python, HELD + "print(json.dumps(forward(torch.ones(2000), model[0])))")
    assert complete
    found = {(row["in"], row["name"], row["kind"]): row for row in rows}
    size = {key: int(row["bytes"]) for key, row in found.items()}
    assert (
        size.pop(("<module>", "model", "parameters")) == 4 * (100 * 100 + 4 * 100) + 8
    )  # weights, statistics, a counter
    assert size.pop(("<module>", "model", "gradients")) == 4 * (100 * 100 + 2 * 100)
    assert size.pop(("<module>", "optimizer", "optimizer")) == 2 * 4 * (100 * 100 + 2 * 100) + 3 * 4  # steps of float32
    assert size.pop(("<module>", "kept", "tensors")) == 4 * (3 * 5000 + 700)
    assert size.pop(("<module>", "pair", "tensors")) == 4 * 600
    assert size.pop(("forward", "hidden", "tensor")) == 4 * 2000
    assert size.pop(("forward", "x", "tensor")) == 4 * 2000
    assert size.pop(("forward", "odd", "tensor")) == 4 * 1000
    assert not size, size
    assert found["forward", "hidden", "tensor"]["shape"] == "float32 [2000]"


def test_nothing_is_kept_alive(torch_python: Path) -> None:
    """Reading a function's variables, which makes a copy before Python 3.13, keeps none of them."""
    code = HELD + (
        "def program():\n    big = torch.ones(10)\n    alive = weakref.ref(big)\n    look()\n    del big\n"
        "    return alive() is None\nprint(json.dumps(program()))"
    )
    assert answers(torch_python, code) is True


@pytest.mark.parametrize("holds", [False, True])
def test_the_programs_own_locals_are_not_changed(holds: bool) -> None:
    """Where it has asked for locals() itself, what it got stays; under any Python, with a torch that is none."""
    code = (
        f"import sys; sys.path.insert(0, {str(PROGRAMS)!r})\nimport devicetorch; devicetorch.install()\n"
        "from omni_perf import outofmemory\n"
        "def program():\n"
        f"    big = devicetorch.TensorBase(100); mine = locals() if {holds} else None\n"
        "    rows, _ = outofmemory.held([sys._getframe()], 'cuda', 0)\n"
        "    assert [row['name'] for row in rows] == ['big'], rows\n"
        "    if mine is not None: assert mine['big'] is big\n"
        "    key = big._storage._cdata\n"
        "    del big\n"
        "    if mine is None: assert devicetorch.allocator.segments[key]['blocks'][0]['state'] == 'inactive'\n"
        "program()"
    )
    run = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT / "magics")}, check=False)
    assert run.returncode == 0


SET_UP = f"""\
import os, sys, glob, sysconfig, tempfile, types, omni_perf
devicetorch = sys.modules['devicetorch'] = types.ModuleType('devicetorch')
devicetorch.__file__ = {str(PROGRAMS / "devicetorch.py")!r}
with open(devicetorch.__file__) as file:  # under the name of a file of torch, as its own functions are
    exec(compile(file.read(), os.path.join(sysconfig.get_path('purelib'), 'torch', 'devicetorch.py'), 'exec'), devicetorch.__dict__)
from devicetorch import TensorBase as Tensor, Module, Optimizer, allocator
devicetorch.install()
import torch
MIB = 1 << 20
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        assert run(kernel, SET_UP).error is None
        yield kernel


def run(kernel: Kernel, cell: str) -> Ran:
    return kernel.finish(kernel.start(cell), patience_s=60)


def value(kernel: Kernel, expression: str) -> Any:
    ran = run(kernel, expression)
    assert ran.error is None and ran.result is not None, ran.outputs
    return ast.literal_eval(ran.result)


def rows(kernel: Kernel, table: str) -> list[dict[str, Any]]:
    return value(kernel, f"[dict(row) for row in omni_perf.last().tables[{table!r}]]")


TRAINING = """\
%%omni_perf
def attention(x):
    scores = Tensor(300 * MIB, leaf=False)
    return Tensor(600 * MIB, leaf=False)
model = Module(100 * MIB, 50 * MIB)
optimizer = Optimizer(model)
model._parameters['p0']._grad = Tensor(100 * MIB)
Tensor(20 * MIB)  # gone at once, and kept by the allocator
cache = [Tensor(10 * MIB), Tensor(10 * MIB)]
hidden = Tensor(4 * MIB)._storage, hidden if 'hidden' in globals() else None
attention(cache[0])
"""


def snapshots(kernel: Kernel) -> set[str]:
    """The allocator's snapshots that are in the folders of sidecars."""
    pattern = "os.path.join(os.environ.get('XDG_RUNTIME_DIR') or tempfile.gettempdir(), 'omni_perf*', 'memory-*')"
    return set(value(kernel, f"glob.glob({pattern})"))


def test_a_failed_allocation_says_what_had_the_memory(kernel: Kernel) -> None:
    before = snapshots(kernel)
    ran = run(kernel, TRAINING)
    assert ran.error == "OutOfMemoryError" and "Tried to allocate" in str(ran.outputs)
    [failure] = rows(kernel, "out_of_memory")
    in_use = (100 + 50 + 150 + 100 + 20 + 4 + 300) * MIB
    assert failure["requested_bytes"] == 600 * MIB and failure["usable_bytes"] == 1024 * MIB
    assert (
        failure["in_use_bytes"] == in_use and failure["reserved_free_bytes"] == 20 * MIB == failure["releasable_bytes"]
    )
    assert failure["reserved_bytes"] == in_use + 20 * MIB and failure["free_bytes"] == (1024 - 100 - 20) * MIB - in_use
    assert failure["text"] == "return Tensor(600 * MIB, leaf=False)" and failure["segments"] == 10
    held = {(row["name"], row["kind"], row["text"]): row["bytes"] / MIB for row in rows(kernel, "device_memory")}
    assert held == {
        ("scores", "tensor", "return Tensor(600 * MIB, leaf=False)"): 300,
        ("model", "parameters", "attention(cache[0])"): 150,
        ("optimizer", "optimizer", "attention(cache[0])"): 150,
        ("model", "gradients", "attention(cache[0])"): 100,
        ("cache", "tensors", "attention(cache[0])"): 10,
        ("x", "tensor", "return Tensor(600 * MIB, leaf=False)"): 10,
    }
    for text in (
        "Out of memory: what had the memory of GPU 0",
        "600 MiB asked for",
        "model: parameters",
        "optimizer: the optimizer's state",
        "in no variable of these functions",
        "of other programs and the driver",
    ):
        assert text in ran.plain, ran.plain
    assert "what had the memory of GPU 0" in str(run(kernel, "%omni_perf last").outputs)
    assert snapshots(kernel) <= before


def test_lines_that_had_allocated_where_a_history_is_recorded(kernel: Kernel) -> None:
    run(kernel, "del model, optimizer, cache, hidden; allocator.segments.clear(); allocator.free = lambda key: None")
    ran = run(kernel, "allocator.history = True\nkept = []\ndef more():\n    kept.append(Tensor(50 * MIB))")
    ran = run(kernel, "%%omni_perf\nfor _ in range(30):\n    more()")
    assert ran.error == "OutOfMemoryError" and "lines that had allocated what was in use" in ran.plain, ran.plain
    lines = [row for row in rows(kernel, "device_memory") if row["by"] == "line"]
    assert [(row["text"], row["tensors"], row["bytes"] / MIB) for row in lines] == [
        ("kept.append(Tensor(50 * MIB))", 18, 900)
    ]
    run(kernel, "allocator.history = False")


def test_a_program_that_tries_again_is_not_slowed_down(kernel: Kernel) -> None:
    """The last failures are kept; the exception is caught as without us."""
    cell = (
        "%%omni_perf\nfailed = 0\nfor n in range(400, 0, -50):\n    try:\n        Tensor(n * MIB)\n        break\n"
        "    except devicetorch.OutOfMemoryError:\n        failed += 1\nfailed"
    )
    ran = run(kernel, cell)
    assert ran.error is None and ran.result is not None and int(ran.result) >= 6
    assert "the last of 3 failures" in ran.plain, ran.plain
    assert [row["requested_bytes"] / MIB for row in rows(kernel, "out_of_memory")][-1] == (8 - int(ran.result) + 1) * 50


def test_nothing_is_called_before_and_nothing_without_a_recording(kernel: Kernel) -> None:
    assert value(kernel, "len(allocator.observers)") == 1
    assert run(kernel, "Tensor(2000 * MIB)").error == "OutOfMemoryError"
    ran = run(kernel, "%%omni_perf\nsum(range(1000000))")
    assert ran.error is None and rows(kernel, "out_of_memory") == []


def test_what_torch_said_of_its_allocator_before_the_cell_and_after_it(kernel: Kernel) -> None:
    """It is read from a torch that is there, and its mark of the peak stays the program's."""
    run(
        kernel,
        "kept = []; vars(allocator).pop('free', None); allocator.segments.clear(); allocator.peak = 0; first = Tensor(40 * MIB)",
    )
    run(kernel, "%%omni_perf\nbig = Tensor(200 * MIB)\ndel big\nlast = Tensor(30 * MIB)")
    [row] = rows(kernel, "torch_memory")
    got = [row[f"{name}_bytes"] // MIB for name in ("allocated_before", "allocated", "reserved_before", "peak")]
    assert got == [40, 70, 40, 240], row
    assert row["device"] == 0 and row["peak_at_least_bytes"] is None and value(kernel, "allocator.peak // MIB") == 240
    ran = run(kernel, "%%omni_perf\nmore = Tensor(20 * MIB)\nimport time; time.sleep(0.4)")
    [row] = rows(kernel, "torch_memory")
    assert row["peak_bytes"] is None and row["peak_at_least_bytes"] == 90 * MIB, row
    assert "Memory of torch's allocator" in ran.plain and "in use 70 MiB before, 90 MiB after it" in ran.plain, (
        ran.plain
    )
