"""Folders of traces that a killed kernel has left are removed; nobody else's are."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from omni_perf import tracefolder

KERNEL = """
import os, sys, time
from omni_perf import tracefolder
path, lock = tracefolder.make()
open(os.path.join(path, "rank0.pt.trace.json"), "w").write("x" * 1000)
print(path, flush=True)
time.sleep(60)
"""


def kernel(place: Path) -> tuple["subprocess.Popen[str]", Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", KERNEL], stdout=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(place)}
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_what_a_killed_kernel_left_is_removed_and_a_living_ones_stays(tmp_path: Path) -> None:
    killed, left = kernel(tmp_path)
    living, kept = kernel(tmp_path)
    try:
        assert left.parent == kept.parent == tmp_path
        tracefolder.sweep(str(tmp_path))
        assert sorted(tmp_path.iterdir()) == sorted([left, kept])
        end(killed)
        tracefolder.sweep(str(tmp_path))
        assert list(tmp_path.iterdir()) == [kept] and len(list(kept.iterdir())) == 1
    finally:
        end(living)


def test_a_kernels_child_keeps_its_folder(tmp_path: Path) -> None:
    """Such a process may write a trace yet."""
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.environ["TMPDIR"] = str(tmp_path)
        tempfile.tempdir = str(tmp_path)
        tracefolder.make()
        if os.fork() == 0:
            os.close(writing)
            os.read(reading, 1)
        os._exit(0)
    os.waitpid(parent, 0)
    (folder,) = tmp_path.iterdir()
    tracefolder.sweep(str(tmp_path))
    assert folder.exists()
    os.close(writing)
    os.close(reading)


def test_what_is_not_a_kernels_stays(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    (tmp_path / "omni_perf-torch-12-abc").symlink_to(elsewhere)
    for name, mode in (
        ("omni_perf-torch-abcdefgh", 0o700),  # of an earlier version, whose kernel holds no lock
        ("omni_perf-torch-12-open", 0o755),
        ("omni_perf-torch-12-x.y", 0o700),
        ("my-omni_perf-torch-12-a", 0o700),
    ):
        (tmp_path / name).mkdir(mode)
    (tmp_path / "omni_perf-torch-12-file").touch(0o700)
    before = sorted(tmp_path.iterdir())
    tracefolder.sweep(str(tmp_path))
    tracefolder.sweep(str(tmp_path / "nowhere"))
    assert sorted(tmp_path.iterdir()) == before
