"""Waits for a socket, for one with a time limit, for a pipe, a lock of a file, a Unix socket and a process.

It prints how long each took.

Its arguments: a folder for its file and its socket.
"""

import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time

folder = sys.argv[1]
took = {}


def timed(name, wait):
    began = time.monotonic()
    wait()
    took[name] = time.monotonic() - began


def later(seconds, do):
    threading.Timer(seconds, do).start()


def pair(family, address):
    server = socket.socket(family)
    server.bind(address)
    server.listen()
    client = socket.create_connection(server.getsockname()) if family == socket.AF_INET else socket.socket(family)
    if family != socket.AF_INET:
        client.connect(address)
    return server, client, server.accept()[0]


server, client, peer = pair(socket.AF_INET, ("127.0.0.1", 0))
local, near, far = pair(socket.AF_UNIX, os.path.join(folder, "local"))
reading, writing = os.pipe()
path = os.path.join(folder, "lock")
held = os.open(path, os.O_CREAT | os.O_RDWR)
wanted = os.open(path, os.O_RDWR)
fcntl.flock(held, fcntl.LOCK_EX)
port = server.getsockname()[1]
print(f"ready {port}", flush=True)
sys.stdin.readline()

later(0.3, lambda: peer.send(b"1"))
timed(f"recv socket 127.0.0.1:{port}", lambda: client.recv(1))
client.settimeout(10)
later(0.3, lambda: peer.send(b"2"))
timed(f"poll socket 127.0.0.1:{port}", lambda: client.recv(1))
later(0.3, lambda: os.write(writing, b"3"))
timed("read pipe ", lambda: os.read(reading, 1))
later(0.3, lambda: fcntl.flock(held, fcntl.LOCK_UN))
timed(f"flock file {path}", lambda: fcntl.flock(wanted, fcntl.LOCK_EX))
later(0.3, lambda: near.send(b"4"))
timed(f"recv socket {os.path.join(folder, 'local')}", lambda: far.recv(1))
later(0.3, lambda: socket.create_connection(("127.0.0.1", port)))
timed(f"accept socket :{port}", server.accept)
later(0.3, lambda: os.write(writing, b"5"))
timed("select pipe ", lambda: select.select([reading], [], [], 10))
process = subprocess.Popen(["sleep", "0.3"])
timed("wait process sleep", process.wait)
print(json.dumps(took), flush=True)
