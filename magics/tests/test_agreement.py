"""A program has the same profile as a cell and as a script: of itself and of eight workers, by the clocks they keep."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.timed

BINARY = Path(sys.executable).parent / "omni-perf"
PATIENCE_S = 300.0
ATTEMPTS = 4
"""On a machine that other work shares a sampler may have had no CPU for a while."""

SECONDS = 60 if os.environ.get("OMNI_PERF_TRUTH") else 3
"""That the program works for: with so many samples as a minute gives, eight workers are within 3 %."""

PARTS = ("ada", "bob", "cleo")

FUNCTIONS = (
    f"""
SECONDS = {SECONDS}
"""
    + """
import json, multiprocessing, random, sys, time

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(50))

def ada(seconds):
    spin(seconds)

def bob(seconds):
    total = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        total += 1

def cleo(seconds):
    time.sleep(seconds)

def work(number):
    '''So many seconds of the three parts, of random lengths, with other shares for each number.'''
    draw, spent = random.Random(number), {"ada": 0.0, "bob": 0.0, "cleo": 0.0}
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for part, weight in ((ada, 1 + number % 4), (bob, 2), (cleo, 1)):
            start = time.perf_counter()
            part(0.004 * weight * draw.uniform(0.2, 2))
            spent[part.__name__] += time.perf_counter() - start
    return spent
"""
)
ALONE = "clocked = [work(2)]\n"
POOL = (
    "with multiprocessing.get_context('fork').Pool(8) as pool:\n    clocked = pool.map(work, range(8), chunksize=1)\n"
)


@dataclass
class Shares:
    """Of the time in PARTS: by the profile, and by the program's own clock."""

    profiled: dict[str, float]
    clocked: dict[str, float]
    samples: int


def shares(report: dict[str, Any], clocked: list[dict[str, float]]) -> Shares:
    seconds = time_in(report)
    profiled, own = sum(seconds.values()), sum(sum(one.values()) for one in clocked)
    root = report["targets"][0]["process"]
    sampled = [report["targets"][0]["sampling"]["ticks"]]
    if len(clocked) > 1:
        intervals = [
            process["stacks"]["interval_ns"]
            for i, process in enumerate(report["processes"])
            if i != root and process["stacks"]["interval_ns"]
        ]
        sampled = [int(SECONDS * 1e9 / interval) for interval in intervals]
    return Shares(
        {part: seconds[part] / profiled for part in PARTS},
        {part: sum(one[part] for one in clocked) / own for part in PARTS},
        sum(sampled),
    )


def time_in(report: dict[str, Any]) -> dict[str, float]:
    """Seconds with each part on the stack, of all threads."""
    functions, frames, nodes, spans = (report[key] for key in ("functions", "frames", "nodes", "spans"))
    part: list[str | None] = [None]
    for parent, frame in zip(nodes["parent"][1:], nodes["frame"][1:], strict=True):
        name = functions[frames["function"][frame]]["name"]
        part.append(name if name in PARTS else part[parent])
    seconds: dict[str, float] = defaultdict(float)
    for node, length in zip(spans["node"], spans["length_us"], strict=True):
        if (name := part[node]) is not None:
            seconds[name] += length / 1e6
    return seconds


def as_cell(kernel: Kernel, run: str, folder: Path) -> Shares:
    assert kernel.run(FUNCTIONS).error is None
    assert kernel.run("%%omni_perf\n" + run, PATIENCE_S).error is None
    path = folder / "cell.json"
    ran = kernel.run(
        f"import omni_perf\nwith open({str(path)!r}, 'w') as out: json.dump([omni_perf.last().to_dict(), clocked], out)"
    )
    assert ran.error is None
    return shares(*json.loads(path.read_text()))


def as_script(run: str, folder: Path) -> Shares:
    script = folder / "program.py"
    script.write_text(f"{FUNCTIONS}\nif __name__ == '__main__':\n    exec({run!r})\n    print(json.dumps(clocked))\n")
    clocked = subprocess.run(
        [BINARY, "run", "-o", "script.json", "--interpreter", sys.executable, script],
        cwd=folder, check=True, capture_output=True, text=True, timeout=PATIENCE_S,
    ).stdout  # fmt: skip
    return shares(json.loads((folder / "script.json").read_text()), json.loads(clocked))


def wrong(cell: Shares, script: Shares, allowed: float) -> list[str]:
    """What does not agree, by more than is allowed and four standard deviations of so many samples."""
    out: list[str] = []
    for part in PARTS:
        errors: list[float] = []
        variance = 0.0
        for how, one in (("cell", cell), ("script", script)):
            share = one.clocked[part]
            own = share * (1 - share) / max(one.samples, 1)
            errors.append(one.profiled[part] - share)
            variance += own
            if abs(errors[-1]) > allowed + 4 * math.sqrt(own):
                out.append(
                    f"{part} in the {how}: {one.profiled[part]:.3f}, by its own clock {share:.3f}, {one.samples}"
                )
        # The runs differ, too: what is compared is how far each profile is from its own run.
        if abs(errors[0] - errors[1]) > allowed + 4 * math.sqrt(variance):
            out.append(f"{part}: the cell's profile is off by {errors[0]:+.3f}, the script's by {errors[1]:+.3f}")
    return out


@pytest.mark.parametrize(("run", "allowed"), [(ALONE, 0.0), (POOL, 0.01)], ids=["alone", "eight workers"])
def test_a_cell_and_a_script_have_the_same_profile(run: str, allowed: float, tmp_path: Path) -> None:
    said: list[list[str]] = []
    with Kernel() as kernel:
        for _ in range(ATTEMPTS):
            cell, script = as_cell(kernel, run, tmp_path), as_script(run, tmp_path)
            print(cell, script, sep="\n")
            found = wrong(cell, script, allowed)
            if not found:
                return
            said.append(found)
    pytest.fail("\n".join(line for found in said for line in found))
