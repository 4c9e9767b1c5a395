"""A program with children that each do known work in a function of their own name.

busy.py COUNT SECONDS prints "GO" when all are forked, and at the end "DONE", the loops that all
have done together, and the share of their time that they say part_a took.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from multiprocessing.connection import Connection

SOURCE = """
def child_{n}(seconds):
    loops, in_a, began = 0, 0.0, time.perf_counter()
    now = began
    while now - began < seconds:
        before = now
        part_a()
        after = time.perf_counter()
        part_b()
        now = time.perf_counter()
        in_a += after - before
        loops += 1
    return loops, in_a, now - began
"""


def part_a() -> int:
    """Do 70 % of the work."""
    return sum([i * i for i in range(1400)])


def part_b() -> int:
    """Do the rest of it."""
    return sum([i * i for i in range(600)])


def child(n: int, seconds: float, end: Connection) -> None:
    """Work in a function of its own, and send what was done."""
    names: dict[str, object] = {"time": time, "part_a": part_a, "part_b": part_b}
    exec(compile(SOURCE.format(n=n), f"child_{n}.py", "exec"), names)
    end.send(names[f"child_{n}"](seconds))  # pyright: ignore[reportCallIssue, reportUnknownArgumentType, reportUnknownMemberType]


def main() -> None:
    """Start the children, and sum up what they did."""
    count, seconds = int(sys.argv[1]), float(sys.argv[2])
    fork = multiprocessing.get_context("fork")
    pipes = [fork.Pipe(duplex=False) for _ in range(count)]
    children = [fork.Process(target=child, args=(n, seconds, pipes[n][1])) for n in range(count)]
    for process in children:
        process.start()
    print("GO", flush=True)
    done = [receive.recv() for receive, _ in pipes]
    loops = sum(d[0] for d in done)
    print("DONE", loops, sum(d[1] for d in done) / sum(d[2] for d in done), flush=True)
    for process in children:
        process.join()


if __name__ == "__main__":
    main()
