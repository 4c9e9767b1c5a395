"""Worker processes of a cell: in a real kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.timed

WORKERS = """
import json, multiprocessing, sys, time
import omni_perf

def crunch(n):
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        sum(range(100))
"""
CRUNCH = range(6, 9)  # its lines


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        assert kernel.run(WORKERS).error is None
        yield kernel


def last(kernel: Kernel, field: str) -> Any:
    return json.loads(kernel.run(f"print(json.dumps(omni_perf.last().to_dict()[{field!r}]))").text("stdout"))


def lanes(kernel: Kernel) -> dict[str, float]:
    """Return how long the main thread of each other process computed."""
    processes = last(kernel, "processes")
    root = last(kernel, "targets")[0]["process"]
    python = last(kernel, "enumerations")["state"].index("python")
    return {
        processes[thread["process"]]["text"]: thread["state_ns"][python] / 1e9
        for thread in last(kernel, "threads")
        if thread["process"] != root and thread["main"]
    }


def test_a_pool_that_lives_on_is_in_each_cell(kernel: Kernel) -> None:
    ran = kernel.run("pool = multiprocessing.get_context('fork').Pool(2)")
    assert ran.error is None
    try:
        for _ in range(2):
            ran = kernel.run("%%omni_perf\npool.map(crunch, range(8), chunksize=1);")
            assert ran.error is None
            seen = lanes(kernel)
            assert set(seen) == {"pool worker 1", "pool worker 2"}
            assert all(computed > 0.1 for computed in seen.values()), seen
            assert "pool workers" in ran.charts()[0]["text/plain"]
            root = last(kernel, "targets")[0]["process"]
            lines = last(kernel, "lines")
            assert [line["line"] for line in lines if line["process"] == root and line["self_ns"] > 0.3e9] == [2]
            inside = sum(line["self_ns"] for line in lines if line["process"] != root and line["line"] in CRUNCH)
            assert inside > 0.4e9, [line for line in lines if line["process"] != root]
    finally:
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
