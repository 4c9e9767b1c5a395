"""%%omni_perf --exact over a device whose every nanosecond is known, in a real kernel."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, Ran

PROGRAMS = Path(__file__).parent / "programs"

SET_UP = f"""\
import os, sys, time, omni_perf
sys.path.insert(0, {str(PROGRAMS)!r})
import devicetorch
from simulated_torch import device, profile
import simulated_torch
devicetorch.install()
import torch
def step(data=0.02, kernels=5):
    time.sleep(data)
    for _ in range(kernels):
        device.launch(0.002, gap_ns=10_000)
    device.synchronize()
    omni_perf.step()
def report():
    return omni_perf.last().to_dict()
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        assert run(kernel, SET_UP).error is None
        yield kernel


def run(kernel: Kernel, cell: str) -> Ran:
    ran = kernel.finish(kernel.start(cell), patience_s=60)
    assert (value(kernel, "simulated_torch._enabled") if "import devicetorch" not in cell else False) is False
    return ran


def value(kernel: Kernel, expression: str) -> Any:
    ran = kernel.finish(kernel.start(expression), patience_s=60)
    assert ran.error is None and ran.result is not None, ran.outputs
    return ast.literal_eval(ran.result)


FIGURES = """\
(lambda r: dict(
    idle=r['devices'][0]['idle_ns'], busy=r['devices'][0]['busy_ns'], unknown=r['devices'][0]['unknown_ns'],
    truth=device.idle_ns(r['hosts'][0]['clock']['monotonic_ns'], r['hosts'][0]['clock']['monotonic_ns'] + r['duration_ns']),
    causes={c['id']: c['ns'] for c in r['idle']['causes']}, method=r['idle']['method'], text=r['idle']['text'],
    traces=r.get('traces', []), kernels=[sum(k['count']) for k in r.get('kernels', [])], duration=r['duration_ns']))(report())"""


def test_idle_time_is_exact(kernel: Kernel) -> None:
    """It is the truth to a microsecond, beside how exactly the two clocks are compared."""
    ran = run(
        kernel, "%%omni_perf --exact\ntime.sleep(0.1)\nfor _ in range(8):\n    step()\ntime.sleep(0.05)\n'the value'"
    )
    assert ran.result == "'the value'" and ran.text("stderr") == "" and ran.text("stdout") == "", ran.outputs
    found = value(kernel, FIGURES)
    [trace] = found["traces"]
    assert abs(found["idle"] - found["truth"]) <= 1000 + 2 * trace["error_ns"], found
    assert found["unknown"] == 0 and found["idle"] + found["busy"] == found["duration"]
    assert found["method"] == "exact" and "Exact: from begin and end of each kernel" in found["text"]
    assert found["kernels"] == [40]
    assert found["causes"]["queued"] == pytest.approx(8 * 4 * 10_000, abs=2000)
    assert "Exact: from begin and end" in ran.plain
    lines = value(kernel, "{row['text']: row['idle_s'] for row in omni_perf.last().tables['lines']}")
    assert lines["time.sleep(data)"] > 0.11 and lines["time.sleep(0.05)"] > 0.04, lines  # the first is set-up
    assert sum(lines.values()) <= found["idle"] / 1e9, lines
    assert value(kernel, "[sorted(a.name for a in options['activities']) for options in profile.made]") == [["CUDA"]]


def test_gaps_between_queued_kernels_are_those_below_a_limit(kernel: Kernel) -> None:
    ran = run(kernel, "%%omni_perf --exact --kernel-wait 5us\nfor _ in range(4):\n    step()")
    assert ran.error is None and "queued" not in value(kernel, FIGURES)["causes"]
    ran = run(kernel, "%%omni_perf --kernel-wait 5us\npass")
    assert "--kernel-wait belongs to --exact or --torch" in ran.text("stderr")


def test_work_of_before_the_cell_is_waited_for(kernel: Kernel) -> None:
    """Of a kernel that runs when a profiler starts its trace has nothing."""
    run(kernel, "device.launch(0.3)")
    ran = run(kernel, "%%omni_perf --exact\nfor _ in range(3):\n    step()")
    found = value(kernel, FIGURES)
    assert ran.error is None and abs(found["idle"] - found["truth"]) <= 1000 + 2 * found["traces"][0]["error_ns"], found


def test_a_cell_with_many_events_is_exact_up_to_a_limit(kernel: Kernel) -> None:
    """A first stretch shows how many events a step has; then as many steps follow as fit."""
    run(kernel, "simulated_torch.events_each = 400; before = len(profile.made)")
    ran = run(kernel, "%%omni_perf --exact\nfor _ in range(130):\n    step(0.001, 5)")
    found = value(kernel, FIGURES)
    run(kernel, "simulated_torch.events_each = 1")
    assert ran.error is None and "as its trace would have become too large" in ran.text("stderr"), ran.outputs
    assert "recorded the first 100 steps" in ran.text("stderr")  # 20, and 80 of the same size
    assert len(found["traces"]) == 2 and "Exact for" in found["text"] and found["unknown"] > 0, found


def test_torch_without_a_device(kernel: Kernel) -> None:
    run(kernel, "simulated_torch.activities.discard(simulated_torch.Activity.CUDA)")
    ran = run(kernel, "%%omni_perf --exact\ntime.sleep(0.05)\n'the value'")
    run(kernel, "simulated_torch.activities.add(simulated_torch.Activity.CUDA)")
    assert ran.result == "'the value'" and "this PyTorch has none" in ran.text("stderr"), ran.outputs
    assert value(kernel, "report()['duration_ns']") > 50e6


def test_the_users_own_profiler_is_not_disturbed(kernel: Kernel) -> None:
    """Ours ends where it begins; the trace that it writes in the cell is added."""
    cell = "%%omni_perf --exact\nstep()\nown = profile()\nown.start()\nfor _ in range(3):\n    step()\nown.stop()\nown.export_chrome_trace('own.json')\nstep()"
    ran = run(kernel, cell)
    run(kernel, "os.remove('own.json')")
    assert ran.error is None and "ended there, so that yours is not disturbed" in ran.text("stderr"), ran.outputs
    found = value(kernel, FIGURES)
    assert [t["file"] for t in found["traces"]][1:] == ["own.json"] and found["kernels"] == [20], found
    # One that runs before the cell: nothing of ours is started, and its trace is in the chart.
    kernel.finish(kernel.start("own = profile(); own.start(); step()"))
    ran = kernel.finish(kernel.start("%%omni_perf --exact\nstep()\nown.stop()\nown.export_chrome_trace('own.json')"))
    assert "this cell is profiled without --exact" in ran.text("stderr"), ran.outputs
    run(kernel, "os.remove('own.json')")
    assert value(kernel, FIGURES)["kernels"] == [5]


def test_an_interrupt_leaves_no_profiler_running(kernel: Kernel) -> None:
    request = kernel.start("%%omni_perf --exact\nstep()\nopen('begun', 'w').close()\ntime.sleep(60)")
    begun, deadline = Path(f"/proc/{kernel.pid}/cwd/begun"), time.monotonic() + 60
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    kernel.interrupt()
    ran = kernel.finish(request, patience_s=60)
    begun.unlink()
    assert ran.error == "KeyboardInterrupt" and value(kernel, "simulated_torch._enabled") is False
    assert value(kernel, FIGURES)["kernels"] == [5]
