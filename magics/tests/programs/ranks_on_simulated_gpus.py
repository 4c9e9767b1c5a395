"""Runs a training script as a rank of torchrun whose steps keep a simulated GPU busy.

Each rank has the device of its local rank; see sidecar/measure/gpu/testdata/fakenvml.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os
import runpy
import sys
import time

from torch.optim.optimizer import register_optimizer_step_post_hook

DEVICE = int(os.environ.get("LOCAL_RANK", "0"))
BUSY_NS = 30_000_000  # from the end of each step on


def feed_device(*lines: str) -> None:
    with open(os.environ["OMNI_PERF_FAKE_NVML_FEED"], "a") as feed:
        feed.write("".join(f"{line}\n" for line in lines))


def busy(*_: object) -> None:
    now = time.monotonic_ns()
    feed_device(f"{now} {DEVICE} 90", f"{now + BUSY_NS} {DEVICE} 0")


feed_device(f"process {os.getpid()} {DEVICE} 900")
register_optimizer_step_post_hook(busy)
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
