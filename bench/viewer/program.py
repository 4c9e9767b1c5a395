"""A program for profilers to show: a loader, a model, a report, and a second thread, for so many seconds."""

from __future__ import annotations

import json
import math
import sys
import threading
import time


def read(number: int) -> str:
    """Wait as for a file, and decode what was in it."""
    time.sleep(0.004)
    return json.dumps([number + i / 7 for i in range(2_000)])


def load(number: int) -> list[float]:
    """Make a batch."""
    return [normalize(v) for v in json.loads(read(number))]


def normalize(value: float) -> float:
    """Put a value into -1 to 1."""
    return math.tanh(value / 1e3)


def layer(values: list[float], depth: int) -> float:
    """Work in calls that are as deep as those of a model."""
    if depth == 0:
        return sum(math.sin(v) for v in values)
    return layer(values, depth - 1) * 0.5 + layer(values[: len(values) // 2], depth - 1)


def train(batch: list[float]) -> float:
    """Do one step."""
    loss = layer(batch[:64], 5)
    return loss + layer(batch[64:128], 4)


def watch(until: float) -> None:
    """Be the second thread."""
    while time.monotonic() < until:
        sorted(range(5_000), key=lambda v: -v)
        time.sleep(0.02)


def main(seconds: float) -> None:
    """Run until the time is over."""
    until = time.monotonic() + seconds
    watcher = threading.Thread(target=watch, args=(until,), name="watcher")
    watcher.start()
    number, losses = 0, 0.0
    while time.monotonic() < until:
        losses += train(load(number))
        number += 1
    watcher.join()


if __name__ == "__main__":
    main(float(sys.argv[1]))
