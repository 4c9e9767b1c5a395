"""What a cell's system calls waited for: the peer of a socket, the path of a file."""

from __future__ import annotations

import ast
from typing import Any

from kernels import Kernel

SET_UP = """\
import os, socket, threading, time, omni_perf
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname(), timeout=30)
peer, _ = server.accept()
port = server.getsockname()[1]
def answer():
    time.sleep(0.5)
    peer.send(b"row")
"""
CELL = """\
%%omni_perf
threading.Thread(target=answer).start()
client.recv(100)
"""


def blocked(kernel: Kernel) -> list[dict[str, Any]]:
    result = kernel.run("[dict(row) for row in omni_perf.last().tables['blocked']]").result
    assert result is not None
    return ast.literal_eval(result)


def test_the_peer_that_a_line_waited_for_is_said() -> None:
    with Kernel() as kernel:
        kernel.run(SET_UP)
        ran = kernel.run(CELL)
        port = kernel.run("port").result
        [row] = [row for row in blocked(kernel) if row["line"] == 3]
    assert (row["call"], row["kind"], row["object"]) == ("poll", "socket", f"127.0.0.1:{port}")
    assert row["text"] == "client.recv(100)" and 0.4 < row["blocked_s"] == row["main_s"] < 0.6
    assert f"poll of 127.0.0.1:{port}" in ran.plain, ran.plain


def test_addresses_are_left_out_where_that_is_asked_for() -> None:
    with Kernel({"OMNI_PERF_MASK_WAITS": "1"}) as kernel:
        kernel.run(SET_UP)
        ran = kernel.run(CELL)
        [row] = [row for row in blocked(kernel) if row["line"] == 3]
    assert (row["call"], row["kind"], row["object"]) == ("poll", "socket", "")
    assert "poll of a socket" in ran.plain and "127.0.0.1" not in ran.plain
