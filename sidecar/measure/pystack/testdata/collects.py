"""Collects garbage and says for how long, by the collector's own callbacks."""

import gc
import json
import sys
import time

took = 0.0
began = 0.0


def noted(phase, info):
    global took, began
    if phase == "start":
        began = time.monotonic()
    else:
        took += time.monotonic() - began


class Ring:
    pass


def make(count):
    rings = []
    for _ in range(count):
        ring = Ring()
        ring.me = ring
        rings.append(ring)
    return rings


gc.disable()
kept = make(300_000)
gc.callbacks.append(noted)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    gc.collect()
    sum(n * n for n in range(300_000))
gc.callbacks.remove(noted)
print(json.dumps({"seconds": took}), flush=True)
sys.stdin.readline()
