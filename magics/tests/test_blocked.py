"""What a cell waited for: the peer of a socket, the path of a file, the thread that has a lock."""

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


LOCKS = """\
import threading, time, omni_perf
lock = threading.Lock()
entered = threading.Event()
def load():
    with lock:
        entered.set()
        time.sleep(0.6)
"""
WAITS_FOR_A_THREAD = """\
%%omni_perf
thread = threading.Thread(target=load, name="loader")
thread.start()
entered.wait()
time.sleep(0.1)
with lock:
    pass
threading.Thread(target=time.sleep, args=(0.5,), name="sleeper").start()
[t for t in threading.enumerate() if t.name == "sleeper"][0].join()
"""


def test_the_thread_that_a_line_waited_for_is_said() -> None:
    with Kernel() as kernel:
        kernel.run(LOCKS)
        ran = kernel.run(WAITS_FOR_A_THREAD)
        rows = {row["line"]: row for row in blocked(kernel)}
    lock, join = rows[6], rows[9]
    assert (lock["kind"], lock["object"], lock["holder_line"]) == ("lock", "loader", 7)
    assert 0.3 < lock["blocked_s"] == lock["main_s"] < 0.6 and 0.3 < lock["held_s"] <= lock["blocked_s"]
    assert (join["kind"], join["object"], join["text"].endswith(".join()")) == ("thread", "sleeper", True)
    assert "lock held by 'loader'" in ran.plain and "end of thread 'sleeper'" in ran.plain, ran.plain


def test_addresses_are_left_out_where_that_is_asked_for() -> None:
    with Kernel({"OMNI_PERF_MASK_WAITS": "1"}) as kernel:
        kernel.run(SET_UP)
        ran = kernel.run(CELL)
        [row] = [row for row in blocked(kernel) if row["line"] == 3]
    assert (row["call"], row["kind"], row["object"]) == ("poll", "socket", "")
    assert "poll of a socket" in ran.plain and "127.0.0.1" not in ran.plain
