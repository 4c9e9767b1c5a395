"""A loop as people write it, with what they add to it by and by: plain.py --help."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import os
import signal
import time

import torch
from clocked import Clock
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--item", type=float, default=0.0005, help="seconds that a picture takes")
parser.add_argument("--fetch", action="store_true", help="it is waited for, not computed")
parser.add_argument("--spawn", action="store_true")
parser.add_argument("--steps", type=int, default=60, help="of an epoch")
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--persistent", action="store_true", help="workers stay from one epoch to the next")
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--validate", action="store_true")
parser.add_argument("--checkpoint", type=int, default=0, help="each so many steps")
parser.add_argument("--stop", type=int, default=0, help="early, after so many steps")
parser.add_argument("--fail", type=int, default=0, help="with an exception, after so many steps")
parser.add_argument("--short", type=int, default=0, help="the last batch of an epoch by so many pictures")
parser.add_argument("--kill", action="store_true", help="a worker, by SIGKILL")


class Pictures(Dataset):
    def __init__(self, options: argparse.Namespace) -> None:
        self.item, self.fetch, self.kill = options.item, options.fetch, options.kill
        self.count = options.steps * 16 - options.short

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        if self.fetch:
            time.sleep(self.item)
        else:
            end = time.perf_counter() + self.item
            while time.perf_counter() < end:
                sum(range(50))
        if self.kill and index > self.count // 2 and get_worker_info() is not None and get_worker_info().id == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.rand(3, 32, 32), index % 10


def main() -> None:
    options = parser.parse_args()
    clock = Clock().at_exit()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    how = {"batch_size": 16, "num_workers": options.workers, "persistent_workers": options.persistent}
    if options.spawn:
        how["multiprocessing_context"] = "spawn"
    forward, save = clock.of("forward", model), clock.of("checkpoint", torch.save)
    loader = DataLoader(Pictures(options), **how)
    other = argparse.Namespace(**vars(options) | {"steps": 10, "short": 0, "kill": False})
    validation = DataLoader(Pictures(other), batch_size=16)

    def validate() -> float:
        model.eval()
        with torch.no_grad():
            total = sum(loss_of(model(x), y).item() for x, y in validation)
        model.train()
        return total

    done = samples = 0
    for epoch in range(options.epochs):
        for number, (x, y) in enumerate(clock.data(loader)):
            samples += len(x)
            loss = loss_of(forward(x), y)
            clock.of("backward", loss.backward)()
            if (number + 1) % options.accumulate == 0:
                clock.of("optimizer", optimizer.step)()
                optimizer.zero_grad()
                done += 1
                clock.step(samples, epoch)
                samples = 0
            if options.checkpoint and done % options.checkpoint == 0:
                save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
            if options.fail and done == options.fail:
                raise ValueError(f"loss is not finite at step {done}")
            if options.stop and done == options.stop:
                print("stopped early")
                return
        if options.validate:
            clock.of("evaluation", validate)()


if __name__ == "__main__":
    main()
