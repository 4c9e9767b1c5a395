"""Trains a small network with DistributedDataParallel, on GPUs or, with gloo, on the CPU.

omni-perf run torchrun --nproc-per-node 4 examples/pytorch_train_ddp.py
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import os
import time

import omni_perf  # marks each optimizer's step as the end of a training step
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Digits(Dataset):
    """Noisy pictures of ten patterns: a task that a small network learns in seconds."""

    def __init__(self, count: int) -> None:
        generator = torch.Generator().manual_seed(1)
        patterns = torch.randn(10, 1, 28, 28, generator=generator)
        self.labels = torch.randint(10, (count,), generator=generator)
        self.pictures = patterns[self.labels] + torch.randn(count, 1, 28, 28, generator=generator)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.pictures[index], self.labels[index]


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--pictures", type=int, default=4096)
    arguments.add_argument("--straggler", type=int, default=-1, help="a rank that sleeps 50 ms each step")
    given = arguments.parse_args()

    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local) if on_gpu else torch.device("cpu")
    if not on_gpu:
        torch.set_num_threads(1)
    model = DistributedDataParallel(network().to(device), device_ids=[local] if on_gpu else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    data = Digits(given.pictures)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=64, sampler=sampler)
    right = 0.0
    for epoch in range(given.epochs):
        sampler.set_epoch(epoch)
        hits = torch.zeros(1, device=device)
        for pictures, labels in loader:
            if rank == given.straggler:
                time.sleep(0.05)
            with omni_perf.region("forward"):
                answers = model(pictures.to(device))
                loss = nn.functional.cross_entropy(answers, labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (answers.argmax(1) == labels.to(device)).sum()
        dist.all_reduce(hits)
        right = hits.item() / len(data)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {loss.item():.3f}, {right:.0%} right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
