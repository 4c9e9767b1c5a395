"""Whose line the time is for which a cell or a script waits in its event loop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel
from reading import reading

pytestmark = pytest.mark.timed

BINARY = Path(sys.executable).parent / "omni-perf"


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with Kernel() as kernel:
        kernel.run("import asyncio, json, time, omni_perf")
        yield kernel


def profile(kernel: Kernel, cell: str) -> dict[str, Any]:
    ran = kernel.run("%%omni_perf --quiet\n" + cell)
    assert ran.error is None, ran.outputs
    ran = kernel.run("print(json.dumps(omni_perf.last().to_dict()))")
    return reading(json.loads(ran.text("stdout")))


def own_lines(report: dict[str, Any]) -> dict[int, float]:
    """Seconds of each line of the recorded cell."""
    own = f"Cell [{report['target']['cell']['execution_count']}]"
    return {line["line"]: line["self_s"] for line in report["lines"] if line["file"] == own and line["self_s"] > 0.01}


def near(got: dict[int, float], want: dict[int, float]) -> bool:
    """Whether each line has its time but for a sixth of all of it."""
    limit = sum(want.values()) / 6
    return all(abs(got.get(line, 0) - want.get(line, 0)) <= limit for line in {*got, *want})


def check(record: Callable[[], dict[int, float]], want: dict[int, float]) -> None:
    """Compare, five times at most: on a busy machine sleeps take longer."""
    for last in (False, False, False, False, True):
        got = record()
        if near(got, want):
            return
        assert not last, (got, want)


CELLS = {
    "statements": (
        "await asyncio.sleep(0.2)\nawait asyncio.sleep(0.35)\nx = 1\nawait asyncio.sleep(0.1)",
        {2: 0.2, 3: 0.35, 5: 0.1},
    ),
    "in a loop": ("for n in range(4):\n    await asyncio.sleep(0.05)\n    await asyncio.sleep(0.1)", {3: 0.2, 4: 0.4}),
    "own coroutines": (
        "async def fetch(s):\n    await asyncio.sleep(s)\n    time.sleep(0.1)\nawait fetch(0.3)\nawait fetch(0.1)",
        {3: 0.4, 4: 0.2},
    ),
    "gather": ("await asyncio.gather(*(asyncio.sleep(s) for s in (0.1, 0.4)))\ntime.sleep(0.1)", {2: 0.4, 3: 0.1}),
    "task group": (
        "async with asyncio.TaskGroup() as group:\n    group.create_task(asyncio.sleep(0.3))\nawait asyncio.sleep(0.1)",
        {2: 0.3, 4: 0.1},
    ),
    "wait for": (
        "await asyncio.wait_for(asyncio.sleep(0.3), 10)\nasync with asyncio.timeout(5):\n    await asyncio.sleep(0.2)",
        {2: 0.3, 4: 0.2},
    ),
    "generator": (
        "async def items():\n    for n in range(3):\n        await asyncio.sleep(0.1)\n        yield n\nasync for item in items():\n    await asyncio.sleep(0.05)",
        {4: 0.3, 7: 0.15},
    ),
    "comprehension": (
        "async def one():\n    await asyncio.sleep(0.1)\nall_ = [await one() for n in range(3)]",
        {3: 0.3},
    ),
    "awaitable": (
        "class Later:\n    def __await__(self):\n        yield from asyncio.sleep(0.3).__await__()\nawait Later()\ntime.sleep(0.1)",
        {4: 0.3, 6: 0.1},
    ),
    "thread": ("await asyncio.to_thread(time.sleep, 0.3)\ntime.sleep(0.1)", {2: 0.3, 3: 0.1}),
    "task": (
        "async def work():\n    await asyncio.sleep(0.3)\ntask = asyncio.create_task(work())\ntime.sleep(0.1)\nawait task",
        {5: 0.1, 6: 0.3},
    ),
    "beside tasks that compute": (
        "def spin(s):\n    end = time.perf_counter() + s\n    while time.perf_counter() < end: pass\n"
        "async def busy():\n    for n in range(20):\n        spin(0.01)\n        await asyncio.sleep(0.01)\n"
        "task = asyncio.create_task(busy())\nawait asyncio.sleep(0.6)",
        {4: 0.2, 10: 0.4},
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_that_awaits(kernel: Kernel, name: str) -> None:
    cell, want = CELLS[name]
    check(lambda: own_lines(profile(kernel, cell)), want)


SCRIPTS = {
    "asyncio.run": (
        "import asyncio\nasync def fetch(s):\n    await asyncio.sleep(s)\nasync def main():\n    await fetch(0.3)\n"
        "    await asyncio.gather(fetch(0.1), fetch(0.4))\nasyncio.run(main())\n",
        {3: 0.3, 6: 0.4},
    ),
    "a loop of its own": (
        "import asyncio\nasync def main():\n    await asyncio.sleep(0.4)\nasyncio.new_event_loop().run_until_complete(main())\n",
        {3: 0.4},
    ),
    "tasks in a loop": (
        "import asyncio\nasync def main():\n    for n in range(4):\n        await asyncio.sleep(0.1)\n"
        "loop = asyncio.new_event_loop()\nloop.run_until_complete(loop.create_task(main()))\n",
        {4: 0.4},
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_awaits(tmp_path: Path, name: str) -> None:
    text, want = SCRIPTS[name]
    script = tmp_path / "script.py"
    script.write_text(text)

    def record() -> dict[int, float]:
        subprocess.run(
            [BINARY, "run", "--interpreter", sys.executable, "-o", str(tmp_path / "out"), "--format", "json", script],
            check=True, capture_output=True,
        )  # fmt: skip
        lines = reading(json.loads((tmp_path / "out.json").read_text()))["lines"]
        return {line["line"]: line["self_s"] for line in lines if line["text"] != "import asyncio"}

    check(record, want)
