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


WAITS = """\
%%omni_perf
done = threading.Event()
threading.Timer(0.5, done.set).start()
done.wait()
import queue
numbers = queue.Queue()
threading.Timer(0.5, numbers.put, (1,)).start()
numbers.get()
"""


def test_events_and_queues_are_said() -> None:
    with Kernel() as kernel:
        kernel.run(LOCKS)
        ran = kernel.run(WAITS)
        rows = {row["line"]: row for row in blocked(kernel)}
    event, get = rows[4], rows[8]
    assert (event["kind"], event["call"], get["kind"], get["call"]) == ("event", "wait", "queue", "get")
    assert 0.4 < event["blocked_s"] < 0.6 and 0.4 < get["blocked_s"] < 0.6
    assert "Event to be set" in ran.plain and "queue.Queue.get: it is empty" in ran.plain, ran.plain


DATABASE = """\
import os, sqlite3, subprocess, sys, tempfile, omni_perf
path = os.path.join(tempfile.mkdtemp(), "x.db")
mine = sqlite3.connect(path, timeout=30)
mine.execute("create table t (a)")
mine.commit()
code = '''
import sqlite3, sys, time
theirs = sqlite3.connect(sys.argv[1])
theirs.execute("begin exclusive")
print(1, flush=True)
time.sleep(2)
'''
other = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
other.stdout.readline()
"""


INSERTS = """\
%%omni_perf
import time
began = time.monotonic()
mine.execute("insert into t values (1)")
took = time.monotonic() - began
"""


def test_the_process_that_has_a_database_is_said() -> None:
    """SQLite waits by sleeps, of which a busy machine's readings miss some, and a wait ends with a reading: three attempts."""
    with Kernel() as kernel:
        for last in (False, False, True):
            kernel.run(DATABASE)
            ran = kernel.run(INSERTS)
            pid, took = int(kernel.run("other.pid").result or 0), float(kernel.run("took").result or 0)
            [row] = [row for row in blocked(kernel) if row["kind"] == "database"]
            assert row["object"].endswith("/x.db") and row["owner_pid"] == pid, row
            assert f"process {pid} (python" in ran.plain, ran.plain
            if 0.7 * took < row["blocked_s"] <= took:
                break
            assert not last, (row, took)


def test_addresses_are_left_out_where_that_is_asked_for() -> None:
    with Kernel({"OMNI_PERF_MASK_WAITS": "1"}) as kernel:
        kernel.run(SET_UP)
        ran = kernel.run(CELL)
        [row] = [row for row in blocked(kernel) if row["line"] == 3]
    assert (row["call"], row["kind"], row["object"]) == ("poll", "socket", "")
    assert "poll of a socket" in ran.plain and "127.0.0.1" not in ran.plain
