"""%%omni_perf --exact in a kernel without torch: the library of docs/exact.md, over a stand-in for NVIDIA's CUPTI."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requirement
from kernels import Kernel

CUPTI = Path(__file__).parents[2] / "sidecar" / "measure" / "cupti"

SET_UP = """\
import ctypes, os, sys, time, types
import omni_perf
fake = ctypes.CDLL(os.environ["OMNI_PERF_CUPTI_LIBRARY"])
fake.fake_record.argtypes = [ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_char_p] + 3 * [ctypes.c_uint64]
sys.modules["cupy"] = types.ModuleType("cupy")  # what uses CUDA here
name, busy = b"fusion_1", 0
def work(seconds):
    global busy
    began = time.time_ns()
    time.sleep(seconds)
    ended = time.time_ns()
    fake.fake_record(10, 0, 7, name, began, ended, 0)
    busy += ended - began
"""

CELL = """\
%%omni_perf --exact
time.sleep(0.3)
for _ in range(10):
    work(0.02)
    time.sleep(0.01)
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    if shutil.which("cc") is None:
        requirement.missing("compiler", "no C compiler to build the library with")
    subprocess.run([CUPTI / "testdata/build.sh", tmp_path], check=True)
    subprocess.run([CUPTI / "shim/build.sh", tmp_path / "exact.so"], check=True)
    environment = {
        "OMNI_PERF_EXACT_LIBRARY": str(tmp_path / "exact.so"),
        "OMNI_PERF_CUPTI_LIBRARY": str(tmp_path / "libcupti.so"),
        "OMNI_PERF_FAKE_CUPTI": "version=130401",
    }
    with Kernel(environment) as kernel:
        assert run(kernel, SET_UP) is None
        yield kernel


def run(kernel: Kernel, cell: str) -> Any:
    ran = kernel.finish(kernel.start(cell), patience_s=60)
    assert ran.error is None and ran.text("stderr") == "", ran.outputs
    return None if ran.result is None else ast.literal_eval(ran.result)


def test_work_without_torch(kernel: Kernel) -> None:
    """The time in which the device worked is the program's own, in each cell that asks for it."""
    for _ in range(2):
        run(kernel, "busy = 0")
        run(kernel, CELL)
        truth = run(kernel, "busy")
        run(kernel, "work(0.02)")  # outside: nothing is recorded
        found, known = run(
            kernel,
            "(lambda r: ([(d['busy_ns'], d['idle_ns'], d['unknown_ns']) for d in r['devices']], r['duration_ns']))"
            "(omni_perf.last().to_dict())",
        )
        assert len(found) == 1, found
        [(busy, idle, unknown)] = found
        assert busy + idle + unknown == known
        assert busy == pytest.approx(truth, abs=1e6), (found, known)
        assert unknown < 0.1 * known, (found, known)  # the library was loaded by then
    assert "torch" not in run(kernel, "sorted(sys.modules)")


def test_a_cupti_that_is_in_use(kernel: Kernel) -> None:
    """The cell runs, and its report has the reason."""
    assert run(kernel, "handle = ctypes.c_void_p()\nfake.cuptiSubscribe(ctypes.byref(handle), None, None)") == 0
    run(kernel, CELL)
    notes = run(kernel, "[n['text'] for n in omni_perf.last().to_dict()['notes']]")
    assert any("another profiler uses CUPTI in this process" in note for note in notes), notes
