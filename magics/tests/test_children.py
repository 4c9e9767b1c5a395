"""Worker processes of a cell: in a real kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kernels import Kernel

WORKERS = """
import json, multiprocessing, sys, time
import omni_perf

def crunch(n):
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        sum(range(100))
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        assert kernel.run(WORKERS).error is None
        yield kernel


def last(kernel: Kernel, field: str) -> Any:
    return json.loads(kernel.run(f"print(json.dumps(omni_perf.last().to_dict()[{field!r}]))").text("stdout"))


def lanes(kernel: Kernel) -> dict[str, float]:
    """Tell how long each lane of another process computed."""
    kernel_pid = last(kernel, "target")["pid"]
    return {
        thread["name"]: thread["state_s"].get("python", 0.0)
        for thread in last(kernel, "threads")
        if thread["pid"] != kernel_pid and thread["is_main"]
    }


def test_a_pool_that_lives_on_is_in_each_cell(kernel: Kernel) -> None:
    ran = kernel.run("pool = multiprocessing.get_context('fork').Pool(2)")
    assert ran.error is None
    for _ in range(2):
        ran = kernel.run("%%omni_perf\npool.map(crunch, range(8), chunksize=1);")
        assert ran.error is None
        seen = lanes(kernel)
        assert set(seen) == {"pool worker 1", "pool worker 2"}
        assert all(computed > 0.2 for computed in seen.values()), seen
        assert "pool workers" in ran.charts()[0]["text/plain"]
        [cell] = [line for line in last(kernel, "cell_lines") if line["self_s"] > 0.3]
        assert cell["line"] == 2
    kernel.run("pool.terminate(); pool.join()")


@pytest.mark.parametrize(("what", "processes", "seen"), [("tracks", 2, 0), ("none", 1, 0)])
def test_what_is_recorded_is_chosen(kernel: Kernel, what: str, processes: int, seen: int) -> None:
    ran = kernel.run(
        f"%%omni_perf --children {what}\n"
        "worker = multiprocessing.get_context('fork').Process(target=crunch, args=(1,))\n"
        "worker.start(); worker.join()"
    )
    assert ran.error is None
    assert len(last(kernel, "processes")) == processes
    assert len(lanes(kernel)) == seen
