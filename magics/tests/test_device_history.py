"""%%omni_perf --memory device: torch's history of what a cell allocates on a device whose every byte is known."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, Ran

PROGRAMS = Path(__file__).parent / "programs"

SET_UP = f"""\
import glob, os, pickle, sys, tempfile, omni_perf
os.chdir(tempfile.mkdtemp())
sys.path.insert(0, {str(PROGRAMS)!r})
import devicetorch
from devicetorch import TensorBase as Tensor, allocator
devicetorch.install()
import torch
MIB = 1 << 20
def fill(count):
    return [Tensor(10 * MIB) for _ in range(count)]
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        before = run(kernel, "%%omni_perf --memory device\n1 + 1")
        assert "needs torch with CUDA" in said(before)
        alone = run(kernel, "%%omni_perf --memory\n1 + 1")
        assert alone.error is None and alone.text("stderr") == "" and "torch" not in said(alone)
        assert run(kernel, SET_UP).error is None
        yield kernel


def run(kernel: Kernel, cell: str) -> Ran:
    return kernel.finish(kernel.start(cell), patience_s=60)


def said(ran: Ran) -> str:
    return ran.plain + str(ran.outputs)


def value(kernel: Kernel, expression: str) -> Any:
    ran = run(kernel, expression)
    assert ran.error is None and ran.result is not None, ran.outputs
    return ast.literal_eval(ran.result)


def test_nothing_starts_cuda(kernel: Kernel) -> None:
    ran = run(kernel, "%%omni_perf --memory device\nsum(range(1000))")
    assert ran.error is None and "the cell did not use CUDA" in said(ran)
    assert value(kernel, "allocator.initialized, glob.glob('*.pickle')") == (False, [])


def test_the_history_of_a_cell_is_kept_and_shown(kernel: Kernel) -> None:
    ran = run(kernel, "%%omni_perf --memory device\nkept = fill(3)\ndropped = fill(2)\ndel dropped\nlen(kept)")
    assert ran.error is None and ran.result == "3", ran.plain
    (path,) = value(kernel, "glob.glob('*.pickle')")
    assert f"what torch allocated on GPUs is in {path}." in said(ran)
    actions = value(kernel, f"[e['action'] for e in pickle.load(open({path!r}, 'rb'))['device_traces'][0]]")
    assert actions.count("alloc") == 5 and actions.count("free_completed") == 2
    assert "When memory was highest\n" in ran.plain and "device 0  50 MiB " in ran.plain, ran.plain
    # Before and after the cell nothing is recorded.
    assert value(kernel, "allocator.history") is False


def test_a_history_of_the_programs_own_goes_on(kernel: Kernel) -> None:
    run(kernel, "torch.cuda.memory._record_memory_history()\nmine = fill(1)")
    ran = run(kernel, "%%omni_perf --memory device --quiet\nmore = fill(1)")
    assert ran.error is None and "what torch allocated on GPUs is in" in said(ran)
    assert value(kernel, "allocator.history, [e['action'] for e in allocator.events]") == (True, ["alloc", "alloc"])
