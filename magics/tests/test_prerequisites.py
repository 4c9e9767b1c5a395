"""What is missing is named in one sentence, by the build and by make."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from requirement import missing

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
        missing("go", "Go is not here")
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


SHIM = "echo 'pyenv: python3.12: command not found' >&2; exit 127\n"
"""What a version manager puts on PATH for a version that is not chosen."""


def test_make_with_a_name_that_does_not_run(tmp_path: Path) -> None:
    for tool in ("sed", "sort", "head"):
        os.symlink(shutil.which(tool) or "/bin/false", tmp_path / tool)
    program(tmp_path, "python3", SHIM)
    ran = prerequisites("python3", "nogo", str(tmp_path))
    assert "python3 does not run (pyenv: python3.12: command not found): choose a version" in ran.stderr


def interpreter(path: Path, version: str) -> None:
    """Write what answers as an interpreter of a version does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    program(path.parent, path.name, f'case "$*" in *"sys.exit("*) ;; *) echo cpython {version} {path} ;; esac\n')


def test_an_interpreter_is_one_that_runs(tmp_path: Path) -> None:
    """A name on PATH stands for nothing; the version is found where pyenv keeps it, or said to be missing."""
    for name in ("python3", "python3.12", "python3.13"):
        program(tmp_path, name, SHIM)
    real = tmp_path / "pyenv" / "versions" / "3.12.9" / "bin" / "python3.12"
    interpreter(real, "3.12")
    interpreter(real.with_name("python"), "3.12")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PYENV_ROOT": str(tmp_path / "pyenv")}
    # a checkout of its own, which has fetched nothing
    (tmp_path / "checkout" / "tools").mkdir(parents=True)
    for tool in ("interpreters", "python"):
        shutil.copy(ROOT / "tools" / tool, tmp_path / "checkout" / "tools" / tool)
    ran = subprocess.run(
        ["tools/interpreters", "--print"],
        cwd=tmp_path / "checkout",
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(line.split("\t") for line in ran.stdout.splitlines())
    assert found.get("3.12") == str(real)
    assert "3.13" not in found or found["3.13"].startswith("/usr/bin/")
    if "3.13" not in found:
        assert f"({tmp_path}/python3.13 does not run: pyenv: python3.12: command not found)" in ran.stderr
    assert not (tmp_path / "checkout" / ".cache").exists()
    if not (Path("/usr/bin/python3.13").exists() or Path("/usr/bin/python3.12").exists()):
        chosen = subprocess.run(
            ["tools/python"],
            cwd=tmp_path / "checkout",
            env=environment | {"PATH": f"{tmp_path}:{tmp_path}/bin"},
            capture_output=True,
            text=True,
        )
        assert chosen.stdout == f"{real.with_name('python')}\n"
