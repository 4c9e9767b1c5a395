"""The three trainings of train.py without torch, on the simulated GPU.

    python train_simulated.py starved|fixed|item --facts FILE --trace FILE

It knows what its device did, and writes that as a trace such as torch.profiler would have
written: the comparison with a real one is tried out on it.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import functools
import inspect
import json
import time
from typing import Any

from simulated_gpu import SimulatedGPU

STEPS = 16
REST_S = 0.5
STEP_S = {"starved": 0.15, "fixed": 0.3, "item": 0.2}


class Device(SimulatedGPU):
    """Remembers its work as (start, end), ns."""

    def __init__(self) -> None:
        super().__init__()
        self.work: list[tuple[int, int]] = []

    def busy(self, seconds: float) -> None:
        super().busy(seconds)
        self.work.append((self._free_at - int(seconds * 1e9), self._free_at))


def load_batch() -> None:
    time.sleep(0.2)


def train(gpu: Device, variant: str, fetches: list[tuple[int, int]]) -> None:
    for _ in range(STEPS):
        if variant == "starved":
            began = time.monotonic_ns()
            load_batch()
            fetches.append((began, time.monotonic_ns()))
        gpu.busy(STEP_S[variant])
        gpu.synchronize()
        if variant == "item":
            Result.item()


class Result:
    """What is asked of a tensor is a call into C: it leaves no frame behind."""

    item = functools.partial(time.sleep, 0.1)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("variant", choices=STEP_S)
    arguments.add_argument("--facts", required=True)
    arguments.add_argument("--trace", required=True)
    chosen = arguments.parse_args()
    gpu = Device()
    gpu.busy(0.2)  # so that the training is not set-up
    gpu.synchronize()
    gpu.work.clear()
    fetches: list[tuple[int, int]] = []
    time.sleep(REST_S)
    began = time.time()
    train(gpu, chosen.variant, fetches)
    ended = time.time()
    time.sleep(REST_S)
    with open(chosen.trace, "w") as file:
        json.dump({"schemaVersion": 1, "traceEvents": events(gpu.work, fetches)}, file)
    first = inspect.getsourcelines(load_batch)[1]
    lines, last = inspect.getsourcelines(train)
    facts = {
        "variant": chosen.variant,
        "began": began,
        "ended": ended,
        "rest_s": REST_S,
        "steps": STEPS,
        "lines": [first, last + len(lines) - 1],
        "software": "no torch",
        "device": "simulated",
    }
    with open(chosen.facts, "w") as file:
        json.dump(facts, file)


def events(work: list[tuple[int, int]], fetches: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Kineto's records: each kernel and the call that launched it, each fetch of the loader."""
    list_: list[dict[str, Any]] = []

    def add(category: str, name: str, thread: int, span: tuple[int, int], **args: int) -> None:
        record = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "args": args}
        list_.append(record | {"ts": span[0] / 1000, "dur": (span[1] - span[0]) / 1000})

    for number, span in enumerate(work, 1):
        launched = (span[0] - 5000, span[0] - 1000)
        add("cuda_runtime", "cudaLaunchKernel", 1, launched, correlation=number)
        add("kernel", "gemm", 7, span, device=0, stream=7, correlation=number)
    for span in fetches:
        add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, span)
    return list_


if __name__ == "__main__":
    main()
