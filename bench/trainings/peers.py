"""What others say of the same trainings, beside the training's own clock where it has one.

Lightning's SimpleProfiler and Trainer's metrics are of the very run that omni-perf follows; py-spy has its own run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TORCH = ROOT / ".cache" / "torch" / "bin" / "python"
PROGRAMS = Path(__file__).resolve().with_name("programs")
OUT = ROOT / "build" / "trainings" / "peers"
PYSPY = ROOT / ".cache" / "bench" / "children" / "bin" / "py-spy"

Figures = dict[str, float]

OF_STACKS = {
    "data": re.compile(r"DataLoaderIter|_BaseDataLoaderIter|dataloader\.py"),
    "backward": re.compile(r"_engine_run_backward"),
    "optimizer": re.compile(r"step \([^;]*torch/optim/"),
    "forward": re.compile(r"_call_impl"),
}
"""What one looks for in py-spy's stacks, in this order: it has no phases."""

LIGHTNING = {
    "data": "train_dataloader_next",
    "forward": "training_step",
    "backward": "backward",
    "optimizer": "optimizer_step",
}
"""The last parts of the names that Lightning's profiler gives them; its optimizer_step has the other two in it."""


def run(name: str, command: list[str], with_omni_perf: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a training and return its report, and what it wrote of itself."""
    out = OUT / name
    shutil.rmtree(out, ignore_errors=True)
    (out / "clocks").mkdir(parents=True)
    environment = os.environ | {"CLOCKS": str(out / "clocks"), "OMP_NUM_THREADS": "1"}
    if with_omni_perf:
        binary = str(Path(sys.executable).with_name("omni-perf"))
        command = [binary, "run", "--interpreter", str(TORCH), "-o", "report", "--format", "json", *command]
    subprocess.run(command, env=environment, cwd=out, capture_output=True, check=True)
    facts = json.loads((out / "clocks" / "0.json").read_text())
    return json.loads((out / "report.json").read_text()) if with_omni_perf else {}, facts


def ours(report: dict[str, Any]) -> Figures:
    """Return the seconds of each phase, and the steps a second."""
    process = report["subject"]["process"]
    found = {
        phase["id"]: phase["total_ns"] / 1e9
        for phase in report["training_phases"]
        if phase.get("process", 0) == process and phase["epoch"] is None
    }
    steps = [step for step in report["steps"] if step.get("process", 0) == process]
    found["steps/s"] = len(steps) / (steps[-1]["end_ns"] - steps[0]["start_ns"]) * 1e9
    return found


def own(facts: dict[str, Any]) -> Figures:
    """Return what the training's own clock says."""
    ends = facts["ends"]
    return facts["phases"] | {"steps/s": (len(ends) - 1) / (ends[-1] - ends[0])}


def lightning(facts: dict[str, Any]) -> Figures:
    """Return what Lightning's profiler says."""
    named: Figures = facts["facts"]["own"]
    said = {phase: sum(s for name, s in named.items() if name.endswith(last)) for phase, last in LIGHTNING.items()}
    said["optimizer"] -= said["forward"] + said["backward"]
    return said


def trainer(facts: dict[str, Any]) -> Figures:
    """Return what Trainer's metrics say."""
    return {"steps/s": facts["facts"]["own"]["train_steps_per_second"]}


def py_spy(stacks: str, seconds_each: float) -> Figures:
    """Return what can be added up by hand of py-spy's stacks of the main thread."""
    found = Counter[str]()
    for line in stacks.splitlines():
        stack, _, count = line.rpartition(" ")
        for phase, pattern in OF_STACKS.items():
            if pattern.search(stack):
                found[phase] += int(count)
                break
    return {phase: count * seconds_each for phase, count in found.items()}


def table(name: str, peer: str, columns: tuple[Figures, Figures, Figures]) -> None:
    """Print what each says."""
    print(f"\n{name:34}{'own clock':>12}{'omni-perf':>12}  {peer}")
    for figure in ("data", "forward", "backward", "optimizer", "steps/s"):
        cells = [f"{column[figure]:.2f}" if figure in column else "–" for column in columns]
        if any(cell != "–" for cell in cells):
            print(f"  {figure:32}{cells[0]:>12}{cells[1]:>12}  {cells[2]}")


def main() -> None:
    """Print a table for each."""
    if not TORCH.exists():
        print("skipped: no torch in .cache/torch (tools/torch)")
        return
    frameworks = str(PROGRAMS / "frameworks.py")
    report, facts = run("lightning", [frameworks, "lightning", "--own", "--workers", "2"])
    table("Lightning, 2 workers", "SimpleProfiler", (own(facts), ours(report), lightning(facts)))
    report, facts = run("trainer", [frameworks, "trainer", "--own", "--workers", "2"])
    table("Trainer, 2 workers", "its metrics", (own(facts), ours(report), trainer(facts)))
    plain = [str(PROGRAMS / "plain.py"), "--item", "0.002", "--steps", "120"]
    report, facts = run("plain", plain)
    said = Figures()
    if PYSPY.exists():
        recording = [str(PYSPY), "record", "-r", "200", "-f", "raw", "-o", "stacks.txt", "--", str(TORCH)]
        _, beside = run("py-spy", [*recording, *plain], with_omni_perf=False)
        said = py_spy((OUT / "py-spy" / "stacks.txt").read_text(), 1 / 200) | {"steps/s": own(beside)["steps/s"]}
    table("plain loop, no workers", "py-spy (a run of its own)", (own(facts), ours(report), said))


if __name__ == "__main__":
    main()
