"""``omni-perf attach`` follows a kernel that has nothing of ours in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jupyter_client.manager import KernelManager
from reading import reading

BINARY = Path(sys.executable).parent / "omni-perf"

CELL = """
import time
def spin(end):
    while time.perf_counter() < end:
        pass
spin(time.perf_counter() + 0.6)
"""


def test_each_cell_becomes_a_report(tmp_path: Path) -> None:
    kernel = KernelManager(kernel_name="python3")
    kernel.start_kernel(env=os.environ | {"IPYTHONDIR": str(tmp_path / "ipython")})
    client = kernel.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        attach = subprocess.Popen(
            [BINARY, "attach", kernel.connection_file, "-o", str(tmp_path / "out"), "--format", "json"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert attach.stderr is not None
        said = attach.stderr.readline()
        if int(version("ipykernel").split(".")[0]) < 7:  # which welcomes nobody
            assert "cells count from its first message on" in said
            said = attach.stderr.readline()
        assert "following" in said
        client.execute_interactive(CELL, timeout=60)
        client.execute_interactive("print('x')\n1 / 0", timeout=60)
        # Its report follows the cell; the next line that is written shows that.
        while "out-2.json" not in attach.stderr.readline():
            pass
        attach.send_signal(signal.SIGINT)
        attach.communicate(timeout=30)
        assert attach.returncode == 0
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    first = reading(json.loads((tmp_path / "out-1.json").read_text()))
    assert first["target"]["cell"]["execution_count"] == 1
    assert any(f["function"] == "spin" for f in first["functions"])
    assert {line["file"] for line in first["lines"]} == {"Cell [1]"}
    assert any(line["text"] == "pass" or "while" in line["text"] for line in first["lines"])
    second = reading(json.loads((tmp_path / "out-2.json").read_text()))
    cell = second["target"]["cell"]
    assert (cell["outcome"], cell["exception"]) == ("error", "ZeroDivisionError")
    assert second["target"]["output"]["messages"] >= 2


UNENDING = """
def spin():
    while True:
        try:
            while True:
                pass
        except KeyboardInterrupt:
            pass
print("spinning", flush=True)
spin()
"""


def test_a_restarted_kernel_is_followed(tmp_path: Path) -> None:
    kernel: Any = KernelManager(kernel_name="python3")
    kernel.start_kernel(env=os.environ | {"IPYTHONDIR": str(tmp_path / "ipython")})
    client = kernel.blocking_client()
    client.start_channels()
    attach = None
    try:
        client.wait_for_ready(timeout=60)
        attach = subprocess.Popen(
            [BINARY, "attach", kernel.connection_file, "-o", str(tmp_path / "out"), "--format", "json"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        said: list[str] = []

        def read_until(text: str) -> None:
            assert attach is not None
            assert attach.stderr is not None
            while not said or text not in said[-1]:
                said.append(attach.stderr.readline())
                assert said[-1], "".join(said)  # else it has ended

        read_until("following")
        first_process = kernel.provisioner.pid
        client.execute(UNENDING)
        while client.get_iopub_msg(timeout=60)["msg_type"] != "stream":
            pass
        # Long enough for samples on a busy machine; nothing shows outside that some were taken.
        time.sleep(2)
        kernel.restart_kernel(now=True)
        read_until("out-1.json")
        read_until("restarted")
        read_until("following")
        second_process = kernel.provisioner.pid
        assert str(second_process) in said[-1]
        client.wait_for_ready(timeout=60)
        client.execute_interactive(CELL, timeout=60)
        read_until("out.2-1.json")
        kernel.shutdown_kernel()  # which deletes the connection file
        attach.communicate(timeout=60)
        assert attach.returncode == 0
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
        if attach is not None and attach.poll() is None:
            attach.kill()
            attach.wait()
    cut = reading(json.loads((tmp_path / "out-1.json").read_text()))
    assert cut["target"]["cell"]["outcome"] == "kernel-restarted"
    assert cut["processes"][0]["pid"] == first_process
    assert any(f["function"] == "spin" for f in cut["functions"])
    assert not any(note["id"] == "kernel-restarted" for note in cut["notes"])
    after = reading(json.loads((tmp_path / "out.2-1.json").read_text()))
    assert after["target"]["cell"]["outcome"] == "ok"
    assert after["processes"][0]["pid"] == second_process
    assert any(f["function"] == "spin" for f in after["functions"])
    assert "restarted 1 time" in " ".join(note["text"] for note in after["notes"] if note["id"] == "kernel-restarted")


def test_a_kernel_that_is_not_there_is_said(tmp_path: Path) -> None:
    run = subprocess.run([BINARY, "attach", "no-such-kernel"], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 1
    assert "no-such-kernel" in run.stderr
    assert "\n" not in run.stderr.strip()
