"""`omni-perf run --torch` with real PyTorch on the CPU: the program is as it was, and its traces are in the report."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from omni_perf.launcher import find_binary
from torches import PYTHON, need_torch

ROOT = Path(__file__).resolve().parents[2]

TRAINING = """\
import sys, time
import torch
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(32, 64)).sum().backward()
        optimizer.step()
        time.sleep(0.01)
"""


class Ran(NamedTuple):
    report: dict[str, Any]
    stdout: str
    stderr: str
    code: int


@pytest.fixture
def place(tmp_path: Path) -> Path:
    need_torch()
    return tmp_path


def run(place: Path, program: str, *options: str) -> Ran:
    (place / "train.py").write_text(program)
    environment = {
        "PATH": "/usr/bin:/bin",
        "OMP_NUM_THREADS": "1",
        "MALLOC_PERTURB_": "165",
        "PYTHONPATH": str(ROOT / "magics"),
    }
    done = subprocess.run(
        [find_binary(), "run", "--interpreter", PYTHON, "-o", "report.json", *options, "train.py"],
        cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return Ran(json.loads((place / "report.json").read_text()), done.stdout, done.stderr, done.returncode)


def calls(ran: Ran) -> dict[str, int]:
    return {row["name"]: row["calls"] for row in ran.report.get("operators", [])}


def steps_of(path: Path) -> list[int]:
    with gzip.open(path) as file:
        names = {event.get("name", "") for event in json.load(file)["traceEvents"]}
    return sorted(int(name.partition("#")[2]) for name in names if name.startswith("ProfilerStep#"))


def test_windows_of_a_program_that_knows_nothing_of_it(place: Path) -> None:
    program = (
        TRAINING + "train(12)\nprint('omni_perf' in sys.modules, torch.autograd._profiler_enabled())\nsys.exit(3)\n"
    )
    ran = run(place, program, "--torch=wait=1,active=2,repeat=2,shapes", "--prof_dir", "out")
    assert ran.code == 3 and ran.stdout == "False False\n", ran
    traces = ["rank0.4.pt.trace.json.gz", "rank0.8.pt.trace.json.gz"]
    made = ["csv", "ep0-ba4-rank0.json", "ep0-ba8-rank0.json", "node0.json.gz", "profiler_list.dat", *traces]
    assert sorted(path.name for path in (place / "out").iterdir()) == made
    assert [steps_of(place / "out" / name) for name in traces] == [[2, 3], [6, 7]]
    assert [(row["file"], row["steps"]) for row in ran.report["traces"]] == [(name, 2) for name in traces]
    assert calls(ran)["Optimizer.step#SGD.step"] == 4
    assert len(ran.report["steps"]) == 11
    between = [b["start_ns"] - a["end_ns"] for a, b in zip(ran.report["steps"], ran.report["steps"][1:], strict=False)]
    assert sum(gap > 200_000 for gap in between) >= 1  # writing a trace is in no step
    assert "wrote 7 files of torch.profiler" in ran.stderr


def test_the_default_is_a_few_steps(place: Path) -> None:
    """And the traces are gone with the program where nobody named a folder."""
    ran = run(place, TRAINING + "train(8)\n", "--profiling")
    assert ran.code == 0 and calls(ran)["Optimizer.step#SGD.step"] == 3, ran.stderr
    assert sorted(path.name for path in place.iterdir()) == ["report.json", "train.py"]


def test_tensorboards_folder_is_beside_the_results(place: Path) -> None:
    ran = run(place, TRAINING + "train(8)\n", "--ptensorboard")
    assert ran.code == 0 and (place / "report.torch" / "rank0.4.pt.trace.json.gz").exists(), ran.stderr


def test_a_program_without_steps(place: Path) -> None:
    inference = TRAINING + "with torch.no_grad():\n    for _ in range(3):\n        net(torch.randn(32, 64))\n"
    ran = run(place, inference, "--torch")
    assert "recorded nothing: its schedule counts steps, and the program had none" in ran.stderr, ran.stderr
    ran = run(place, inference, "--torch=whole")
    assert ran.code == 0 and calls(ran)["aten::addmm"] == 6, ran.stderr


@pytest.mark.parametrize("first", ["torch", "omni_perf"])
def test_a_program_that_imports_omni_perf(place: Path, first: str) -> None:
    """Its own steps, schedule and handlers count, whichever is imported first."""
    program = TRAINING.replace(
        "import torch\n",
        "import torch\nimport omni_perf\n" if first == "torch" else "import omni_perf\nimport torch\n",
        1,
    )
    program += (
        "seen = []\nomni_perf.schedule(wait=1, warmup=1, active=1, on_cycle=seen.append, on_epoch=lambda n: seen.append(-n))\n"
        "for epoch in (1, 2):\n    for _ in range(3):\n        train(2)\n        omni_perf.step(epoch=epoch)\nprint(seen)\n"
    )
    ran = run(place, program, "--torch", "--prof_dir", "out")
    assert ran.code == 0 and ran.stdout == "[0, -1]\n", ran  # the second epoch ends with the program
    [trace] = (place / "out").glob("*.pt.trace.json.gz")
    assert trace.name == "rank0.3.pt.trace.json.gz" and steps_of(trace) == [2]
    assert (place / "out" / "ep1-ba3-rank0.json").exists()
    steps = [step["epoch"] for step in ran.report["steps"]]
    assert steps == [1, 1, 2, 2, 2]  # the first ends what was set up


def test_an_exception_that_ends_it_is_its_own(place: Path) -> None:
    ran = run(place, TRAINING + "train(2)\nraise ValueError('no rows')\n", "--torch=warmup=0,active=5")
    bare = subprocess.run([PYTHON, "train.py"], cwd=place, capture_output=True, text=True, check=False)
    assert ran.code == bare.returncode == 1 and bare.stderr in ran.stderr
    assert calls(ran)["aten::addmm"] > 0  # what it had recorded until then


def test_its_own_profiler_is_not_disturbed(place: Path) -> None:
    own = "with torch.profiler.profile() as own:\n    train(4)\nown.export_chrome_trace('own.json')\n"
    ran = run(place, TRAINING + "train(2)\n" + own, "--torch=whole")
    assert ran.code == 0 and "--torch ended there, so that yours is not disturbed" in ran.stderr, ran.stderr
    assert calls(ran)["Optimizer.step#SGD.step"] == 2 + 4


RANKS = """\
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(6):
    optimizer.zero_grad()
    net(torch.randn(32, 64)).sum().backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
