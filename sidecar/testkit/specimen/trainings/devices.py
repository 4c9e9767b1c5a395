"""Simulated GPUs behind a real PyTorch: a network's calls launch work on them.

Every device does the same work at the same time; the fake NVML library shows each of them by
windows of another length. Nothing is computed there: forward, backward and the optimizer's step
put device time into a queue and return when PyTorch has done the same on the CPU, and what asks
for a value (.item(), .cpu(), .tolist()) waits until the queue is empty, as with CUDA.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import torch
from simulated_gpu import SimulatedGPU

DEVICES = 4


class Devices:
    def __init__(self) -> None:
        self.all = [SimulatedGPU(index) for index in range(DEVICES)]

    def busy(self, seconds: float) -> None:
        free_at = max(device._free_at for device in self.all)
        for device in self.all:
            device._free_at = free_at
            device.busy(seconds)

    def synchronize(self) -> None:
        self.all[0].synchronize()


def drive(network: torch.nn.Module, optimizer: torch.optim.Optimizer, seconds: float, shares=(0.3, 0.5, 0.2)) -> Devices:
    """Let a step of the network keep the devices busy for some seconds: forward, backward, update."""
    devices = Devices()
    forward, backward, update = (share * seconds for share in shares)
    network.register_forward_pre_hook(lambda *_: devices.busy(forward))
    optimizer.register_step_pre_hook(lambda *_: devices.busy(update))

    plain_backward = torch.Tensor.backward

    def launch_backward(self, *args, **kwargs):
        devices.busy(backward)
        return plain_backward(self, *args, **kwargs)

    torch.Tensor.backward = launch_backward
    for name in ("item", "tolist", "cpu", "numpy", "__float__", "__bool__"):
        setattr(torch.Tensor, name, waiting(getattr(torch.Tensor, name), devices))
    return devices


def waiting(method, devices: Devices):
    """A method that needs the device's results first."""

    def wait_and_call(self, *args, **kwargs):
        devices.synchronize()
        return method(self, *args, **kwargs)

    return wait_and_call
