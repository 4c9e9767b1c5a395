"""A training with a validation after each epoch, in one of the ways that people write it: evaluations.py WAY."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys

import torch
from clocked import Clock
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLOCK = Clock().at_exit()
torch.set_num_threads(1)
torch.manual_seed(0)
MODEL = nn.Sequential(
    nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4),
    nn.Flatten(), nn.Linear(2048, 10),
)  # fmt: skip
CRITERION = nn.CrossEntropyLoss()
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.001, momentum=0.9)
FORWARD = CLOCK.of("forward", MODEL)


def pictures(count: int) -> DataLoader:
    return DataLoader(TensorDataset(torch.randn(count, 3, 32, 32), torch.randint(0, 10, (count,))), batch_size=16)


TRAIN, VAL = pictures(640), pictures(480)


def one(loader, train: bool, epoch: int) -> float:
    """Train or validate, as a value has it."""
    total = 0.0
    for x, y in CLOCK.data(loader) if train else loader:
        with torch.set_grad_enabled(train):
            loss = CRITERION(FORWARD(x) if train else MODEL(x), y)
        if train:
            learn(loss, len(x), epoch)
        total += loss.item()
    return total


def optional(loader, epoch: int, optimizer=None) -> float:
    """Train where there is an optimizer."""
    total = 0.0
    for x, y in loader if optimizer is None else CLOCK.data(loader):
        loss = CRITERION(MODEL(x) if optimizer is None else FORWARD(x), y)
        if optimizer is not None:
            learn(loss, len(x), epoch)
        total += loss.item()
    return total


def learn(loss, samples: int, epoch: int) -> None:
    OPTIMIZER.zero_grad()
    CLOCK.of("backward", loss.backward)()
    CLOCK.of("optimizer", OPTIMIZER.step)()
    CLOCK.step(samples, epoch)


def comprehension() -> float:
    with torch.no_grad():
        return sum(CRITERION(MODEL(x), y).item() for x, y in VAL)


@torch.inference_mode()
def decorated() -> float:
    return torch.cat([MODEL(x).argmax(1) == y for x, y in VAL]).float().mean().item()


def inside() -> float:
    right = 0
    for x, y in VAL:
        with torch.no_grad():
            scores = MODEL(x)
        right += (scores.argmax(1) == y).sum().item()
    return right


def mode() -> float:
    MODEL.eval()
    right = 0
    for x, y in VAL:
        right += (MODEL(x).argmax(1) == y).sum().item()
    MODEL.train()
    return right


def score(loader) -> float:
    return sum((MODEL(x).argmax(1) == y).sum().item() for x, y in loader)


def helper() -> float:
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        return score(VAL)


def main() -> None:
    way = sys.argv[1]
    for epoch in range(4):
        if way == "optional":
            optional(TRAIN, epoch, OPTIMIZER)
            print(CLOCK.of("evaluation", lambda: optional(VAL, 0))())
            continue
        one(TRAIN, True, epoch)
        if way == "one":
            print(CLOCK.of("evaluation", lambda: one(VAL, False, 0))())
        else:
            print(CLOCK.of("evaluation", globals()[way])())


if __name__ == "__main__":
    main()
