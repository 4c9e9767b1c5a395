"""Tasks for the workers of engines; each returns its process, its name and its own seconds."""

# pyright: basic, reportMissingImports=false

import asyncio
import os
import time
from typing import Any


def compute(number):
    began = time.monotonic()
    while time.monotonic() < began + 0.1:
        number += 1
    return os.getpid(), "compute", time.monotonic() - began


def rest(number):
    began = time.monotonic()
    time.sleep(0.15)
    return os.getpid(), "rest", time.monotonic() - began


def big(number):
    """Return what takes a while to send."""
    return [str(number + i) for i in range(60_000)]


def join(a, b):
    return len(a) + len(b)


class Trainer:
    """An actor: methods that compute, await, yield and fail."""

    def step(self):
        pid, _, seconds = compute(0)
        return pid, "Trainer.step", seconds

    async def sleep(self):
        began = time.monotonic()
        await asyncio.sleep(0.2)
        return time.monotonic() - began

    def batches(self):
        for number in range(3):
            time.sleep(0.05)
            yield number

    def fails(self):
        return 1 // 0


def recorded():
    """Return what a worker of Ray still records."""
    from omni_perf.engines import rayworker

    here: Any = rayworker._here
    return here.recording is not None


def hold(seconds):
    time.sleep(seconds)


def patched():
    """Return what of a recording is left in an engine."""
    import ipyparallel.engine.kernel as module
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    ours = [f for event in ("pre_execute", "pre_run_cell", "post_execute") for f in shell.events.callbacks[event]]
    return (
        [repr(f) for f in ours if "omni" in repr(f)]
        + [name for name in ("do_apply",) if name in vars(shell.kernel)]
        + ([] if module.unpack_apply_message.__module__ == "ipyparallel.serialize.serialize" else ["unpack"])
    )
