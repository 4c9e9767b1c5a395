"""Several trainings, each with a model and an optimizer that the program keeps: trials.py [--trials N] [--steps N]."""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse

import torch
from clocked import Clock
from torch import nn

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    clock = Clock().at_exit()
    finished = []
    x, y = torch.rand(256, 512), torch.randint(0, 10, (256,))
    for trial in range(options.trials):
        net = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10))
        optimizer = torch.optim.SGD(net.parameters(), lr=10 ** -(trial + 1))
        for _ in range(options.steps):
            optimizer.zero_grad()
            loss = clock.of("forward", lambda net=net: nn.functional.cross_entropy(net(x), y))()
            clock.of("backward", loss.backward)()
            clock.of("optimizer", optimizer.step)()
            clock.step()
        finished.append((net, optimizer, loss.item()))
