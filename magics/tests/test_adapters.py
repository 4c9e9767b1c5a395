"""Adapters for frameworks' own loops, with the real packages: each step with its epoch and samples, callbacks in traces."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omni_perf.adapters import batch_size
from requirement import missing, program
from torches import COMPOSER, PYTHON, has, need_composer, need_torch

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("programs") / "adapted.py"

STEPS_OF_AN_EPOCH = 3
"""24 rows in batches of 4, of which two make a step."""


def record(folder: Path, framework: str, *options: str) -> dict[str, Any]:
    binary, interpreter = program(), PYTHON
    if framework == "composer":
        need_composer()
        interpreter = COMPOSER
    else:
        need_torch()
        package = {"trainer": "transformers"}.get(framework, framework)
        if not has(package):
            missing("torch", f"there is no {package} in .cache/torch: tools/torch installs it")
    done = subprocess.run(
        [binary, "run", "--interpreter", interpreter, "-o", folder / "report", "--format", "json", *options, PROGRAM, framework],
        env=os.environ | {"PYTHONPATH": str(ROOT / "magics"), "OMP_NUM_THREADS": "1"},
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "report.json").read_text())


@pytest.mark.parametrize("framework", ["trainer", "accelerate", "composer"])
def test_each_step_has_its_epoch_and_samples(framework: str, tmp_path: Path) -> None:
    report = record(tmp_path, framework)
    steps = [(step["epoch"], step["samples"]) for step in report["steps"]]
    # The first step has no begin, unless it is the one that began with the recording.
    assert steps == ([(0, 8)] * STEPS_OF_AN_EPOCH + [(1, 8)] * STEPS_OF_AN_EPOCH)[-len(steps) :] and len(steps) >= 5
    # A step begins where the one before it ended, whatever torch's hook has found in between.
    assert all(before["end_ns"] == step["start_ns"] for before, step in pairwise(report["steps"]))


def test_lightnings_callbacks_are_in_the_trace_of_a_window(tmp_path: Path) -> None:
    report = record(tmp_path, "lightning", "--torch=wait=1,warmup=1,active=2", "--prof-dir", str(tmp_path / "traces"))
    steps = [(step["epoch"], step["samples"]) for step in report["steps"]]
    assert steps == ([(0, 8)] * STEPS_OF_AN_EPOCH + [(1, 8)] * STEPS_OF_AN_EPOCH)[-len(steps) :] and len(steps) >= 5
    assert [region["count"] for region in report["regions"] if region["name"] == "Report.on_train_batch_end"] == [12]
    (trace,) = (tmp_path / "traces").glob("rank0.*.pt.trace.json.gz")
    names = {event.get("name") for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]}
    assert {"Report.on_train_batch_end", "ProfilerStep#2", "ProfilerStep#3"} <= names


def test_composers_callbacks_and_algorithms_are_in_the_trace_of_a_window(tmp_path: Path) -> None:
    report = record(tmp_path, "composer", "--torch=wait=1,warmup=1,active=2", "--prof-dir", str(tmp_path / "traces"))
    counts = {region["name"]: region["count"] for region in report["regions"]}
    assert counts["Report.batch_end"] == 6 and counts["Smooth.after_forward"] == 12, counts
    assert not any(name.startswith(("Profile.", "event/")) for name in counts), counts
    (trace,) = (tmp_path / "traces").glob("rank0.*.pt.trace.json.gz")
    names = {event.get("name") for event in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]}
    assert {"Report.batch_end", "Smooth.after_forward", "ProfilerStep#2", "ProfilerStep#3"} <= names


@pytest.mark.parametrize(
    ("batch", "size"),
    [
        (SimpleNamespace(shape=(16, 3)), 16),
        (SimpleNamespace(shape=()), 0),
        ([SimpleNamespace(shape=(8,)), SimpleNamespace(shape=(9,))], 8),
        ({"name": "x", "pixels": SimpleNamespace(shape=(4, 3))}, 4),
        (([], {"a": [SimpleNamespace(shape=(2,))]}), 2),
        ("text", 0),
        (None, 0),
    ],
)
def test_the_size_of_a_batch_is_that_of_its_first_tensor(batch: object, size: int) -> None:
    assert batch_size(batch) == size
