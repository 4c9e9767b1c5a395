"""``omni-perf attach`` follows a kernel that has nothing of ours in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

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
        assert "following" in attach.stderr.readline()
        client.execute_interactive(CELL, timeout=60)
        client.execute_interactive("print('x')\n1 / 0", timeout=60)
        # Its report follows the cell; the next line that is written tells so.
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


def test_a_kernel_that_is_not_there_is_said(tmp_path: Path) -> None:
    run = subprocess.run([BINARY, "attach", "no-such-kernel"], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 1
    assert "no-such-kernel" in run.stderr
    assert "\n" not in run.stderr.strip()
