"""Five parts with known shares of the time, by the program's own clock.

The lengths of the calls are random (with a fixed seed), so that no sampling interval keeps step with them.
"""

import random
import time

import harness

RANDOM = random.Random(5)
TURNS = harness.turns(1000)
SPENT = {}


def ada(turns):
    for _ in range(turns):
        pass


def bob(turns):
    total = 0
    while total < turns:
        total += 2


def cleo(turns):
    sum(range(turns))


def dora(turns):
    dora_below(turns)


def dora_below(turns):
    for _ in range(turns):
        pass


def emil(turns):
    time.sleep(turns / TURNS / 1000)


PARTS = [(ada, 0.8), (bob, 0.5), (cleo, 0.7), (dora, 0.3), (emil, 0.2)]


def one_round():
    for part, weight in PARTS:
        turns = int(TURNS * weight * RANDOM.uniform(0.2, 6))
        start = time.perf_counter_ns()
        part(turns)
        SPENT[part.__name__] = SPENT.get(part.__name__, 0) + time.perf_counter_ns() - start


harness.drive(one_round, lambda: {"spent_ns": SPENT}, before=SPENT.clear)
