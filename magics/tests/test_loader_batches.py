"""Epochs and samples of plain loops over torch's DataLoader, without a line of ours, beside what the loops count."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from omni_perf.document import tables
from omni_perf.launcher import find_binary
from torches import PYTHON, need_torch, trained

pytestmark = pytest.mark.timed

LOOP = """\
import json, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

torch.set_num_threads(1)

class Rows(Dataset):
    def __init__(self, count):
        self.count = count
    def __len__(self):
        return self.count
    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.rand(64), index % 10

class Stream(IterableDataset):
    def __iter__(self):
        return (Rows(1)[0] for _ in range(200))

def train(loader, epochs, each=1, skips=()):
    validation = DataLoader(Rows(100), batch_size=20)
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    counted, samples, batch = [], 0, 0
    for epoch in range(epochs):
        for x, y in loader:
            nn.functional.cross_entropy(net(x), y).backward()
            samples, batch = samples + len(x), batch + 1
            time.sleep(0.005)
            if batch % each == 0 and batch not in skips:
                optimizer.step()
                optimizer.zero_grad()
                counted.append([epoch, samples, time.monotonic()])
                samples = 0
        with torch.no_grad():
            sum(net(x).sum().item() for x, _ in validation)
    with open("counted.json", "w") as file:
        json.dump(counted, file)

if __name__ == "__main__":
    train(LOADER)
"""


def ran(place: Path, loader: str) -> tuple[dict[str, Any], list[tuple[int, int]], float]:
    """Return the report, the epoch and samples of each step as the loop has them, and its samples per second."""
    report = trained(place, LOOP.replace("LOADER", loader))
    counted: list[tuple[int, int, float]] = json.loads((place / "counted.json").read_text())
    pace = sum(samples for _, samples, _ in counted[1:]) / (counted[-1][2] - counted[0][2])
    steps = [(epoch, samples) for epoch, samples, _ in counted[1:]]  # the first step's begin is not known
    return report, steps, pace


def pace_of(report: dict[str, Any]) -> float:
    steps = [step for step in report["steps"] if step.get("samples")]
    return sum(step["samples"] for step in steps) / sum(step["end_ns"] - step["start_ns"] for step in steps) * 1e9


def worked(report: dict[str, Any]) -> list[tuple[int | None, int | None]]:
    return [(step["epoch"], step.get("samples")) for step in report["steps"]]


@pytest.mark.parametrize(
    "loader",
    [
        "DataLoader(Rows(500), batch_size=16, shuffle=True), 3",
        "DataLoader(Rows(500), batch_size=16, num_workers=2, persistent_workers=True), 3",
        "DataLoader(Rows(640), batch_size=8, shuffle=True, drop_last=True), 2, 4",
    ],
)
def test_each_step_has_its_epoch_and_samples(tmp_path: Path, loader: str) -> None:
    report, counted, pace = ran(tmp_path, loader)
    assert worked(report) == counted
    assert abs(pace_of(report) / pace - 1) < 0.02
    [row] = tables(report)["loaders"]
    assert row["counted_steps"] == row["steps"] == len(counted)
    assert row["epochs"] == len({epoch for epoch, _ in counted})


def test_steps_of_a_stream_have_the_samples_of_whole_batches(tmp_path: Path) -> None:
    report, counted, _ = ran(tmp_path, "DataLoader(Stream(), batch_size=16), 3")
    assert [epoch for epoch, _ in worked(report)] == [epoch for epoch, _ in counted]
    known = [(ours, own) for (_, ours), (_, own) in zip(worked(report), counted, strict=True) if ours is not None]
    assert all(ours == own for ours, own in known)
    assert len(counted) - len(known) <= 3, "the last step of each epoch"


def test_steps_that_are_left_out_have_no_samples(tmp_path: Path) -> None:
    report, counted, _ = ran(
        tmp_path, "DataLoader(Rows(640), batch_size=16, shuffle=True, drop_last=True), 2, 1, {10, 11, 55}"
    )
    for (_, ours), (_, own) in zip(worked(report), counted, strict=True):
        assert ours in (None, own)
    assert Counter(ours is None for _, ours in worked(report))[False] > len(counted) / 2


def test_what_the_program_reports_takes_precedence(tmp_path: Path) -> None:
    need_torch()
    report, counted, _ = ran(tmp_path, "DataLoader(Rows(500), batch_size=16), 2")
    assert worked(report) == counted
    program = LOOP.replace("import torch\n", "import omni_perf\nimport torch\n", 1)
    program = program.replace(
        "samples = 0\n        with", "omni_perf.step(samples=5, epoch=7)\n                samples = 0\n        with"
    )
    (tmp_path / "train.py").write_text(program.replace("LOADER", "DataLoader(Rows(200), batch_size=16), 2"))
    root = Path(__file__).resolve().parents[1]
    subprocess.run(
        [find_binary(), "run", "--interpreter", PYTHON, "-o", "report.json", "train.py"],
        cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root)}, capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(worked(report)) == {(7, 5)}
    assert all(row["epochs"] == 0 and row["counted_steps"] == 0 for row in report.get("loaders", []))
