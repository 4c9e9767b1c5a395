"""Runs cells in a real kernel of this interpreter, the extension loaded: an order in JSON on stdin.

{"cells": [...], "folder": "...", "input": "...", "input_after": 1.5, "interrupt": 0}
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import sys
import threading
import time

from jupyter_client.manager import KernelManager

PATIENCE_S = 240.0


def main() -> int:
    order = json.load(sys.stdin)
    manager = KernelManager()
    manager.start_kernel(cwd=order["folder"], extra_arguments=["--HistoryManager.hist_file=:memory:"])
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        prepare = "import omni_perf.session; omni_perf.session.BEGIN_LIMIT_S = 20; del omni_perf"
        for cell in ("%load_ext omni_perf", prepare, *order["cells"][:-1]):
            run(client, cell, order)
        if order["interrupt"]:
            timer = threading.Timer(order["interrupt"], manager.interrupt_kernel)
            timer.start()
        run(client, order["cells"][-1], order, may_fail=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return 0


def run(client, cell: str, order, may_fail: bool = False) -> None:
    request = client.execute(cell, allow_stdin=True)
    deadline = time.monotonic() + PATIENCE_S
    failed = ""
    while True:
        if client.stdin_channel.msg_ready():
            client.get_stdin_msg()
            time.sleep(order["input_after"])
            client.input(order["input"])
        if time.monotonic() > deadline:
            raise SystemExit(f"the cell did not end: {cell}")
        try:
            message = client.get_iopub_msg(timeout=0.1)
        except Exception:  # queue.Empty of whichever class
            continue
        if message["parent_header"].get("msg_id") != request:
            continue
        content = message["content"]
        if message["msg_type"] == "error":
            failed = f"{content['ename']}: {content['evalue']}"
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            break
    if failed and not may_fail:
        raise SystemExit(f"{failed} in {cell}")


if __name__ == "__main__":
    sys.exit(main())
