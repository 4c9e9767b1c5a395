"""Trainings of several processes under omni-perf run, with a simulated GPU each; their charts stay in build/trainings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torches
from requirement import missing, program

pytestmark = pytest.mark.timed

ROOT = Path(__file__).resolve().parents[2]
TORCH = torches.TORCH / "bin"
CHARTS = ROOT / "build" / "trainings"
WRAPPER = Path(__file__).with_name("programs") / "ranks_on_simulated_gpus.py"
FAKE_NVML = ROOT / "sidecar" / "measure" / "gpu" / "testdata" / "fakenvml" / "build.sh"


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of GPUs that are not there."""
    if shutil.which("cc") is None:
        missing("compiler", "there is no C compiler for the simulated GPU: apt install gcc libc6-dev")
    library = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run([FAKE_NVML, library], check=True)
    return library


def record(name: str, nvml: Path, folder: Path, devices: int, *command: str | Path) -> dict[str, Any]:
    """Run a program of torch's environment under omni-perf and return its report."""
    torches.need_torch()
    binary = program()
    CHARTS.mkdir(parents=True, exist_ok=True)
    script = folder / "gpus"
    script.write_text("".join(f"device Simulated {n}\nperiod_ms 20\n" for n in range(devices)))
    feed = folder / "feed"
    feed.touch()
    environment = os.environ | {
        "OMNI_PERF_NVML_LIBRARY": str(nvml), "OMNI_PERF_FAKE_NVML": str(script), "OMNI_PERF_FAKE_NVML_FEED": str(feed),
        "PATH": f"{TORCH}:{os.environ['PATH']}", "VIRTUAL_ENV": str(TORCH.parent), "PYTHONPATH": str(ROOT / "magics"), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    done = subprocess.run(
        [binary, "run", "-s", "0.1", "-o", CHARTS / name, "--format", "svg,html,json", *command],
        env=environment, cwd=folder, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((CHARTS / f"{name}.json").read_text())


def of_role(report: dict[str, Any], role: str) -> dict[int, dict[str, Any]]:
    """Return the processes of a role, by index."""
    return {i: process for i, process in enumerate(report["processes"]) if process["role"] == role}


def test_four_ranks_are_in_one_picture(nvml: Path, tmp_path: Path) -> None:
    example = ROOT / "examples" / "pytorch_train_ddp.py"
    report = record(
        "ddp", nvml, tmp_path, 4, "torchrun", "--nproc-per-node", "4", WRAPPER, example, "--pictures", "8192", "--epochs", "1", "--straggler", "1",
    )  # fmt: skip
    ranks = of_role(report, "rank")
    assert sorted(process["rank"] for process in ranks.values()) == [0, 1, 2, 3]
    assert all(process["stacks"]["read"] and process["exit_code"] == 0 for process in ranks.values()), ranks
    table = report["ranks"]
    assert [row["rank"] for row in table] == [0, 1, 2, 3]
    assert all(row["steps"] >= 30 for row in table), table  # of 32: the first ends what was set up
    assert len({row["process"] for row in table}) == 4
    for index, process in ranks.items():
        used = [device["number"] for device in report["devices"] if index in device["processes"]]
        assert used == [process["rank"]], (process, report["devices"])
    picture = (CHARTS / "ddp.svg").read_text()
    assert all(f"rank {n}" in picture for n in range(4))


def test_a_data_loaders_workers_are_seen(nvml: Path, tmp_path: Path) -> None:
    report = record(
        "dataloader", nvml, tmp_path, 1, WRAPPER, ROOT / "examples" / "pytorch_train_dp.py", "--workers", "2", "--epochs", "1", "--pictures", "16384",
    )  # fmt: skip
    workers = of_role(report, "loader-worker")
    assert sorted(process["text"] for process in workers.values()) == ["DataLoader worker 0", "DataLoader worker 1"]
    assert all(process["stacks"]["read"] for process in workers.values()), workers
    names = [
        report["files"][line["file"]]["name"]
        for line in report["lines"]
        if line["process"] in workers and line["self_ns"]
    ]
    assert any(name.endswith("pytorch_train_ddp.py") for name in names), names  # which has the dataset
    assert "2 DataLoader workers" in (CHARTS / "dataloader.svg").read_text()


@pytest.mark.parametrize("name", ["plain loop, no workers", "2 spawned ranks, one slow"])
def test_a_training_is_as_its_own_clock_says(name: str) -> None:
    """Of those that make trainings runs."""
    torches.need_torch()
    said = ""
    for _ in range(3):  # ranks of 60 steps of 50 ms, each read every 20 ms: by the best attempt
        done = subprocess.run(
            [sys.executable, ROOT / "bench" / "trainings", name],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode == 0:
            return
        said += done.stdout + done.stderr
    pytest.fail(said)


JOBLIB = """
import time
from joblib import Parallel, delayed

def crunch(n):
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        sum(range(100))

if __name__ == "__main__":
    Parallel(n_jobs=2)(delayed(crunch)(n) for n in range(8))
"""


def test_joblib_s_workers_are_seen(nvml: Path, tmp_path: Path) -> None:
    if not (TORCH / "python").exists() or not torches.has("joblib"):
        missing("torch-joblib", "there is no joblib in .cache/torch")
    script = tmp_path / "parallel.py"
    script.write_text(JOBLIB)
    report = record("joblib", nvml, tmp_path, 1, script)
    workers = of_role(report, "pool-worker")
    assert len(workers) == 2, report["processes"]
    assert all(process["stacks"]["read"] for process in workers.values()), workers


def test_accelerate_s_ranks_are_in_one_picture(nvml: Path, tmp_path: Path) -> None:
    if not (TORCH / "accelerate").exists():
        missing("torch-accelerate", "there is no Hugging Face accelerate in .cache/torch")
    example = ROOT / "examples" / "pytorch_train_ddp.py"
    report = record(
        "accelerate", nvml, tmp_path, 2, "accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no",
        "--dynamo_backend", "no", WRAPPER, example, "--epochs", "1",
    )  # fmt: skip
    assert sorted(process["rank"] for process in of_role(report, "rank").values()) == [0, 1]
