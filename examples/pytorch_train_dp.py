"""Trains a small network with DataParallel, which copies it to each GPU at every step.

omni-perf run examples/pytorch_train_dp.py

Without GPUs DataParallel does nothing: the network trains on the CPU as it is.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse

import omni_perf  # marks each optimizer's step as the end of a training step
import torch
from pytorch_train_ddp import Digits, network
from torch import nn
from torch.utils.data import DataLoader


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--pictures", type=int, default=4096)
    arguments.add_argument("--workers", type=int, default=2, help="of the DataLoader")
    given = arguments.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        print("There is no GPU: DataParallel does nothing here, the network trains on the CPU as it is.", flush=True)
    model = nn.DataParallel(network().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = Digits(given.pictures)
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=given.workers)
    for epoch in range(given.epochs):
        hits = torch.zeros(1, device=device)
        for pictures, labels in loader:
            with omni_perf.region("forward"):
                answers = model(pictures.to(device))
                loss = nn.functional.cross_entropy(answers, labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (answers.argmax(1) == labels.to(device)).sum()
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, {hits.item() / len(data):.0%} right", flush=True)


if __name__ == "__main__":
    main()
