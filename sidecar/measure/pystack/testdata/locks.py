"""Waits for locks that other threads have, and prints for how long for each of them.

The threads are named by how they have it. Nobody can be said to have the locks of those whose names begin with "no".
"""

import json
import queue
import sys
import threading
import time

took = {}


def held(name, hold, wait):
    """Has another thread hold a lock for a while, and waits for it."""
    ready = threading.Event()
    thread = threading.Thread(target=hold, args=(ready,), name=name)
    thread.start()
    ready.wait()
    time.sleep(0.05)  # the thread is known by then
    began = time.monotonic()
    wait()
    took[name] = time.monotonic() - began
    thread.join()


def entered(lock, during=lambda: time.sleep(0.35)):
    def hold(ready):
        for attempt in range(1):
            try:
                with open("/dev/null"), lock:
                    ready.set()
                    during()
            finally:
                pass

    return hold


def acquired(lock):
    def hold(ready):
        lock.acquire()
        try:
            ready.set()
            time.sleep(0.35)
        finally:
            lock.release()

    return hold


def enter(lock):
    def wait():
        with lock:
            pass

    return wait


def acquire(lock, **options):
    def wait():
        for taken in [lock.acquire(**options)]:
            lock.release()

    return wait


def compute():
    end = time.monotonic() + 0.35
    while time.monotonic() < end:
        sum(range(100))


def wait_for_a_condition(ready, condition=threading.Condition(threading.Lock())):
    """Is in the condition's with statement, and has given its lock away."""
    with condition:
        ready.set()
        condition.wait(0.35)


def hand_over(names, lock):
    """Each of the threads has the lock for a while, one after the other."""
    ready, begins = threading.Event(), [threading.Event() for _ in names]
    had = {}

    def hold(i):
        begins[i].wait()
        with lock:
            began = time.monotonic()
            ready.set()
            if i + 1 < len(names):
                begins[i + 1].set()
            time.sleep(0.2)
            had[names[i]] = began, time.monotonic()

    threads = [threading.Thread(target=hold, args=(i,), name=name) for i, name in enumerate(names)]
    for thread in threads:
        thread.start()
    begins[0].set()
    ready.wait()
    time.sleep(0.05)  # the second one is in line before
    began = time.monotonic()
    with lock:
        ended = time.monotonic()
    for thread in threads:
        thread.join()
    for name, (begin, end) in had.items():
        took[name] = max(min(end, ended) - max(begin, began), 0)


print("ready", flush=True)
sys.stdin.readline()

lock = threading.Lock()
held("sleeps", entered(lock), enter(lock))
held("computes", entered(lock, compute), acquire(lock))
numbers = queue.Queue()


def read_queue():
    try:
        numbers.get(timeout=0.35)
    except queue.Empty:
        pass


held("reads a queue", entered(lock, read_queue), acquire(lock, timeout=5))
held("no with", acquired(lock), enter(lock))
recursive = threading.RLock()
held("entered an RLock", entered(recursive), enter(recursive))
held("acquired an RLock", acquired(recursive), acquire(recursive, timeout=5))
condition = threading.Condition()
held("entered a condition", entered(condition), enter(condition))
condition = threading.Condition(threading.Lock())
held("entered a condition of a lock", entered(condition), enter(condition))
held("no lock any more", wait_for_a_condition, lambda: threading.Event().wait(0.2))
hand_over(["first", "second"], threading.Lock())
last = threading.Thread(target=compute, name="is joined")
last.start()
time.sleep(0.05)
began = time.monotonic()
last.join()
took[last.name] = time.monotonic() - began
print(json.dumps(took), flush=True)
