"""Ranks that train together: ranks.py spawn|launcher|torchrun [--ranks N] [--slow RANK]."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import os
import socket
import time

import torch
import torch.distributed as dist
from clocked import Clock
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("how", choices=["spawn", "launcher", "torchrun"])
parser.add_argument("--ranks", type=int, default=2)
parser.add_argument("--slow", type=int, default=-1)
parser.add_argument("--steps", type=int, default=60)
EXTRA_S = 0.04


def prepare(extra: float) -> None:
    if extra:
        time.sleep(extra)


def train(rank: int, options: argparse.Namespace) -> None:
    clock = Clock()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)))
    optimizer = torch.optim.AdamW(model.parameters())
    extra = EXTRA_S if rank == options.slow else 0.0
    x, y = torch.rand(64, 512), torch.arange(64) % 10
    for _ in range(options.steps):
        clock.of("extra", prepare)(extra)
        loss = nn.functional.cross_entropy(model(x), y)
        clock.of("backward", loss.backward)()
        clock.of("optimizer", optimizer.step)()
        optimizer.zero_grad()
        clock.step()
    clock.facts |= {"rank": rank}
    clock.write()


def spawned(rank: int, options: argparse.Namespace, port: int) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks)
    train(rank, options)
    dist.destroy_process_group()


def launched(options: argparse.Namespace) -> None:
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    train(dist.get_rank(), options)


if __name__ == "__main__":
    options = parser.parse_args()
    if options.how == "spawn":
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        torch.multiprocessing.spawn(spawned, (options, port), nprocs=options.ranks)
    elif options.how == "launcher":
        from accelerate import notebook_launcher

        notebook_launcher(launched, (options,), num_processes=options.ranks, use_port="29571")
    else:
        launched(options)
