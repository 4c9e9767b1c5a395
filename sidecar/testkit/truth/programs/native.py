"""Time in C calls, a function for each kind; the shares are measured by the program itself."""

import hashlib
import select
import threading
import time

import harness

DATA = bytes(1_000_000)
LOCK = threading.Lock()
SPENT = {}


def hashing():
    hashlib.sha256(DATA)


def sleeping():
    time.sleep(0.003)


def waiting():
    LOCK.acquire(timeout=0.002)


def polling():
    select.select([], [], [], 0.002)


def one_round():
    for part in (hashing, sleeping, waiting, polling):
        start = time.perf_counter_ns()
        part()
        SPENT[part.__name__] = SPENT.get(part.__name__, 0) + time.perf_counter_ns() - start


def start():
    SPENT.clear()
    LOCK.acquire()


harness.drive(one_round, lambda: {"spent_ns": SPENT}, before=start)
