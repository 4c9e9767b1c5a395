"""A script under `omni-perf run` sends its steps and regions."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from omni_perf.launcher import find_binary
from omni_perf.runmarks import SHARED_HEAD

SCRIPT = """
import os, time
import omni_perf
with omni_perf.region("load"):
    time.sleep(0.001)
omni_perf.step()
if not os.fork():
    omni_perf.step(epoch=0, samples=32)
    raise SystemExit
os.wait()
"""


def lines(connection: socket.socket) -> list[dict[str, object]]:
    """Read all that one sender sends."""
    with connection.makefile() as text:
        return [json.loads(line) for line in text]


@contextmanager
def sending(code: str, path: Path) -> Generator[tuple["subprocess.Popen[bytes]", socket.socket]]:
    """Run a script that sends its marks to a socket, and listen there."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(20)
        with subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"OMNI_PERF_RUN": str(path)}) as script:
            yield script, listener


def test_each_process_sends_its_own_marks(tmp_path: Path) -> None:
    with sending(SCRIPT, tmp_path / "s") as (script, listener):
        sent = [lines(listener.accept()[0]) for _ in range(2)]
        assert script.wait(20) == 0
    sent.sort(key=len, reverse=True)
    parent, child = sent
    assert [set(line) for line in parent] == [{"begin"}, {"region", "name"}, {"step"}]
    assert parent[1]["name"] == "load"
    assert [set(line) for line in child] == [{"begin"}, {"step", "epoch", "samples"}]
    assert (child[1]["epoch"], child[1]["samples"]) == (0, 32)


KILLED = """
import os, signal, sys
import omni_perf
for i in range(50):
    omni_perf.step(samples=i + 1)
if not os.fork():
    for i in range(50):
        omni_perf.step(samples=i + 1)
    os._exit(0)
os.wait()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_has_left_the_marks_that_it_has_not_sent(tmp_path: Path) -> None:
    with sending(KILLED, tmp_path / "s") as (script, listener):
        for _ in range(2):
            connection, _ = listener.accept()
            sent, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 1)
            script.wait(20)
            while more := connection.recv(1 << 16):
                sent += more
            with open(descriptors[0], "rb") as shared:
                taken, length = SHARED_HEAD.unpack(os.pread(shared.fileno(), SHARED_HEAD.size, 0))
                assert taken == len(sent)
                sent += os.pread(shared.fileno(), length, SHARED_HEAD.size)
            marks = [json.loads(line) for line in sent.splitlines()]
            assert [mark["samples"] for mark in marks[1:]] == [*range(1, 51)]
            connection.close()


@pytest.mark.parametrize("listens", [False, True])
def test_a_run_that_is_gone_costs_the_script_nothing(tmp_path: Path, listens: bool) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        if listens:  # but nobody reads: the socket fills
            listener.bind(str(path))
            listener.listen()
        code = "import omni_perf\nfor i in range(200_000): omni_perf.step()\nprint('done')"
        environment = os.environ | {"OMNI_PERF_RUN": str(path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


PACED = """
import sys, time
import omni_perf
for i in range(20):
    time.sleep(0.01)
    omni_perf.step(samples=8, epoch=i // 10)
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("condition", "exits", "code", "said"),
    [
        ("steps_per_s=1", 0, 0, ""),
        ("steps_per_s=1000", 0, 4, "steps in a second, fewer than 1000."),
        ("samples_per_s=8000", 0, 4, "samples in a second, fewer than 8000."),
        ("steps_per_s=1000", 3, 3, "steps in a second, fewer than 1000."),  # a failure of the program's own comes first
    ],
)
def test_a_run_fails_below_a_pace(tmp_path: Path, condition: str, exits: int, code: int, said: str) -> None:
    done = run_paced(tmp_path, condition, PACED, str(exits))
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert (tmp_path / "r.json").exists()


def test_a_pace_that_cannot_be_judged_is_said(tmp_path: Path) -> None:
    assert "none are known" in (unknown := run_paced(tmp_path, "steps_per_s=1", "import time; time.sleep(0.3)")).stderr
    assert unknown.returncode == 1
    assert "it takes steps_per_s=N" in (wrong := run_paced(tmp_path, "steps_per_s=-1", "1")).stderr
    assert wrong.returncode == 2


def run_paced(folder: Path, condition: str, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = ["--fail-if", condition, "-o", str(folder / "r.json"), "--interpreter", sys.executable, "-c", code]
    return subprocess.run(
        [find_binary(), "run", *options, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