"""


def test_each_rank_has_its_traces(place: Path) -> None:
    (place / "ranks.py").write_text(RANKS)
    environment = {"PATH": f"{PYTHON.parent}:/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [find_binary(), "run", "-o", "report.json", "--torch=active=2", "--prof_dir", "out", PYTHON.parent / "torchrun",
         "--nproc-per-node", "2", "--standalone", "ranks.py"],
        cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (place / "out").iterdir()}
    assert {"rank0.3.pt.trace.json.gz", "rank1.3.pt.trace.json.gz", "ep0-ba3-rank0.json", "ep0-ba3-rank1.json"} <= names
    assert len([name for name in names if ".pt.trace." in name]) == 2  # none of the launcher's
    report = json.loads((place / "report.json").read_text())
    processes = report["processes"]
    assert {processes[row["process"]]["rank"] for row in report["operators"]} == {0}
    with gzip.open(place / "out" / "node0.json.gz") as file:
        pids = {event["pid"] for event in json.load(file)["traceEvents"] if event.get("name") == "aten::addmm"}
    assert len(pids) == 2


SPAWNED = TRAINING + (
    "import torch.multiprocessing as mp\n"
    "def worker(n):\n    train(6)\n"
    "if __name__ == '__main__':\n    mp.spawn(worker, nprocs=2)\n"
)


def test_spawned_children_record_where_they_have_steps(place: Path) -> None:
    ran = run(place, SPAWNED, "--torch=active=2", "--prof_dir", "out")
    assert ran.code == 0, ran.stderr
    traces = list((place / "out").glob("*.pt.trace.json.gz"))
    assert len(traces) == 2 and all(steps_of(path) == [1, 2] for path in traces), traces


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--torch=active=0"], "active takes at least one step"),
        (["--torch=wait=x"], 'wait takes a number of steps, not "x"'),
        (["--torch=what"], '"what" is none of whole, wait=N'),
        (["--torch", "--no-step-hook"], "--torch counts steps by the hook"),
        (["--torch", "--exact"], "cannot be used with --exact"),
        (["--prof_dir", "x"], "--prof-dir belongs to --torch"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, options: list[str], sentence: str) -> None:
    done = subprocess.run(
        [find_binary(), "run", *options, "-c", "pass"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and sentence in done.stderr and not list(tmp_path.iterdir()), done.stderr
