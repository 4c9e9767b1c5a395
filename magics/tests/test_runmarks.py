"""A script under `omni-perf run` sends its steps and regions."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, time
import omni_perf
with omni_perf.region("load"):
    time.sleep(0.001)
omni_perf.step()
if not os.fork():
    omni_perf.step()
    raise SystemExit
os.wait()
"""


def lines(connection: socket.socket) -> list[dict[str, object]]:
    """Read all that one sender sends."""
    with connection.makefile() as text:
        return [json.loads(line) for line in text]


def test_each_process_sends_its_own_marks(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(20)
        environment = os.environ | {"OMNI_PERF_RUN": str(path)}
        with subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment) as script:
            sent = [lines(listener.accept()[0]) for _ in range(2)]
            assert script.wait(20) == 0
    sent.sort(key=len, reverse=True)
    parent, child = sent
    assert [set(line) for line in parent] == [{"begin"}, {"region", "name"}, {"step"}]
    assert parent[1]["name"] == "load"
    assert [set(line) for line in child] == [{"begin"}, {"step"}]


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
