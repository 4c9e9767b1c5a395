"""Runs one workload of known truth: `python NAME.py edges` or `python NAME.py run SECONDS ROUNDS`.

`edges` runs a few rounds under sys.setprofile and prints every caller→callee pair that occurs, with the
caller's line. It is a process of its own, so the one that is sampled has never been instrumented.

`run` prints READY, waits for a byte on standard input, does rounds until SECONDS have passed, ROUNDS are
done (0: no limit) or standard input is closed, prints what it measured of itself as one line of JSON, and
ends when standard input is closed.
"""

import json
import os
import select
import sys
import threading
import time


PACE_NS = 10_000_000
"""The least between two notes of how far a program has come: of the time, its CPU time and its rounds."""


def turns(microseconds):
    """How many turns of an empty `for` loop take about that long here (the best of five tries)."""
    best = min(_time_turns(20_000) for _ in range(5))
    return max(1, round(20_000 * microseconds * 1000 / best))


def _time_turns(count):
    start = time.perf_counter_ns()
    for _ in range(count):
        pass
    return time.perf_counter_ns() - start


def chain(name, depth, leaf):
    """A function NAME_1 that calls NAME_2 … NAME_depth, each the next, and at the bottom NAME_leaf.

    The leaf's body is `leaf`. Every level is a function of its own name, so a torn stack shows.
    """
    source = []
    for level in range(1, depth + 1):
        callee = f"{name}_{level + 1}" if level < depth else f"{name}_leaf"
        source += [f"def {name}_{level}(n):", "    n += 0", f"    return {callee}(n)"]
    source += [f"def {name}_leaf(n):", *("    " + line for line in leaf.splitlines())]
    namespace = {}
    exec(compile("\n".join(source), f"<{name}>", "exec"), namespace)
    return namespace[f"{name}_1"]


def drive(one_round, truth=dict, before=lambda: None):
    """Does what the command line asks with one_round.

    before() is called when observing or measuring is about to begin, truth() adds the workload's own
    measurements at the end.
    """
    observer = Observer() if sys.argv[1:2] == ["edges"] else None
    seconds, rounds = (60.0, 3) if observer else (float(sys.argv[2]), int(sys.argv[3]))
    if observer:
        observer.start()
    before()
    if not observer:
        print("READY", flush=True)
        os.read(0, 1)
    forked = fork(0 if observer else int(os.environ.get("OMNI_PERF_FORKS", 0)))
    measured = repeat(one_round, seconds, rounds)
    if forked:
        os._exit(0)
    text = json.dumps({**measured, **truth()})
    if observer:
        observer.stop()
        text = json.dumps(observer.legal())
    print(text, flush=True)
    if not observer:
        os.read(0, 1)


def fork(count):
    """Forks so many processes that do the same; returns whether this is one of them."""
    for _ in range(count):
        if os.fork() == 0:
            return True
    return False


def repeat(one_round, seconds, rounds):
    start, cpu = time.perf_counter_ns(), time.process_time_ns()
    end = start + int(seconds * 1e9)
    done, paces, noted = 0, [], start
    paced = "OMNI_PERF_PACES" in os.environ
    while (done < rounds or not rounds) and time.perf_counter_ns() < end and not stopped():
        one_round()
        done += 1
        if paced and time.perf_counter_ns() - noted > PACE_NS:
            noted = time.perf_counter_ns()
            paces.append((noted, time.process_time_ns(), done))
    measured = {"rounds": done, "wall_ns": time.perf_counter_ns() - start, "cpu_ns": time.process_time_ns() - cpu}
    return {**measured, "paces": paces} if paced else measured


def stopped():
    """Whether whoever started us has closed our standard input."""
    return bool(select.select([0], [], [], 0)[0])


class Observer:
    """Notes what sys.setprofile shows: which pairs of functions occur, from which line of the caller."""

    def __init__(self):
        self.edges, self.codes, self.roots, self.depth = set(), set(), set(), 0

    def start(self):
        threading.setprofile(self._watch)
        sys.setprofile(self._watch)

    def stop(self):
        sys.setprofile(None)
        threading.setprofile(None)

    def legal(self):
        lines = {}
        for code in self.codes:
            lines.setdefault(code.co_name, set()).update(line for _, _, line in code.co_lines() if line)
        return {
            "edges": sorted(self.edges),
            "creations": sorted(self._creations()),
            "lines": {name: sorted(numbers) for name, numbers in lines.items()},
            "roots": sorted(self.roots),
            "depth": self.depth,
        }

    def _creations(self):
        """(caller, callee, first line of the callee) where a generator or coroutine may be created.

        For an instant it then has a frame above its creator's, for which the hook is not called.
        """
        import inspect  # not in the process that is sampled

        lazy = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        for callee in self.codes:
            if callee.co_flags & lazy:
                for caller in self.codes:
                    if callee.co_name in caller.co_names or callee in caller.co_consts:
                        yield caller.co_name, callee.co_name, callee.co_firstlineno

    def _watch(self, frame, event, _argument):
        if event != "call":
            return
        depth = 0
        while frame is not None:
            code, caller = frame.f_code, frame.f_back
            self.codes.add(code)
            if caller is None:
                self.roots.add(code.co_name)
            else:
                self.edges.add((caller.f_code.co_name, caller.f_lineno, code.co_name))
            frame, depth = caller, depth + 1
        self.depth = max(self.depth, depth)
