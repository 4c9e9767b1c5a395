"""`OMNI_PERF_THREADS` (160) threads: the main one does what `work` does, the others wait for an event."""

import os
import threading

import harness

LEAF = f"total = 0\nfor i in range({harness.turns(100)}):\n    total += i\nreturn total"
ARMS = [harness.chain(name, 7, LEAF) for name in ("north", "east", "south", "west")]
COUNT = int(os.environ.get("OMNI_PERF_THREADS", "160"))
OVER = threading.Event()


def idle():
    idle_below()


def idle_below():
    OVER.wait()


def one_round():
    for arm in ARMS:
        arm(1)


def start():
    for _ in range(COUNT - 1):
        threading.Thread(target=idle, daemon=True).start()


harness.drive(one_round, before=start)
OVER.set()
