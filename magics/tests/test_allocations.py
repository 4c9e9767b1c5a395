"""%%omni_perf --memory exact: memray's tracker around the cell, and what it recorded by line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel
from requirement import missing

MEMRAY = Path(__file__).parents[2] / ".cache" / "memray"
MB = 1 << 20


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        kernel.run("import sys, omni_perf")
        yield kernel


def rows(kernel: Kernel) -> list[dict[str, Any]]:
    result = kernel.run("[dict(row) for row in omni_perf.last().tables['allocations']]").result
    assert result is not None
    return ast.literal_eval(result)


CELL = """\
%%omni_perf --memory exact
def make(n):
    return bytearray(n << 20)
kept = [make(10) for _ in range(3)]
gone = make(100)
del gone
after = make(5)
"""


def test_without_memray_the_cell_runs_and_a_sentence_says_how_to_have_it(kernel: Kernel) -> None:
    kernel.run("sys.modules['memray'] = None; import importlib.util\nfind = importlib.util.find_spec")
    kernel.run("importlib.util.find_spec = lambda name, *rest: None if name == 'memray' else find(name, *rest)")
    ran = kernel.run(CELL)
    kernel.run("importlib.util.find_spec = find; del sys.modules['memray']")
    assert ran.error is None and "%pip install memray" in str(ran.outputs)
    assert rows(kernel) == []
    assert "exact or device, not 'all'" in str(kernel.run("%%omni_perf --memory all\n1").outputs)


def test_what_was_allocated_at_the_peak_is_by_line(kernel: Kernel) -> None:
    if not MEMRAY.is_dir():
        missing("memray", "there is no memray in .cache/memray: tools/memray installs it (20 MB)")
    kernel.run(f"sys.path.append({str(MEMRAY)!r})")
    ran = kernel.run(CELL)
    assert ran.error is None, ran.outputs
    got = {row["line"]: row for row in rows(kernel)}
    line = got[3]  # the innermost line of one's own
    assert 130 * MB <= line["peak_bytes"] < 132 * MB and line["peak_allocations"] == 4
    assert 35 * MB <= line["kept_bytes"] < 36 * MB and line["text"] == "return bytearray(n << 20)"
    assert line["function"] == "make"
    assert "Allocated at the cell's peak" in ran.plain and "memray" in ran.plain, ran.plain
    assert kernel.run("import glob, tempfile\nglob.glob(tempfile.gettempdir() + '/omni_perf-memray-*')").result == "[]"
    second = kernel.run("import memray\nwith memray.Tracker('/dev/null'):\n    pass")
    assert second.error is None, second.outputs


def test_a_tracker_of_ones_own_goes_on(kernel: Kernel) -> None:
    if not MEMRAY.is_dir():
        missing("memray", "there is no memray in .cache/memray: tools/memray installs it (20 MB)")
    kernel.run("own = memray.Tracker('/dev/null')\nown.__enter__()")
    ran = kernel.run(CELL)
    assert ran.error is None and "memray could not record this cell" in str(ran.outputs), ran.outputs
    assert kernel.run("own.__exit__(None, None, None)").error is None
