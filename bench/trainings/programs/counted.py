"""A training without an end that counts its steps in a file: counted.py --work FILE --workers 4."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import mmap
import struct
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--work", type=Path, required=True)
parser.add_argument("--workers", type=int, default=4)


class Pictures(Dataset):
    def __len__(self) -> int:
        return 1 << 24

    def __getitem__(self, index: int):
        return torch.rand(3, 16, 16).add_(index % 7), index % 10


def main() -> None:
    options = parser.parse_args()
    with options.work.open("r+b") as file:
        counts = mmap.mmap(file.fileno(), 8)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()
    for done, (x, y) in enumerate(DataLoader(Pictures(), batch_size=16, num_workers=options.workers)):
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
        struct.pack_into("q", counts, 0, done + 1)


if __name__ == "__main__":
    main()
