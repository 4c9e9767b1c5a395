"""A small training on the CPU that torch.profiler records: torch_training.py KIND FOLDER.

Traces go to FOLDER, as users write them; what torch itself says of the run goes to FOLDER/truth.txt,
as JSON. KIND is cycles, ranks, shapes or modules.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as functional
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
from torch.utils.data import DataLoader, Dataset
from torch.utils.flop_counter import FlopCounterMode


class Slow(Dataset):
    """Batches that take a known time to make."""

    def __init__(self, wait: float) -> None:
        self.wait = wait

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, index: int):
        time.sleep(self.wait)
        return torch.randn(3, 32, 32), index % 10


class Net(nn.Module):
    """One of each operator whose floating-point operations are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(32, 32, 2, stride=2)
        self.head = nn.Linear(32, 10)
        self.mix = nn.Parameter(torch.randn(1, 64, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.up(functional.relu(self.second(functional.relu(self.first(x))))))
        x = x.flatten(2).transpose(1, 2)[:, :64].unsqueeze(1)
        x = functional.scaled_dot_product_attention(x, x, x).squeeze(1)
        x = torch.bmm(self.mix.expand(x.shape[0], -1, -1), x)
        x = torch.baddbmm(x, self.mix.expand(x.shape[0], -1, -1), x)
        return self.head(x.mean(1))


def train_step(net: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer.zero_grad()
    functional.cross_entropy(net(x), y).backward()
    optimizer.step()


def cycles(folder: Path, repeat: int = 3, wait: float = 0.002, workers: int = 2, ddp: bool = False) -> None:
    net: nn.Module = Net()
    if ddp:
        torch.distributed.init_process_group("gloo")
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters())
    loader = DataLoader(Slow(wait), batch_size=8, num_workers=workers)
    steps: list[int] = []
    write = tensorboard_trace_handler(str(folder), use_gzip=True)

    def ready(p: profile) -> None:
        steps.append(p.step_num)
        write(p)

    plan = schedule(wait=1, warmup=1, active=3, repeat=repeat)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=ready, with_stack=True, profile_memory=True
    ) as p:
        for number, (x, y) in enumerate(loader):
            if number == 5 * repeat + 1:
                break
            train_step(net, optimizer, x, y)
            p.step()
    if not ddp:
        (folder / "truth.txt").write_text(json.dumps({"pid": os.getpid(), "handled_at": steps}))


def shapes(folder: Path) -> None:
    """One step, its operations counted by torch, and torch's own table of operators."""
    net = Net()
    x, y = torch.randn(8, 3, 32, 32), torch.arange(8)
    functional.cross_entropy(net(x), y).backward()  # what runs once only is over
    net.zero_grad()
    with FlopCounterMode(display=False) as counter:
        functional.cross_entropy(net(x), y).backward()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as p:
        functional.cross_entropy(net(x), y).backward()
    p.export_chrome_trace(str(folder / "trace.json"))
    rows = [[r.key, r.count, r.self_cpu_time_total, r.cpu_time_total] for r in p.key_averages()]
    truth = {"flops": counter.get_total_flops(), "operators": rows}
    (folder / "truth.txt").write_text(json.dumps(truth))


def modules(folder: Path) -> None:
    """Two steps with stacks; how often each module was called, and torch's own times of annotations and of the backward pass."""
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    x, y = torch.randn(8, 3, 32, 32), torch.arange(8)
    calls: dict[str, int] = {}

    def count(module: nn.Module, _: object) -> None:
        name = type(module).__name__
        calls[name] = calls.get(name, 0) + 1

    train_step(net, optimizer, x, y)  # what runs once only is over
    for module in net.modules():
        module.register_forward_pre_hook(count)
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, with_modules=True) as p:
        for _ in range(2):
            with torch.profiler.record_function("## outer ##"), torch.profiler.record_function("## inner ##"):
                train_step(net, optimizer, x, y)
    p.export_chrome_trace(str(folder / "trace.json"))
    rows = {r.key: [r.count, r.cpu_time_total] for r in p.key_averages()}
    (folder / "truth.txt").write_text(json.dumps({"calls": calls, "rows": rows}))


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    kind, place = sys.argv[1], Path(sys.argv[2])
    if kind == "cycles":
        cycles(place)
    elif kind == "ranks":
        cycles(place, repeat=2, workers=0, ddp=True)
    elif kind == "shapes":
        shapes(place)
    elif kind == "modules":
        modules(place)
