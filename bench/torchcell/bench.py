"""What steps cost in a cell, with torch on the CPU: bare, under omni_perf, and under torch.profiler by hand.

    steps           the time of the same steps, to that of the bare cell of the same round; medians of all rounds
    --torch to torch.profiler by hand
                    the same of each round's two; the median, and between which values it lies with 95 %
    after them      from the last step to the cell's chart, beside what torch.profiler takes to stop and to export

The cells of a round follow each other in random order, in one kernel. Run it on a quiet machine: `make bench`.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "magics" / "tests"), str(ROOT / "bench" / "children")]

from kernels import Kernel  # noqa: E402
from slices import interval  # noqa: E402

PYTHON = ROOT / ".cache" / "torch" / "bin" / "python"

SET_UP = """
import time, torch
from torch.profiler import ProfilerActivity, profile
torch.set_num_threads(1)
net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for _ in range(12)])
optimizer = torch.optim.AdamW(net.parameters())
def train(steps):
    began = time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(128, 256)).square().mean().backward()
        optimizer.step()
    print("steps", time.perf_counter() - began)
def by_hand(steps):
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        train(steps)
        began = time.perf_counter()
    recorded.export_chrome_trace("trace.json")
    print("after", time.perf_counter() - began)
"""

CELLS = {
    "bare": "train({steps})",
    "%%omni_perf": "%%omni_perf\ntrain({steps})\nprint('done', time.monotonic())",
    "%%omni_perf --torch": "%%omni_perf --torch\ntrain({steps})\nprint('done', time.monotonic())",
    "torch.profiler": "by_hand({steps})",
}


def figure(text: str, name: str) -> float:
    """Find a figure that the cell printed."""
    found = re.findall(rf"{name} (\d+\.\d+)", text)
    return float(found[-1]) if found else 0.0


def main() -> None:
    """Measure and print a line for each kind of cell."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--steps", type=int, default=150)
    given = arguments.parse_args()
    if not PYTHON.exists():
        print("skipped: no torch in .cache/torch (tools/torch)")
        return
    print(f"{os.cpu_count()} cores, load {Path('/proc/loadavg').read_text().split()[0]}, {given.steps} steps")
    steps: dict[str, list[float]] = {name: [] for name in CELLS}
    after: dict[str, list[float]] = {name: [] for name in CELLS}
    environment = {
        "PYTHONPATH": str(ROOT / "magics"),
        "OMNI_PERF_BINARY": str(ROOT / ".venv/bin/omni-perf"),
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as folder, Kernel(environment, python=PYTHON, folder=Path(folder)) as kernel:
        kernel.run(SET_UP, patience_s=120)
        for name in CELLS:  # what is loaded by the first one of each
            kernel.run(CELLS[name].format(steps=5), patience_s=120)
        for _ in range(given.rounds):
            for name in random.sample(list(CELLS), len(CELLS)):
                ran = kernel.run(CELLS[name].format(steps=given.steps), patience_s=120)
                text = "".join(output["text"] for output in ran.outputs if output["type"] == "stream")
                steps[name].append(figure(text, "steps"))
                shown = [float(output["arrived"]) for output in ran.outputs if output["type"] == "display_data"]
                if done := figure(text, "done"):
                    after[name].append(max(shown) - done)
                else:
                    after[name].append(figure(text, "after"))
    bare = statistics.median(steps["bare"]) / given.steps
    print(f"{'bare':20} a step takes {1000 * bare:.2f} ms")
    for name in list(CELLS)[1:]:
        ratios = sorted(a / b for a, b in zip(steps[name], steps["bare"], strict=True))
        print(
            f"{name:20} steps {statistics.median(ratios):.3f} ({ratios[len(ratios) // 4]:.3f} to "
            f"{ratios[-1 - len(ratios) // 4]:.3f})  after them {statistics.median(after[name]):.2f} s"
        )
    beside = [a / b for a, b in zip(steps["%%omni_perf --torch"], steps["torch.profiler"], strict=True)]
    low, high = interval(beside)
    print(f"--torch to torch.profiler by hand: {statistics.median(beside):.3f} [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
