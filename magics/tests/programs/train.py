"""Trains a small network in one of three ways, for the tests with a real GPU.

    python train.py starved|fixed|item --facts FILE [--trace FILE] [--device cpu] [--steps N]

starved  the loader makes each batch in the training's own thread
fixed    worker processes make them, into pinned memory
item     as fixed, and the loop asks for single results by .item()

FILE gets the facts a comparison needs; with --trace torch.profiler records the training.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCH, ROWS, WORKERS, STORAGE_S = 32, 4096, 4, 0.004  # a batch is repeated to ROWS on the device
ASKED = 512  # results a step of "item" asks for
REST_S = {"cuda": 2.5, "cpu": 0.1}  # before and after the training: longer than any window of a driver

# Device time of a step: the GPU must have less to do than the starved loader needs for a batch.
STEP_S = {"starved": 0.06, "fixed": 0.06, "item": 0.02}
STEPS = {"starved": 60, "fixed": 150, "item": 150}


class Rows(Dataset):
    """Made-up rows from a slow storage."""

    def __init__(self, count: int, width: int) -> None:
        self.count, self.width = count, width

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        time.sleep(STORAGE_S)
        return torch.full((self.width,), number % 7 / 7), number % 2


def train(work: Work, variant: str, batches) -> float:
    """Train; what the device waits for meanwhile is charged to these lines and to those above."""
    right = 0.0
    for features, labels in batches:
        features = features.to(work.device, non_blocking=True).repeat(ROWS // BATCH, 1)
        labels = labels.to(work.device, non_blocking=True).repeat(ROWS // BATCH)
        for _ in range(work.passes):
            predicted = work.network(features)
            work.loss(predicted, labels).backward()
        work.optimizer.step()
        work.optimizer.zero_grad()
        if variant == "item":
            hits = predicted.argmax(1) == labels
            for number in range(ASKED):
                right += hits[number].item()
    return right


class Work:
    """The network, and how often a step trains it to keep the device busy for a known time."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        # Kernels last long enough for the gaps between them not to matter.
        self.width, layers = (2048, 6) if device.type == "cuda" else (32, 2)
        inner = itertools.chain.from_iterable(
            (torch.nn.Linear(self.width, self.width), torch.nn.ReLU()) for _ in range(layers)
        )
        self.network = torch.nn.Sequential(*inner, torch.nn.Linear(self.width, 2)).to(device)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=1e-3)
        self.loss = torch.nn.CrossEntropyLoss()
        self.passes = 1

    def warm_up(self, seconds: float) -> None:
        """Load what the device needs, and choose the passes so that a step takes this long."""
        features = torch.zeros(ROWS, self.width, device=self.device)
        labels = torch.zeros(ROWS, dtype=torch.long, device=self.device)
        took = 0.0
        for count in (3, 5):
            began = time.perf_counter()
            for _ in range(count):
                self.loss(self.network(features), labels).backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
            self.synchronize()
            took = (time.perf_counter() - began) / count
        self.passes = max(1, round(seconds / took))

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("variant", choices=STEPS)
    arguments.add_argument("--facts", required=True)
    arguments.add_argument("--trace")
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--steps", type=int)
    chosen = arguments.parse_args()
    device = torch.device(chosen.device)
    steps = chosen.steps or STEPS[chosen.variant]

    work = Work(device)
    work.warm_up(STEP_S[chosen.variant])
    workers = 0 if chosen.variant == "starved" else WORKERS
    loader = DataLoader(
        Rows(BATCH * steps, work.width),
        batch_size=BATCH,
        num_workers=workers,
        pin_memory=bool(workers) and device.type == "cuda",
    )
    batches = iter(loader)  # workers start here, not in the training

    # The host's side of so many .item() would fill the disk; the device's is what is compared.
    activities = [torch.profiler.ProfilerActivity.CUDA] if device.type == "cuda" else []
    if chosen.variant != "item" or not activities:
        activities.append(torch.profiler.ProfilerActivity.CPU)
    profiler = torch.profiler.profile(activities=activities) if chosen.trace else None
    if profiler:
        profiler.start()
    time.sleep(REST_S[device.type])
    began = time.time()
    train(work, chosen.variant, batches)
    work.synchronize()
    ended = time.time()
    time.sleep(REST_S[device.type])
    if profiler:
        profiler.stop()
        profiler.export_chrome_trace(chosen.trace)

    first = inspect.getsourcelines(Rows)[1]
    lines, last = inspect.getsourcelines(train)
    facts = {
        "variant": chosen.variant,
        "began": began,
        "ended": ended,
        "rest_s": REST_S[device.type],
        "steps": steps,
        "lines": [first, last + len(lines) - 1],
        "software": f"torch {torch.__version__}",
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
    }
    with open(chosen.facts, "w") as file:
        json.dump(facts, file)


if __name__ == "__main__":
    main()
