"""What is missing is named in one sentence, by the build and by make."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HOOK = "import pathlib, sys; sys.path.insert(0, '.'); import hatch_build; hatch_build._go(pathlib.Path('.'))"


def hook(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HOOK],
        cwd=ROOT,
        env={"HOME": os.environ.get("HOME", "/"), **environment},
        capture_output=True,
        text=True,
    )


def prerequisites(python: str, go: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "tools/prerequisites", python, go],
        cwd=ROOT,
        env={"HOME": os.environ.get("HOME", "/"), "PATH": path},
        capture_output=True,
        text=True,
    )


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text("#!/bin/sh\n" + script)
    (folder / name).chmod(0o755)


def test_the_build_without_go(tmp_path: Path) -> None:
    ran = hook({"PATH": str(tmp_path)})
    assert ran.returncode == 1
    assert ran.stderr.startswith("omni_perf: Go 1.25")
    assert "or newer is needed to build omni_perf" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_the_build_with_an_old_go(tmp_path: Path) -> None:
    program(tmp_path, "go", "echo go1.19.8\n")
    ran = hook({"PATH": str(tmp_path)})
    assert ran.returncode == 1
    assert ran.stderr.endswith("or newer is needed to build omni_perf, this is go1.19.8.\n")


def test_the_build_without_a_c_compiler(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("needs Go")
    ran = hook({"PATH": os.environ["PATH"], "CC": "/no/such/cc"})
    assert ran.returncode == 1
    assert ran.stderr.startswith("omni_perf: A C compiler is needed to build omni_perf")
    assert ran.stderr.count("\n") == 1


def test_make_names_everything_that_is_missing(tmp_path: Path) -> None:
    for tool in ("sed", "sort", "head", "uname"):
        os.symlink(shutil.which(tool) or "/bin/false", tmp_path / tool)
    program(tmp_path, "oldpython", "case $1 in -c) exit 1;; *) echo Python 3.9.2;; esac\n")
    ran = prerequisites("oldpython", "nogo", str(tmp_path))
    assert ran.returncode == 1
    python, go = ran.stderr.splitlines()
    assert python.startswith("omni_perf: CPython 3.11 or newer is needed, Python 3.9.2 is older: apt-get install")
    assert go.startswith("omni_perf: Go 1.25 or newer is needed: apt-get install")


def test_make_with_an_old_go_and_no_compiler(tmp_path: Path) -> None:
    for tool in ("sed", "sort", "head"):
        os.symlink(shutil.which(tool) or "/bin/false", tmp_path / tool)
    program(tmp_path, "go", 'case "$2" in GOVERSION) echo go1.21.0;; CC) echo nocc;; esac\n')
    ran = prerequisites(sys.executable, "go", str(tmp_path))
    go, compiler = ran.stderr.splitlines()
    assert "this is 1.21.0" in go
    assert compiler == "omni_perf: A C compiler is needed: apt-get install gcc libc6-dev."
