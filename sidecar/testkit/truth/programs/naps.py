"""Short computing between short sleeps: a poll loop, a rate limiter, a loader with small waits.

OMNI_PERF_NAP_US is the length of a sleep, OMNI_PERF_ITEM_US about that of the computing after it. The program's own
clock is the thread's CPU time, which runs on only while it has a CPU.
"""

import os
import time

import harness

NAP = int(os.environ.get("OMNI_PERF_NAP_US", "1000")) / 1e6
TURNS = harness.turns(int(os.environ.get("OMNI_PERF_ITEM_US", "80")))
SPENT = {}


def nap():
    time.sleep(NAP)


def compute(turns):
    total = 0
    while total < turns:
        total += 1


def one_round():
    start = time.thread_time_ns()
    nap()
    awake = time.thread_time_ns()
    compute(TURNS)
    end = time.thread_time_ns()
    SPENT["nap"] = SPENT.get("nap", 0) + awake - start
    SPENT["compute"] = SPENT.get("compute", 0) + end - awake


harness.drive(one_round, lambda: {"spent_ns": SPENT}, before=SPENT.clear)
