"""omni-perf run --nsys, with a program in the place of Nsight Systems that writes what its export has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from requirement import program

NSYS = f"""\
#!{sys.executable}
import sqlite3, subprocess, sys, time
assert sys.argv[1] == "profile", sys.argv
options, command = sys.argv[2:], []
while not options[-1].startswith("--"):
    command.insert(0, options.pop())
print("options", *options)
base = next(o for o in options if o.startswith("--output=")).removeprefix("--output=")
child = subprocess.Popen(command)
begin = time.time_ns()
code = child.wait()
lasted = time.time_ns() - begin
if "--trace=none" not in options:
    open(base + ".nsys-rep", "w").close()
    db = sqlite3.connect(base + ".sqlite")
    db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
    db.execute("INSERT INTO StringIds VALUES (1, 'gemm')")
    db.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)")
    db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", (begin,))
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
               " correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER)")
    for n, at in enumerate(range(0, lasted - 10_000_000, 10_000_000)):
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, 1, 1)",
                   (at, at + 2_500_000, n, (0x12 << 56) | (child.pid << 24)))
    db.commit()
sys.exit(code)
"""

PROGRAM = """\
import sys, time
end = time.monotonic() + 0.6
while time.monotonic() < end:
    sum(range(1000))
sys.exit(3)
"""


def record(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    binary = program()
    (folder / "bin").mkdir()
    nsys = folder / "bin" / "nsys"
    nsys.write_text(NSYS)
    nsys.chmod(0o755)
    (folder / "train.py").write_text(PROGRAM)
    return subprocess.run(
        [binary, "run", "--interpreter", sys.executable, "--format", "json", *options, "train.py"],
        env=os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_its_kernels_are_those_of_the_report(tmp_path: Path) -> None:
    done = record(tmp_path, "--nsys")
    assert done.returncode == 3, done.stderr  # nsys passes on how the program ended
    assert "--trace=cuda,nvtx" in done.stdout and "--export=sqlite" in done.stdout
    assert "nsys wrote perf_output.nsys-rep" in done.stderr
    report: dict[str, Any] = json.loads((tmp_path / "perf_output.json").read_text())
    assert report["targets"][0]["name"] == "nsys train.py"
    (device,) = report["devices"]
    known = device["busy_ns"] + device["idle_ns"]
    assert known > 300e6 and 0.2 < device["busy_ns"] / known < 0.3
    assert "train.py:4" in report["headline"]["text"], report["headline"]


def test_options_are_those_of_nsys_and_no_export_is_said(tmp_path: Path) -> None:
    done = record(tmp_path, "--nsys=--trace=none --cuda-graph-trace=node")
    assert done.returncode == 3 and "--trace=none --cuda-graph-trace=node" in done.stdout
    assert "nsys left no perf_output.sqlite" in done.stderr
    assert json.loads((tmp_path / "perf_output.json").read_text())["devices"] == []


@pytest.mark.parametrize(
    ("options", "path", "says"),
    [
        (["--nsys"], "", "install nsight-systems-cli"),
        (["--nsys=-o other"], None, "nsys writes beside the results"),
        (["--nsys", "--exact"], None, "one program at a time records a process's kernels"),
    ],
)
def test_what_cannot_be_done_is_said(options: list[str], path: str | None, says: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')")
    binary = program()
    environment = os.environ | ({} if path is None else {"PATH": path})
    done = subprocess.run(
        [binary, "run", *options, "train.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and says in done.stderr and "ran" not in done.stdout
