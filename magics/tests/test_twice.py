"""What the build server does with a test that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "test_twice.py"

MAKE = r"""#!/bin/sh
echo "make $*" >> calls
say() { printf '%s\n' "$@"; }
case "$*" in
    good) say "ok   github.com/omni-perf/omni-perf/sidecar/measure/gpu 1s" ;;
    flaky|broken)
        say "--- FAIL: TestA (0.1s)" "    a_test.go:3: no" "FAIL github.com/omni-perf/omni-perf/sidecar/measure/host 1s"
        say "ok   github.com/omni-perf/omni-perf/sidecar/measure/gpu 1s" "FAIL"
        exit 2 ;;
    "broken PACKAGES=./sidecar/measure/host") say "--- FAIL: TestB (0.1s)" "FAIL github.com/omni-perf/omni-perf/sidecar/measure/host 1s"; exit 2 ;;
    python) say "FAILED magics/tests/test_a.py::test_a[x y] - AssertionError: no"; exit 2 ;;
    compile) say "FAIL github.com/omni-perf/omni-perf/sidecar/measure/host [build failed]"; exit 2 ;;
    mute) exit 2 ;;
esac
"""


@pytest.mark.parametrize(
    ("targets", "status", "said", "calls"),
    [
        ("good", 0, "", "make good"),
        (
            "flaky good",
            0,
            "second time:\n   ./sidecar/measure/host: TestA\n",
            "make flaky;make flaky PACKAGES=./sidecar/measure/host;make good",
        ),
        (
            "broken good",
            1,
            "FAILED:\n   ./sidecar/measure/host: TestA\n",
            "make broken;make broken PACKAGES=./sidecar/measure/host;make good",
        ),
        (
            "python",
            0,
            "second time:\n   magics/tests/test_a.py::test_a[x y]\n",
            "make python;make python WORKERS=0 PYTEST=--last-failed --last-failed-no-failures=none",
        ),
        ("compile", 1, "FAILED:\n   ./sidecar/measure/host: the package\n", "make compile"),
        ("mute", 1, "FAILED:\n   mute\n", "make mute"),
    ],
)
def test_what_fails_runs_once_more(tmp_path: Path, targets: str, status: int, said: str, calls: str) -> None:
    make = tmp_path / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    tool = tmp_path / "tools" / TOOL.name  # the folder above it is where make runs
    tool.parent.mkdir()
    tool.write_bytes(TOOL.read_bytes())
    done = subprocess.run(
        [sys.executable, tool, *targets.split()],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, "")
    assert said in done.stdout
    assert (tmp_path / "calls").read_text().splitlines() == calls.split(";")
