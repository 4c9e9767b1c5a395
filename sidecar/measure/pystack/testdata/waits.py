"""Waits for other threads by what the standard library has for it, and prints how long each took.

The names are the call, the kind, and the thread that computes what is waited for.
"""

import concurrent.futures
import json
import multiprocessing
import os
import queue
import select
import sys
import threading
import time

took = {}


def timed(name, wait):
    began = time.monotonic()
    wait()
    took[name] = took.get(name, 0) + time.monotonic() - began


def later(do):
    threading.Timer(0.25, do).start()


def notified(condition):
    with condition:
        condition.wait()


def notify(condition):
    with condition:
        condition.notify()


def entered(lock):
    with lock:
        pass


print("ready", flush=True)
sys.stdin.readline()

event = threading.Event()
later(event.set)
timed("wait event ", event.wait)
condition = threading.Condition()
later(lambda: notify(condition))
timed("wait condition ", lambda: notified(condition))
semaphore = threading.BoundedSemaphore(1)
semaphore.acquire()
later(semaphore.release)
timed("acquire semaphore ", semaphore.acquire)
barrier = threading.Barrier(2)
later(barrier.wait)
timed("wait barrier ", barrier.wait)
numbers = queue.Queue(1)
later(lambda: numbers.put(1))
timed("get queue ", lambda: numbers.get(timeout=9))
numbers.put(2)
later(numbers.get)
timed("put queue ", lambda: numbers.put(3))
numbers.task_done()
numbers.task_done()
later(numbers.task_done)
timed("join queue ", numbers.join)
with concurrent.futures.ThreadPoolExecutor(1, "pool") as pool:
    future = pool.submit(time.sleep, 0.25)
    timed("result future pool_0", future.result)
    timed("wait future ", lambda: concurrent.futures.wait([pool.submit(time.sleep, 0.25)]))
lock = threading.Lock()
lock.acquire()
later(lock.release)
timed("lock lock ", lock.acquire)
shared = multiprocessing.get_context("fork")
shared_event = shared.Event()
later(shared_event.set)
timed("wait event ", shared_event.wait)
shared_condition = shared.Condition()
later(lambda: notify(shared_condition))
timed("wait condition ", lambda: notified(shared_condition))
shared_lock = shared.Lock()
shared_lock.acquire()
later(shared_lock.release)
timed("lock lock ", lambda: entered(shared_lock))
shared_queue = shared.Queue(1)
shared_queue.put(1)
later(shared_queue.get)
timed("put queue multiprocessing.Queue", lambda: shared_queue.put(2))
shared_queue.get()
reading, writing = os.pipe()
later(lambda: os.write(writing, b"1"))
timed("select pipe ", lambda: select.select([reading], [], [], 9))
timed("none", lambda: time.sleep(0.25))
print(json.dumps(took), flush=True)
