"""The environment with real torch that tests use: .cache/torch, or the one that OMNI_PERF_TORCH names (make test-torches)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from omni_perf.launcher import find_binary
from requirement import missing

ROOT = Path(__file__).resolve().parents[2]
TORCH = Path(os.environ.get("OMNI_PERF_TORCH") or ROOT / ".cache" / "torch").resolve()
PYTHON = TORCH / "bin" / "python"
COMPOSER = ROOT / ".cache" / "torch-composer" / "bin" / "python"
"""That of an environment with Composer, which needs an older torch."""


def need_torch() -> None:
    """Skip the test where there is no torch."""
    if not PYTHON.exists():
        missing("torch", "there is no torch in .cache/torch: tools/torch installs it (5.5 GB)")


def need_composer() -> None:
    """Skip the test where there is no Composer."""
    if not COMPOSER.exists():
        missing("composer", "there is no Composer in .cache/torch-composer: tools/torch composer installs it (5.5 GB)")


def version() -> tuple[int, int]:
    """Return its version, as (2, 6)."""
    (file,) = TORCH.glob("lib/python*/site-packages/torch/version.py")
    major, minor = re.findall(r"__version__ = '(\d+)\.(\d+)", file.read_text())[0]
    return int(major), int(minor)


def named_behind() -> int:
    """Return by how much torch.profiler's number of a step is less than that of the step: up to torch 2.1 by one."""
    return 1 if version() <= (2, 1) else 0


def has(package: str) -> bool:
    """Whether the environment has a package."""
    return subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True, check=False).returncode == 0


def trained(place: Path, source: str) -> dict[str, Any]:
    """Run a training in a folder under `omni-perf run`, with one thread, and return its report."""
    need_torch()
    (place / "train.py").write_text(source)
    subprocess.run(
        [find_binary(), "run", "--interpreter", PYTHON, "-o", "report.json", "train.py"],
        cwd=place, env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}, capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    return json.loads((place / "report.json").read_text())
