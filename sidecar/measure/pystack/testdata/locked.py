"""Waits for locks of files and of databases that another process has.

It prints how long each took and which process had it.

Its argument: a folder.
"""

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import time

HOLD = """
import fcntl, sqlite3, sys, time
kind, path = sys.argv[1:]
if kind == "flock":
    file = open(path, "r+")
    fcntl.flock(file, fcntl.LOCK_EX)
elif kind == "fcntl":
    file = open(path, "r+")
    fcntl.lockf(file, fcntl.LOCK_EX)
else:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("begin immediate")
    database.execute("insert into numbers values (1)")
print("holds", flush=True)
time.sleep(1)
"""

took = {}


def timed(kind, path, wait):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, kind, path], stdout=subprocess.PIPE)
    holder.stdout.readline()
    began = time.monotonic()
    wait()
    took[kind + " " + os.path.basename(path)] = [time.monotonic() - began, holder.pid]
    holder.wait()


def database(name, journal):
    path = os.path.join(sys.argv[1], name)
    made = sqlite3.connect(path, timeout=30, isolation_level=None)
    made.execute("pragma journal_mode = " + journal)
    made.execute("create table numbers (number)")
    return path, made


path = os.path.join(sys.argv[1], "lock")
file = open(path, "w+")
plain, connection = database("plain.db", "delete")
logged, cursor = database("logged.db", "wal")
cursor = cursor.cursor()
print("ready", flush=True)
sys.stdin.readline()

timed("flock", path, lambda: fcntl.flock(file, fcntl.LOCK_EX))
fcntl.flock(file, fcntl.LOCK_UN)
timed("fcntl", path, lambda: fcntl.lockf(file, fcntl.LOCK_EX))
timed("sleep", plain, lambda: connection.execute("insert into numbers values (2)"))
timed("sleep", logged, lambda: cursor.execute("insert into numbers values (?)", (3,)))
print(json.dumps(took), flush=True)
