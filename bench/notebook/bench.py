"""What omni_perf costs in a notebook: medians, each beside a baseline of the same run.

    load            %load_ext omni_perf, beside an extension that does nothing
    trivial cell    `x = 1` under %omni_perf on, beside a kernel without the extension
    end to bundle   from the last statement of a long cell to its chart at the front end,
                    beside a plain display of the same bytes
    slow-down       CPU-bound pure Python at 1 kHz, beside the same cell bare, in pairs

Run it on a quiet machine: `make bench`. --seconds shortens the long cell.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "magics" / "tests"))

from kernels import Kernel

LOAD = """
import sys, time, types
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
empty = types.ModuleType("does_nothing")
empty.load_ipython_extension = lambda shell: None
sys.modules["does_nothing"] = empty
began = time.perf_counter()
shell.run_line_magic("load_ext", sys.argv[1])
print(time.perf_counter() - began)
"""

WORK = """
def work(count):
    a, b = 1, 0
    for i in range(count):
        a, b = step(a, i), a
    return a
def step(a, i):
    return (a * 1103515245 + i) % 2147483648
"""


def main() -> None:
    """Measure everything and print a line for each figure."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=60, help="length of the long cell")
    arguments.add_argument("--pairs", type=int, default=30, help="pairs of the slow-down")
    given = arguments.parse_args()
    print(f"CPython {sys.version.split()[0]}, load {Path('/proc/loadavg').read_text().split()[0]}")
    load()
    trivial_cell(count=200)
    end_to_bundle(given.seconds)
    slow_down(given.pairs)


def load() -> None:
    """Time %load_ext in fresh processes."""
    times: dict[str, list[float]] = {"omni_perf": [], "does_nothing": []}
    for _ in range(9):
        for name, found in times.items():
            ran = subprocess.run([sys.executable, "-c", LOAD, name], capture_output=True, text=True, check=True)
            found.append(float(ran.stdout))
    line("%load_ext omni_perf", times["omni_perf"], times["does_nothing"], "at most 100 ms")


def trivial_cell(count: int) -> None:
    """Time `x = 1` at the front end, in two kernels by turns."""
    with Kernel() as on, Kernel(load=False) as bare:
        on.run("%omni_perf on")
        on.run("x = 1")  # starts the sidecar
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(count):
            for kernel, found in zip((on, bare), times, strict=True):
                began = time.perf_counter()
                kernel.run("x = 1")
                found.append(time.perf_counter() - began)
    line("trivial cell under on", *times, "at most + 3 ms")


def end_to_bundle(seconds: float) -> None:
    """Time from a long cell's last statement to the arrival of its chart."""
    body = f"{WORK}\nimport time\nend = time.monotonic() + {seconds}\n"
    body += "while time.monotonic() < end: work(20_000)\nprint(time.monotonic())"
    with Kernel() as kernel:
        kernel.run("%%omni_perf --quiet\n1")
        ran = kernel.run("%%omni_perf\n" + body, patience_s=seconds + 60)
        chart = [after_last_print(ran.outputs)]
        (bundle,) = ran.charts()
        kernel.run(f"bundle = {bundle!r}")
        plain: list[float] = []
        for _ in range(5):
            display = "import time\nprint(time.monotonic())\ndisplay(bundle, raw=True)"
            plain.append(after_last_print(kernel.run(display).outputs))
    size = len(json.dumps(bundle)) / 1000
    line(f"end of a {seconds:g} s cell to bundle ({size:.0f} kB)", chart, plain, "at most 100 ms")


def after_last_print(outputs: list[dict[str, Any]]) -> float:
    """Return the time from the moment that a cell printed to the arrival of its display."""
    printed = next(output["text"] for output in outputs if output["type"] == "stream")
    shown = next(output for output in outputs if output["type"] == "display_data")
    return float(shown["arrived"]) - float(re.findall(r"\d+\.\d+", printed)[-1])


def slow_down(pairs: int) -> None:
    """Compare the same pure Python work with and without a recording at 1 kHz."""
    body = "\nimport time\nbegan = time.perf_counter()\nwork(2_500_000)\nprint(time.perf_counter() - began)"
    ratios: list[float] = []
    bare_times: list[float] = []
    with Kernel() as kernel:
        for _ in range(pairs):
            took: dict[str, float] = {}
            for prefix in random.sample(["", "%%omni_perf --quiet\n"], 2):
                text = kernel.run(prefix + WORK + body).text("stdout")
                took[prefix] = float(text.split()[0])
            bare_times.append(took.pop(""))
            ratios.append(took.popitem()[1] / bare_times[-1])
    means = sorted(statistics.median(random.choices(ratios, k=pairs)) for _ in range(2000))
    print(
        f"{'slow-down at 1 kHz':<44} {statistics.median(ratios):8.4f} ×   95 % of medians within "
        f"{means[50]:.4f}–{means[-51]:.4f}, {pairs} pairs of {statistics.median(bare_times):.2f} s"
        "   (lower end at most 1.01)"
    )


def line(what: str, ours: list[float], baseline: list[float], goal: str) -> None:
    """Print the medians of ours and of the baseline in ms."""
    mine, theirs = statistics.median(ours) * 1000, statistics.median(baseline) * 1000
    print(f"{what:<44} {mine:8.2f} ms   baseline {theirs:7.2f} ms, + {mine - theirs:.2f}   ({goal})", flush=True)


if __name__ == "__main__":
    main()
